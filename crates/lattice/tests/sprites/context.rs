//! What a sprite finds when it begins: its issue as files, and the documents that it works by.

use std::collections::BTreeMap;
use std::path::Path;

use lattice_testkit::TestRepo;
use serde_json::Value;

use crate::{lattice, look, rules};

/// Copies what it was given, without a network, and tries to change it.
const READS: &str = r#"
    ls -R .lattice/context > first-look
    cp -r .lattice/context seen
    cp -r .lattice/skills skills
    for try in "echo x > .lattice/context/trigger.md" "mv .lattice/context/trigger.md .lattice/context/y" \
        "rm .lattice/context/manifest.json" "touch .lattice/context/new" "rm -rf .lattice/context" "mv .lattice/context x"; do
        bash -c "$try" 2>/dev/null && echo "done: $try" >> changed
    done
    git add -A; git commit --quiet -m "What I saw"
    lattice emit completed --status success
"#;

/// A repository with a Git remote and two issues, of which the second refers to the first.
fn world() -> TestRepo {
    let repo = TestRepo::draw("main*");
    let dir = repo.sandbox().root().join("remote/acme/tools.git");
    std::fs::create_dir_all(&dir).expect("the sandbox can be written");
    repo.beside(&dir).git(&["init", "--quiet", "--bare", "--initial-branch=main"]);
    repo.git(&["remote", "add", "origin", dir.to_str().expect("text")]);
    repo.git(&["push", "--quiet", "origin", "main"]);
    lattice(&repo).args(["issue", "new", "--title", "The cache is stale", "--body", "It never forgets."]).ok();
    lattice(&repo).args(["issue", "new", "--title", "Forget after an hour", "--body", "Fixes #1."]).ok();
    lattice(&repo).args(["issue", "comment", "2", "An hour is long."]).ok();
    repo
}

/// All files below a folder with their contents.
fn files(base: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![base.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(base).expect("it is below").display().to_string();
            match path.is_dir() {
                true => waiting.push(path),
                false => drop(found.insert(name, std::fs::read_to_string(&path).expect("a text"))),
            }
        }
    }
    found
}

// proves: CB-4, CB-5, CB-6, CB-13, CB-27, CB-35, CB-80, CB-95
#[test]
fn a_sprite_finds_its_issue_before_it_begins_and_cannot_change_it() {
    let repo = world();
    let run = lattice(&repo).args(["run", "issue", "2", "--name", "one", "--", "bash", "-c", READS]).run();
    assert_eq!(run.code, Some(0), "{}", run.snapshot());
    let show = |path: &str| repo.try_git(&["show", &format!("sprite/one:{path}")]);
    assert!(show("changed").is_err(), "{:?}", show("changed"));
    let manifest: Value = serde_json::from_str(&show("seen/manifest.json").expect("a manifest")).expect("a document");
    assert_eq!(manifest["title"], "Forget after an hour");
    let look = show("first-look").expect("the first thing it did");
    for file in manifest["files"].as_array().expect("files") {
        let path = file["path"].as_str().expect("a path");
        assert!(show(&format!("seen/{path}")).is_ok(), "{path}");
        assert!(look.contains(path.rsplit('/').next().expect("a name")), "{path}:\n{look}");
    }
    assert!(show("seen/linked/issue_1.md").expect("the linked issue").contains("It never forgets."));
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../priv/sprite_skills");
    let skills = files(&shipped);
    assert_eq!(skills.len(), 2);
    for (path, text) in skills {
        assert_eq!(show(&format!("skills/{path}")).expect("a skill").trim_end(), text.trim_end(), "{path}");
    }
    let delivered = repo.common_dir().join("lattice/sprites/one/mail/context");
    let before = files(&delivered);
    assert_eq!(before.len(), 4, "manifest, trigger, thread and one linked issue: {before:?}");
    lattice(&repo).args(["issue", "comment", "2", "Half an hour?"]).ok();
    assert_eq!(files(&delivered), before, "what was delivered stays until it is delivered again");
    let other = lattice(&repo).args(["run", "issue", "1", "--name", "two", "--", "bash", "-c", READS]).run();
    assert_eq!(other.code, Some(0), "{}", other.snapshot());
    assert_eq!(files(&delivered), before, "another sprite has a folder of its own");
}

