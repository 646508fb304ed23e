//! The fuzzer: lists of actions from seeds, checked step by step, cut down where they fail.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lattice_testkit::asked::{number, seed};

use crate::action::{Action, actions};
use crate::storm::{Storm, Violation};

/// How many actions one repository sees.
pub(crate) const LENGTH: usize = 50;

/// What is run in every test run; `cargo xtask fuzz` asks for more.
const STEPS: usize = 300;

/// How often a failing list is tried again, shorter.
const ATTEMPTS: usize = 60;

/// Runs a list of actions in a repository of its own. An error has the number of the action.
pub(crate) fn run(actions: &[Action], defect: Option<&'static str>, codes: &Codes) -> Result<(), (usize, Violation)> {
    let mut at = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut storm = Storm::new();
        storm.defect = defect;
        for action in actions {
            storm.perform(action)?;
            at += 1;
        }
        storm.finish()?;
        let mut codes = codes.lock().expect("nobody panics with it");
        for (code, count) in storm.codes {
            *codes.entry(code).or_default() += count;
        }
        Ok(())
    }));
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(violation)) => Err((at, violation)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err((at, Violation::new("panic", text.unwrap_or_default())))
        }
    }
}

pub(crate) type Codes = Mutex<BTreeMap<String, usize>>;

/// Leaves out whatever is not needed to fail in the same way; `fails` says at which place a list does.
pub(crate) fn shrink<T: Clone>(failing: &[T], fails: impl Fn(&[T]) -> Option<usize>) -> Vec<T> {
    let mut best = failing.to_vec();
    let mut attempts = 0;
    let mut size = best.len() / 2;
    while size > 0 {
        let mut from = 0;
        while from < best.len() && attempts < ATTEMPTS {
            let mut shorter = best.clone();
            shorter.drain(from..(from + size).min(best.len()));
            attempts += 1;
            match fails(&shorter) {
                Some(at) => {
                    shorter.truncate(at + 1);
                    best = shorter;
                }
                None => from += size,
            }
        }
        size /= 2;
    }
    best
}

fn told(seed: u64, actions: &[Action], violation: &Violation) -> String {
    let list: Vec<_> = actions.iter().map(ToString::to_string).collect();
    format!("seed {seed}\n{}\n\n{violation}\n\nagain: cargo xtask fuzz stack {LENGTH} {seed}", list.join("\n"))
}

/// Lists that failed once, each cut down; they are tried again in every run.
const FAILED_ONCE: &str = include_str!("failed_once.txt");

#[test]
fn what_failed_once_fails_no_more() {
    for list in FAILED_ONCE.split("\n\n").filter(|list| !list.trim().is_empty()) {
        let lines = list.lines().filter(|line| !line.starts_with('#'));
        let actions: Vec<_> =
            lines.map(|line| Action::parse(line).unwrap_or_else(|| panic!("no action: {line}"))).collect();
        if let Err((at, violation)) = run(&actions, None, &Codes::default()) {
            panic!("action {at} of\n{list}\n\n{violation}");
        }
    }
}

// proves: ST-0-5, ST-13.3-1, ST-13.3-2, ST-13.3-3, ST-13.3-4, ST-13.3-5, ST-1.2-5, ST-15-2
#[test]
fn no_mixture_of_commands_and_plain_git_breaks_a_promise() {
    let steps = usize::try_from(number("LATTICE_FUZZ_STEPS").unwrap_or(STEPS as u64)).expect("a size");
    let seed = seed("LATTICE_FUZZ_SEED");
    // One list for each number from the seed on, so that a list alone can be asked for, too.
    let seeds: Vec<u64> = (0..steps.div_ceil(LENGTH) as u64).map(|list| seed.wrapping_add(list)).collect();
    let next = AtomicUsize::new(0);
    let codes = Codes::default();
    let failures = Mutex::new(Vec::new());
    let most = number("LATTICE_FUZZ_FAILURES").unwrap_or(1) as usize;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let list = actions(*seed, LENGTH);
                    if let Err((at, violation)) = run(&list, None, &codes) {
                        let same = |(at, again): (usize, Violation)| (again.kind == violation.kind).then_some(at);
                        let fails = |list: &[Action]| run(list, None, &Codes::default()).err().and_then(same);
                        let short = shrink(&list[..list.len().min(at + 1)], fails);
                        let again = run(&short, None, &codes).err().map_or(violation, |(_, violation)| violation);
                        let mut failures = failures.lock().expect("nobody panics with it");
                        // A long run tells what it found while it goes on.
                        println!("{}\n", told(*seed, &short, &again));
                        failures.push(told(*seed, &short, &again));
                        if failures.len() >= most {
                            next.store(seeds.len(), Ordering::SeqCst);
                        }
                    }
                }
            });
        }
    });
    for (code, count) in codes.lock().expect("nobody panics with it").iter() {
        println!("{count:6} {code}");
    }
    let failures = failures.into_inner().expect("nobody panics with it");
    assert!(failures.is_empty(), "{}", failures.join("\n\n==========\n\n"));
}
