//! Tests of a ledger that others rewound, forked, forged or removed: evidence that is bad, and nothing more.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::{Value, json};

use super::{LEDGER, newest, structure};
use crate::doctor::states::remove_object;
use crate::doctor::{issue, list, report, text};
use crate::lattice;
use crate::observed::fingerprint::sha256;
use crate::observed::recorded;

type Change = fn(&mut Value);

/// A commit with this message, as a record would be.
fn commit(repo: &TestRepo, tree: &str, parents: &[&str], message: &str) -> String {
    let mut args = vec!["commit-tree", tree, "-m", message];
    parents.iter().for_each(|parent| args.extend(["-p", parent]));
    repo.git(&args)
}

/// Puts `record` on top of the ledger, with a checksum that fits.
fn forge(repo: &TestRepo, mut record: Value) -> String {
    let fields = record.as_object_mut().expect("a record is an object");
    fields.remove("checksum");
    let checksum = sha256(record.to_string().as_bytes());
    record["checksum"] = json!(checksum);
    let forged = commit(repo, &format!("{LEDGER}^{{tree}}"), &[LEDGER], &record.to_string());
    repo.git(&["update-ref", LEDGER, &forged]);
    forged
}

/// The bad record is named by everyone who reads the ledger, and stops nobody.
fn is_named(repo: &TestRepo, what: &str, bad: &str) {
    let found = lattice(repo).args(["doctor", "--events"]).json();
    let problem = |event: &Value| event["commit"] == bad && event["problem"].is_string();
    assert!(list(&found["ledger"]).iter().any(problem), "{what}: doctor names {bad}: {found:#}");
    assert_eq!(issue(&found, "ledger-damaged")["severity"], "warning", "{what}: and it stops nobody");
    let verified = lattice(repo).args(["verify", "--full"]).fails(1);
    let named = verified.stdout.contains(&bad[..8]) || verified.stderr.contains(&bad[..8]);
    assert!(named, "{what}: verify names {bad}:\n{}", verified.snapshot());
}

/// Besides, `log` works, operations go on, and the chain goes on from `below`.
fn goes_on(repo: &TestRepo, what: &str, bad: &str, below: Option<&str>) {
    let before = structure(repo);
    is_named(repo, what, bad);
    lattice(repo).arg("log").ok();
    lattice(repo).arg("ops").ok();
    assert_eq!(structure(repo), before, "{what}: nothing is replayed");
    assert_eq!(repo.rev(LEDGER), bad, "{what}: and nobody writes over it unasked");

    lattice(repo).args(["freeze", "a"]).ok();
    assert_eq!(repo.metadata("a")["freeze"]["state"], "frozen", "{what}: operations work");
    let walk = repo.git(&["rev-list", "--first-parent", LEDGER]);
    let chain: Vec<_> = walk.lines().collect();
    assert_eq!(chain.get(2).copied(), below, "{what}: intent and record stand on what was there");
    lattice(repo).arg("undo").ok();
    assert_eq!(repo.metadata("a")["freeze"]["state"], "unfrozen", "{what}: and can be undone");
    let calm = lattice(repo).arg("log").json();
    assert!(calm["divergence"].is_null(), "{what}: the new records tell the truth: {calm:#}");
}

// proves: ST-3.4.2-7
#[test]
fn a_record_that_is_not_exactly_of_the_known_form_is_refused_and_named() {
    let changes: [(&str, Change); 6] = [
        ("an unknown field", |record| record["surprise"] = json!(true)),
        ("an unknown field inside", |record| record["detail"]["surprise"] = json!(true)),
        ("no version", |record| drop(record.as_object_mut().expect("an object").remove("schema_version"))),
        ("another version", |record| record["schema_version"] = json!(2)),
        ("another kind", |record| record["kind"] = json!("lattice.other")),
        ("an unknown category", |record| record["event"] = json!("Imagined")),
    ];
    let repo = recorded(|_| {});
    for (what, change) in changes {
        let mut record = newest(&repo);
        change(&mut record);
        let forged = forge(&repo, record);
        is_named(&repo, what, &forged);
        repo.git(&["update-ref", LEDGER, &format!("{forged}~1")]);
    }
    let accepted = forge(&repo, newest(&repo));
    let found = lattice(&repo).args(["doctor", "--events"]).json();
    assert_eq!(found["ledger"][0]["commit"], accepted);
    assert_eq!(found["ledger"][0]["problem"], Value::Null, "without a change the same record is read: {found:#}");
}

