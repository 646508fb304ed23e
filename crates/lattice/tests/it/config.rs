//! Tests of config: two files, typed options, aliases.

use lattice_testkit::{Lattice, TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

/// The text of the user's own file.
#[track_caller]
fn user_file(repo: &TestRepo) -> std::path::PathBuf {
    repo.sandbox().root().join("home/.config/lattice/config.toml")
}

#[test]
fn the_repositorys_options_override_the_users() {
    let repo = TestRepo::draw("main*");
    lattice(&repo).args(["config", "set", "--global", "branch.template", "mine/{slug}"]).ok();
    lattice(&repo).args(["config", "set", "--global", "undo.keep_days", "7"]).ok();
    assert_eq!(lattice(&repo).args(["config", "get", "branch.template"]).ok().stdout, "mine/{slug}\n");
    lattice(&repo).args(["config", "set", "branch.template", "ours/{slug}"]).ok();
    assert_eq!(lattice(&repo).args(["config", "get", "branch.template"]).ok().stdout, "ours/{slug}\n");
    assert_eq!(lattice(&repo).args(["config", "get", "--global", "branch.template"]).ok().stdout, "mine/{slug}\n");
    let options = lattice(&repo).args(["config", "list"]).json()["options"].clone();
    assert_eq!(options, json!({ "branch.template": "ours/{slug}", "trunk.branch": "main", "undo.keep_days": "7" }));
    lattice(&repo).args(["create", "-m", "Some work"]).ok();
    assert!(repo.branch_refs().contains_key("ours/some-work"), "the value in force is the one that is used");
}

#[test]
fn setting_keeps_remarks_and_everything_else() {
    let repo = TestRepo::draw("main*");
    repo.write_config("# ours\n[trunk]\nbranch = \"main\"\n\n[undo] # how long\nkeep_days = 30 # a month\n");
    lattice(&repo).args(["config", "set", "undo.keep_days", "60"]).ok();
    let text = std::fs::read_to_string(repo.lattice_dir().join("config.toml")).expect("it exists");
    assert_eq!(text, "# ours\n[trunk]\nbranch = \"main\"\n\n[undo] # how long\nkeep_days = 60 # a month\n");
    lattice(&repo).arg("undo").ok();
    assert_eq!(lattice(&repo).args(["config", "get", "undo.keep_days"]).ok().stdout, "30\n", "it is an operation");
}

#[test]
fn what_is_unset_has_its_default_again_and_everything_else_stays() {
    let repo = TestRepo::draw("main*");
    repo.write_config("# ours\n[trunk]\nbranch = \"main\"\n\n[undo] # how long\nkeep = 9\nkeep_days = 30\n");
    let file = || std::fs::read_to_string(repo.lattice_dir().join("config.toml")).expect("it exists");
    let previewed = lattice(&repo).args(["config", "unset", "undo.keep_days", "--dry-run"]).ok();
    assert!(file().contains("keep_days"), "{}", previewed.snapshot());
    let unset = lattice(&repo).args(["config", "unset", "undo.keep_days"]);
    assert_eq!(unset.ok().stdout, "undo.keep_days is no longer set\n");
    assert_eq!(file(), "# ours\n[trunk]\nbranch = \"main\"\n\n[undo] # how long\nkeep = 9\n");
    let again = lattice(&repo).args(["config", "unset", "undo.keep_days"]).fails(1).stderr;
    assert!(again.contains("`undo.keep_days` is not set there"), "{again}");
    lattice(&repo).arg("undo").ok();
    assert_eq!(lattice(&repo).args(["config", "get", "undo.keep_days"]).ok().stdout, "30\n", "it is an operation");
    lattice(&repo).args(["config", "set", "--global", "alias.up2", "up 2"]).ok();
    lattice(&repo).args(["config", "unset", "--global", "alias.up2"]).ok();
    assert!(!std::fs::read_to_string(user_file(&repo)).expect("it exists").contains("up2"));
    let trunk = lattice(&repo).args(["config", "unset", "trunk.branch"]).fails(2).stderr;
    assert!(trunk.contains("lattice trunk set"), "{trunk}");
}

#[test]
fn wrong_keys_and_values_are_refused_and_nothing_is_written() {
    let repo = TestRepo::draw("main*");
    let before = repo.state();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["set", "no.such", "1"], 1, "there is no option `no.such`"),
        (&["set", "nodots", "1"], 1, "there is no option"),
        (&["set", "undo.keep_days", "many"], 1, "a number"),
        (&["set", "explain.include_diffs", "maybe"], 1, "true or false"),
        (&["set", "trunk.branch", "x"], 2, "lattice trunk set"),
        (&["set", "branch.template", "{nope}/x"], 1, "`{nope}` stands for nothing; there are {slug} and {date}"),
        (&["set", "--global", "branch.template", "{slug}/{date"], 1, "`{date` stands for nothing"),
        (&["get", "undo.keep_days"], 1, "`undo.keep_days` is not set; the default is 90"),
        (&["get", "sprite.agent"], 1, "`sprite.agent` is not set\n"),
        (&["get", "no.such"], 1, "there is no option"),
    ];
    for (args, code, text) in cases {
        let out = lattice(&repo).arg("config").args(args).fails(code);
        assert!(out.stderr.contains(text), "config {}:\n{}", args.join(" "), out.snapshot());
    }
    let editor = lattice(&repo).args(["config", "edit"]).fails(2);
    assert!(editor.stderr.contains("an editor cannot be opened"), "{}", editor.snapshot());
    assert_same(&before, &repo.state());
}

