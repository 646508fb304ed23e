//! Tests of track and untrack.

use expect_test::expect;
use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

/// A stack `main <- a` and on it two commits of an untracked branch `loose`, checked out.
#[track_caller]
fn repo_with_loose() -> TestRepo {
    let repo = TestRepo::draw("main <- a*");
    repo.git(&["checkout", "--quiet", "-b", "loose"]);
    repo.commit_file("l1.txt", "1\n", "loose 1");
    repo.commit_file("l2.txt", "2\n", "loose 2");
    repo
}

// proves: ST-2-1, ST-3.2-1, ST-3.2.2-11
#[test]
fn a_branch_is_tracked_exactly_while_its_metadata_ref_exists() {
    let repo = repo_with_loose();
    repo.git(&["branch", "-m", "loose", "feature/loose"]);
    let out = lattice(&repo).args(["track", "feature/loose", "--parent", "a"]).ok();
    expect![[r#"
        tracking feature/loose on a
    "#]]
    .assert_eq(&out.stdout);
    let metadata = repo.metadata("feature/loose");
    assert_eq!(metadata["parent"], json!({ "kind": "branch", "name": "a" }), "a branch as parent");
    assert_eq!(repo.metadata("a")["parent"]["kind"], json!("trunk"), "the trunk as parent");
    assert_eq!(metadata["base"]["oid"], json!(repo.rev("a")));
    let listed = || {
        let log = lattice(&repo).arg("log").json();
        let names = log["branches"].as_array().expect("a list").iter().map(|branch| branch["name"].clone());
        (names.collect::<Vec<_>>(), log["untracked"].clone())
    };
    assert_eq!(listed(), (vec![json!("a"), json!("feature/loose")], json!([])));
    repo.git(&["update-ref", "-d", "refs/branch-metadata/feature/loose"]);
    assert_eq!(listed(), (vec![json!("a")], json!(["feature/loose"])), "without the ref it is not tracked");
}

#[test]
fn the_base_is_where_branch_and_parent_meet() {
    let repo = repo_with_loose();
    let fork = repo.rev("a");
    repo.git(&["checkout", "--quiet", "a"]);
    repo.commit_file("a2.txt", "2\n", "a 2");
    lattice(&repo).args(["track", "loose", "--parent", "a"]).ok();
    assert_eq!(repo.metadata("loose")["base"]["oid"], json!(fork), "not the parent's tip, which it does not contain");
    lattice(&repo).args(["restack", "loose"]).ok();
    assert_eq!(repo.git(&["log", "--reverse", "--format=%s", "a..loose"]), "loose 1\nloose 2");
}

#[test]
fn without_a_parent_nothing_is_guessed_and_force_takes_the_nearest() {
    let repo = repo_with_loose();
    let out = lattice(&repo).arg("track").fails(2);
    assert!(out.stderr.contains("--parent <branch>"), "{}", out.snapshot());
    lattice(&repo).args(["track", "--force"]).ok();
    assert_eq!(repo.metadata("loose")["parent"]["name"], json!("a"), "a is nearer than main");
    let repo = TestRepo::draw("main <- a <- empty(0)*");
    repo.git(&["branch", "loose"]);
    lattice(&repo).args(["track", "loose", "--force"]).ok();
    assert_eq!(repo.metadata("loose")["parent"]["name"], json!("empty"), "of two at one commit, the upper one");
    lattice(&repo).args(["track", "a", "--force"]).ok();
    assert_eq!(repo.metadata("a")["parent"]["name"], json!("main"), "never one that stands on the branch itself");
    let repo = TestRepo::draw("main* <- a; main <- b");
    repo.git(&["checkout", "--quiet", "-b", "both", "a"]);
    repo.git(&["merge", "--quiet", "--no-ff", "-m", "both", "b"]);
    let doubtful = lattice(&repo).args(["track", "--force", "--json"]).fails(1).json();
    assert_eq!(doubtful["error"]["code"], json!("no-parent-found"), "{doubtful:#}");
}

#[test]
fn finding_the_nearest_branch_takes_as_many_processes_for_30_branches_as_for_3() {
    let count = |branches: usize| {
        let chain: String = (1..=branches).map(|n| format!(" <- b{n}")).collect();
        let repo = TestRepo::draw(&format!("main*{chain}"));
        repo.git(&["checkout", "--quiet", "-b", "loose", &format!("b{branches}")]);
        let wrapper = lattice_testkit::GitWrapper::new(&repo);
        lattice(&repo).wrapper(&wrapper).args(["track", "--force"]).ok();
        assert_eq!(repo.metadata("loose")["parent"]["name"], json!(format!("b{branches}")));
        wrapper.count()
    };
    assert_eq!(count(3), count(30), "the number of git processes does not depend on the number of branches");
}

#[test]
fn a_tracked_branch_is_tracked_anew_only_by_force() {
    let repo = TestRepo::draw("main* <- a <- b");
    let created = repo.metadata("b")["timestamps"]["created_at"].clone();
    let before = repo.state();
    let document = lattice(&repo).args(["track", "b", "--parent", "main", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("already-tracked"), "{document:#}");
    assert_same(&before, &repo.state());
    let tip = repo.rev("b");
    lattice(&repo).args(["track", "b", "--parent", "main", "--force"]).ok();
    let metadata = repo.metadata("b");
    assert_eq!(metadata["parent"], json!({ "kind": "trunk", "name": "main" }));
    assert_eq!(metadata["base"]["oid"], json!(repo.rev("main")));
    assert_eq!(repo.rev("b"), tip, "only the pointer was written");
    assert_eq!(metadata["timestamps"]["created_at"], created);
}

#[test]
fn as_frozen_protects_from_the_start() {
    let repo = repo_with_loose();
    lattice(&repo).args(["track", "--parent", "main", "--as-frozen"]).ok();
    assert_eq!(repo.metadata("loose")["freeze"]["state"], json!("frozen"));
}

#[test]
fn parents_that_cannot_be_are_refused_and_nothing_is_written() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.git(&["branch", "loose"]);
    repo.git(&["checkout", "--quiet", "--orphan", "alien"]);
    repo.commit_file("alien.txt", "1\n", "another beginning");
    let before = repo.state();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["main", "--parent", "a"], 1, "trunk"),
        (&["a", "--parent", "a", "--force"], 1, "cycle"),
        (&["a", "--parent", "b", "--force"], 1, "cycle"),
        (&["b", "--parent", "loose", "--force"], 1, "gated"),
        (&["loose", "--parent", "missing"], 1, "gated"),
        (&["missing", "--parent", "main"], 1, "gated"),
        (&["alien", "--parent", "main"], 1, "unrelated-history"),
        (&["loose", "--parent=-x"], 2, "usage"),
    ];
    for (args, code, error) in cases {
        let document = lattice(&repo).args(["track", "--json"]).args(args).fails(code).json();
        assert_eq!(document["error"]["code"], json!(error), "track {}: {document:#}", args.join(" "));
        assert_same(&before, &repo.state());
    }
    repo.git(&["checkout", "--quiet", "--detach", "main"]);
    let detached = lattice(&repo).args(["track", "--parent", "main"]).fails(1);
    assert!(detached.stderr.contains("HEAD is detached"), "{}", detached.snapshot());
}