#[test]
fn a_record_whose_text_was_altered_is_recognised() {
    let repo = recorded(|_| {});
    let mut record = newest(&repo);
    record["command"] = json!("something else");
    let altered = commit(&repo, &format!("{LEDGER}^{{tree}}"), &[LEDGER], &record.to_string());
    repo.git(&["update-ref", LEDGER, &altered]);
    goes_on(&repo, "an altered record", &altered, Some(&altered));
}

#[test]
fn a_merge_of_two_ledgers_is_named_and_the_chain_goes_on() {
    let repo = recorded(|_| {});
    let record = newest(&repo).to_string();
    let merge = commit(&repo, &format!("{LEDGER}^{{tree}}"), &[LEDGER, &format!("{LEDGER}~1")], &record);
    repo.git(&["update-ref", LEDGER, &merge]);
    goes_on(&repo, "a merge", &merge, Some(&merge));
}

#[test]
fn a_ledger_that_is_no_chain_of_commits_is_named_and_a_new_one_begins() {
    for object in ["main:README", "main^{tree}"] {
        let repo = recorded(|_| {});
        let oid = repo.rev(object);
        repo.git(&["update-ref", LEDGER, &oid]);
        goes_on(&repo, object, &oid, None);
    }
}

#[test]
fn a_record_that_is_missing_below_the_newest_is_named_and_the_rest_can_be_read() {
    let repo = recorded(|_| {});
    let lost = repo.rev(&format!("{LEDGER}~2"));
    remove_object(&repo, &lost);
    lattice(&repo).arg("log").ok();
    let found = lattice(&repo).args(["doctor", "--events"]).json();
    let ledger = list(&found["ledger"]);
    assert_eq!(ledger.len(), 3, "two records and the place where the third was: {found:#}");
    assert_eq!(ledger[0]["event"], "Committed", "{found:#}");
    assert_eq!(ledger[2]["commit"], lost, "the lost one is named: {found:#}");
    assert!(ledger[2]["problem"].is_string(), "{found:#}");
    let verified = lattice(&repo).args(["verify", "--full"]).fails(1);
    assert!(verified.snapshot().contains("ledger record"), "{}", verified.snapshot());
    lattice(&repo).arg("undo").ok();
    assert_eq!(repo.metadata("a")["freeze"]["state"], "frozen", "what can be read can be undone");
}

/// Makes `b` and then commits on it, so that a rewound ledger knows less than the repository.
fn two_operations() -> (TestRepo, String) {
    let repo = TestRepo::draw("main* <- a");
    lattice(&repo).args(["create", "b", "-m", "b"]).ok();
    let between = repo.rev(LEDGER);
    repo.write("b.txt", "more\n");
    lattice(&repo).args(["modify", "-a", "-c", "-m", "more"]).ok();
    (repo, between)
}

#[test]
fn a_rewound_ledger_is_divergence_and_never_takes_the_repository_back() {
    let (repo, between) = two_operations();
    let before = repo.state();
    repo.git(&["update-ref", LEDGER, &between]);
    let log = lattice(&repo).arg("log").json();
    let changed: Vec<_> = list(&log["divergence"]["changes"]).iter().map(|change| text(&change["name"])).collect();
    assert!(changed.contains(&"refs/heads/b"), "what it no longer knows looks like the work of others: {log:#}");
    assert_eq!(newest(&repo)["event"], "DivergenceObserved", "and is recorded");
    let refused = lattice(&repo).arg("undo").json();
    assert_eq!(refused["ok"], false, "undoing `create` would lose the commit that came after it: {refused:#}");
    assert_same(&before, &repo.state());
    lattice(&repo).args(["freeze", "b"]).ok();
    assert!(lattice(&repo).arg("log").json()["divergence"].is_null(), "an operation settles it");
    lattice(&repo).args(["verify", "--full"]).ok();
}

