//! The wrapper counts over processes and strikes at the call it was told.

use lattice_testkit::{Action, GitWrapper, Lattice, Occurrence, Output, TestRepo};

/// A program that calls git as Lattice does: some lines of shell.
#[track_caller]
fn shell(repo: &TestRepo, wrapper: &GitWrapper, lines: &str) -> Output {
    let program = Lattice::new("/bin/sh", repo).wrapper(wrapper);
    program.args(["-c", &format!("{lines}\nexit 0")]).run()
}

const THREE_CALLS: &str = r#"
    "$LATTICE_GIT" update-ref refs/tags/one HEAD
    "$LATTICE_GIT" update-ref refs/tags/two HEAD
    "$LATTICE_GIT" update-ref refs/tags/three HEAD
    echo done
"#;

/// Runs the three calls under one rule and compares which of them took effect.
#[track_caller]
fn check(occurrence: impl Into<Occurrence>, action: Action, expected_tags: &str, expected_output: &str) -> TestRepo {
    let repo = TestRepo::new();
    let mut wrapper = GitWrapper::new(&repo);
    wrapper.on("update-ref", occurrence, action);
    let output = shell(&repo, &wrapper, THREE_CALLS);
    let tags = repo.git(&["for-each-ref", "--format=%(refname:short)", "--sort=refname", "refs/tags"]);
    assert_eq!(tags.replace('\n', " "), expected_tags);
    assert_eq!(output.snapshot(), expected_output);
    repo
}

#[test]
fn the_program_is_killed_before_the_nth_call() {
    check(2, Action::KillParent, "one", "signal 9\n");
}

#[test]
fn the_program_is_killed_after_the_nth_call() {
    check(2, Action::KillParentAfter, "one two", "signal 9\n");
}

#[test]
fn git_alone_is_killed() {
    let said = "exit code 0\n--- stdout\ndone\n--- stderr\nKilled\n";
    check(2, Action::KillSelf, "one three", said);
}

#[test]
fn git_fails_at_every_call() {
    let said =
        "exit code 0\n--- stdout\ndone\n--- stderr\nfatal: made to fail\nfatal: made to fail\nfatal: made to fail\n";
    check(Occurrence::Every, Action::Fail(3), "", said);
}

#[test]
fn shell_text_runs_before_and_after_git() {
    let said = "exit code 0\n--- stdout\ndone\n";
    let same = r#"test "$("$REAL_GIT" rev-parse refs/tags/two)" = "$("$REAL_GIT" rev-parse HEAD)""#;
    check(2, Action::Run(format!("! {{ {same}; }} 2>/dev/null")), "one three two", said);
    check(2, Action::After(same.to_owned()), "one three two", said);
    let foreign = r#"echo noise; "$REAL_GIT" commit --allow-empty -m foreign; test -z "$LATTICE_GIT""#;
    let repo = check(2, Action::Run(foreign.to_owned()), "one three two", said);
    assert_ne!(repo.rev("one"), repo.rev("two"), "the commit was there before the second call");
}

#[test]
fn shell_text_that_fails_is_not_overlooked() {
    let output = "exit code 0\n--- stdout\ndone\n--- stderr\nthe text of a wrapper's rule failed: oh\n";
    check(2, Action::Run("echo oh; false; true".to_owned()), "one three", output);
}

#[test]
fn calls_are_counted_over_runs_and_processes() {
    let repo = TestRepo::new();
    let mut wrapper = GitWrapper::new(&repo);
    wrapper.on("rev-parse HEAD", 3, Action::Fail(7));
    let line = r#""$LATTICE_GIT" rev-parse HEAD >/dev/null 2>&1 || echo failed with $?"#;
    let runs: Vec<String> = (0..5).map(|_| shell(&repo, &wrapper, line).stdout).collect();
    assert_eq!(runs, ["", "", "failed with 7\n", "", ""]);
    assert_eq!(wrapper.count(), 5);
    wrapper.clear_calls();
    let at_once = r#"for n in 1 2 3 4 5 6 7 8 9 10; do "$LATTICE_GIT" rev-parse $n~0 & done; wait"#;
    wrapper.on("~0", 10, Action::Run("touch tenth".to_owned()));
    shell(&repo, &wrapper, at_once);
    assert_eq!(wrapper.count(), 10, "no call is lost when they happen at once");
    assert!(repo.dir().join("tenth").exists(), "one of them was the tenth");
}

#[test]
fn every_argument_of_a_call_is_written_down() {
    let repo = TestRepo::new();
    let wrapper = GitWrapper::new(&repo);
    shell(&repo, &wrapper, "\"$LATTICE_GIT\" log '' 'a b' \"it's\" 'two\nlines' --format=%H 2>/dev/null");
    assert_eq!(wrapper.calls(), [r#"log '' 'a b' 'it'\''s' $'two\nlines' --format=%H"#]);
}