#[test]
fn the_list_has_every_option_with_its_default_and_a_line_for_each_value() {
    let repo = TestRepo::draw("main*");
    let agent = "[agents.mine]\ncommand = [\"me\", \"{prompt}\"] # mine\n\n[agents.mine.env]\nA = \"b\"\n";
    repo.write_config(&format!("[trunk]\nbranch = \"main\"\n{agent}[credentials]\nT = {{ env = \"T\" }}\n"));
    let listed = lattice(&repo).args(["config", "list"]).ok().stdout;
    let lines: Vec<_> = listed.lines().collect();
    for line in [
        "agents.mine.command = [\"me\", \"{prompt}\"]",
        "agents.mine.env.A = b",
        "credentials.T = { env = \"T\" }",
        "trunk.branch = main",
        "# hooks.timeout_ms: how long a hook may take; 0 is forever (default: 600000)",
        "# actions.open_pr: OPEN_PR of agents: allow, ask, deny (default: ask)",
        "# sprite.agent: the agent that runs if none is named",
    ] {
        assert!(lines.contains(&line), "{line}:\n{listed}");
    }
    let is_one = |line: &&str| line.starts_with("# ") || line.contains(" = ");
    assert!(lines.iter().all(is_one), "{listed}");
}

#[test]
fn a_broken_file_is_named_with_its_line() {
    let repo = TestRepo::draw("main*");
    repo.write_config("[trunk]\nbranch = \"main\"\nnonsense\n");
    for words in [&["config", "list"][..], &["config", "get", "undo.keep_days"]] {
        let out = lattice(&repo).args(words).fails(1);
        assert!(out.stderr.contains("lattice/config.toml is broken: line 3: "), "{}", out.snapshot());
        assert!(out.stderr.contains("hint: lattice doctor"), "{}", out.snapshot());
    }
    let log = lattice(&repo).arg("log").ok();
    assert!(log.stderr.contains("lattice/config.toml is broken: line 3: "), "{}", log.snapshot());
    assert!(log.stderr.contains("lattice doctor") && !log.stderr.contains("lattice init"), "{}", log.snapshot());
    let path = user_file(&repo);
    repo.write(path.to_str().expect("text"), "[alias\n");
    let global = lattice(&repo).args(["config", "list", "--global"]).fails(1);
    assert!(global.stderr.contains("lattice/config.toml is broken: line 1: "), "{}", global.snapshot());
    assert!(global.stderr.contains("lattice config edit --global"), "{}", global.snapshot());
}

#[test]
fn a_dry_run_writes_neither_file() {
    let repo = TestRepo::draw("main*");
    let before = repo.state();
    lattice(&repo).args(["config", "set", "undo.keep_days", "60", "--dry-run"]).ok();
    assert_same(&before, &repo.state());
    lattice(&repo).args(["config", "set", "--global", "undo.keep_days", "60", "--dry-run"]).ok();
    assert!(!user_file(&repo).exists(), "the user's own file is a change too");
}

