//! Calls that fail instead of a process that dies: a disk that cannot be flushed, no more descriptors, no more
//! processes, arguments that are too long, no memory, a folder that must not be written.

use lattice_testkit::asked::{number, seed};
use lattice_testkit::tracer::{Errno, Fault};

use crate::action::Random;
use crate::kill::{self, Interrupted, Strike, Whole};

/// How many calls are drawn in every test run; `cargo xtask faults` takes all of them.
const POINTS: u64 = 40;

/// What a disk, a folder or a system without resources answers.
const ERRORS: [Errno; 4] = [Errno::EACCES, Errno::ENOSPC, Errno::EIO, Errno::ENOMEM];

/// A command of the table, and the fate of one of its calls.
type Failing = (&'static str, usize, Errno);

const COMMANDS: [&str; 3] = ["create", "restack", "undo"];

/// All calls of one name in a run; a long row is thinned out, and the errors take turns.
fn failing(whole: &Whole, name: &'static str, errors: &[Errno], at_most: usize) -> Vec<Failing> {
    let calls = whole.points.iter().filter(|point| point.name == name).count();
    (0..calls).step_by(calls.div_ceil(at_most).max(1)).map(|at| (name, at, errors[at % errors.len()])).collect()
}

/// Lets each of the calls fail, and returns what was wrong afterwards.
fn troubles(choose: impl Fn(&Whole) -> Vec<Failing>, success: Interrupted) -> Vec<String> {
    let mut troubles = Vec::new();
    for command in COMMANDS {
        let case = kill::case(command);
        let whole = kill::whole(case);
        let failing = choose(&whole);
        assert!(!failing.is_empty(), "{command} makes such calls");
        for (number, (name, at, error)) in failing.into_iter().enumerate() {
            let fault = Fault::Fail(name, at, error);
            let way = kill::WAYS[number % kill::WAYS.len()];
            troubles.extend(kill::check(case, &whole, (fault, way, success), None).err());
        }
    }
    troubles
}

#[test]
fn f6_a_disk_that_cannot_be_flushed_is_never_a_success() {
    let errors = [Errno::EIO, Errno::ENOSPC];
    let choose = |whole: &Whole| {
        let names = ["fsync", "fdatasync", "syncfs"];
        names.into_iter().flat_map(|name| failing(whole, name, &errors, 12)).collect()
    };
    let troubles = troubles(choose, Interrupted::NeverSucceeds);
    assert!(troubles.is_empty(), "{}", troubles.join("\n==========\n"));
}

#[test]
fn f8_without_processes_memory_or_descriptors_nothing_is_half_done() {
    let choose = |whole: &Whole| {
        let mut all = failing(whole, "execve", &[Errno::EAGAIN, Errno::E2BIG, Errno::ENOMEM], 20);
        all.extend(failing(whole, "openat", &[Errno::EMFILE, Errno::ENFILE], 12));
        all
    };
    let troubles = troubles(choose, Interrupted::MaySucceed);
    assert!(troubles.is_empty(), "{}", troubles.join("\n==========\n"));
}

#[test]
fn f9_a_folder_that_must_not_be_written_stops_an_operation_and_loses_nothing() {
    let errors = [Errno::EACCES, Errno::EROFS];
    let choose = |whole: &Whole| {
        let names = [("openat", 8), ("mkdir", 12), ("rename", 8)];
        names.into_iter().flat_map(|(name, at_most)| failing(whole, name, &errors, at_most)).collect()
    };
    let troubles = troubles(choose, Interrupted::MaySucceed);
    assert!(troubles.is_empty(), "{}", troubles.join("\n==========\n"));
}

/// One call of a command, with its number among those of its name.
fn at_call(wholes: &[Whole], case: usize, point: usize, error: Errno) -> Fault {
    let points = &wholes[case].points;
    let name = points[point].name;
    Fault::Fail(name, points[..point].iter().filter(|before| before.name == name).count(), error)
}

/// Calls that are to fail: all, each once, or some that are drawn from a seed.
fn strikes(wholes: &[Whole], seed: u64) -> Vec<Strike> {
    let mut random = Random::new(seed);
    // A lock that git itself could not remove stays, and is named by the next command.
    let counts = |case: usize, point: usize| wholes[case].points[point].name != "unlink";
    let calls = |case: usize| (0..wholes[case].points.len()).map(move |point| (case, point));
    let all: Vec<_> = (0..wholes.len()).flat_map(calls).filter(|(case, point)| counts(*case, *point)).collect();
    let places: Vec<_> = match number("LATTICE_FAULT_POINTS").unwrap_or(POINTS) {
        0 => all,
        drawn => (0..drawn).map(|_| all[random.below(all.len())]).collect(),
    };
    let strike = |(case, point)| {
        let error = ERRORS[random.below(ERRORS.len())];
        (case, at_call(wholes, case, point, error), kill::WAYS[random.below(kill::WAYS.len())])
    };
    places.into_iter().map(strike).collect()
}

#[test]
fn a_call_that_fails_leaves_the_old_state_the_new_one_or_both_ways_out() {
    let seed = seed("LATTICE_FAULT_SEED");
    let wholes = kill::wholes();
    kill::strike(&wholes, &strikes(&wholes, seed));
}
