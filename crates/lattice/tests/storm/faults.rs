//! Calls that fail instead of a process that dies: a disk that cannot be flushed, no more descriptors, no more
//! processes, arguments that are too long, no memory, a folder that must not be written.

use lattice_testkit::tracer::{Errno, Fault};

use crate::kill::{self, Interrupted, Whole};

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
