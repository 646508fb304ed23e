//! A remote that others push to and click on: whatever they do there, nothing of theirs and nothing of ours is lost.

mod shared;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lattice_testkit::asked::{number, seed};

use self::shared::Shared;
use crate::action::Random;
use crate::fuzz::shrink;

/// How many moves one remote sees.
const LENGTH: usize = 25;

/// What is run in every test run; `cargo xtask others` asks for more.
const STEPS: u64 = 50;

/// One thing that somebody does; the numbers are read relative to what is there.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    kind: Kind,
    a: usize,
    b: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    // We, with Lattice.
    Create,
    Add,
    Amend,
    Checkout,
    Restack,
    Submit,
    SubmitStack,
    Sync,
    SyncAndDelete,
    Get,
    Merge,
    // We, or our editor, with plain git.
    Fetch,
    // Others, with plain git.
    TheyAdd,
    TheyRewrite,
    TheyConflict,
    TheyMoveTrunk,
    TheySquash,
    TheyMerge,
    TheyDelete,
    // Others, on the site of GitHub.
    Click,
}

const KINDS: &[(Kind, usize)] = &[
    (Kind::Create, 6),
    (Kind::Add, 3),
    (Kind::Amend, 3),
    (Kind::Checkout, 3),
    (Kind::Restack, 2),
    (Kind::Submit, 4),
    (Kind::SubmitStack, 5),
    (Kind::Sync, 2),
    (Kind::SyncAndDelete, 4),
    (Kind::Get, 4),
    (Kind::Merge, 2),
    (Kind::Fetch, 3),
    (Kind::TheyAdd, 5),
    (Kind::TheyRewrite, 2),
    (Kind::TheyConflict, 1),
    (Kind::TheyMoveTrunk, 3),
    (Kind::TheySquash, 2),
    (Kind::TheyMerge, 1),
    (Kind::TheyDelete, 1),
    (Kind::Click, 7),
];

impl Move {
    fn drawn(random: &mut Random) -> Self {
        let total = KINDS.iter().map(|(_, weight)| weight).sum();
        let mut left = random.below(total);
        let drawn = KINDS.iter().find(|(_, weight)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        let (kind, _) = drawn.expect("the weights add up to the total");
        Self { kind: *kind, a: random.below(1000), b: random.below(1000) }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} {}", self.kind, self.a, self.b)
    }
}

/// Where the remote is.
#[derive(Clone, Copy)]
pub(crate) enum Site {
    Git,
    GitHub,
}

/// A broken promise: its kind, and what was found.
pub(crate) type Broken = (&'static str, String);

/// Where the moves of one seed are made, and the moves.
pub(crate) fn moves(seed: u64) -> (Site, Vec<Move>) {
    let mut random = Random::new(seed);
    let site = if seed.is_multiple_of(2) { Site::Git } else { Site::GitHub };
    (site, (0..LENGTH).map(|_| Move::drawn(&mut random)).collect())
}

/// Runs a list of moves on a remote of its own. An error has the number of the move.
pub(crate) fn run(site: Site, moves: &[Move], defect: Option<&'static str>) -> Result<(), (usize, Broken)> {
    let mut at = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut shared = Shared::new(site, defect);
        for step in moves {
            shared.perform(step)?;
            at += 1;
        }
        Ok(())
    }));
    match outcome {
        Ok(result) => result.map_err(|broken| (at, broken)),
        Err(panic) => Err((at, ("panic", panic.downcast_ref::<String>().cloned().unwrap_or_default()))),
    }
}

// proves: ST-0-5
#[test]
fn whatever_others_push_or_click_nothing_is_lost_and_no_success_is_false() {
    let steps = usize::try_from(number("LATTICE_OTHERS_STEPS").unwrap_or(STEPS)).expect("a size");
    let seed = seed("LATTICE_OTHERS_SEED");
    let lists = (0..steps.div_ceil(LENGTH) as u64).map(|list| seed.wrapping_add(list)).collect::<Vec<_>>();
    let halves = lists.chunks(lists.len().div_ceil(2).max(1));
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = halves.map(|half| scope.spawn(|| half.iter().find_map(|seed| tried(*seed)))).collect();
        running.into_iter().filter_map(|half| half.join().expect("a list reports what is wrong")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n==========\n\n"));
}

/// What is wrong after the moves of one seed, in as few of them as show it.
fn tried(seed: u64) -> Option<String> {
    let (site, moves) = moves(seed);
    let (at, (kind, text)) = run(site, &moves, None).err()?;
    let short = shrink(&moves[..moves.len().min(at + 1)], |list| match run(site, list, None) {
        Err((at, (again, _))) if again == kind => Some(at),
        _ => None,
    });
    let text = run(site, &short, None).err().map_or(text, |(_, (_, text))| text);
    let list: Vec<_> = short.iter().map(ToString::to_string).collect();
    Some(format!("seed {seed}: {kind}\n{}\n\n{text}\n\nagain: cargo xtask others {LENGTH} {seed}", list.join("\n")))
}
