//! Runs are hermetic, bounded, and complete in what they report.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use lattice_testkit::{Lattice, TestRepo};
use serde_json::json;

fn shell(repo: &TestRepo, script: &str) -> Lattice {
    Lattice::new("/bin/sh", repo).args(["-c", script])
}

#[test]
fn nothing_of_the_machine_but_path_reaches_the_program() {
    let repo = TestRepo::new();
    let output = shell(&repo, "env | grep -v ^PATH= | grep -v ^_= | sort").ok();
    assert_eq!(
        output.snapshot(),
        "exit code 0\n--- stdout\n\
         GIT_AUTHOR_DATE=@1767225660 +0000\n\
         GIT_COMMITTER_DATE=@1767225660 +0000\n\
         GIT_CONFIG_GLOBAL=<dir>/gitconfig\n\
         GIT_CONFIG_NOSYSTEM=1\n\
         GIT_TERMINAL_PROMPT=0\n\
         HOME=<dir>/home\n\
         LATTICE_NOW=2026-01-02T03:04:05Z\n\
         LATTICE_SEED=1\n\
         LC_ALL=C\n\
         PWD=<dir>/repo\n\
         TMPDIR=<dir>/tmp\n\
         TZ=UTC\n\
         XDG_CONFIG_HOME=<dir>/home/.config\n"
    );
    let again = shell(&repo, "echo $LATTICE_NOW $LATTICE_SEED").ok();
    assert_eq!(again.stdout, "2026-01-02T03:04:06Z 2\n", "each run has its own time and ids");
}

#[test]
fn input_directory_and_variables_reach_the_program() {
    let repo = TestRepo::new();
    repo.write("sub/file", "");
    let run = shell(&repo, "cat; basename \"$PWD\"; echo $COLOUR >&2; exit 3");
    let output = run.stdin("typed\n").cwd("sub").env("COLOUR", "green").fails(3);
    assert_eq!(output.snapshot(), "exit code 3\n--- stdout\ntyped\nsub\n--- stderr\ngreen\n");
    assert_eq!(shell(&repo, "cat").ok().stdout, "", "there is no input unless it is given");
}

#[test]
fn json_is_asked_for_before_the_command() {
    let repo = TestRepo::new();
    repo.write("program", "#!/bin/sh\nprintf '{\"first\": \"%s\"}\\n' \"$1\"\n");
    let program = repo.dir().join("program");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(Lattice::new(program.to_str().unwrap(), &repo).arg("log").json(), json!({ "first": "--json" }));
}

#[test]
#[should_panic(expected = "not one JSON document")]
fn two_documents_are_not_json() {
    shell(&TestRepo::new(), "echo '{} {}'").run().json();
}

#[test]
#[should_panic(expected = "took too long")]
fn a_run_that_hangs_is_ended() {
    shell(&TestRepo::new(), "echo waiting; sleep 60").timeout(Duration::from_millis(200)).run();
}

#[test]
fn a_started_run_can_be_killed_and_interrupted() {
    let repo = TestRepo::new();
    let killed = shell(&repo, "exec sleep 60").spawn();
    killed.kill();
    assert_eq!(killed.wait().snapshot(), "signal 9\n");
    let interrupted = shell(&repo, "exec sleep 60").spawn();
    interrupted.interrupt();
    assert_eq!(interrupted.wait().snapshot(), "signal 2\n");
}
