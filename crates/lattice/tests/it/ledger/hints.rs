//! Tests of what doctor makes of the ledger: offers with their source, and never more than offers.

use lattice_testkit::metadata::metadata_ref;
use lattice_testkit::{Action, GitWrapper};
use serde_json::json;

use super::{LEDGER, count, newest};
use crate::doctor::states::paused;
use crate::doctor::{fix_named, issue, report};
use crate::lattice;
use crate::observed::recorded;

// proves: ST-3.4.1-4, ST-3.4.1-5, ST-3.4.2-5, ST-3.4.2-6
#[test]
fn removed_metadata_is_offered_from_the_ledger_and_both_offer_and_repair_are_recorded() {
    let repo = recorded(|_| {});
    let (known, committed, base) = (repo.metadata("b"), repo.rev(LEDGER), repo.rev("a"));
    repo.git(&["update-ref", "-d", &metadata_ref("b")]);
    let found = report(&repo);
    let lost = issue(&found, "metadata-vanished");
    assert_eq!(lost["evidence"]["ledger_event"], json!([committed]), "the record is cited: {lost:#}");
    assert_eq!(lost["evidence"]["last_parent"], json!(["a"]), "with the parent it knew: {lost:#}");
    assert_eq!(lost["evidence"]["last_base"], json!([base]), "and the base: {lost:#}");
    let fix = fix_named(&found, "restore-metadata");
    let proposed = newest(&repo);
    assert_eq!(proposed["event"], "DoctorProposed", "{proposed:#}");
    assert_eq!(proposed["detail"]["issues"], json!([lost["id"]]), "what was wrong");
    assert!(proposed["detail"]["fixes"].to_string().contains(&fix), "what was offered: {proposed:#}");
    assert_eq!(report(&repo)["issues"], found["issues"], "looking again says the same");
    assert_eq!(count(&repo, "DoctorProposed"), 1, "and an offer is recorded once");
    assert_eq!(repo.metadata_refs().get("b"), None, "an offer changes nothing");

    lattice(&repo).args(["doctor", "--fix", &fix]).ok();
    assert_eq!(repo.metadata("b"), known, "it is tracked as before");
    let applied = newest(&repo);
    assert_eq!(applied["event"], "DoctorApplied", "{applied:#}");
    assert_eq!(applied["detail"]["fixes"], json!([fix]), "with the fix that was named");
    assert_eq!(applied["op_id"], repo.ledger()[1]["op_id"], "as part of the operation that did it");
    assert_eq!(repo.ledger()[1]["event"], "Committed");
}

// proves: ST-3.4.1-6
#[test]
fn what_the_ledger_remembers_never_overwrites_what_is_there() {
    let repo = recorded(|repo| drop(repo.git(&["update-ref", "-d", &metadata_ref("b")])));
    let fix = fix_named(&report(&repo), "restore-metadata");
    let other = repo.rev(&metadata_ref("a"));

    let mut wrapper = GitWrapper::new(&repo);
    let moves = format!("\"$REAL_GIT\" update-ref {} {other}", metadata_ref("b"));
    wrapper.on("update-ref", 1, Action::Run(moves));
    let failed = lattice(&repo).wrapper(&wrapper).args(["doctor", "--fix", &fix]).json();
    assert_eq!(failed["ok"], false, "someone was faster: {failed:#}");
    assert_eq!(repo.rev(&metadata_ref("b")), other, "what they wrote stays");
    assert_eq!(newest(&repo)["event"], "Aborted");

    let refused = lattice(&repo).args(["doctor", "--fix", &fix]).json();
    assert_eq!(refused["error"]["code"], "unknown-fix", "the evidence no longer fits: {refused:#}");
    assert_eq!(repo.rev(&metadata_ref("b")), other, "what they wrote stays");
}

// proves: ST-3.4.2-3
#[test]
fn both_a_lost_race_and_an_abort_by_the_user_are_recorded() {
    let repo = paused();
    let intent = newest(&repo);
    assert_eq!(intent["event"], "IntentRecorded", "{intent:#}");
    lattice(&repo).arg("abort").ok();
    let aborted = newest(&repo);
    assert_eq!((&aborted["event"], &aborted["op_id"]), (&json!("Aborted"), &intent["op_id"]), "{aborted:#}");
    assert_eq!(count(&repo, "Committed"), 0, "nothing is claimed to be done");

    let repo = recorded(|_| {});
    let other = repo.rev(&metadata_ref("b"));
    let mut wrapper = GitWrapper::new(&repo);
    let moves = format!("\"$REAL_GIT\" update-ref {} {other}", metadata_ref("a"));
    wrapper.on("update-ref", 1, Action::Run(moves));
    let failed = lattice(&repo).wrapper(&wrapper).args(["freeze", "a"]).json();
    assert_eq!(failed["ok"], false, "{failed:#}");
    assert_eq!(newest(&repo)["event"], "Aborted", "the record says that it came to nothing");
}
