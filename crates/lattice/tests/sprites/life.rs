//! What surrounds a run: agents by name, detached ones, limits, proposals, and what is removed when.

use lattice_testkit::TestRepo;
use serde_json::{Value, json};

use crate::{agent, configure, is_root, lattice, log, look, rules, validated};

fn installed(repo: &TestRepo, name: &str) -> bool {
    log(repo, name).lines().any(|line| line == "installed")
}

fn proposals(repo: &TestRepo) -> Vec<Value> {
    let listed = lattice(repo).arg("proposals").json();
    validated(repo, &listed);
    listed["proposals"].as_array().expect("a list").clone()
}

/// The example of the protocol, with a command to make it testable.
const PROPOSES: &str = r#"
    payload='{"observed_failure":{"phase":"bootstrap","exit_code":127,"stderr_hint":"bash: node: command not found"},"suggested_adjustment":{"type":"runtime_install","details":{"runtime":"node","version":"20","command":"echo installed > ~/node"}},"confidence":CONFIDENCE,"evidence":["package.json present"],"scope":"repo_specific"}'
    test ! -e ~/node || lattice emit info "node is here"
    echo "${payload/CONFIDENCE/0.85}" | lattice emit environment-proposal --json -
    echo "${payload/CONFIDENCE/0.9}" | lattice emit environment-proposal --json -
    while [ -e wait ] && [ ! -e .lattice/go ]; do sleep 0.05; done
    ls -A .lattice; test ! -e ~/node || cat ~/node
    cat .lattice/environment.json
"#;

// proves: SP-58, SP-59, SP-67, SP-68, SP-98
#[test]
fn a_proposal_is_listed_once_and_holds_for_future_sprites_once_a_person_accepts_it() {
    let repo = TestRepo::draw("main*");
    let script = format!("touch wait\n{PROPOSES}");
    let running = lattice(&repo).args(["run", "x", "--name", "first", "--", "bash", "-c", &script]).spawn();
    while proposals(&repo).first().is_none_or(|proposal| proposal["seen"] != json!(2)) {
        std::thread::yield_now();
    }
    let [proposal] = &proposals(&repo)[..] else { panic!("the same change is one proposal") };
    assert_eq!((&proposal["state"], &proposal["type"]), (&json!("pending"), &json!("runtime_install")));
    let id = proposal["id"].as_str().expect("an id");
    let before = std::fs::read_dir(repo.dir().join(".git/lattice/sprites/first/mail")).expect("a mailbox").count();
    lattice(&repo).args(["proposals", "accept", id]).ok();
    let mail = repo.dir().join(".git/lattice/sprites/first/mail");
    assert_eq!(std::fs::read_dir(&mail).expect("a mailbox").count(), before, "the session gets no answer");
    std::fs::write(mail.join("go"), "").expect("a file");
    running.wait();
    assert!(!installed(&repo, "first"), "what runs keeps its environment");
    assert_eq!(agent(&repo, "second", PROPOSES).code, Some(0));
    assert!(installed(&repo, "second"), "{}", log(&repo, "second"));
    assert_eq!(look(&repo, &["events", "second"])["events"][0]["payload"]["message"], json!("node is here"));
    assert_eq!(proposals(&repo)[0]["seen"], json!(4));
    lattice(&repo).args(["proposals", "reject", id]).ok();
    assert_eq!(agent(&repo, "third", PROPOSES).code, Some(0));
    assert!(!installed(&repo, "third"), "a rejected one holds no more");
    lattice(&repo).args(["proposals", "accept", "prop_none"]).fails(1);
}

#[test]
fn what_an_agent_prints_is_shown_and_ctrl_c_says_how_it_goes_on() {
    let repo = TestRepo::draw("main*");
    let script = "lattice emit info hello; printf 'no \\033[2Jescapes\\n'; echo working >&2; sleep 60";
    let run = lattice(&repo).args(["run", "x", "--name", "one", "--", "bash", "-c", script]);
    let output = run.terminal().answer("| working", "\x03").run();
    assert_eq!(output.code, Some(130), "{}", output.snapshot());
    assert!(output.stdout.contains("| no \\u{1b}[2Jescapes"), "{}", output.snapshot());
    assert!(!output.stdout.contains("LATTICE_EVENT"), "an event is shown as what it says: {}", output.snapshot());
    assert!(output.stdout.contains("one was interrupted: lattice resume one goes on"), "{}", output.snapshot());
    assert_eq!(look(&repo, &["show", "one"])["sprite"]["state"], json!("interrupted"));
}

