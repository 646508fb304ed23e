//! Tests of checkout, up, down, top and bottom.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

#[track_caller]
fn head(repo: &TestRepo) -> String {
    repo.git(&["symbolic-ref", "--short", "HEAD"])
}

#[test]
fn each_command_goes_where_it_says() {
    let repo = TestRepo::draw("main <- a <- b* <- c <- d; main <- e <- f; e <- g <- h");
    let steps: [(&[&str], &str); 15] = [
        (&["up"], "c"),
        (&["down"], "b"),
        (&["up", "2"], "d"),
        (&["down", "3"], "a"),
        (&["top"], "d"),
        (&["bottom"], "a"),
        (&["up", "99"], "d"),
        (&["down", "99"], "main"),
        (&["up", "--to", "a"], "a"),
        (&["checkout", "main"], "main"),
        (&["up", "2", "--to", "h"], "g"),
        (&["down"], "e"),
        (&["top", "--to", "h"], "h"),
        (&["co", "b"], "b"),
        (&["checkout", "b"], "b"),
    ];
    for (args, expected) in steps {
        lattice(&repo).args(args).ok();
        assert_eq!(head(&repo), expected, "after lattice {}", args.join(" "));
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "the files are those of {expected}");
    }
}

#[test]
fn a_dash_is_the_branch_before_for_lattice_and_for_git() {
    let repo = TestRepo::draw("main <- a* <- b; main <- c");
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    let nowhere = lattice(&repo).args(["checkout", "-", "--json"]).fails(1).json();
    assert_eq!(nowhere["error"]["code"], json!("no-branch-before"), "{nowhere:#}");
    lattice(&repo).arg("up").ok();
    lattice(&repo).args(["checkout", "-"]).ok();
    assert_eq!(head(&repo), "a");
    lattice(&repo).args(["checkout", "c"]).ok();
    repo.git(&["checkout", "--quiet", "-"]);
    assert_eq!(head(&repo), "a", "git knows where Lattice was");
    repo.git(&["checkout", "--quiet", "main"]);
    lattice(&repo).args(["checkout", "-"]).ok();
    assert_eq!(head(&repo), "a", "and Lattice where git was");
    lattice(&repo).args(["rename", "renamed"]).ok();
    lattice(&repo).args(["checkout", "-"]).ok();
    assert_eq!(head(&repo), "main", "a branch under another name is no other branch");
    lattice(&repo).args(["create", "new"]).ok();
    lattice(&repo).args(["delete", "new"]).ok();
    lattice(&repo).args(["checkout", "-"]).ok();
    assert_eq!(head(&repo), "main", "a branch that was deleted is not looked for");
    repo.git(&["checkout", "--quiet", "--detach"]);
    let commit = repo.rev("HEAD");
    lattice(&repo).args(["checkout", "c"]).ok();
    repo.git(&["checkout", "--quiet", "-"]);
    assert_eq!(repo.rev("HEAD"), commit, "git finds the way back to no branch at all");
}

#[test]
fn a_dash_is_the_branch_before_after_a_conflict_too() {
    let repo = TestRepo::draw("main* <- a");
    repo.commit_file("a.txt", "of the trunk\n", "the same file");
    lattice(&repo).args(["checkout", "a"]).ok();
    lattice(&repo).arg("restack").fails(4);
    repo.write("a.txt", "both\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    lattice(&repo).args(["checkout", "-"]).ok();
    assert_eq!(head(&repo), "main", "and no commit in the middle of the rebase");
}

#[test]
fn an_untracked_branch_can_be_checked_out() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "loose"]);
    let document = lattice(&repo).args(["checkout", "loose"]).json();
    assert_eq!(document["current"], json!("loose"), "{document:#}");
    assert_eq!(head(&repo), "loose");
}

