//! Changes made outside of Lattice: noticed, recorded once, and no failure by themselves.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::Value;
use std::fmt::Write as _;

use crate::lattice;

/// A stack that Lattice has changed, so that it knows what it left.
#[track_caller]
fn known() -> TestRepo {
    let repo = TestRepo::draw("main <- api <- ui*; main <- db");
    lattice(&repo).args(["freeze", "db"]).ok();
    repo
}

fn fingerprint(repo: &TestRepo) -> String {
    lattice(repo).arg("doctor").json()["fingerprint"].as_str().expect("a fingerprint is text").to_owned()
}

fn events(repo: &TestRepo, category: &str) -> Vec<Value> {
    repo.ledger().into_iter().filter(|event| event["event"] == category).collect()
}

// proves: ST-1.2-1, ST-1.2-2, ST-7.2-2, ST-7.2-3, ST-7.2-4, ST-7.2-5, ST-7.2-6, ST-3.4.2-4
#[test]
fn a_change_by_git_is_reported_and_recorded_once_with_both_fingerprints_and_the_refs() {
    let repo = known();
    let prior = fingerprint(&repo);
    lattice(&repo).arg("log").ok();
    assert_eq!(events(&repo, "DivergenceObserved").len(), 0, "without a change there is nothing to record");
    let (moved, gone) = (repo.rev("api"), repo.rev("db"));
    let to = repo.git(&["commit-tree", "-p", "api", "-m", "by git", "api^{tree}"]);
    repo.git(&["update-ref", "refs/heads/api", &to]);
    repo.git(&["update-ref", "-d", "refs/heads/db"]);
    let document = repo.metadata("ui").to_string().replace("\"ui\"", "\"extra\"");
    repo.git(&["branch", "extra", "ui"]);
    repo.set_metadata_raw("extra", document.as_bytes());
    let log = lattice(&repo).arg("log").json();
    let newest = repo.ledger().remove(0);
    assert_eq!(newest["event"], "DivergenceObserved");
    assert_eq!(newest["fingerprint_before"], Value::from(prior));
    for args in [&["log"][..], &["info", "api"], &["doctor"], &["verify"], &["parent", "api"]] {
        lattice(&repo).args(args).run();
    }
    assert_eq!(events(&repo, "DivergenceObserved").len(), 1, "the same state is recorded once");
    assert_eq!(newest["fingerprint_after"], Value::from(fingerprint(&repo)));
    let change = |name: &str| {
        let refs = newest["touched_refs"].as_array().expect("a list").clone();
        refs.into_iter().find(|change| change["name"] == name).unwrap_or_else(|| panic!("{name} is listed: {newest}"))
    };
    assert_eq!(change("refs/heads/api")["old"], Value::from(moved));
    assert_eq!(change("refs/heads/api")["new"], Value::from(to));
    assert_eq!(change("refs/heads/db")["old"], Value::from(gone));
    assert_eq!(change("refs/heads/db")["new"], Value::Null);
    assert_eq!(change("refs/branch-metadata/extra")["old"], Value::Null);
    assert!(log["divergence"].to_string().contains("refs/heads/api"), "{log}");
}

#[test]
fn every_command_that_reads_a_repository_notices_a_change() {
    let commands: [&[&str]; 8] = [
        &["log"],
        &["info", "ui"],
        &["parent", "ui"],
        &["children", "api"],
        &["trunk"],
        &["doctor"],
        &["freeze", "api"],
        &["checkout", "api"],
    ];
    for args in commands {
        let repo = known();
        repo.commit_file("ui.txt", "by git\n", "by git");
        lattice(&repo).args(args).run();
        assert_eq!(events(&repo, "DivergenceObserved").len(), 1, "{args:?} looked");
    }
}