#[test]
fn agents_are_named_configured_and_given_folders_of_the_checkout() {
    let repo = TestRepo::draw("main*");
    repo.write(".gitignore", "cache\n");
    repo.git(&["add", ".gitignore"]);
    repo.git(&["commit", "--quiet", "-m", "ignore"]);
    repo.write("cache/one", "cached\n");
    configure(
        &repo,
        "[sprite]\nagent = \"mine\"\nlayers = [\"cache\"]\n[agents.mine]\ncommand = [\"bash\", \"-c\", \"cat $FILE cache/one; \
         cat {prompt_file}; ! echo x > cache/two\"]\nenv = { FILE = \"/dev/null\" }\n",
    );
    let out = lattice(&repo).args(["run", "Say it", "--name", "mine"]).run();
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "mine"));
    let said = log(&repo, "mine");
    for part in ["cached\n", "Say it\n", "skills/protocol/SKILL.md", "cache/two: Read-only file system"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(look(&repo, &["show", "mine"])["sprite"]["agent"], json!("mine"));
    let shell = lattice(&repo).args(["run", "echo from the shell > out", "--agent", "shell", "--name", "sh"]).run();
    assert_eq!(shell.code, Some(0), "{}", shell.snapshot());
    assert_eq!(repo.git(&["show", "sprite/sh:out"]), "from the shell", "what it left is one last commit");
    let left = lattice(&repo).args(["run", "echo x > out", "--agent", "shell", "--no-collect", "--name", "left"]).run();
    assert_eq!(left.code, Some(0), "{}", left.snapshot());
    assert_eq!(repo.git(&["branch", "--list", "sprite/left"]), "");
    let unknown = lattice(&repo).args(["run", "x", "--agent", "nobody"]).fails(2);
    assert!(unknown.stderr.contains("claude, codex, aider, opencode, gemini, shell, mine"), "{}", unknown.snapshot());
}

/// A program of a version manager in the user's home, behind a shim that leads there through the manager.
fn managed(repo: &TestRepo) -> String {
    let root = repo.sandbox().root().join("home/.env");
    let write = |path: &str, text: String| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    };
    let place = root.display();
    write("libexec/env", "#!/bin/sh\ntest -e $ENV_ROOT/chosen && echo $ENV_ROOT/versions/3/bin/$2\n".to_owned());
    write("versions/3/bin/speaker", "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/word\"\n".to_owned());
    write("versions/3/lib/word", "spoken\n".to_owned());
    write(
        "shims/speaker",
        format!(
            "#!/usr/bin/env bash\nset -e\nexport ENV_ROOT=\"{place}\"\nexec \"{place}/libexec/env\" exec \"speaker\" \"$@\"\n"
        ),
    );
    write("own/wrapper", format!("#!/bin/sh\nexec {place}/versions/3/bin/speaker \"$@\"\n"));
    write("chosen", String::new());
    format!("{place}/shims:{place}/own:{}", std::env::var("PATH").expect("a path"))
}

#[test]
fn a_program_behind_a_shim_is_found_and_one_that_is_not_is_refused_with_what_to_configure() {
    let repo = TestRepo::draw("main*");
    let path = managed(&repo);
    for (name, program) in [("shim", "speaker"), ("script", "wrapper")] {
        let out = lattice(&repo).args(["run", "x", "--name", name, "--", program]).env("PATH", &path).run();
        assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, name));
        assert_eq!(log(&repo, name), "spoken\n", "{program}");
    }
    let root = repo.sandbox().root().join("home/.env");
    std::fs::remove_file(root.join("chosen")).expect("it was there");
    let out = lattice(&repo).args(["run", "x", "--name", "lost", "--", "speaker"]).env("PATH", &path).fails(1);
    for part in ["`env which speaker` does not say which", "mounts = [", "home/.env/shims/speaker"] {
        assert!(out.stderr.contains(part), "{part}: {}", out.snapshot());
    }
    let agent = format!("[agents.mine]\ncommand = [\"speaker\"]\nmounts = [\"{}\"]\n", root.display());
    configure(&repo, &agent);
    std::fs::write(root.join("libexec/env"), format!("#!/bin/sh\nshift; exec {}/versions/3/bin/$1\n", root.display()))
        .expect("a manager that only starts");
    let mounted = lattice(&repo).args(["run", "x", "--name", "mounted", "--agent", "mine"]).env("PATH", &path).run();
    assert_eq!(mounted.code, Some(0), "{}\n{}", mounted.snapshot(), log(&repo, "mounted"));
    assert_eq!(log(&repo, "mounted"), "spoken\n");
}

