//! What happens to repositories in the field, outside of Lattice, and what it then does.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::{Value, json};

use crate::doctor::{issue, list, report, text};
use crate::lattice;

#[track_caller]
fn stands(repo: &TestRepo, branch: &str, parent: &str) {
    assert_eq!(repo.metadata(branch)["base"]["oid"], Value::from(repo.rev(parent)), "{branch} stands on {parent}");
    let base = repo.git(&["merge-base", branch, parent]);
    assert_eq!(base, repo.rev(parent), "{branch} contains {parent}");
}

fn trunk_goes_on(repo: &TestRepo) {
    let here = repo.git(&["symbolic-ref", "--short", "HEAD"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "newer\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", &here]);
}

#[track_caller]
fn sound(repo: &TestRepo) {
    lattice(repo).args(["verify", "--full"]).ok();
    assert!(!repo.op_state_path().exists(), "nothing is in progress");
}

#[test]
fn a_worktree_that_was_removed_with_rm_holds_its_branch_until_git_forgets_it() {
    let repo = TestRepo::draw("main* <- api <- ui <- top");
    let other = repo.worktree("other", "ui");
    trunk_goes_on(&repo);
    std::fs::remove_dir_all(other.dir()).expect("it is ours");
    let answer = lattice(&repo).arg("restack").json();
    stands(&repo, "api", "main");
    assert_eq!(answer["kept"][0]["branch"], json!("ui"), "{answer:#}");
    assert!(text(&answer["kept"][0]["reason"]).contains("git worktree prune"), "{answer:#}");
    repo.git(&["worktree", "prune"]);
    lattice(&repo).arg("restack").ok();
    stands(&repo, "ui", "api");
    stands(&repo, "top", "ui");
    sound(&repo);
}

#[test]
fn a_metadata_ref_that_was_edited_by_hand_counts_if_it_is_valid_and_gates_if_it_is_not() {
    let repo = TestRepo::draw("main <- a <- b*; main <- c");
    let mut document = repo.metadata("b");
    document["parent"]["name"] = json!("c");
    document["base"]["oid"] = json!(repo.rev("main"));
    repo.set_metadata_raw("b", document.to_string().as_bytes());
    lattice(&repo).arg("restack").ok();
    stands(&repo, "b", "c");
    document["parent"]["name"] = json!("nowhere");
    repo.set_metadata_raw("b", document.to_string().as_bytes());
    let before = repo.branch_refs();
    let refused = lattice(&repo).args(["--json", "restack"]).fails(1).json();
    assert!(!list(&refused["issues"][0]["fixes"]).is_empty(), "there is something to choose: {refused:#}");
    repo.set_metadata_raw("b", b"{\"by\": \"hand\"");
    lattice(&repo).args(["--json", "restack"]).fails(1);
    assert_eq!(repo.branch_refs(), before, "no branch moved");
}

#[test]
fn a_rebase_with_plain_git_in_the_middle_of_a_stack_is_repaired_by_naming_its_new_base() {
    let repo = TestRepo::draw("main <- a <- b(2) <- c*");
    trunk_goes_on(&repo);
    repo.git(&["rebase", "--quiet", "--onto", "main", "a", "b"]);
    repo.git(&["checkout", "--quiet", "c"]);
    let before = repo.state();
    lattice(&repo).arg("restack").fails(1);
    assert_same(&before, &repo.state());
    let found = report(&repo);
    let fix = &issue(&found, "base-not-ancestor")["fixes"][0];
    lattice(&repo).args(["doctor", "--fix", text(&fix["id"])]).ok();
    lattice(&repo).arg("restack").ok();
    for (branch, parent) in [("a", "main"), ("b", "a"), ("c", "b")] {
        stands(&repo, branch, parent);
    }
    let subjects = repo.git(&["log", "--reverse", "--format=%s", "main..c"]);
    assert_eq!(subjects, "a 1\nb 1\nb 2\nc 1", "nothing is lost and nothing is there twice");
    sound(&repo);
}

#[test]
fn a_parent_that_was_renamed_with_plain_git_is_found_again_by_a_fix() {
    let repo = TestRepo::draw("main <- a <- b* <- c");
    repo.git(&["branch", "-m", "a", "z"]);
    trunk_goes_on(&repo);
    let refused = lattice(&repo).args(["--json", "restack"]).fails(1).json();
    assert!(refused["issues"].to_string().contains("`a`"), "{refused:#}");
    for _ in 0..3 {
        let found = report(&repo);
        let blocking = list(&found["issues"]).iter().find(|issue| issue["severity"] == "blocking").cloned();
        let Some(blocking) = blocking else { break };
        let fixes = list(&blocking["fixes"]);
        let renamed = fixes.iter().find(|fix| text(&fix["summary"]).contains('z')).unwrap_or(&fixes[0]);
        lattice(&repo).args(["doctor", "--fix", text(&renamed["id"])]).run();
    }
    lattice(&repo).arg("restack").ok();
    stands(&repo, "c", "b");
    assert_eq!(repo.git(&["log", "--reverse", "--format=%s", "main..c"]).lines().count(), 3);
    sound(&repo);
}