// proves: ST-1.2-4, ST-7.3-3
#[test]
fn a_branch_that_was_amended_by_git_is_restacked_like_any_other() {
    let repo = known();
    repo.git(&["checkout", "--quiet", "api"]);
    repo.write("api.txt", "amended by git\n");
    repo.git(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    lattice(&repo).args(["restack"]).ok();
    assert_eq!(repo.rev("ui^"), repo.rev("api"));
    assert_eq!(repo.git(&["show", "ui:api.txt"]), "amended by git");
    let again = fingerprint(&repo);
    lattice(&repo).arg("log").ok();
    assert_eq!(fingerprint(&repo), again);
    let log = lattice(&repo).arg("log").json();
    assert_eq!(log["divergence"], Value::Null, "what Lattice itself did is no divergence");
}

// proves: ST-1.2-3, ST-7.2-7
#[test]
fn a_parent_that_was_deleted_by_git_is_an_issue_with_the_change_as_evidence() {
    let repo = known();
    repo.git(&["update-ref", "-d", "refs/heads/api"]);
    let before = repo.state();
    let output = lattice(&repo).arg("restack").fails(1);
    assert!(output.stderr.contains("refs/heads/api"), "the refusal shows what changed:\n{}", output.stderr);
    let report = lattice(&repo).arg("doctor").json();
    assert!(report["divergence"].to_string().contains("refs/heads/api"), "and so does doctor: {report}");
    assert_same(&before, &repo.state());
}

// proves: ST-7.3-2
#[test]
fn corrupt_metadata_gates_what_needs_it_and_nothing_else() {
    let repo = known();
    repo.set_metadata_raw("api", b"{");
    let before = repo.state();
    lattice(&repo).arg("restack").fails(1);
    lattice(&repo).arg("log").ok();
    assert_same(&before, &repo.state());
}

// proves: ST-7.1-1, ST-7.1-2, ST-7.1-3, ST-7.1-4, ST-7.1-5
#[test]
fn the_fingerprint_covers_trunk_tracked_branches_documents_and_configuration_and_nothing_else() {
    let repo = known();
    repo.git(&["branch", "loose", "main"]);
    let start = fingerprint(&repo);
    assert_eq!(fingerprint(&repo), start, "looking changes nothing");
    let commit = |branch: &str| {
        let to = repo.git(&["commit-tree", "-p", branch, "-m", "more", &format!("{branch}^{{tree}}")]);
        repo.git(&["update-ref", &format!("refs/heads/{branch}"), &to]);
    };
    commit("loose");
    repo.git(&["tag", "v1"]);
    assert_eq!(fingerprint(&repo), start, "an untracked branch and a tag do not count");
    let mut seen = vec![start];
    let mut differs = |what: &str| {
        let now = fingerprint(&repo);
        assert!(!seen.contains(&now), "{what} has to count");
        seen.push(now);
    };
    commit("main");
    differs("the trunk");
    commit("api");
    differs("a tracked branch");
    repo.set_metadata_raw("ui", format!("{} ", repo.metadata("ui")).as_bytes());
    differs("a document");
    repo.write_config("[trunk]\nbranch = \"loose\"\n");
    differs("the name of the trunk");
}

// proves: ST-7.1-6, ST-3.4.2-10
#[test]
fn the_fingerprint_can_be_computed_with_git_and_is_what_the_ledger_records() {
    let repo = known();
    let compute = |repo: &TestRepo| {
        let mut lines = Vec::new();
        for (name, oid) in repo.refs() {
            let tracked = name
                .strip_prefix("refs/heads/")
                .is_some_and(|branch| branch == "main" || repo.metadata_refs().contains_key(branch));
            if tracked || name.starts_with("refs/branch-metadata/") {
                lines.push((name, oid));
            }
        }
        let sum = |file: &str| {
            let output = lattice_testkit::Lattice::new("sha256sum", repo).arg(file).ok().stdout;
            output.split(' ').next().expect("a sum").to_owned()
        };
        lines.push(("lattice/config.toml".to_owned(), sum(".git/lattice/config.toml")));
        lines.sort();
        let mut text = String::new();
        for (name, value) in lines {
            writeln!(text, "{value} {name}").expect("a string grows");
        }
        let stored = repo.git(&["cat-file", "blob", "refs/lattice/event-log:refs"]);
        let plain = |text: &str| text.trim_end().replace("sha256:", "");
        (plain(&text), plain(&stored))
    };
    let before = fingerprint(&repo);
    lattice(&repo).args(["freeze", "ui"]).ok();
    let (text, stored) = compute(&repo);
    assert_eq!(stored, text, "the record holds exactly the entries of the documented rule");
    let newest = repo.ledger().remove(0);
    assert_eq!(newest["event"], "Committed");
    assert_eq!(newest["fingerprint_before"], Value::from(before));
    let after = fingerprint(&repo);
    assert_eq!(newest["fingerprint_after"], Value::from(after.clone()));
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(fingerprint(&repo), after, "how refs are stored does not matter");
}

// proves: ST-3.4-1, ST-3.4.1-1
#[test]
fn the_ledger_is_evidence_and_not_authority() {
    let repo = known();
    assert!(repo.refs().contains_key("refs/lattice/event-log"));
    let before = repo.state();
    repo.git(&["update-ref", "-d", "refs/lattice/event-log"]);
    lattice(&repo).arg("log").ok();
    assert_same(&before, &repo.state());
    lattice(&repo).args(["unfreeze", "db"]).ok();
    lattice(&repo).arg("restack").ok();
    lattice(&repo).args(["verify", "--full"]).ok();
}

// proves: ST-3.4.1-3
// proves partly: ST-3.4-4 — that packing refs changes nothing, not the order itself
#[test]
fn every_change_has_its_intent_and_its_end_in_the_order_of_the_chain() {
    let repo = known();
    lattice(&repo).args(["create", "new"]).ok();
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "newer\n", "trunk goes on");
    lattice(&repo).arg("restack").ok();
    let chain = |repo: &TestRepo| {
        let ledger = lattice(repo).args(["doctor", "--events"]).json()["ledger"].clone();
        assert!(ledger.as_array().is_some_and(|events| events.len() > 5), "{ledger}");
        ledger
    };
    let told = chain(&repo);
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(chain(&repo), told, "packing refs changes nothing");
    for command in ["freeze", "create", "restack"] {
        let of = |category| {
            let events = events(&repo, category);
            events.into_iter().find(|event| event["command"] == command).expect("it is recorded")
        };
        let (intent, end) = (of("IntentRecorded"), of("Committed"));
        assert_eq!(intent["op_id"], end["op_id"]);
        let refs = end["touched_refs"].as_array().expect("a list");
        assert!(!refs.is_empty() && refs.iter().all(|change| change["new"].is_string()), "{command}: {end}");
    }
}