#[test]
fn sprites_live_in_a_folder_of_their_own_if_it_can_be_used() {
    let repo = TestRepo::draw("main*");
    let folder = repo.sandbox().root().join("elsewhere/sprites");
    let set = |path: &std::path::Path| lattice(&repo).args(["config", "set", "sprite.dir"]).arg(path.as_os_str()).run();
    assert_eq!(set(&folder).code, Some(0));
    let waits = "echo x > x; git add -A; git commit --quiet -m x; id=$(lattice checkpoint); echo y > x
        lattice emit waiting --reason r --checkpoint $id --expect ok=boolean";
    let script = format!("if [ -e .lattice/resume.json ]; then cat x; else {waits}; fi");
    assert_eq!(agent(&repo, "far", &script).code, Some(4), "{}", log(&repo, "far"));
    assert!(!repo.dir().join(".git/lattice/sprites").exists(), "nothing lies in the repository");
    let below: Vec<_> = std::fs::read_dir(&folder).expect("it was made").flatten().collect();
    let [own] = &below[..] else { panic!("each repository has a folder of its own there") };
    assert!(own.path().join("far/upper/x").exists());
    // What was made stays where it is, whatever is configured later.
    lattice(&repo).args(["config", "set", "sprite.dir", "/nonexistent/x"]).ok();
    let resumed = lattice(&repo).args(["resume", "far", "--input", "ok=true"]).run();
    assert_eq!(resumed.code, Some(0), "{}\n{}", resumed.snapshot(), log(&repo, "far"));
    assert!(log(&repo, "far").ends_with("x\n"), "{}", log(&repo, "far"));
    assert_eq!(lattice(&repo).args(["sprite", "gc"]).json()["checkouts"].as_array().map(Vec::len), Some(1));
    assert!(!own.path().join("far").exists());
    let writable = repo.sandbox().root().join("writable");
    std::fs::create_dir(&writable).expect("a folder");
    std::fs::set_permissions(&writable, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("open to all");
    let theirs = if is_root() { repo.sandbox().root().join("theirs") } else { "/usr".into() };
    if is_root() {
        std::fs::create_dir(&theirs).expect("a folder");
        std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).expect("given away");
    }
    for (path, why) in [
        (repo.dir().join("sprites"), "inside of the working tree"),
        (writable, "others can write to it"),
        (theirs, "belongs to somebody else"),
    ] {
        assert_eq!(set(&path).code, Some(0));
        let refused = agent(&repo, "no", "true");
        assert_eq!(refused.code, Some(1), "{}", refused.snapshot());
        assert!(refused.stderr.contains(why), "{}", refused.snapshot());
    }
    let relative = lattice(&repo).args(["config", "set", "sprite.dir", "here"]).fails(1);
    assert!(relative.stderr.contains("begins with `/`"), "{}", relative.snapshot());
    assert_eq!(look(&repo, &["list"])["sprites"].as_array().map(Vec::len), Some(1), "nothing was made");
    assert!(!repo.dir().join("sprites").exists(), "nor a folder");
}

// proves: SP-7
#[test]
fn a_detached_sprite_runs_on_and_can_be_followed_and_stopped() {
    let repo = TestRepo::draw("main*");
    let script = "lattice emit info hello; while [ ! -e .lattice/go ]; do sleep 0.05; done; echo x > x";
    let out = lattice(&repo).args(["run", "x", "--detach", "--name", "far", "--", "bash", "-c", script]).run();
    assert_eq!(out.code, Some(0), "{}", out.snapshot());
    while look(&repo, &["events", "far"])["events"].as_array().is_none_or(Vec::is_empty) {
        std::thread::yield_now();
    }
    assert_eq!(look(&repo, &["show", "far"])["sprite"]["state"], json!("running"), "seen before the process ends");
    std::fs::write(repo.dir().join(".git/lattice/sprites/far/mail/go"), "").expect("a file");
    let followed = lattice(&repo).args(["sprite", "events", "far", "--follow"]).ok();
    assert!(followed.stdout.contains("hello"), "{}", followed.snapshot());
    assert_eq!(look(&repo, &["show", "far"])["sprite"]["state"], json!("completed"));
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "sprite/far"]), "x");
}

