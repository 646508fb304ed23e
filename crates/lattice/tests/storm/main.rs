//! Repositories in a storm: random commands, plain git, kills and crowds, judged by an oracle of its own.

#![expect(clippy::disallowed_methods, reason = "tests write files and start programs as they need")]
#![expect(clippy::print_stdout, reason = "a run says from which seed it can be repeated")]

mod action;
mod commands;
mod crowd;
mod defects;
mod faults;
mod fuzz;
mod kill;
mod oracle;
mod others;
mod outside;
mod storm;
mod world;

use lattice_testkit::{Lattice, TestRepo};

/// The program, ready to run in `repo`.
fn lattice(repo: &TestRepo) -> Lattice {
    Lattice::new(env!("CARGO_BIN_EXE_lattice"), repo)
}
