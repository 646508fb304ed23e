//! Kills between two calls of git, which leave a lock, or a file that is gone and not yet there again.

use lattice_testkit::{Action, GitWrapper, Output, TestRepo};

use super::{Case, check, create, restack};
use crate::lattice;

/// Runs shell text in the place of the first call that matches, and kills.
fn instead(case: &Case, call: &str, text: &str, kill: Action) -> Option<Output> {
    let mut wrapper = GitWrapper::new(&case.repo);
    wrapper.on(call, 1, Action::Run(text.to_owned()));
    wrapper.on(call, 1, kill);
    let output = lattice(&case.repo).args(&case.args).wrapper(&wrapper).run();
    assert_ne!(output.code, Some(0), "it was killed: {}", output.snapshot());
    Some(output)
}

/// Checks that both ways out lead to where they should.
#[track_caller]
fn check_instead(case: &dyn Fn() -> Case, (call, text): (&str, &str), kill: &Action) {
    let whole = case().whole();
    assert!(check((case, &whole), &format!("{text} at {call}"), &|case| instead(case, call, text, kill.clone())));
}

#[test]
fn a_lock_on_head_that_a_killed_git_left_is_in_nobodys_way() {
    for content in ["", "ref: refs/he", "ref: refs/heads/ui\\n"] {
        let text = format!("printf '{content}' > .git/HEAD.lock");
        check_instead(&create, ("symbolic-ref", &text), &Action::KillParent);
    }
}

#[test]
fn a_file_that_git_had_removed_and_not_yet_written_is_written() {
    check_instead(&restack, ("read-tree -m -u", "rm README"), &Action::KillParent);
    check_instead(&restack, ("read-tree -m -u", "rm README"), &Action::KillSelf);
}

#[test]
fn a_git_that_is_killed_while_it_only_tries_leaves_no_lock() {
    check_instead(&restack, ("read-tree -n", "touch .git/index.lock"), &Action::KillSelf);
    check_instead(&restack, ("read-tree -n", "touch .git/index.lock"), &Action::KillParent);
}

fn split() -> Case {
    let repo = TestRepo::draw("main <- a* <- b");
    repo.commit_file("second.txt", "second\n", "a second file");
    lattice(&repo).arg("restack").ok();
    Case::new(repo, &["split", "--by-file", "second.txt"])
}

#[test]
fn a_lock_on_an_index_of_the_operation_itself_goes_with_it() {
    let lock = "for index in .git/lattice/ops/*.index; do touch \"${index%.index}.part.lock\"; done";
    check_instead(&split, ("update-index", lock), &Action::KillParent);
    check_instead(&split, ("update-index", lock), &Action::KillSelf);
}

fn with_a_worktree() -> Case {
    let repo = TestRepo::draw("main* <- api <- ui");
    repo.worktree("other", "ui");
    repo.commit_file("README", "newer\n", "trunk goes on");
    Case::new(repo, &["restack"])
}

#[test]
fn a_lock_in_a_worktree_that_was_only_asked_is_in_nobodys_way() {
    let lock = "touch .git/worktrees/other/index.lock";
    check_instead(&with_a_worktree, ("read-tree -n", lock), &Action::KillParent);
    check_instead(&with_a_worktree, ("read-tree -n", lock), &Action::KillSelf);
}
