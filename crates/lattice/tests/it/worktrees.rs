//! Worktrees follow the branches that they have checked out.

use lattice_testkit::TestRepo;
use serde_json::Value;

use crate::lattice;

/// Three branches behind their trunk, with the middle one checked out in a worktree of its own.
fn behind() -> (TestRepo, TestRepo) {
    let repo = TestRepo::draw("main* <- api <- ui <- top");
    let other = repo.worktree("other", "ui");
    repo.commit_file("README", "newer\n", "trunk goes on");
    (repo, other)
}

#[track_caller]
fn stands(repo: &TestRepo, branch: &str, parent: &str) {
    assert_eq!(repo.metadata(branch)["base"]["oid"], Value::from(repo.rev(parent)), "{branch} stands on {parent}");
    assert_eq!(repo.rev(&format!("{branch}~1")), repo.rev(parent));
}

fn status(repo: &TestRepo) -> String {
    repo.git(&["status", "--porcelain"])
}

#[test]
fn a_worktree_whose_folder_is_gone_is_told_from_one_that_is_there() {
    let repo = TestRepo::draw("main* <- a <- b");
    let worktree = repo.worktree("linked", "a");
    std::fs::remove_dir_all(worktree.dir()).expect("it is ours");
    assert!(lattice(&repo).arg("log").ok().stdout.contains("linked, which is gone"));
    let refused = lattice(&repo).args(["checkout", "a"]).fails(1);
    assert!(refused.stderr.contains("git worktree prune"), "{}", refused.snapshot());
    assert!(!refused.stderr.contains("switch --detach"), "{}", refused.snapshot());
    repo.git(&["worktree", "prune"]);
    lattice(&repo).args(["checkout", "a"]).ok();
}

#[test]
fn a_clean_worktree_is_moved_to_the_rewritten_commit_and_back_by_undo() {
    let (repo, other) = behind();
    let before = other.state();
    lattice(&repo).arg("restack").ok();
    stands(&repo, "ui", "api");
    stands(&repo, "top", "ui");
    assert_eq!(status(&other), "", "no stale index that would commit a reversal");
    assert_eq!(other.read("README"), "newer\n");
    assert_eq!(other.git(&["symbolic-ref", "--short", "HEAD"]), "ui");
    lattice(&repo).arg("undo").ok();
    lattice_testkit::assert_same(&before, &other.state());
}

#[test]
fn a_dirty_worktree_keeps_its_edits_where_they_apply() {
    let (repo, other) = behind();
    other.write("ui.txt", "edited\n");
    other.write("staged.txt", "staged\n");
    other.git(&["add", "staged.txt"]);
    other.write("new.txt", "untracked\n");
    let before = status(&other);
    lattice(&repo).arg("restack").ok();
    stands(&repo, "ui", "api");
    assert_eq!(status(&other), before);
    assert_eq!([other.read("ui.txt"), other.read("staged.txt")], ["edited\n", "staged\n"]);
    assert_eq!(other.read("README"), "newer\n");
}

#[test]
fn a_worktree_in_the_way_holds_its_branch_back_by_name_and_what_stands_on_it() {
    let (repo, other) = behind();
    other.write("README", "mine\n");
    let (there, tips) = (other.state(), [repo.rev("ui"), repo.rev("top")]);
    let answer = lattice(&repo).arg("restack").json();
    assert_eq!(answer["kept"][0]["branch"], "ui", "{answer:#}");
    let path = other.dir().to_str().expect("the kit chooses its paths");
    assert!(answer["kept"][0]["reason"].to_string().contains(path), "{answer:#}");
    stands(&repo, "api", "main");
    assert_eq!([repo.rev("ui"), repo.rev("top")], tips, "the branch and what stands on it stay");
    assert_eq!(there.facts["file README"], other.state().facts["file README"]);
    assert!(!repo.op_state_path().exists());
    other.git(&["checkout", "--quiet", "README"]);
    lattice(&repo).arg("restack").ok();
    stands(&repo, "ui", "api");
    assert_eq!(status(&other), "");
}

#[test]
fn a_change_that_needs_a_held_branch_is_refused_with_the_worktree() {
    let (repo, other) = behind();
    other.write("README", "mine\n");
    let before = repo.state();
    let answer = lattice(&repo).args(["--json", "move", "--source", "ui", "--onto", "main"]).fails(1).json();
    assert_eq!(answer["error"]["code"], "worktree-in-the-way", "{answer:#}");
    lattice_testkit::assert_same(&before, &repo.state());
}

#[test]
fn the_branch_below_is_not_checked_out_twice() {
    let repo = TestRepo::draw("main <- a <- b*");
    let other = repo.worktree("other", "a");
    for args in [&["delete", "b"][..], &["pop"], &["fold"]] {
        let (here, there) = (repo.state(), other.state());
        let answer = lattice(&repo).arg("--json").args(args).fails(1).json();
        assert_eq!(answer["issues"][0]["kind"], "checked-out-elsewhere", "{answer:#}");
        lattice_testkit::assert_same(&here, &repo.state());
        lattice_testkit::assert_same(&there, &other.state());
    }
}
