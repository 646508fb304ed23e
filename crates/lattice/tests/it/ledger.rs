//! Tests of the ledger: a chain of records in git that tells what was meant, done, seen and offered.

mod damaged;
mod hints;
pub(crate) mod order;
mod trace;

use std::collections::BTreeMap;

use lattice_testkit::TestRepo;
use serde_json::{Value, json};

use crate::doctor::{list, text};
use crate::lattice;
use crate::observed::advance;
use crate::observed::fingerprint::recomputed;

pub(crate) const LEDGER: &str = "refs/lattice/event-log";

/// The newest record.
#[track_caller]
pub(crate) fn newest(repo: &TestRepo) -> Value {
    repo.ledger().into_iter().next().expect("the ledger has a record")
}

/// How many records of this category there are.
pub(crate) fn count(repo: &TestRepo, category: &str) -> usize {
    repo.ledger().iter().filter(|event| event["event"] == category).count()
}

/// Branches and metadata, which are the refs that operations move.
fn structure(repo: &TestRepo) -> BTreeMap<String, String> {
    let moved = |name: &String| name.starts_with("refs/heads/") || name.starts_with("refs/branch-metadata/");
    repo.refs().into_iter().filter(|(name, _)| moved(name)).collect()
}

/// What differs between two readings, in the form and order of the ledger.
fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> BTreeMap<String, (Value, Value)> {
    let names = before.keys().chain(after.keys());
    let value = |refs: &BTreeMap<String, String>, name: &String| refs.get(name).map_or(Value::Null, |oid| json!(oid));
    let change = |name: &String| (name.clone(), (value(before, name), value(after, name)));
    names.map(change).filter(|(_, (old, new))| old != new).collect()
}

fn named(refs: &Value) -> BTreeMap<String, (Value, Value)> {
    let entry = |change: &Value| (text(&change["name"]).to_owned(), (change["old"].clone(), change["new"].clone()));
    let named: BTreeMap<_, _> = list(refs).iter().map(entry).collect();
    assert_eq!(named.len(), list(refs).len(), "no ref stands twice in {refs:#}");
    named
}

/// Commands that change each kind of thing, one after the other.
const COMMANDS: &[&[&str]] = &[
    &["create", "new", "-m", "new"],
    &["restack"],
    &["freeze", "a"],
    &["unfreeze", "a"],
    &["modify", "-m", "changed"],
    &["move", "--source", "b", "--onto", "main"],
    &["undo"],
    &["untrack", "b", "--force"],
    &["track", "b", "--parent", "a"],
];

/// A stack whose trunk has moved on, with a change that waits to be committed on top of it.
fn stack() -> TestRepo {
    let repo = TestRepo::draw("main <- a* <- b");
    advance(&repo, "main");
    repo.write("new.txt", "new\n");
    repo.git(&["add", "new.txt"]);
    repo
}

// proves: ST-3.4.1-3, ST-3.4.2-1, ST-3.4.2-2, ST-3.4.2-8, ST-3.4.2-9, ST-3.4.2-10
#[test]
fn every_operation_leaves_what_it_intended_and_what_it_did() {
    let repo = stack();
    let mut ids = std::collections::BTreeSet::new();
    for args in COMMANDS {
        let (refs, was, records) = (structure(&repo), recomputed(&repo, "main"), repo.ledger().len());
        lattice(&repo).args(*args).ok();
        let changed = changes(&refs, &structure(&repo));
        assert!(!changed.is_empty(), "{args:?} is to change something");
        let ledger = repo.ledger();
        let [committed, intent] = &ledger[..ledger.len() - records] else {
            panic!("{args:?} leaves two records, not {:#?}", &ledger[..ledger.len() - records])
        };
        assert_eq!((&committed["event"], &intent["event"]), (&json!("Committed"), &json!("IntentRecorded")));
        assert_eq!(committed["op_id"], intent["op_id"], "{args:?} is one operation");
        assert!(ids.insert(text(&intent["op_id"]).to_owned()), "{args:?} has the id of an earlier operation");
        let intended = changed.iter().map(|(name, (old, _))| (name.clone(), (old.clone(), Value::Null))).collect();
        assert_eq!(named(&intent["touched_refs"]), intended, "{args:?} intends what it changes, from what was there");
        assert_eq!(named(&committed["touched_refs"]), changed, "{args:?} did what git says");
        assert_eq!(intent["fingerprint_before"], was, "{args:?} began from here");
        assert_eq!(committed["fingerprint_before"], was, "{args:?} began from here");
        assert_eq!(committed["fingerprint_after"], recomputed(&repo, "main"), "{args:?} ended here");
    }
    advance(&repo, "a");
    lattice(&repo).args(["freeze", "a"]).ok();
    let ledger = repo.ledger();
    assert_eq!(ledger[2]["event"], "DivergenceObserved");
    let ids: std::collections::BTreeSet<_> = ledger[..3].iter().map(|event| text(&event["op_id"])).collect();
    assert_eq!(ids.len(), 1, "what a command saw is part of what it did: {:#?}", &ledger[..3]);
}

