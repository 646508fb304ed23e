//! The machinery is itself on trial: each of these defects must be found by it.

use crate::action::actions;
use crate::crowd::crowd;
use crate::fuzz::{Codes, LENGTH, run};
use crate::kill::find;
use crate::others;

/// Found by the fuzzer, beginning with the list of this seed.
const BY_FUZZER: [(&str, u64); 8] = [
    ("expected-values-ignored", 80),
    ("one-level", 1),
    ("undo-of-metadata-only", 7),
    ("files-stay", 1),
    ("nothing-kept", 1),
    ("commit-dropped", 1),
    ("unreadable-ignored", 3),
    ("any-worktree", 40),
];

/// Found by killing this command.
const BY_KILLER: [(&str, &str); 2] = [("marker-missing", "restack"), ("journal-stale", "restack")];

const BY_CROWD: [&str; 2] = ["lock-ignored", "recorded-twice"];

/// Found where others push, beginning with the list of this seed.
const BY_OTHERS: [(&str, u64); 2] = [("strangers-are-ours", 1), ("landed-too-soon", 1)];

/// How many lists are tried.
const LISTS: u64 = 12;

/// The seed of the first list that finds a defect.
fn found_by_fuzzer(defect: &'static str, first: u64) -> Option<u64> {
    let codes = Codes::default();
    (first..first + LISTS).find(|seed| run(&actions(*seed, LENGTH), Some(defect), &codes).is_err())
}

fn in_parallel<T: Sync>(cases: &[T], check: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let missed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
                    missed.lock().expect("nobody panics with it").extend(check(case));
                }
            });
        }
    });
    missed.into_inner().expect("nobody panics with it")
}

#[test]
fn the_fuzzer_finds_the_defects_of_results() {
    let missed = in_parallel(&BY_FUZZER, |(defect, first)| match found_by_fuzzer(defect, *first) {
        Some(seed) => {
            println!("{defect}: list {seed}");
            None
        }
        None => Some((*defect).to_owned()),
    });
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn the_storm_at_the_remote_finds_the_defects_of_pushes_and_landings() {
    let missed = in_parallel(&BY_OTHERS, |(defect, first)| {
        let finds = |seed: u64| {
            let (site, moves) = others::moves(seed);
            others::run(site, &moves, Some(defect)).is_err()
        };
        (!(*first..*first + LISTS).any(finds)).then(|| (*defect).to_owned())
    });
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn the_killer_finds_the_defects_of_interruptions() {
    let missed = in_parallel(&BY_KILLER, |(defect, command)| (!find(command, defect)).then(|| (*defect).to_owned()));
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn the_crowd_finds_the_defects_of_writers_at_once() {
    let missed: Vec<_> = BY_CROWD.into_iter().filter(|defect| crowd(2, Some(defect)).is_empty()).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
