//! Runs without a sandbox: only if asked for by name, and said everywhere.

use lattice_testkit::{Lattice, TestRepo};
use serde_json::json;

use crate::{agent, configure, is_root, lattice, log, look, validated};

/// The program as an ordinary user of a system that a script has changed first.
fn changed(repo: &TestRepo, script: &str) -> Lattice {
    let script = format!("{script} && exec \"$@\"");
    let words = ["--user", "--mount", "--map-user=1000", "--map-group=1000", "--keep-caps", "sh", "-c", &script, "sh"];
    Lattice::new("/usr/bin/unshare", repo).args(words).arg(env!("CARGO_BIN_EXE_lattice"))
}

/// The program where one system call fails, as a container has it.
fn without_call(repo: &TestRepo, call: u32, errno: u32) -> Lattice {
    let filter = "import ctypes, os, struct, sys
call, errno = int(sys.argv[1]), int(sys.argv[2])
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (6, 0, 0, 0x50000 | errno), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))
program = struct.pack('H6xQ', len(rules), ctypes.addressof(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[3], sys.argv[3:])";
    let words = ["-c".to_owned(), filter.to_owned(), call.to_string(), errno.to_string()];
    Lattice::new("/usr/bin/python3", repo).args(words).arg(env!("CARGO_BIN_EXE_lattice"))
}

#[test]
fn where_a_system_call_is_forbidden_the_refusal_names_the_layer_and_what_would_allow_it() {
    let repo = TestRepo::draw("main*");
    for (name, call, errno, said) in [
        ("unshare", 272, 1, ["(namespaces)", "--security-opt seccomp=unconfined"]),
        ("landlock", 444, 38, ["(landlock)", "boot parameter lsm="]),
    ] {
        let out = without_call(&repo, call, errno).args(["run", "x", "--name", name, "--", "true"]).fails(1);
        for part in said.into_iter().chain(["lattice run --sandbox none"]) {
            assert!(out.stderr.contains(part), "{part}: {}", out.snapshot());
        }
    }
}

/// The program where the kernel gives nobody a user namespace.
fn forbidden(repo: &TestRepo) -> Lattice {
    changed(repo, "echo 0 > /proc/sys/user/max_user_namespaces")
}

/// As Docker has it: a part of `/proc` is hidden, and the root is an overlay.
#[test]
fn where_a_container_forbids_a_layer_the_refusal_names_what_would_allow_it() {
    let repo = TestRepo::draw("main*");
    let root = repo.sandbox().root().display().to_string();
    let masked = "mount -t tmpfs tmpfs /proc/bus";
    let overlay = format!(
        "mkdir -p {root}/o/l {root}/o/u {root}/o/w {root}/o/m && mount -t overlay overlay -o \
         lowerdir={root}/o/l,upperdir={root}/o/u,workdir={root}/o/w,userxattr {root}/o/m"
    );
    let cases = [
        ("masked", masked, None, ["(proc)", "--security-opt systempaths=unconfined"]),
        (
            "overlay",
            overlay.as_str(),
            Some(format!("{root}/o/m/sprites")),
            ["(overlay)", "config set sprite.dir FOLDER"],
        ),
    ];
    for (name, script, folder, said) in cases {
        if let Some(folder) = folder {
            configure(&repo, &format!("[sprite]\ndir = \"{folder}\"\n"));
        }
        let out = changed(&repo, script).args(["run", "x", "--name", name, "--", "true"]).fails(1);
        for part in said.into_iter().chain(["lattice run --sandbox none"]) {
            assert!(out.stderr.contains(part), "{part}: {}", out.snapshot());
        }
        assert_eq!(look(&repo, &["show", name])["sprite"]["state"], json!("failed"));
    }
}

/// An agent that works, waits for an answer at a checkpoint, and goes on from there.
const WORKS: &str = r#"
    set -e
    if [ -e .lattice/resume.json ]; then
        test "$(cat state)" = before; test "$(cat ~/note)" = kept; lattice emit info resumed
        lattice emit completed --status success --summary done; exit
    fi
    test "$PWD" = "$LATTICE_WORKSPACE"; test "$LATTICE_SANDBOX" = none; test -z "$HTTPS_PROXY"
    grep -q "$PWD/.lattice/outbox.jsonl" .lattice/skills/protocol/SKILL.md
    git branch --show-current; git status --porcelain; grep -c / /proc/self/mountinfo >/dev/null
    echo before > state; git add -A; git commit --quiet -m work; echo kept > ~/note
    (setsid bash -c 'while :; do sleep 0.05; done' &)
    id=$(lattice checkpoint); echo after > state
    lattice emit waiting --reason r --checkpoint $id --expect ok=boolean
"#;

