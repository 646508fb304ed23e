//! Tests of freeze and unfreeze.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

// proves: ST-3.2.2-13
#[test]
fn freezing_covers_everything_below_and_unfreezing_only_the_branch() {
    let repo = TestRepo::draw("main <- a <- b* <- c");
    lattice(&repo).args(["freeze", "--reason", "in review"]).ok();
    for branch in ["a", "b"] {
        let freeze = &repo.metadata(branch)["freeze"];
        assert_eq!(freeze["state"], json!("frozen"), "{branch}");
        assert_eq!(freeze["scope"], json!("downstack_inclusive"));
        assert_eq!(freeze["reason"], json!("in review"));
        assert_eq!(freeze["frozen_at"], json!("2026-01-02T03:04:05Z"));
    }
    assert_eq!(repo.metadata("c")["freeze"], json!({ "state": "unfrozen" }), "what is above stays free");
    lattice(&repo).args(["unfreeze", "b"]).ok();
    assert_eq!(repo.metadata("b")["freeze"], json!({ "state": "unfrozen" }));
    assert_eq!(repo.metadata("a")["freeze"]["state"], json!("frozen"), "what is below was not asked for");
}

#[test]
fn the_reason_of_a_freeze_is_shown_where_it_matters() {
    let repo = TestRepo::draw("main <- a*");
    lattice(&repo).args(["freeze", "--reason", "release 1.0"]).ok();
    assert_eq!(lattice(&repo).args(["info"]).json()["branch"]["frozen_because"], json!("release 1.0"));
    assert!(lattice(&repo).arg("info").ok().stdout.contains("frozen (release 1.0)"));
    let refused = lattice(&repo).args(["modify", "-m", "other"]).fails(1);
    assert!(refused.stderr.contains("is frozen (release 1.0)"), "{}", refused.snapshot());
}

#[test]
fn freezing_again_keeps_the_first_reason_and_writes_nothing() {
    let repo = TestRepo::draw("main <- a*");
    lattice(&repo).args(["freeze", "--reason", "first"]).ok();
    let before = repo.state();
    assert_eq!(lattice(&repo).args(["freeze", "--reason", "second"]).json()["changed"], json!(false));
    assert_same(&before, &repo.state());
    lattice(&repo).arg("unfreeze").ok();
    assert_eq!(lattice(&repo).arg("unfreeze").json()["changed"], json!(false), "what is free stays free");
}

#[test]
fn freezing_moves_no_branch_and_no_base() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let (tips, base) = (repo.branch_refs(), repo.metadata("a")["base"].clone());
    lattice(&repo).args(["freeze", "b"]).ok();
    assert_eq!(repo.branch_refs(), tips);
    assert_eq!(repo.metadata("a")["base"], base, "the base of a branch that needs a restack is not made up");
    let created = repo.metadata("a")["timestamps"]["created_at"].clone();
    lattice(&repo).args(["unfreeze", "a"]).ok();
    assert_eq!(repo.metadata("a")["timestamps"]["created_at"], created);
}

#[test]
fn what_is_no_branch_of_a_stack_cannot_be_frozen() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "loose"]);
    let before = repo.state();
    for command in ["freeze", "unfreeze"] {
        for (branch, text) in [("main", "is the trunk"), ("loose", "is not tracked"), ("missing", "there is no branch")]
        {
            let out = lattice(&repo).args([command, branch]).fails(1);
            assert!(out.stderr.contains(text), "{command} {branch}:\n{}", out.snapshot());
        }
        lattice(&repo).args([command, "--", "-x"]).fails(2);
        lattice(&repo).args([command, "a", "--dry-run"]).ok();
    }
    assert_same(&before, &repo.state());
}
