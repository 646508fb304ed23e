//! The built program in real repositories: one module per command or concern.

#![expect(clippy::disallowed_methods, reason = "tests write files and start programs as they need")]

mod absorb;
mod config;
mod conflict;
mod context;
mod create;
mod divergence;
mod doctor;
mod edit;
mod execute;
mod explain;
mod field;
mod freeze;
mod gate;
mod gits;
mod host;
mod hostile;
mod info;
mod init;
mod interactive;
mod kill;
mod laws;
mod ledger;
mod lifecycle;
mod log;
mod manners;
mod metadata;
mod modify;
mod navigate;
mod observed;
mod op_state;
mod output;
mod plan_apply;
mod power;
mod reparent;
mod repositories;
mod restack;
mod retention;
mod tour;
mod track;
mod undo;
mod worktrees;
mod writes;

use lattice_testkit::{Lattice, TestRepo};

/// The program, ready to run in `repo`.
fn lattice(repo: &TestRepo) -> Lattice {
    Lattice::new(env!("CARGO_BIN_EXE_lattice"), repo)
}
