//! Tests of divergence: what others change is seen, recorded once, told, and never in the way by itself.

pub(crate) mod fingerprint;
mod gating;

use lattice_testkit::TestRepo;
use lattice_testkit::metadata::{Freeze, Parent, Tracked, document};
use serde_json::{Value, json};

use crate::doctor::states::paused;
use crate::doctor::text;
use crate::lattice;
use crate::ledger::order::after_each_transaction;
use crate::ledger::{count, newest};

/// Someone else commits on a branch that is not checked out.
pub(crate) fn advance(repo: &TestRepo, branch: &str) -> String {
    let name = format!("refs/heads/{branch}");
    let tree = format!("{name}^{{tree}}");
    let commit = repo.git(&["commit-tree", "-m", "made elsewhere", "-p", &name, &tree]);
    repo.git(&["update-ref", &name, &commit]);
    commit
}

/// A stack that Lattice has recorded, all of it unfrozen, and that was then changed by other means.
pub(crate) fn recorded(change: impl Fn(&TestRepo)) -> TestRepo {
    let repo = TestRepo::draw("main* <- a <- b");
    lattice(&repo).args(["freeze", "a"]).ok();
    lattice(&repo).args(["unfreeze", "a"]).ok();
    change(&repo);
    repo
}

/// The newest event that ended an operation.
fn last_committed(repo: &TestRepo) -> Value {
    let committed = |event: &Value| event["event"] == "Committed";
    repo.ledger().into_iter().find(committed).expect("an operation was committed")
}

// proves: ST-1.2-1, ST-1.2-2, ST-7.2-2, ST-7.2-3, ST-7.2-4, ST-7.2-5, ST-3.4.1-2, ST-3.4.2-4
#[test]
fn what_others_changed_is_told_in_full_and_recorded_once() {
    let repo = TestRepo::draw("main* <- a; main <- b");
    lattice(&repo).args(["freeze", "a"]).ok();
    let committed = last_committed(&repo);
    let calm = lattice(&repo).arg("log").json();
    assert_eq!((&calm["divergence"], count(&repo, "DivergenceObserved")), (&Value::Null, 0), "nothing happened yet");

    let (old_a, old_b, base) = (repo.rev("a"), repo.rev("b"), repo.rev("main"));
    let new_a = advance(&repo, "a");
    repo.git(&["branch", "-D", "b"]);
    let ghost = Tracked { branch: "ghost", parent: Parent::Trunk("main"), base: &base, freeze: Freeze::Unfrozen };
    repo.set_metadata_raw("ghost", document(&ghost).to_string().as_bytes());
    let changes = json!([
        { "name": "refs/branch-metadata/ghost", "old": null, "new": repo.rev("refs/branch-metadata/ghost") },
        { "name": "refs/heads/a", "old": old_a, "new": new_a },
        { "name": "refs/heads/b", "old": old_b, "new": null },
    ]);
    let now = fingerprint::recomputed(&repo, "main");
    let told = json!({ "prior": committed["fingerprint_after"], "current": now, "changes": changes, "files": [] });

    for run in 1..=3 {
        assert_eq!(lattice(&repo).arg("log").json()["divergence"], told, "run {run} tells the whole of it");
        assert_eq!(count(&repo, "DivergenceObserved"), 1, "the same change is recorded once, not by run {run} too");
    }
    let event = newest(&repo);
    assert_eq!(event["event"], "DivergenceObserved", "it is the newest record: {event:#}");
    assert_eq!(event["fingerprint_before"], committed["fingerprint_after"], "since the last operation");
    assert_eq!(event["fingerprint_after"], now, "up to what the scan saw");
    assert_eq!(event["touched_refs"], changes, "with the refs that changed, their old and their new values");

    advance(&repo, "a");
    lattice(&repo).arg("log").ok();
    assert_eq!(count(&repo, "DivergenceObserved"), 2, "another change is another observation");
}