#[test]
fn a_run_without_a_sandbox_does_the_whole_loop_and_says_everywhere_that_there_is_none() {
    let repo = TestRepo::draw("main*");
    let refused = forbidden(&repo).args(["run", "x", "--name", "held", "--", "true"]).fails(1);
    for part in ["user.max_user_namespaces", "lattice run --sandbox none"] {
        assert!(refused.stderr.contains(part), "no silent way around: {}", refused.snapshot());
    }
    let run = forbidden(&repo).args(["run", "x", "--name", "bare", "--sandbox", "none"]);
    let out = run.args(["--", "bash", "-c", WORKS]).run();
    assert_eq!(out.code, Some(4), "{}\n{}", out.snapshot(), log(&repo, "bare"));
    assert!(out.stderr.starts_with("warning: bare runs without a sandbox"), "{}", out.snapshot());
    assert!(out.stderr.contains("not enforced: no push, no GitHub"), "{}", out.snapshot());
    assert!(log(&repo, "bare").starts_with("[lattice] what follows ran without a sandbox\nsprite/bare\n"));
    let shown = look(&repo, &["show", "bare"]);
    assert_eq!((&shown["sprite"]["sandbox"], &shown["run"]["sandbox"]), (&json!("none"), &json!("none")));
    assert_eq!(shown["run"]["not_enforced"].as_array().map(Vec::len), Some(6), "the record names the rules");
    assert_eq!(shown["violations"], json!([]));
    let text = lattice(&repo).args(["sprite", "show", "bare"]).ok().stdout;
    assert!(text.contains("sandbox    none; not enforced: no push"), "{text}");
    assert!(lattice(&repo).args(["sprite", "list"]).ok().stdout.contains("sprite/bare (no sandbox)"));
    let resumed = forbidden(&repo).args(["resume", "bare", "--input", "ok=true", "--json"]).run();
    assert_eq!(resumed.code, Some(0), "{}\n{}", resumed.snapshot(), log(&repo, "bare"));
    validated(&repo, &resumed.json());
    assert_eq!(resumed.json()["sandbox"], json!("none"));
    assert!(resumed.stderr.starts_with("warning: bare runs without a sandbox"), "{}", resumed.snapshot());
    assert_eq!(repo.git(&["log", "--format=%s", "main..sprite/bare"]), "work");
    assert_eq!(repo.git(&["show", "sprite/bare:state"]), "before", "it went on from its checkpoint");
    assert_eq!(look(&repo, &["show", "held"])["sprite"]["state"], json!("failed"));
    forbidden(&repo).args(["sprite", "destroy", "bare"]).ok();
}

#[test]
fn without_a_sandbox_what_only_a_sandbox_can_hold_is_refused() {
    let repo = TestRepo::draw("main*");
    let refused = |words: &[&str], what: &str| {
        let out = lattice(&repo).args(["run", "x", "--sandbox", "none"]).args(words).fails(1);
        assert!(out.stderr.contains(what), "{}", out.snapshot());
    };
    refused(&["--agent", "claude"], "a key that it must not have");
    refused(&["--network", "localhost:80", "--", "true"], "named hosts and no other");
    refused(&["--network", "none", "--", "true"], "named hosts and no other");
    configure(&repo, "[sprite]\nlayers = [\"cache\"]\n");
    refused(&["--", "true"], "sprite.layers");
    assert_eq!(look(&repo, &["list"])["sprites"], json!([]), "nothing was made");
    assert_eq!(agent(&repo, "strict", "test \"$LATTICE_SANDBOX\" = strict").code, Some(0));
    assert_eq!(look(&repo, &["show", "strict"])["run"]["not_enforced"], json!([]));
}

#[test]
fn an_agent_of_root_is_another_user_without_a_sandbox_too_and_everything_it_started_ends_with_it() {
    let repo = TestRepo::draw("main*");
    let root = repo.sandbox().root();
    let copy = root.join("lattice");
    std::fs::copy(env!("CARGO_BIN_EXE_lattice"), &copy).expect("a copy");
    let run = |name: &str, script: &str| {
        let words = ["run", "x", "--sandbox", "none", "--name", name, "--", "bash", "-c", script];
        Lattice::new(copy.to_str().expect("text"), &repo).args(words).run()
    };
    let open = |mode: &str| {
        let done = std::process::Command::new("chmod").arg(mode).arg(root).status().expect("chmod runs");
        assert!(done.success());
    };
    open("go-rwx");
    if is_root() {
        let closed = run("closed", "true");
        assert_eq!(closed.code, Some(1), "{}", closed.snapshot());
        assert!(
            closed.stderr.contains("is closed to the user 64813, which agents of root are"),
            "{}",
            closed.snapshot()
        );
    }
    open("go+rx");
    let script = "id -u > who; (setsid sleep 1000 & echo $! > pid); sleep 1000 & git add -A; git commit --quiet -m x";
    let out = run("user", script);
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "user"));
    let me = String::from_utf8(std::process::Command::new("id").arg("-u").output().expect("id runs").stdout);
    let expected = if is_root() { "64813".to_owned() } else { me.expect("a number").trim().to_owned() };
    assert_eq!(repo.git(&["show", "sprite/user:who"]), expected);
    let process = repo.git(&["show", "sprite/user:pid"]);
    assert!(!std::path::Path::new("/proc").join(process).exists(), "what left its session is ended too");
}

#[test]
fn the_demo_says_where_there_can_be_no_sandbox_and_shows_the_rest_without_one() {
    let repo = TestRepo::new();
    let refused = forbidden(&repo).arg("demo").fails(1);
    assert!(refused.stdout.contains("the sandbox was refused (namespaces)"), "{}", refused.snapshot());
    assert!(refused.stderr.contains("lattice demo --sandbox none"), "{}", refused.snapshot());
    let shown = forbidden(&repo).args(["demo", "--sandbox", "none"]).ok().stdout;
    for part in
        ["--sandbox none -- bash agent.sh", "warning: polite runs without a sandbox", "polite completed", "holds:"]
    {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
}