#[test]
fn a_stash_that_worktrees_share_is_not_touched() {
    let repo = TestRepo::draw("main <- a* <- b");
    let other = repo.worktree("other", "b");
    repo.write("a.txt", "put aside\n");
    repo.git(&["stash", "--quiet"]);
    other.write("b.txt", "put aside there\n");
    other.git(&["stash", "--quiet"]);
    let stashes = repo.git(&["stash", "list", "--format=%H %gs"]);
    trunk_goes_on(&repo);
    lattice(&repo).arg("restack").ok();
    lattice(&repo).arg("undo").ok();
    lattice(&repo).arg("redo").ok();
    assert_eq!(repo.git(&["stash", "list", "--format=%H %gs"]), stashes);
    repo.git(&["stash", "apply", "--quiet", "stash@{1}"]);
    assert_eq!(repo.read("a.txt"), "put aside\n");
}

#[test]
fn submodules_and_large_file_pointers_are_carried_along_as_they_are() {
    let repo = TestRepo::draw("main <- a*");
    let pointer = "version 1\noid sha256:1234\nsize 5\n";
    let commit = repo.rev("main");
    repo.write(".gitattributes", "*.bin filter=lfs -text\n");
    repo.write("big.bin", pointer);
    repo.git(&["add", ".gitattributes", "big.bin"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    repo.git(&["commit", "--quiet", "-m", "a pointer and a submodule"]);
    // Whoever smudges or cleans what is only moved would be caught.
    let caught = repo.common_dir().join("caught");
    let spy = format!("sh -c 'cat; echo $0 >> \"{}\"' ", caught.display());
    repo.git(&["config", "filter.lfs.clean", &format!("{spy} clean")]);
    let entries = |branch: &str| repo.git(&["ls-tree", branch, "big.bin", "sub", ".gitattributes"]);
    let before = entries("a");
    trunk_goes_on(&repo);
    lattice(&repo).arg("restack").ok();
    assert_eq!(entries("a"), before);
    assert_eq!(repo.read("big.bin"), pointer);
    let status = repo.git(&["status", "--porcelain", "--ignore-submodules"]);
    assert_eq!(status, "", "nothing looks changed");
    sound(&repo);
}

#[test]
fn names_that_differ_in_case_alone_are_refused_before_anything_is_made() {
    let repo = TestRepo::draw("main <- feature* <- top");
    let before = repo.state();
    for args in [&["create", "Feature"][..], &["create", "TOP", "-m", "x"], &["rename", "Top"]] {
        let answer = lattice(&repo).arg("--json").args(args).fails(1).json();
        assert_eq!(answer["error"]["code"], json!("branch-name-clash"), "{args:?}: {answer:#}");
    }
    assert_same(&before, &repo.state());
    repo.git(&["branch", "FEATURE"]);
    assert_eq!(issue(&report(&repo), "look-alike-names")["severity"], "warning", "what exists is named");
    lattice(&repo).args(["create", "fine"]).ok();
}

#[test]
fn a_stack_of_a_hundred_levels_is_restacked_undone_and_redone() {
    let chain: Vec<_> = (1..=100).map(|n| format!("b{n:03}")).collect();
    let repo = TestRepo::draw(&format!("main <- {}*", chain.join(" <- ")));
    trunk_goes_on(&repo);
    let before = repo.state();
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.git(&["rev-list", "--count", "main..b100"]), "100");
    stands(&repo, "b001", "main");
    stands(&repo, "b100", "b099");
    sound(&repo);
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
    lattice(&repo).arg("redo").ok();
    stands(&repo, "b100", "b099");
}

#[test]
fn a_repository_with_a_thousand_branches_is_restacked_as_a_whole() {
    let stacks: Vec<_> = (0..250).map(|n| format!("main <- s{n:03}a <- s{n:03}b <- s{n:03}c <- s{n:03}d")).collect();
    let repo = TestRepo::draw(&stacks.join("; "));
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "newer\n", "trunk goes on");
    let answer = lattice(&repo).arg("restack").json();
    assert_eq!(answer["kept"], json!([]));
    for stack in ["s000", "s124", "s249"] {
        stands(&repo, &format!("{stack}a"), "main");
        stands(&repo, &format!("{stack}d"), &format!("{stack}c"));
    }
    assert_eq!(lattice(&repo).arg("restack").json()["changed"], json!(false));
    sound(&repo);
}