#[test]
fn a_forked_ledger_goes_on_from_the_side_that_the_ref_names() {
    let (repo, between) = two_operations();
    let other = repo.rev(LEDGER);
    repo.git(&["update-ref", LEDGER, &between]);
    lattice(&repo).args(["freeze", "b"]).ok();
    let walk = repo.git(&["rev-list", LEDGER]);
    assert!(!walk.contains(&other) && walk.contains(&between), "the chain stands on the side that was chosen");
    assert_eq!(repo.rev("b"), repo.git(&["rev-parse", "HEAD"]), "work that only the other side knows stays");
    let seqs: Vec<_> = repo.ledger().iter().rev().map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).map(Some).collect::<Vec<_>>(), "numbers go on without a gap");
    lattice(&repo).args(["verify", "--full"]).ok();
}

// proves: ST-3.4.1-1
#[test]
fn without_its_ledger_the_stack_is_the_same_and_every_command_works() {
    let (repo, _) = two_operations();
    let (before, shown) = (repo.state(), lattice(&repo).arg("log").json());
    repo.git(&["update-ref", "-d", LEDGER]);
    assert_eq!(lattice(&repo).arg("log").json(), shown, "the ledger is no part of what a stack is");
    for args in [&["info"][..], &["ops"], &["doctor", "--events"], &["verify", "--full"], &["parent"], &["trunk"]] {
        lattice(&repo).args(args).ok();
    }
    assert_same(&before, &repo.state());
    lattice(&repo).args(["create", "c", "-m", "c"]).ok();
    lattice(&repo).args(["restack"]).ok();
    assert_eq!(repo.ledger().last().expect("a new ledger")["seq"], 1, "a new chain begins");
    lattice(&repo).arg("undo").ok();
    assert_eq!(repo.refs().get("refs/heads/c"), None, "and its operations can be undone");
}

#[test]
fn a_record_with_a_garbage_tree_says_less_and_breaks_nothing() {
    let repo = recorded(|_| {});
    let record = newest(&repo).to_string();
    let garbage = repo.git_with_input(&["hash-object", "-w", "--stdin"], b"\xff\x00refs\nno line\n \n1 2 3\n");
    let garbage = String::from_utf8(garbage).expect("an id").trim().to_owned();
    let trees = [
        String::new(),
        format!("100644 blob {garbage}\trefs\n"),
        format!("040000 tree {}\trefs\n", repo.rev("main^{tree}")),
        format!("120000 blob {garbage}\trefs\n"),
    ];
    for tree in trees {
        let made = repo.git_with_input(&["mktree"], tree.as_bytes());
        let made = String::from_utf8(made).expect("an id").trim().to_owned();
        let forged = commit(&repo, &made, &[LEDGER], &record);
        repo.git(&["update-ref", LEDGER, &forged]);
        assert!(lattice(&repo).arg("log").json()["divergence"].is_null(), "the fingerprint still fits");
        crate::observed::advance(&repo, "a");
        let (before, log) = (structure(&repo), lattice(&repo).arg("log").json());
        assert!(log["divergence"].is_object(), "that something changed is known: {log:#}");
        assert!(list(&report(&repo)["issues"]).is_empty(), "nothing is made of garbage");
        assert_eq!(structure(&repo), before, "and nothing is changed");
        repo.git(&["update-ref", "refs/heads/a", "refs/heads/a~1"]);
        repo.git(&["update-ref", LEDGER, &format!("{forged}~1")]);
    }
    lattice(&repo).args(["freeze", "b"]).ok();
    lattice(&repo).arg("undo").ok();
}