// proves: ST-15-1
#[test]
fn damage_refusal_fixes_repair_verification_and_the_record_of_it_all() {
    let repo = known();
    let document = repo.git(&["rev-parse", "refs/branch-metadata/ui"]);
    repo.git(&["update-ref", "refs/branch-metadata/ui", &repo.git(&["hash-object", "-w", "README"])]);
    let refused = lattice(&repo).args(["--json", "restack"]).fails(1).json();
    let fixes = refused["issues"][0]["fixes"].as_array().expect("a list").clone();
    let restore = fixes.iter().find(|fix| fix["id"].as_str().is_some_and(|id| id.starts_with("restore-metadata")));
    let id = restore.expect("the ledger knows what there was")["id"].as_str().expect("text").to_owned();
    lattice(&repo).arg("doctor").fails(1);
    assert_ne!(repo.rev("refs/branch-metadata/ui"), document, "nothing is repaired that nobody chose");
    lattice(&repo).args(["doctor", "--fix", &id]).ok();
    assert_eq!(repo.rev("refs/branch-metadata/ui"), document);
    lattice(&repo).args(["verify", "--full"]).ok();
    lattice(&repo).arg("restack").ok();
    let categories = ["DivergenceObserved", "DoctorProposed", "IntentRecorded", "Committed", "DoctorApplied"];
    for category in categories {
        assert!(!events(&repo, category).is_empty(), "{category} is in the ledger");
    }
}