#[test]
fn a_sprite_that_uses_too_much_is_ended_and_nothing_of_it_is_left() {
    let repo = TestRepo::draw("main*");
    configure(&repo, "[sprite]\nmemory_mb = 200\noutput_mb = 1\nprocesses = 50\n");
    let cases = [
        ("output", "yes", "1 MB of output"),
        ("memory", "perl -e '$x = \"x\" x (1 << 29); sleep 60'", "200 MB of memory"),
        ("double-fork", "(setsid bash -c 'trap \"\" TERM; while :; do yes; done' &) ; sleep 60", "1 MB of output"),
    ];
    for (name, script, what) in cases {
        let out = agent(&repo, name, script);
        assert_eq!(out.code, Some(1), "{name}: {}", out.snapshot());
        let outcome = look(&repo, &["show", name])["sprite"]["outcome"].clone();
        assert_eq!(outcome, json!(format!("ended because it used too much: {what}")), "{name}");
    }
    let bomb =
        agent(&repo, "bomb", "n=0; for i in $(seq 200); do sleep 9 & done 2>/tmp/e; grep -c . /tmp/e; jobs -r | wc -l");
    assert_eq!(bomb.code, Some(1), "{}\n{}", bomb.snapshot(), log(&repo, "bomb"));
    assert_eq!(look(&repo, &["show", "bomb"])["run"]["limits"]["processes"], json!(50));
}

/// Whether whoever runs this may make a control group with both controllers, found out without the program.
fn has_groups() -> bool {
    let script = r#"
        try() { d="$1/lattice-test-$$"; mkdir "$d" 2>/dev/null && { test -e "$d/$2"; r=$?; rmdir "$d"; return $r; }; }
        own() { grep -m1 "^[0-9]*:$1:" /proc/self/cgroup | cut -d: -f3; }
        for up in "$(own '')" "$(dirname "$(own '')")"; do
            try "/sys/fs/cgroup$up" memory.max && try "/sys/fs/cgroup$up" pids.max && exit 0; done
        try "/sys/fs/cgroup/memory$(own memory)" memory.limit_in_bytes && try "/sys/fs/cgroup/pids$(own pids)" pids.max"#;
    std::process::Command::new("sh").args(["-c", script]).status().expect("sh runs").success()
}

#[test]
fn memory_is_counted_by_a_control_group_where_one_can_be_had_and_by_the_supervisor_elsewhere() {
    let repo = TestRepo::draw("main*");
    configure(&repo, "[sprite]\nmemory_mb = 200\n");
    // Two that together use too much, and go on if one is killed.
    let script = "for i in 1 2; do perl -e '$x = \"x\" x (180 << 20); sleep 60' & done; wait; sleep 60";
    let by = |name: &str, omitted: &str| {
        let run = lattice(&repo).args(["run", "x", "--name", name, "--", "bash", "-c", script]);
        let out = run.env("LATTICE_SANDBOX_OMIT", omitted).run();
        assert_eq!(out.code, Some(1), "{name}: {}", out.snapshot());
        let shown = look(&repo, &["show", name]);
        assert_eq!(shown["sprite"]["outcome"], json!("ended because it used too much: 200 MB of memory"), "{name}");
        let by = shown["run"]["limits"]["by"].as_str().expect("the record says it").to_owned();
        assert!(lattice(&repo).args(["sprite", "show", name]).ok().stdout.contains(&by), "and so does the text");
        by
    };
    let watched = "rlimits, and the supervisor's watch over the sum";
    assert_eq!(by("watched", "group"), watched);
    let counted = by("counted", "");
    match has_groups() {
        true => assert!(counted.starts_with("cgroup v"), "{counted}"),
        false => assert_eq!(counted, watched),
    }
}