// Those that answer one question for a script say so only with `--debug`, and record it like all others.
// proves: ST-7.2-1
#[test]
fn every_command_compares_with_the_last_operation() {
    let repo = TestRepo::draw("main* <- a <- b");
    lattice(&repo).args(["freeze", "b"]).ok();
    let readers: [&[&str]; 9] = [
        &["log"],
        &["info", "a"],
        &["parent", "a"],
        &["children", "a"],
        &["trunk"],
        &["ops"],
        &["doctor"],
        &["restack", "a", "--dry-run"],
        &["restack", "nowhere"],
    ];
    for (before, args) in readers.into_iter().enumerate() {
        advance(&repo, "a");
        let output = lattice(&repo).arg("--debug").args(args).run();
        assert!(output.stderr.contains(", 1 refs changed outside"), "{args:?} compares:\n{}", output.snapshot());
        assert_eq!(count(&repo, "DivergenceObserved"), before + 1, "{args:?} records what it saw");
        assert_eq!(newest(&repo)["command"], args[0], "and under its own name");
    }
    // It changes nothing at all, and so only tells.
    advance(&repo, "a");
    let output = lattice(&repo).args(["--debug", "verify"]).run();
    assert!(output.stderr.contains(", 1 refs changed outside"), "{}", output.snapshot());
    for args in crate::laws::CHANGING {
        let repo = crate::laws::behind();
        lattice(&repo).args(["freeze", "api"]).ok();
        lattice(&repo).args(["unfreeze", "api"]).ok();
        lattice(&repo).args(["freeze", "ui"]).ok();
        lattice(&repo).arg("undo").ok();
        advance(&repo, "main");
        let output = lattice(&repo).arg("--debug").args(args).run();
        assert!(output.stderr.contains(", 1 refs changed outside"), "{args:?} compares:\n{}", output.snapshot());
    }
}

#[test]
fn a_command_that_changes_something_records_what_it_found_before_what_it_intends() {
    let repo = recorded(|repo| drop(advance(repo, "a")));
    let before = repo.ledger().len();
    let found = fingerprint::recomputed(&repo, "main");
    lattice(&repo).args(["freeze", "a"]).ok();
    let ledger = repo.ledger();
    let new: Vec<_> = ledger[..ledger.len() - before].iter().rev().map(|event| text(&event["event"])).collect();
    assert_eq!(new, ["DivergenceObserved", "IntentRecorded", "Committed"], "seen, meant, done");
    assert_eq!(ledger[2]["fingerprint_after"], found, "what was seen is what the operation began from");
    assert_eq!(ledger[1]["fingerprint_before"], found);
    assert_eq!(lattice(&repo).arg("log").json()["divergence"], Value::Null, "an operation settles it");
}

#[test]
fn twenty_readers_at_once_leave_one_record_and_none_complains() {
    let repo = recorded(|repo| drop(advance(repo, "a")));
    let running: Vec<_> = (0..20).map(|_| lattice(&repo).arg("log").spawn()).collect();
    for output in running.into_iter().map(lattice_testkit::cli::Running::wait) {
        assert_eq!(output.code, Some(0), "divergence is no failure:\n{}", output.snapshot());
        assert!(!output.stderr.contains("recorded"), "who came second has nothing to add:\n{}", output.snapshot());
    }
    assert_eq!(count(&repo, "DivergenceObserved"), 1, "one change is one record, however many looked");
}

#[test]
fn what_lattice_itself_has_under_way_is_no_divergence() {
    let repo = paused();
    let records = repo.ledger().len();
    assert_eq!(lattice(&repo).arg("log").json()["divergence"], Value::Null, "the rebase is ours");
    assert_eq!(repo.ledger().len(), records, "and nothing is recorded about it");

    let repo = recorded(|_| {});
    let kill = "grep -q branch-metadata && { set -- $(cat /proc/$PPID/stat); kill -9 $4; }";
    let hook = after_each_transaction(&repo, kill);
    let unfrozen = repo.rev("refs/branch-metadata/a");
    lattice(&repo).args(["freeze", "a"]).run();
    std::fs::remove_file(hook).expect("it was just written");
    assert_ne!(repo.rev("refs/branch-metadata/a"), unfrozen, "the kill came after the refs had moved");
    assert!(repo.op_state_path().exists(), "and before the end");
    assert_eq!(lattice(&repo).arg("log").json()["divergence"], Value::Null, "what a kill left is ours too");
    lattice(&repo).arg("continue").ok();
    assert_eq!(lattice(&repo).arg("log").json()["divergence"], Value::Null, "and so it is after the end");
    assert_eq!(count(&repo, "DivergenceObserved"), 0, "nobody else changed anything");
}
