//! Tests of move: a branch and everything above it onto another parent.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

#[test]
fn a_branch_moves_with_everything_above_it_and_leaves_the_rest() {
    let repo = TestRepo::draw("main <- a <- b(2) <- c*; a <- stays; main <- target");
    let (a, stays) = (repo.rev("a"), repo.rev("stays"));
    lattice(&repo).args(["move", "--source", "b", "--onto", "target"]).ok();
    assert_eq!(repo.rev("b~2"), repo.rev("target"), "b has its two commits on the new parent");
    assert_eq!(repo.rev("c^"), repo.rev("b"), "c came along");
    assert_eq!([repo.rev("a"), repo.rev("stays")], [a, stays], "what is not above b stays");
    assert_eq!(
        repo.git(&["log", "--reverse", "--format=%s", "main..c"]),
        "target 1\nb 1\nb 2\nc 1",
        "a's commit is left"
    );
    assert_eq!(repo.metadata("b")["parent"], json!({ "kind": "branch", "name": "target" }));
    assert_eq!(repo.metadata("b")["base"]["oid"], json!(repo.rev("target")));
    assert!(!repo.dir().join("a.txt").exists(), "the working tree follows the branch that is checked out");
    assert_eq!(lattice(&repo).arg("verify").json()["holds"], json!(true));
}

#[test]
fn moving_onto_the_trunk_writes_the_trunk_as_parent_of_the_current_branch() {
    let repo = TestRepo::draw("main <- a <- b*");
    lattice(&repo).args(["move", "--onto", "main"]).ok();
    assert_eq!(repo.metadata("b")["parent"], json!({ "kind": "trunk", "name": "main" }));
    assert_eq!(repo.rev("b^"), repo.rev("main"), "the current branch is the source");
}

#[test]
fn moving_to_the_present_parent_changes_nothing() {
    let repo = TestRepo::draw("main <- a <- b*");
    let before = repo.state();
    assert_eq!(lattice(&repo).args(["move", "--onto", "a"]).json()["changed"], json!(false));
    assert_same(&before, &repo.state());
}

#[test]
fn moves_that_make_no_sense_are_refused_by_name_and_change_nothing() {
    let repo = TestRepo::draw("main <- a* <- b <- c; main <- f!");
    repo.git(&["branch", "loose"]);
    let before = repo.state();
    let cases: [(&[&str], i32, &str, &str); 8] = [
        (&["--onto", "a"], 1, "move-onto-itself", "a itself or above it"),
        (&["--onto", "c"], 1, "move-onto-itself", "a itself or above it"),
        (&["--onto", "loose"], 1, "gated", "`loose` is neither the trunk nor a tracked branch"),
        (&["--onto", "missing"], 1, "gated", "`missing` is neither the trunk nor a tracked branch"),
        (&["--source", "main", "--onto", "a"], 1, "gated", "`main` is the trunk"),
        (&["--source", "loose", "--onto", "a"], 1, "gated", "`loose` is not tracked"),
        (&["--source", "f", "--onto", "a"], 1, "gated", "`f` is frozen"),
        (&["--onto=-x"], 2, "usage", "starts with a dash"),
    ];
    for (args, code, error, text) in cases {
        let output = lattice(&repo).args(["move", "--json"]).args(args).fails(code);
        let document = output.json();
        assert_eq!(document["error"]["code"], json!(error), "move {}: {document:#}", args.join(" "));
        let message = document["error"]["message"].as_str().expect("text");
        assert!(message.contains(text), "move {}: {message}", args.join(" "));
        assert_same(&before, &repo.state());
    }
    lattice(&repo).args(["move", "--source", "b"]).fails(2);
}

#[test]
fn a_frozen_branch_above_is_kept_on_the_old_commits() {
    let repo = TestRepo::draw("main* <- a <- b <- f!; main <- target");
    let (f, old_b) = (repo.rev("f"), repo.rev("b"));
    let document = lattice(&repo).args(["move", "--source", "b", "--onto", "target"]).json();
    assert_eq!(document["kept"], json!([{ "branch": "f", "reason": "frozen" }]), "{document:#}");
    assert_eq!(repo.rev("f"), f, "a frozen branch is not rewritten");
    assert_eq!(repo.metadata("f")["base"]["oid"], json!(old_b), "its base stays what it stands on");
}

#[test]
fn a_dry_run_of_a_move_shows_the_plan_and_changes_nothing() {
    let repo = TestRepo::draw("main* <- a <- b; main <- target");
    let before = repo.state();
    let out = lattice(&repo).args(["move", "--source", "b", "--onto", "target", "--dry-run"]).ok();
    assert!(out.stdout.contains("rebase b (1 commit) onto"), "{}", out.snapshot());
    assert!(out.stdout.contains("update b: parent target"), "{}", out.snapshot());
    assert_same(&before, &repo.state());
}