#[test]
fn where_there_is_no_way_or_more_than_one_nobody_moves() {
    let repo = TestRepo::draw("main <- a* <- b; a <- c; main <- other");
    repo.git(&["branch", "loose"]);
    let before = repo.state();
    let refusals: [(&[&str], i32, &str, &str); 9] = [
        (&["up"], 1, "ambiguous", "--to b"),
        (&["top"], 1, "ambiguous", "--to b"),
        (&["up", "--to", "other"], 1, "not-above", "`other` does not stand on `a`"),
        (&["top", "--to", "missing"], 1, "not-above", "`missing`"),
        (&["checkout", "missing"], 1, "gated", "there is no branch `missing`"),
        (&["checkout"], 2, "usage", "a branch is needed"),
        (&["checkout", "--", "-x"], 2, "usage", "starts with a dash"),
        (&["checkout", "HEAD"], 2, "usage", "reserved"),
        (&["up", "0"], 2, "usage", "0"),
    ];
    for (args, code, error, text) in refusals {
        let document = lattice(&repo).arg("--json").args(args).fails(code).json();
        assert_eq!(document["error"]["code"], json!(error), "lattice {}: {document:#}", args.join(" "));
        let said = document["error"].to_string() + &document["issues"].to_string();
        assert!(said.contains(text), "lattice {}: {document:#}", args.join(" "));
        assert_same(&before, &repo.state());
    }
}

#[test]
fn the_ends_of_a_stack_are_refusals_and_not_steps_to_nowhere() {
    let repo = TestRepo::draw("main <- a*");
    let code = |args: &[&str]| lattice(&repo).arg("--json").args(args).fails(1).json()["error"]["code"].clone();
    assert_eq!(code(&["up"]), json!("at-the-top"));
    lattice(&repo).arg("down").ok();
    assert_eq!(code(&["down"]), json!("at-the-bottom"));
    assert_eq!(code(&["bottom"]), json!("no-stack"));
    lattice(&repo).args(["down", "0"]).fails(2);
    repo.git(&["checkout", "--quiet", "--detach"]);
    for args in [["up"], ["down"], ["top"], ["bottom"]] {
        assert_eq!(code(&args), json!("gated"), "HEAD is detached");
    }
    lattice(&repo).args(["checkout", "a"]).ok();
    assert_eq!(head(&repo), "a", "a named branch can be checked out from a detached HEAD");
}

#[test]
fn uncommitted_work_comes_along_or_the_checkout_is_refused() {
    let repo = TestRepo::draw("main* <- a");
    repo.write("README", "edited\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    lattice(&repo).args(["checkout", "a"]).ok();
    assert_eq!(repo.git(&["status", "--porcelain"]), " M README\nA  staged.txt", "what is not in the way comes along");
    repo.write("a.txt", "edited here, absent on main\n");
    let before = repo.state();
    let document = lattice(&repo).args(["checkout", "main", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("files-in-the-way"), "{document:#}");
    assert_same(&before, &repo.state());
    let said = lattice(&repo).args(["checkout", "main"]).fails(1).stderr;
    assert!(said.contains("a.txt has uncommitted changes"), "{said}");
    repo.git(&["checkout", "--quiet", "--force", "main"]);
    repo.write("a.txt", "untracked, and a branch has such a file\n");
    let before = repo.state();
    let said = lattice(&repo).args(["checkout", "a"]).fails(1).stderr;
    assert!(said.contains("a.txt is untracked and would be overwritten"), "{said}");
    assert_same(&before, &repo.state());
}

#[test]
fn a_branch_of_another_worktree_is_refused_with_its_place() {
    let repo = TestRepo::draw("main* <- a");
    let linked = repo.worktree("linked", "a");
    let out = lattice(&repo).args(["checkout", "a"]).fails(1);
    assert!(out.stderr.contains(linked.dir().to_str().expect("text")), "{}", out.snapshot());
    assert_eq!(head(&repo), "main");
    lattice(&repo).args(["-C", "../linked", "checkout", "a"]).ok();
}

#[test]
fn a_dry_run_stays_where_it_is() {
    let repo = TestRepo::draw("main <- a* <- b");
    let before = repo.state();
    for args in [&["checkout", "main"][..], &["up"], &["down"], &["top"], &["bottom"]] {
        lattice(&repo).args(args).arg("--dry-run").ok();
    }
    assert_same(&before, &repo.state());
}