#[test]
fn a_users_file_that_cannot_be_read_is_not_replaced() {
    let repo = TestRepo::draw("main*");
    let path = user_file(&repo);
    let bytes = b"[alias]\nx = \"log\" # caf\xe9, in Latin-1\n";
    repo.write(path.to_str().expect("text"), bytes);
    lattice(&repo).args(["config", "set", "--global", "undo.keep_days", "60"]).fails(1);
    assert_eq!(std::fs::read(&path).expect("it exists"), bytes, "not a byte of it is lost");
    lattice(&repo).arg("log").ok();
    repo.write(path.to_str().expect("text"), "not toml [");
    lattice(&repo).args(["config", "set", "--global", "undo.keep_days", "60"]).fails(1);
    assert_eq!(std::fs::read_to_string(&path).expect("it exists"), "not toml [");
    lattice(&repo).args(["config", "set", "--global", "trunk.branch", "main"]).fails(2);
}

#[test]
fn aliases_stand_for_words_and_never_for_commands_that_exist() {
    let repo = TestRepo::draw("main <- a*");
    lattice(&repo).args(["config", "set", "alias.st", "log --short --stack"]).ok();
    for place in [&[][..], &["--global"]] {
        let refused = lattice(&repo).args(["config", "set", "alias.log", "trunk"]).args(place).fails(1);
        assert!(refused.stderr.contains("`log` is a command already"), "{}", refused.snapshot());
    }
    // Somebody may have written it by hand.
    let path = repo.lattice_dir().join("config.toml");
    let text = std::fs::read_to_string(&path).expect("it exists").replace("[alias]\n", "[alias]\nlog = \"trunk\"\n");
    repo.write_config(&text);
    lattice(&repo).args(["config", "set", "--global", "alias.p", "parent"]).ok();
    let expected = lattice(&repo).args(["log", "--short", "--stack"]).ok().stdout;
    assert_eq!(lattice(&repo).arg("st").ok().stdout, expected);
    assert_eq!(lattice(&repo).args(["--color", "never", "st", "--show-untracked"]).ok().stdout, expected);
    assert!(lattice(&repo).arg("log").ok().stdout.contains("* a"), "a command of ours is not replaced");
    assert_eq!(lattice(&repo).args(["p", "a"]).ok().stdout, "main\n", "the user's own file counts too");
    for place in ["-C", "--cwd"] {
        assert_eq!(lattice(&repo).cwd("..").args([place, "repo", "st"]).ok().stdout, expected, "{place} repo");
    }
    assert_eq!(lattice(&repo).cwd("..").args(["--cwd=repo", "st"]).ok().stdout, expected, "--cwd=repo");
    assert_eq!(lattice(&repo).cwd("..").args(["-Crepo", "st"]).ok().stdout, expected, "-Crepo");
    lattice(&repo).arg("nosuch").fails(2);
}

/// Runs `config set` below strace with these options, in a repository of its own.
#[track_caller]
fn traced(options: &str) -> (TestRepo, Option<i32>) {
    let repo = TestRepo::draw("main*");
    repo.write_config(OLD);
    let script = format!("exec strace {options} -o ../trace \"$0\" \"$@\"");
    let run = Lattice::new("/bin/sh", &repo).args(["-c", &script, env!("CARGO_BIN_EXE_lattice")]);
    let out = run.args(["config", "set", "undo.keep_days", "60"]).run();
    (repo, out.code)
}

const OLD: &str = "[trunk]\nbranch = \"main\"\n\n[undo]\nkeep_days = 30\n";

// proves: ST-3.1-6
#[test]
fn the_file_is_replaced_by_a_rename_and_whole_at_every_moment() {
    let (repo, code) = traced("-e trace=rename,renameat,renameat2");
    assert_eq!(code, Some(0));
    let trace = repo.read("../trace");
    let file = repo.lattice_dir().join("config.toml").display().to_string();
    let rename =
        trace.lines().find(|line| line.contains(&format!("\"{file}\""))).expect("the file is renamed into place");
    let from = rename.split('"').nth(1).expect("a name");
    assert_eq!(std::path::Path::new(from).parent(), Some(repo.lattice_dir().as_path()), "in the same directory");
    let new = OLD.replace("30", "60");
    for call in ["openat", "write", "fsync", "rename"] {
        for number in 1.. {
            let (repo, code) = traced(&format!("-e trace={call} -e inject={call}:signal=KILL:when={number}"));
            let text = std::fs::read_to_string(repo.lattice_dir().join("config.toml")).expect("the file is there");
            assert!(text == OLD || text == new, "killed at {call} {number}: {text}");
            if code == Some(0) {
                assert!(number > 1, "{call} is used at all");
                break;
            }
        }
    }
}