#[test]
fn metadata_of_a_deleted_branch_is_not_in_the_way_half_way_through() {
    // `gone` has left its metadata behind, so Git cannot store metadata of `gone/again` beside it.
    let repo = TestRepo::draw("main* <- gone");
    repo.git(&["update-ref", "-d", "refs/heads/gone"]);
    repo.git(&["branch", "gone/again"]);
    let before = repo.state();
    let document = lattice(&repo).args(["track", "gone/again", "--parent", "main", "--json"]).fails(1).json();
    let code = document["error"]["code"].as_str().expect("text");
    assert!(["gated", "branch-name-clash"].contains(&code), "found in planning, not by git: {document:#}");
    assert_same(&before, &repo.state());
    assert!(repo.ledger().iter().all(|event| event["category"] != json!("aborted")), "no operation was begun");
}

#[test]
fn untrack_leaves_the_branch_and_refuses_to_orphan_others() {
    let repo = TestRepo::draw("main* <- a <- b <- c; main <- d");
    let tips = repo.branch_refs();
    let document = lattice(&repo).args(["untrack", "a", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("has-children"), "{document:#}");
    assert!(document["error"]["message"].as_str().is_some_and(|text| text.contains("b, c")), "{document:#}");
    lattice(&repo).args(["untrack", "c"]).ok();
    assert_eq!(repo.metadata_refs().into_keys().collect::<Vec<_>>(), ["a", "b", "d"]);
    lattice(&repo).args(["untrack", "a", "--force"]).ok();
    assert_eq!(repo.metadata_refs().into_keys().collect::<Vec<_>>(), ["d"], "with everything above it");
    assert_eq!(repo.branch_refs(), tips, "branches themselves stay");
    let main = lattice(&repo).arg("untrack").fails(1);
    assert!(main.stderr.contains("is the trunk"), "{}", main.snapshot());
    lattice(&repo).args(["untrack", "d", "--dry-run"]).ok();
    assert!(repo.metadata_refs().contains_key("d"), "a dry run changes nothing");
}