#[test]
fn nothing_is_removed_that_is_not_landed_and_force_says_what_is_lost() {
    let repo = TestRepo::draw("main*");
    assert_eq!(agent(&repo, "over", "echo x > x; git add -A; git commit --quiet -m x").code, Some(0));
    let waits = "echo y > y; git add -A; git commit --quiet -m y; id=$(lattice checkpoint); \
        lattice emit waiting --reason r --checkpoint $id";
    assert_eq!(agent(&repo, "waits", waits).code, Some(4));
    let planned = lattice(&repo).args(["sprite", "gc", "--dry-run"]).json();
    validated(&repo, &planned);
    assert_eq!((&planned["sprites"], &planned["kept"]), (&json!(["over"]), &json!({ "waits": "it is waiting" })));
    assert_eq!(lattice(&repo).args(["sprite", "gc"]).json()["sprites"], json!(["over"]));
    assert!(repo.dir().join(".git/lattice/sprites/waits/upper").exists());
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "sprite/over"]), "x");
    let bases = || std::fs::read_dir(repo.dir().join(".git/lattice/sprites/base")).expect("a folder").count();
    assert_eq!(bases(), 1, "the one that waits needs it");
    let lost = lattice(&repo).args(["sprite", "destroy", "waits", "--force"]).json();
    validated(&repo, &lost);
    assert!(lost["lost"][0].as_str().is_some_and(|lost| lost.starts_with("sprite/waits at ")), "{lost:#}");
    assert_eq!(lattice(&repo).args(["sprite", "gc"]).json()["checkouts"].as_array().map(Vec::len), Some(1));
    assert_eq!(bases(), 0);
}

// proves: SP-45, SP-57, SP-74, SP-75, SP-76
#[test]
fn what_failed_can_be_looked_into_from_its_checkpoint() {
    let repo = TestRepo::draw("main*");
    let script = r#"
        grep -q "before anything risky" .lattice/skills/protocol/SKILL.md
        lattice emit phase-started test; echo before > state; lattice checkpoint
        lattice emit artifact --kind branch --ref sprite/fix-cache
        echo after > state; lattice emit error "the build fails"
    "#;
    assert_eq!(agent(&repo, "broken", script).code, Some(1));
    assert_eq!(rules(&repo, "broken"), [""; 0], "with a checkpoint there is no hint");
    let artifacts = look(&repo, &["artifacts", "broken"]);
    assert_eq!(
        (&artifacts["artifacts"][0]["type"], &artifacts["artifacts"][0]["path"]),
        (&json!("branch"), &json!("sprite/fix-cache"))
    );
    let checkpoint = look(&repo, &["show", "broken"])["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    lattice(&repo).args(["sprite", "restore", "broken", &checkpoint]).ok();
    let state = repo.dir().join(".git/lattice/sprites/broken/upper/state");
    assert_eq!(std::fs::read_to_string(state).expect("a file"), "before\n");
    assert_eq!(agent(&repo, "hinted", "lattice emit error no").code, Some(1));
    assert_eq!(rules(&repo, "hinted"), ["error-without-checkpoint"]);
}

#[test]
fn an_ordinary_user_needs_nothing_that_root_has() {
    let repo = TestRepo::draw("main*");
    let program = env!("CARGO_BIN_EXE_lattice");
    let run = if is_root() {
        // Nobody may look into the folders of whoever builds this.
        let copy = repo.sandbox().root().join("lattice");
        std::fs::copy(program, &copy).expect("a copy");
        let owned = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(repo.sandbox().root()).status();
        assert!(owned.expect("chown runs").success());
        let words = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        lattice_testkit::Lattice::new("/usr/bin/setpriv", &repo).args(words).arg(copy.to_str().expect("text"))
    } else {
        lattice(&repo)
    };
    let script = "id -u; lattice checkpoint; echo x > x; ! cat /etc/shadow && ! exec 3<>/dev/tcp/127.0.0.1/1";
    let out = run.args(["run", "x", "--name", "user", "--json", "--", "bash", "-c", script]).run();
    assert_eq!(out.code, Some(0), "{}", out.snapshot());
    assert_eq!(out.json()["branches"][0]["branch"], json!("sprite/user"));
}
