//! Conflicts in which the user, or a kill, goes on with git instead of Lattice.

use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};

use super::{assert_at_rest, assert_stack_of_ten, rebasing, restack_into_conflict, ten};
use crate::lattice;

#[test]
fn a_rebase_that_the_user_continued_with_git_is_taken_over() {
    let repo = ten(&["b5"]);
    restack_into_conflict(&repo);
    repo.write("b5.txt", "resolved by hand\n");
    repo.git(&["add", "b5.txt"]);
    repo.git(&["rebase", "--continue"]);
    assert!(!rebasing(&repo), "Git is done");
    lattice(&repo).arg("continue").ok();
    assert_stack_of_ten(&repo);
    assert_eq!(repo.git(&["show", "b5:b5.txt"]), "resolved by hand");
    assert_at_rest(&repo);
}

#[test]
fn after_a_rebase_that_the_user_aborted_with_git_both_ways_are_open() {
    let repo = ten(&["b5"]);
    let before = repo.state();
    restack_into_conflict(&repo);
    repo.git(&["rebase", "--abort"]);
    let again = lattice(&repo).arg("continue").fails(4);
    assert!(again.stderr.contains("b5.txt"), "the conflict is there again:\n{}", again.stderr);
    repo.git(&["rebase", "--abort"]);
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

#[test]
fn a_branch_that_the_user_checked_out_meanwhile_is_never_taken_for_the_resolution() {
    // Two commits above the conflict: Git's own `rebase --continue` would put the second one on
    // whatever is checked out.
    let repo = TestRepo::draw("main <- a(3)*; main <- x");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("a.txt", "the trunk's own\n", "take over");
    repo.git(&["checkout", "--quiet", "a"]);
    let before = repo.state();
    restack_into_conflict(&repo);
    for elsewhere in ["main", "x"] {
        repo.git(&["checkout", "--quiet", "--force", elsewhere]);
        let branches = repo.branch_refs();
        let output = lattice(&repo).args(["--json", "continue"]).fails(1);
        assert_eq!(output.json()["error"]["code"], "rebase-gone", "{}", output.stdout);
        assert_eq!(repo.branch_refs(), branches, "nothing is committed to {elsewhere}");
    }
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

/// A branch `x` that stands on the trunk like `c` should, with as many commits as `c`.
#[track_caller]
fn on_a_twin() -> TestRepo {
    let repo = TestRepo::draw("main <- c; main <- x*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("c.txt", "the trunk's own\n", "take over");
    repo.git(&["checkout", "--quiet", "x"]);
    lattice(&repo).args(["restack", "--only"]).ok();
    repo
}

#[test]
fn a_kill_before_the_rebase_began_does_not_make_another_branch_its_result() {
    for kill in [Action::KillParent, Action::KillSelf] {
        let repo = on_a_twin();
        let before = repo.state();
        let mut wrapper = GitWrapper::new(&repo);
        wrapper.on("rebase --no-autostash", 1, kill.clone());
        let killed = lattice(&repo).args(["restack", "c"]).wrapper(&wrapper).run();
        assert_ne!(killed.code, Some(0), "{}", killed.snapshot());
        lattice(&repo).args(["freeze", "x"]).fails(3);
        // The rebase begins now; whatever HEAD is at, it is not what c becomes.
        lattice(&repo).arg("continue").fails(4);
        repo.write("c.txt", "resolved\n");
        lattice(&repo).args(["continue", "-a"]).ok();
        assert_eq!(repo.git(&["log", "--format=%s", "main..c"]), "c 1", "c has its own commit");
        assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "x");
        assert_at_rest(&repo);
        lattice(&repo).arg("undo").ok();
        assert_same(&before, &repo.state());
    }
}

#[test]
fn a_file_in_the_way_of_the_last_step_can_be_moved_away_and_the_operation_continued() {
    let repo = on_a_twin();
    repo.git(&["checkout", "--quiet", "c"]);
    repo.git(&["rm", "--quiet", "README"]);
    repo.git(&["commit", "--quiet", "--message", "without README"]);
    repo.git(&["checkout", "--quiet", "x"]);
    lattice(&repo).args(["restack", "c"]).fails(4);
    repo.write("c.txt", "resolved\n");
    repo.git(&["add", "c.txt"]);
    repo.git(&["rebase", "--continue"]);
    repo.write("README", "in the way of the branch that is checked out at the end\n");
    let output = lattice(&repo).args(["--json", "continue"]).fails(1);
    assert_eq!(output.json()["error"]["code"], "files-in-the-way", "{}", output.stdout);
    assert!(repo.read("README").contains("in the way"), "the file of the user stays");
    std::fs::remove_file(repo.dir().join("README")).expect("it is there");
    lattice(&repo).arg("continue").ok();
    assert_at_rest(&repo);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_rebase_that_was_quit_is_no_result_and_abort_leads_back() {
    let repo = ten(&["b4"]);
    lattice(&repo).args(["checkout", "b4"]).ok();
    repo.write("more.txt", "more\n");
    lattice(&repo).args(["modify", "-c", "-a", "-m", "one more, without a conflict"]).ok();
    lattice(&repo).args(["checkout", "b10"]).ok();
    let before = repo.state();
    restack_into_conflict(&repo);
    repo.git(&["rebase", "--quit"]);
    for words in [&["continue"][..], &["continue", "-a"]] {
        let refused = lattice(&repo).args(words).arg("--json").fails(1).json();
        assert_eq!(refused["error"]["code"], serde_json::json!("rebase-gone"), "{refused:#}");
    }
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
    restack_into_conflict(&repo);
    repo.git(&["rebase", "--quit"]);
    repo.git(&["add", "b4.txt"]);
    lattice(&repo).arg("continue").fails(1);
    lattice(&repo).arg("abort").ok();
    assert_at_rest(&repo);
}

#[test]
fn what_git_does_not_know_is_in_no_commit_and_stays_after_an_abort() {
    let repo = ten(&["b4", "b6"]);
    repo.write("notes.txt", "precious\n");
    restack_into_conflict(&repo);
    repo.write("b4.txt", "both\n");
    lattice(&repo).args(["continue", "-a"]).fails(4);
    lattice(&repo).arg("abort").ok();
    assert_eq!(repo.read("notes.txt"), "precious\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? notes.txt");
}

#[test]
fn a_conflict_without_markers_that_nobody_touched_is_not_taken_for_resolved() {
    let repo = TestRepo::draw("main* <- a");
    repo.commit_file("bin", b"\0the first", "binary");
    repo.git(&["checkout", "--quiet", "a"]);
    lattice(&repo).arg("restack").ok();
    repo.write("bin", b"\0ours");
    lattice(&repo).args(["modify", "-c", "-a", "-m", "change it"]).ok();
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("bin", b"\0of the trunk", "changed there too");
    repo.git(&["checkout", "--quiet", "a"]);
    restack_into_conflict(&repo);
    let refused = lattice(&repo).args(["continue", "-a", "--json"]).fails(4).json();
    assert_eq!(refused["error"]["code"], serde_json::json!("conflict-untouched"), "{refused:#}");
    repo.git(&["add", "bin"]);
    let done = lattice(&repo).args(["continue"]).ok().stdout;
    assert!(done.contains("dropped"), "what was meant leaves nothing of the commit: {done}");
    assert_eq!(repo.git(&["log", "--format=%s", "main..a"]), "a 1");
}

/// `a` changes line 3 of `f` and `b` above it too; `a` is checked out with another edit of that line.
fn disputed() -> TestRepo {
    let repo = TestRepo::draw("main*");
    repo.write("f", "1\n2\n3\n4\n");
    lattice(&repo).args(["create", "a", "-a", "-m", "a"]).ok();
    repo.write("f", "1\n2\nthree\n4\n");
    repo.write("g", "g\n");
    lattice(&repo).args(["create", "b", "-a", "-m", "b"]).ok();
    repo.git(&["checkout", "--quiet", "a"]);
    repo.write("f", "1\n2\ndrei\n4\n");
    repo
}

#[test]
fn an_abort_brings_the_edit_back_that_the_operation_began_with() {
    for (given_up, then) in [("--quit", "resolved\n"), ("--abort", "1\n2\nthree\n4\nedit\n")] {
        let repo = disputed();
        let before = repo.state();
        lattice(&repo).args(["modify", "-a"]).fails(4);
        repo.write("f", "resolved\n");
        repo.git(&["add", "f"]);
        repo.git(&["rebase", given_up]);
        repo.write("f", then);
        lattice(&repo).arg("abort").ok();
        assert_same(&before, &repo.state());
        assert_at_rest(&repo);
    }
}

#[test]
fn a_commit_of_which_a_reset_left_nothing_is_not_dropped_without_a_word() {
    let repo = disputed();
    lattice(&repo).args(["modify", "-a"]).fails(4);
    repo.git(&["reset", "--quiet", "--hard"]);
    let refused = lattice(&repo).args(["continue", "--json"]).fails(4).json();
    assert_eq!(refused["error"]["code"], serde_json::json!("nothing-resolved"), "{refused:#}");
    repo.git(&["rebase", "--skip"]);
    let done = lattice(&repo).arg("continue").ok().stdout;
    assert!(done.contains("nothing was left of it when its conflict was resolved"), "{done}");
    assert_at_rest(&repo);
}

#[test]
fn changes_that_are_not_staged_are_named_and_called_no_conflict() {
    let repo = ten(&["b5"]);
    restack_into_conflict(&repo);
    repo.write("b5.txt", "both\n");
    repo.git(&["add", "b5.txt"]);
    repo.write("README", "something else\n");
    let refused = lattice(&repo).args(["continue", "--json"]).fails(4).json();
    assert_eq!(refused["error"]["code"], serde_json::json!("not-staged"), "{refused:#}");
    assert!(refused.to_string().contains("README"), "{refused:#}");
    repo.git(&["stash", "push", "README"]);
    lattice(&repo).arg("continue").ok();
    assert_stack_of_ten(&repo);
    assert_at_rest(&repo);
}

#[test]
fn a_link_in_conflict_that_nobody_touched_is_not_taken_for_resolved() {
    let repo = TestRepo::draw("main*");
    let link = |to: &str| {
        let _ = std::fs::remove_file(repo.dir().join("l"));
        std::os::unix::fs::symlink(to, repo.dir().join("l")).expect("a link");
    };
    link("base");
    lattice(&repo).args(["create", "a", "-a", "-m", "a"]).ok();
    link("other");
    lattice(&repo).args(["create", "b", "-a", "-m", "b"]).ok();
    repo.git(&["checkout", "--quiet", "a"]);
    link("third");
    lattice(&repo).args(["modify", "-a"]).fails(4);
    let refused = lattice(&repo).args(["continue", "-a", "--json"]).fails(4).json();
    assert_eq!(refused["error"]["code"], serde_json::json!("conflict-untouched"), "{refused:#}");
    link("other");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!(repo.git(&["cat-file", "-p", "b:l"]), "other");
    assert_at_rest(&repo);
}
