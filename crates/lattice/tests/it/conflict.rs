//! A conflict pauses an operation in Git's own rebase; from there it is finished or given up.

mod by_hand;
mod many;
mod modify;

use lattice_testkit::{Output, RepoState, TestRepo, assert_same};
use serde_json::Value;

use crate::lattice;

/// Ten branches on each other, the top one checked out, and a trunk that took over the files of `disputed`.
#[track_caller]
fn ten(disputed: &[&str]) -> TestRepo {
    let repo = TestRepo::draw("main <- b1 <- b2 <- b3 <- b4 <- b5 <- b6 <- b7 <- b8 <- b9 <- b10*");
    repo.git(&["checkout", "--quiet", "main"]);
    for branch in disputed {
        repo.commit_file(&format!("{branch}.txt"), "the trunk's own\n", &format!("take over {branch}.txt"));
    }
    repo.git(&["checkout", "--quiet", "b10"]);
    repo
}

/// Runs `restack` into its conflict.
#[track_caller]
fn restack_into_conflict(repo: &TestRepo) -> Output {
    lattice(repo).arg("restack").fails(4)
}

fn marker(repo: &TestRepo) -> Option<Value> {
    let bytes = std::fs::read(repo.op_state_path()).ok()?;
    Some(serde_json::from_slice(&bytes).expect("the marker is JSON"))
}

fn rebasing(repo: &TestRepo) -> bool {
    repo.git_dir().join("rebase-merge").exists()
}

/// Nothing of the operation is left: no marker, no journal, no rebase, no ref that kept commits alive.
#[track_caller]
fn assert_at_rest(repo: &TestRepo) {
    assert!(marker(repo).is_none(), "the marker exists only while an operation does");
    assert!(!rebasing(repo), "no rebase is left behind");
    let ops = repo.lattice_dir().join("ops");
    let left: Vec<_> = std::fs::read_dir(ops).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "files of the operation stay behind: {left:?}");
    assert_eq!(repo.refs_below("refs/lattice/pending/").len(), 0, "nothing is pending any more");
    lattice(repo).args(["verify", "--full"]).ok();
}

#[track_caller]
fn assert_stack_of_ten(repo: &TestRepo) {
    for (below, branch) in (0..10).map(|n| (n, n + 1)) {
        let below = if below == 0 { "main".to_owned() } else { format!("b{below}") };
        let branch = format!("b{branch}");
        let parent = repo.rev(&format!("{branch}^"));
        assert_eq!(parent, repo.rev(&below), "{branch} stands directly on {below}");
        assert_eq!(repo.metadata(&branch)["base"]["oid"], Value::from(parent), "and its metadata says so");
    }
}

// The first thing that is typed after a conflict must not make commits of it.
#[test]
fn files_with_conflict_markers_are_staged_by_nobody_but_the_user() {
    let repo = TestRepo::draw("main <- a <- b*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("a.txt", "of the trunk\n", "the trunk has the file too");
    repo.git(&["checkout", "--quiet", "b"]);
    let branches = repo.branch_refs();
    lattice(&repo).args(["restack"]).fails(4);
    for _ in 0..2 {
        let refused = lattice(&repo).args(["continue", "-a", "--json"]).fails(4).json();
        assert_eq!(refused["error"]["code"], "conflict-markers", "{refused:#}");
        assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("a.txt")), "{refused:#}");
        assert!(refused["error"]["hints"].to_string().contains("git add"), "{refused:#}");
    }
    assert_eq!(repo.branch_refs(), branches);
    assert!(repo.git(&["status", "--porcelain"]).contains("AA a.txt"), "nothing is staged");
    repo.git(&["add", "a.txt"]);
    lattice(&repo).arg("continue").ok();
    assert!(repo.git(&["show", "a:a.txt"]).contains("<<<<<<< "), "who insists gets it");
}

fn categories(repo: &TestRepo) -> Vec<String> {
    repo.ledger().iter().map(|event| event["event"].as_str().unwrap_or_default().to_owned()).collect()
}