/// Makes a checkpoint at the end of a phase and before it gives up.
const FAILS: &str = r#"
    lattice emit phase-started implement
    lattice emit info "the cache is in src" --kind observation
    lattice emit artifact --kind branch --ref sprite/fix-cache
    echo half > half.txt
    lattice checkpoint > /dev/null
    lattice emit phase-finished implement --success false
    echo broken > broken.txt
    lattice checkpoint > /dev/null
    lattice emit error "The build fails" --details '{"exit_code":1}'
    exit 1
"#;

// proves: SP-45, SP-57, SP-75
#[test]
fn what_a_failed_sprite_declared_and_saved_is_there_to_be_looked_at() {
    let repo = TestRepo::draw("main*");
    let run = lattice(&repo).args(["run", "Fix it", "--name", "one", "--", "bash", "-c", FAILS]).run();
    assert_eq!(run.code, Some(1), "{}", run.snapshot());
    let artifacts = look(&repo, &["artifacts", "one"]);
    assert_eq!(artifacts["artifacts"][0]["type"], "branch", "{artifacts:#}");
    assert_eq!(artifacts["artifacts"][0]["path"], "sprite/fix-cache", "{artifacts:#}");
    assert_eq!(artifacts["work_item_id"], "task-one");
    let shown = look(&repo, &["show", "one"]);
    assert_eq!(shown["sprite"]["state"], "failed");
    assert_eq!(rules(&repo, "one"), [""; 0], "a checkpoint came before the error");
    let last = shown["sprite"]["checkpoint"].as_str().expect("a checkpoint");
    lattice(&repo).args(["sprite", "restore", "one", last]).ok();
}

#[test]
fn a_sprite_gets_the_code_that_its_task_seems_to_need_without_secrets() {
    let repo = TestRepo::draw("main <- a*");
    repo.write("src/cache.py", "def forget_stale_entries(cache):\n    return {key: cache[key] for key in cache}\n");
    repo.write("src/key.py", "TOKEN = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'  # of the cache\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "a cache"]);
    let script = "cp .lattice/pack.md pack; grep -q .lattice/pack.md .lattice/prompt.md && lattice checkpoint";
    let run = |name: &str, more: &[&str]| {
        let words = ["run", "forget_stale_entries in the cache forgets nothing", "--name", name];
        lattice(&repo).args(words).args(more).args(["--", "bash", "-c", script]).run()
    };
    let here = run("here", &[]);
    assert_eq!(here.code, Some(0), "{}", here.snapshot());
    let pack = repo.git(&["show", "sprite/here:pack"]);
    assert!(pack.contains("def forget_stale_entries") && !pack.contains("ghp_abc"), "{pack}");
    let checkpoint = look(&repo, &["show", "here"])["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    let record = lattice(&repo).args(["context", "session", "restore", &checkpoint]).ok().stdout;
    assert!(record.contains("src/cache.py"), "the session knows what it was given: {record}");
    assert_eq!(run("there", &["--parent", "main"]).code, Some(0));
    assert!(repo.try_git(&["show", "sprite/there:pack"]).is_err(), "what is not what the agent gets is not packed");
}

#[test]
fn nothing_that_was_not_committed_reaches_a_sprite() {
    let repo = TestRepo::draw("main*");
    repo.write("src/greeting.py", "def greeting():\n    return 'hello'\n");
    repo.write("src/kept.py", "def greeting_kept():\n    return 'kept'\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "a greeting"]);
    repo.write("src/greeting.py", "def greeting():\n    return 'edited-secretly'\n");
    repo.write("src/staged_secretly.py", "def greeting_of_staged():\n    return 'staged-text'\n");
    repo.git(&["add", "src/staged_secretly.py"]);
    repo.write("untracked_secretly/deep/[note]*.py", "def greeting_of_note():\n    return 'note-text'\n");
    repo.write("package.json", "{ \"dependencies\": { \"hidden-package\": \"1\" } }\n");
    let script = "cp -r .lattice mail; lattice emit done ok 2>/dev/null || true";
    let run = lattice(&repo).args(["run", "greeting", "--name", "one", "--", "bash", "-c", script]).run();
    assert_eq!(run.code, Some(0), "{}", run.snapshot());
    let pack = repo.git(&["show", "sprite/one:mail/pack.md"]);
    assert!(pack.contains("greeting_kept"), "{pack}");
    let shown = repo.git(&["ls-tree", "-r", "--name-only", "sprite/one", "mail"]);
    let all: String = shown.lines().map(|path| repo.git(&["show", &format!("sprite/one:{path}")])).collect();
    for hidden in ["secretly", "staged-text", "note-text", "greeting_of", "hidden-package", "package.json"] {
        assert!(!all.contains(hidden), "{hidden}");
    }
}
