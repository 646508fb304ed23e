//! Tests of doctor: what it names, what it offers, and that it does exactly that and nothing unasked.

mod choices;
mod law;
pub(crate) mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use lattice_testkit::{TestRepo, assert_same};
use serde_json::Value;

use crate::lattice;
use states::State;

/// A copy of the repository with everything in it, in another place of the same sandbox.
pub(crate) fn copy_of(repo: &TestRepo, name: &str) -> TestRepo {
    let to = repo.sandbox().root().join(name);
    let status = Command::new("cp").arg("-a").arg(repo.dir()).arg(&to).status();
    assert!(status.expect("cp starts").success(), "the repository can be copied");
    repo.beside(&to)
}

pub(crate) fn report(repo: &TestRepo) -> Value {
    let report = lattice(repo).arg("doctor").json();
    assert_eq!(report["schema"], "lattice.doctor/v1", "doctor answers in every state: {report}");
    report
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

/// The one issue of this kind.
pub(crate) fn issue<'r>(report: &'r Value, kind: &str) -> &'r Value {
    let found: Vec<_> = list(&report["issues"]).iter().filter(|issue| issue["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "one issue of the kind {kind} in {:#}", report["issues"]);
    found[0]
}

/// The fixes of an issue that change the repository.
pub(crate) fn plans(issue: &Value) -> Vec<&Value> {
    list(&issue["fixes"]).iter().filter(|fix| fix["user_action"].is_null()).collect()
}

/// The id of the only fix whose name begins so.
pub(crate) fn fix_named(report: &Value, name: &str) -> String {
    let fixes = list(&report["issues"]).iter().flat_map(|issue| list(&issue["fixes"]));
    let found: Vec<_> = fixes.map(|fix| text(&fix["id"])).filter(|id| id.starts_with(name)).collect();
    assert_eq!(found.len(), 1, "one fix {name} in {report:#}");
    found[0].to_owned()
}

/// Issue ids, severities, fix ids and previews: all that a user bases a choice on.
fn offered(report: &Value) -> Vec<[Value; 3]> {
    let fix = |fix: &Value| serde_json::json!([fix["id"], fix["preview"]]);
    let fixes = |issue: &Value| list(&issue["fixes"]).iter().map(fix).collect::<Vec<_>>();
    let one = |issue: &Value| [issue["id"].clone(), issue["severity"].clone(), fixes(issue).into()];
    list(&report["issues"]).iter().map(one).collect()
}

// proves: ST-8.2-1, ST-8.2-2, ST-8.2-3, ST-8.2-4, ST-8.2-5, ST-8.2-9, ST-8.2-10, ST-8.3-6
#[test]
fn every_kind_of_issue_is_named_with_evidence_and_choices_and_nothing_changes() {
    for state in states::ALL {
        let name = state.name;
        let repo = (state.make)();
        let before = repo.state();
        let first = report(&repo);
        let found = issue(&first, state.kind);
        assert_eq!(found["severity"], state.severity, "the severity of {name}");
        assert!(!list(&found["fixes"]).is_empty(), "there is a way out of {name}");
        let explained = found["evidence"].as_object().is_some_and(|evidence| !evidence.is_empty());
        assert!(explained, "{name} comes with evidence: {found:#}");
        let names: Vec<_> =
            plans(found).iter().map(|fix| text(&fix["id"]).rsplit_once('-').expect("a tag follows").0).collect();
        assert_eq!(names, state.fixes, "the fixes offered for {name}");
        let ids: Vec<_> = list(&first["issues"]).iter().flat_map(|issue| list(&issue["fixes"])).collect();
        let unique: BTreeSet<_> = ids.iter().map(|fix| text(&fix["id"])).collect();
        assert_eq!(unique.len(), ids.len(), "each fix of {name} has an id of its own");
        let copy = report(&copy_of(&repo, "copy"));
        assert_eq!(offered(&report(&repo)), offered(&first), "a second scan of {name} says the same");
        assert_eq!(offered(&copy), offered(&first), "a copy of {name} is told the same");
        lattice(&repo).arg("doctor").run();
        assert_same(&before, &repo.state());
    }
}

/// The records of the ledger that can be read, newest first.
pub(crate) fn records(repo: &TestRepo) -> Vec<Value> {
    let text = repo.git(&["log", "-z", "--first-parent", "--format=%B", "refs/lattice/event-log"]);
    text.split('\0').filter_map(|record| serde_json::from_str(record).ok()).collect()
}

// proves: ST-4.1-14, ST-8.2-7, ST-8.2-8, ST-8.3-7, ST-8.4-2, ST-14.2-2, ST-14.2-4, ST-14.2-5
#[test]
fn every_fix_does_what_its_preview_says_and_the_issue_is_gone() {
    for state in states::ALL {
        let repo = (state.make)();
        let found = report(&repo);
        for (at, fix) in plans(issue(&found, state.kind)).into_iter().enumerate() {
            let copy = copy_of(&repo, &format!("copy-{at}"));
            check_fix(state, &copy, &found, fix);
        }
    }
}

fn check_fix(state: &State, repo: &TestRepo, before: &Value, fix: &Value) {
    let what = format!("{} by {}", state.name, fix["id"]);
    let id = text(&fix["id"]);
    let (old, refs_before) = (repo.state(), repo.refs());
    lattice(repo).args(["doctor", "--fix", id, "--dry-run"]).ok();
    assert_same(&old, &repo.state());
    let applied = lattice(repo).args(["doctor", "--fix", id]).json();
    assert_eq!(applied["applied"], serde_json::json!([id]), "{what}: {applied:#}");
    let gone = text(&issue(before, state.kind)["id"]);
    assert!(list(&applied["issues"]).iter().all(|issue| issue["id"] != gone), "{what} removes the issue");

    let plan = &fix["plan"];
    assert_promised(&what, plan, &refs_before, &repo.refs());
    let preview: Vec<_> = list(&fix["preview"]).iter().map(text).collect();
    let new = repo.state();
    let fact = |name: &str| old.facts.get(name) != new.facts.get(name);
    let says = |line: &str| preview.contains(&line);
    assert_eq!(fact("lattice config.toml"), says("write lattice/config.toml"), "{what} and the configuration");
    for lock in old.facts.keys().filter_map(|name| name.strip_prefix("lock ")) {
        assert!(says(&format!("remove {lock}")), "{what} says that it removes {lock}");
    }
    let files = |name: &&String| name.starts_with("file ") || name.starts_with("index ") || *name == "HEAD";
    let current = repo.git(&["branch", "--show-current"]);
    let alone = old.facts.keys().filter(files).all(|name| !fact(name));
    assert!(alone || rewrites(plan, &current), "{what} leaves files, index and HEAD alone");

    let ledger = records(repo);
    assert_eq!(ledger[0]["event"], "DoctorApplied", "{what} is recorded");
    assert_eq!(ledger[0]["detail"]["fixes"], serde_json::json!([id]), "{what} is recorded by its id");
    assert_eq!(ledger[0]["plan_digest"], plan["digest"], "{what} is the plan that was shown");
    let proposed = ledger.iter().filter(|event| event["event"] == "DoctorProposed");
    let offers = |event: &Value| list(&event["detail"]["fixes"]).iter().any(|offered| offered == id);
    // Where nothing can be recorded, or a record would hide the damage, the offer leaves no trace.
    let unrecorded =
        ["op-state-damaged", "ledger-damaged"].contains(&state.kind) || state.name == "a lock on the ledger";
    assert!(proposed.into_iter().any(offers) || unrecorded, "{what} was proposed first");

    let blocking = |report: &Value| list(&report["issues"]).iter().filter(|i| i["severity"] == "blocking").count();
    let verified = lattice(repo).arg("verify").run();
    let expected = i32::from(blocking(&report(repo)) > 0);
    assert_eq!(verified.code, Some(expected), "verify and doctor agree after {what}:\n{}", verified.snapshot());
    assert!(!repo.op_state_path().exists(), "{what} leaves nothing in progress");
}

/// Whether a plan moves the commits of a branch.
fn rewrites(plan: &Value, branch: &str) -> bool {
    list(&plan["steps"]).iter().any(|step| step["type"] == "rewrite" && step["branch"] == branch)
}

/// The refs that changed are those that the plan names, from the old values it names to the new ones.
fn assert_promised(what: &str, plan: &Value, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let own = |name: &&String| !name.starts_with("refs/lattice/");
    let names: BTreeSet<_> = before.keys().chain(after.keys()).filter(own).collect();
    let changed: Vec<_> = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).collect();
    let promised: Vec<_> = list(&plan["touched_refs"]).iter().map(|touched| text(&touched["name"])).collect();
    assert_eq!(changed, promised, "{what} changes the refs that it names");
    for touched in list(&plan["touched_refs"]) {
        let name = text(&touched["name"]);
        let now = after.get(name).map(String::as_str);
        assert_eq!(touched["old"].as_str(), before.get(name).map(String::as_str), "{what}: {name} before");
        // A document has its id only once it is written, a branch once it is rewritten; else it is known beforehand.
        let later = name.starts_with("refs/branch-metadata/") || rewrites(plan, name.trim_start_matches("refs/heads/"));
        let written = touched["new"].is_null() && now.is_some() && later;
        assert!(written || touched["new"].as_str() == now, "{what}: {name} is {now:?}, {touched} was promised");
    }
}

#[test]
fn without_a_fix_on_offer_none_is_asked_for() {
    let offer = "apply a fix with";
    let fixable = lattice_testkit::TestRepo::draw("main* <- a");
    fixable.git(&["init", "--quiet", "../empty"]);
    let out = lattice(&fixable).cwd("../empty").arg("doctor").fails(1);
    assert!(!out.stderr.contains(offer), "{}", out.snapshot());
    fixable.set_metadata_raw("a", b"garbage");
    let out = lattice(&fixable).arg("doctor").fails(1);
    assert!(out.stderr.contains(offer), "{}", out.snapshot());
}