// proves: ST-12-6, ST-6.2-8, ST-3.3-1, ST-3.3-4, ST-3.3-12
#[test]
fn a_conflict_in_the_middle_of_ten_branches_moves_none_of_them_and_says_what_to_do() {
    let repo = ten(&["b5"]);
    let branches = repo.branch_refs();
    let metadata = repo.metadata_refs();
    let output = restack_into_conflict(&repo);
    assert!(output.stderr.contains("b5.txt"), "the file in conflict is named:\n{}", output.stderr);
    assert!(output.stderr.contains("lattice continue"), "{}", output.stderr);
    assert!(output.stderr.contains("lattice abort"), "{}", output.stderr);
    assert_eq!(repo.branch_refs(), branches, "no branch moves before the conflict is resolved");
    assert_eq!(repo.metadata_refs(), metadata, "nor does any metadata");
    let marker = marker(&repo).expect("the marker exists while the user works");
    assert_eq!(marker["phase"], "awaiting_user");
    assert_eq!(marker["command"], "restack");
    assert!(repo.git(&["status", "--porcelain"]).contains("AA b5.txt"), "Git shows the conflict");
    assert!(rebasing(&repo), "it is a rebase of Git's");
    lattice(&repo).arg("log").ok();
    lattice(&repo).arg("doctor").fails(1);
}

// proves: ST-1.1-5
#[test]
fn a_resolved_conflict_leads_to_the_end_of_all_ten_branches() {
    let repo = ten(&["b5"]);
    let before = repo.state();
    restack_into_conflict(&repo);
    repo.write("b5.txt", "resolved\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_stack_of_ten(&repo);
    assert_eq!(repo.git(&["show", "b5:b5.txt"]), "resolved");
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "b10", "HEAD is back on its branch");
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "files and index follow the branch");
    assert_at_rest(&repo);
    assert_eq!(categories(&repo)[..2], ["Committed", "IntentRecorded"], "one intent and one end for both halves");
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

// proves partly: ST-3.3-2, ST-13.2-3 — conflict and abort here; success and failure in the tests of the executor
#[test]
fn giving_up_in_the_middle_of_ten_branches_changes_nothing() {
    let repo = ten(&["b5"]);
    repo.write("notes", "untracked\n");
    let before = repo.state();
    restack_into_conflict(&repo);
    repo.write("b5.txt", "half resolved\n");
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
    assert_eq!(categories(&repo)[..2], ["Aborted", "IntentRecorded"]);
}