// proves: ST-3.4-1, ST-3.4-2, ST-3.4-3, ST-3.4-4
#[test]
fn the_ledger_is_one_chain_that_only_grows() {
    let repo = stack();
    assert_eq!(repo.refs().get(LEDGER), None, "nothing was recorded yet");
    let mut earlier: Option<String> = None;
    for args in COMMANDS {
        lattice(&repo).args(*args).ok();
        lattice(&repo).arg("doctor").run();
        advance(&repo, "a");
        lattice(&repo).arg("log").ok();
        let tip = repo.rev(LEDGER);
        if let Some(earlier) = earlier.replace(tip.clone()) {
            repo.git(&["merge-base", "--is-ancestor", &earlier, &tip]);
            assert_ne!(earlier, tip, "{args:?} is recorded");
        }
    }
    let walk = repo.git(&["rev-list", "--parents", LEDGER]);
    let chain: Vec<Vec<_>> = walk.lines().map(|line| line.split(' ').collect()).collect();
    for (at, commit) in chain.iter().enumerate() {
        let below = chain.get(at + 1).map(|next| next[0]);
        assert_eq!(commit.get(1).copied(), below, "each record stands on the one before");
        assert!(commit.len() <= 2, "no record has two parents");
    }
    let records = repo.ledger();
    assert_eq!(records.len(), chain.len(), "one record per commit, each of which can be read");
    let numbers: Vec<_> = records.iter().rev().map(|event| event["seq"].as_u64()).collect();
    assert_eq!(
        numbers,
        (1..=records.len() as u64).map(Some).collect::<Vec<_>>(),
        "numbered from the first to the last"
    );
    let listed = |repo: &TestRepo| -> Vec<String> {
        let ledger = lattice(repo).args(["doctor", "--events"]).json()["ledger"].clone();
        list(&ledger).iter().map(|event| text(&event["commit"]).to_owned()).collect()
    };
    let ids: Vec<_> = chain.iter().map(|commit| commit[0].to_owned()).collect();
    let told = listed(&repo);
    assert_eq!(told[told.len() - ids.len()..], ids, "in the order of the chain");
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(listed(&repo), told, "however refs are kept");
}

#[test]
fn a_list_of_operations_is_aligned_in_colour_too_and_has_at_least_one() {
    let repo = TestRepo::draw("main <- a*");
    lattice(&repo).args(["freeze", "a"]).ok();
    lattice(&repo).arg("undo").ok();
    let plain = lattice(&repo).arg("ops").ok().stdout;
    let painted = lattice(&repo).args(["ops", "--color", "always"]).ok().stdout;
    assert!(painted.contains("\u{1b}[2mundone\u{1b}[0m     1 ref"), "{painted:?}");
    assert_eq!(painted.replace("\u{1b}[2m", "").replace("\u{1b}[0m", ""), plain);
    let none = lattice(&repo).args(["ops", "--limit", "0"]).fails(2);
    assert!(none.stderr.contains("--limit"), "{}", none.snapshot());
}
