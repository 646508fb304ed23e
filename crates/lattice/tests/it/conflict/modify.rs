//! Conflicts that a `modify` runs into above the branch that it amends.

use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};

use super::{assert_at_rest, marker};
use crate::kill::drawn_calls;
use crate::lattice;

/// `a` is checked out; staging `b.txt` and `c.txt` there collides with `b` and `c` above it. One
/// change is staged, one is not, one file is new, and one untracked file is ignored.
#[track_caller]
fn repo() -> TestRepo {
    let repo = TestRepo::draw("main <- a* <- b <- c");
    repo.write(".git/info/exclude", "ignored\n");
    repo.write("ignored", "not for Git\n");
    repo.write("b.txt", "staged in a\n");
    repo.git(&["add", "b.txt"]);
    repo.write("a.txt", "edited and not staged\n");
    repo.write("c.txt", "new in a\n");
    repo
}

#[test]
fn giving_up_a_modify_brings_back_what_was_staged_and_what_was_not() {
    let repo = repo();
    let before = repo.state();
    lattice(&repo).args(["modify", "-a"]).fails(4);
    assert_eq!(marker(&repo).expect("paused")["command"], "modify");
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

#[test]
fn a_modify_with_two_conflicts_above_it_comes_to_its_end_and_can_be_undone() {
    let repo = repo();
    let before = repo.state();
    lattice(&repo).args(["modify", "-a"]).fails(4);
    repo.write("b.txt", "resolved b\n");
    let second = lattice(&repo).args(["continue", "-a"]).fails(4);
    assert!(second.stderr.contains("c.txt"), "{}", second.stderr);
    repo.write("c.txt", "resolved c\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_at_rest(&repo);
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "a");
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "what was changed is committed");
    assert_eq!(repo.git(&["show", "a:b.txt"]), "staged in a");
    assert_eq!(repo.git(&["show", "a:a.txt"]), "edited and not staged");
    assert_eq!(repo.git(&["show", "c:b.txt"]), "resolved b");
    assert_eq!(repo.git(&["show", "c:c.txt"]), "resolved c");
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn giving_up_a_modify_at_its_second_conflict_brings_everything_back() {
    let repo = repo();
    let before = repo.state();
    lattice(&repo).args(["modify", "-a"]).fails(4);
    repo.write("b.txt", "resolved b\n");
    lattice(&repo).args(["continue", "-a"]).fails(4);
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

#[test]
fn a_conflict_with_edits_that_are_not_part_of_the_commit_is_refused() {
    let repo = repo();
    let before = repo.state();
    let output = lattice(&repo).args(["--json", "modify"]).fails(1);
    assert_eq!(output.json()["error"]["code"], "conflict-needs-clean-tree");
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

/// Kills the `continue` that follows the last resolution at calls of git, and tries both ways on.
#[test]
fn a_kill_at_any_call_after_the_resolution_leaves_both_ways_open() {
    let mut reached_the_end = false;
    for call in drawn_calls().take_while(|call| *call < 60) {
        for way in ["continue", "abort"] {
            let repo = repo();
            let before = repo.state();
            lattice(&repo).args(["modify", "-a"]).fails(4);
            repo.write("b.txt", "resolved b\n");
            lattice(&repo).args(["continue", "-a"]).fails(4);
            repo.write("c.txt", "resolved c\n");
            repo.git(&["add", "c.txt"]);
            let mut wrapper = GitWrapper::new(&repo);
            wrapper.on("", call, Action::KillParent);
            let killed = lattice(&repo).arg("continue").wrapper(&wrapper).run();
            if killed.code == Some(0) {
                reached_the_end = true;
                break;
            }
            assert_eq!(killed.signal, Some(9), "call {call}: {}", killed.snapshot());
            // Without a marker the operation is over: only its hook was cut off.
            let in_progress = marker(&repo).is_some();
            if in_progress {
                let output = lattice(&repo).arg(way).run();
                assert_eq!(output.code, Some(0), "{way} after a kill at call {call}: {}", output.snapshot());
            }
            assert_at_rest(&repo);
            if way == "abort" && in_progress {
                assert_same(&before, &repo.state());
            } else {
                assert_eq!(repo.git(&["show", "c:c.txt"]), "resolved c");
                assert_eq!(repo.git(&["status", "--porcelain"]), "", "call {call}");
            }
        }
        if reached_the_end {
            return;
        }
    }
    panic!("sixty calls of git for one `continue` are too many");
}