#[test]
fn two_conflicts_are_resolved_one_after_the_other() {
    let repo = ten(&["b3", "b8"]);
    let before = repo.state();
    restack_into_conflict(&repo);
    repo.write("b3.txt", "resolved three\n");
    let second = lattice(&repo).args(["continue", "-a"]).fails(4);
    assert!(second.stderr.contains("b8"), "the second conflict is another one:\n{}", second.stderr);
    // What was resolved is held only by Lattice now, and must survive a collection of garbage.
    repo.git(&["gc", "--prune=now", "--quiet"]);
    repo.write("b8.txt", "resolved eight\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_stack_of_ten(&repo);
    assert_eq!(repo.git(&["show", "b10:b3.txt"]), "resolved three");
    assert_eq!(repo.git(&["show", "b10:b8.txt"]), "resolved eight");
    assert_at_rest(&repo);
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn giving_up_at_the_second_conflict_goes_back_to_the_very_beginning() {
    let repo = ten(&["b3", "b8"]);
    let before = repo.state();
    restack_into_conflict(&repo);
    repo.write("b3.txt", "resolved three\n");
    lattice(&repo).args(["continue", "-a"]).fails(4);
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

#[test]
fn continue_without_a_resolution_names_the_files_and_stays_paused() {
    let repo = ten(&["b5"]);
    restack_into_conflict(&repo);
    let paused = repo.state();
    let output = lattice(&repo).arg("continue").fails(4);
    assert!(output.stderr.contains("b5.txt"), "{}", output.stderr);
    assert_same(&paused, &repo.state());
}

#[test]
fn a_conflict_resolved_in_favour_of_the_new_base_leaves_the_branch_without_that_commit() {
    let repo = ten(&["b5"]);
    restack_into_conflict(&repo);
    repo.write("b5.txt", "the trunk's own\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_at_rest(&repo);
    assert_eq!(repo.rev("b5^{tree}"), repo.rev("b4^{tree}"), "b5 adds nothing to b4 any more");
    assert_eq!(repo.metadata("b6")["base"]["oid"], Value::from(repo.rev("b5")), "what stands on it follows");
}

#[test]
fn a_conflict_is_refused_while_there_are_uncommitted_changes() {
    let repo = ten(&["b5"]);
    for stage in [false, true] {
        repo.write("b10.txt", "an edit that must not be mixed with a rebase\n");
        if stage {
            repo.git(&["add", "b10.txt"]);
        }
        let before = repo.state();
        let output = lattice(&repo).args(["--json", "restack"]).fails(1);
        assert_eq!(output.json()["error"]["code"], "conflict-needs-clean-tree");
        assert_same(&before, &repo.state());
        assert_at_rest(&repo);
    }
}

#[test]
fn a_conflict_is_refused_while_an_untracked_file_is_where_the_rebase_would_begin() {
    let repo = ten(&["b5", "extra"]);
    repo.write("extra.txt", "the user's own\n");
    let before = repo.state();
    let output = lattice(&repo).args(["--json", "restack"]).fails(1);
    let error = &output.json()["error"];
    assert_eq!(error["code"], "files-in-the-way");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("extra.txt is untracked")), "{error}");
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

// proves: ST-3.3-10, ST-3.3-11
#[test]
fn another_worktree_can_neither_finish_nor_give_up_a_conflict_nor_start_something_else() {
    let repo = ten(&["b5"]);
    let other = repo.worktree("other", "main");
    restack_into_conflict(&repo);
    let (paused, elsewhere) = (repo.state(), other.state());
    let here = repo.dir().to_str().expect("the kit chooses its paths");
    for command in ["continue", "abort"] {
        let output = lattice(&other).arg(command).fails(1);
        assert!(output.stderr.contains(here), "{command} says where to go:\n{}", output.stderr);
    }
    let output = lattice(&other).args(["--json", "freeze", "b1"]).fails(3);
    let op = marker(&repo).expect("still paused")["op_id"].as_str().expect("text").to_owned();
    assert!(output.stdout.contains(&op), "the refusal names the operation:\n{}", output.stdout);
    assert_same(&paused, &repo.state());
    assert_same(&elsewhere, &other.state());
    lattice(&repo).arg("abort").ok();
}

/// Files that a plain reading would get wrong: a link, a program, an odd name, a folder in place of a file.
#[track_caller]
fn odd_files(repo: &TestRepo) -> RepoState {
    let dir = repo.dir();
    std::os::unix::fs::symlink("b5.txt", dir.join("link")).expect("a link can be made");
    repo.write("run me", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.join("run me"), mode).expect("the file is ours");
    repo.write("new\nline \"quoted\" \u{e4}", "odd\n");
    repo.write("folder/file", "in a folder\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    repo.state()
}

#[test]
fn odd_files_come_back_as_they_were_after_a_conflict() {
    let repo = ten(&["b5"]);
    let before = odd_files(&repo);
    restack_into_conflict(&repo);
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    restack_into_conflict(&repo);
    repo.write("b5.txt", "resolved\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "all of them are as the branch has them");
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn abort_works_beside_a_new_file_that_a_branch_has_under_the_same_name() {
    let repo = TestRepo::draw("main* <- other");
    repo.git(&["checkout", "--quiet", "-b", "a"]);
    repo.commit_file("README", "of a\n", "a change");
    repo.commit_file("notes", "of a\n", "a file");
    lattice(&repo).args(["track", "a", "--parent", "main"]).ok();
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "of main\n", "another change");
    repo.write("notes", "of nobody yet\n");
    let before = repo.state();
    lattice(&repo).args(["restack", "a"]).fails(4);
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

#[test]
fn what_pop_leaves_is_the_same_after_a_conflict() {
    let repo = TestRepo::draw("main <- a*");
    repo.commit_file("shared.txt", "a\n", "shared");
    lattice(&repo).args(["create", "b"]).ok();
    repo.commit_file("shared.txt", "b\n", "changed by b");
    repo.git(&["checkout", "--quiet", "a"]);
    let files = repo.read("a.txt");
    lattice(&repo).arg("pop").fails(4);
    repo.write("shared.txt", "b\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!(repo.git(&["status", "--porcelain"]), "A  a.txt\nA  shared.txt", "the changes of a, staged");
    assert_eq!((repo.read("a.txt"), repo.read("shared.txt")), (files, "a\n".to_owned()));
    assert_eq!(repo.git(&["show", "b:shared.txt"]), "b");
    assert_at_rest(&repo);
}
