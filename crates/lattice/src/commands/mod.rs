//! The commands: for each its arguments, its help text, and what it does.

pub(crate) mod absorb;
pub(crate) mod alias;
pub(crate) mod approvals;
pub(crate) mod auth;
pub(crate) mod change;
pub(crate) mod checkout;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod create;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod emit;
pub(crate) mod explain;
pub(crate) mod freeze;
pub(crate) mod get;
pub(crate) mod hosted;
pub(crate) mod info;
pub(crate) mod init;
pub(crate) mod issue;
pub(crate) mod log;
pub(crate) mod look;
pub(crate) mod merge;
pub(crate) mod modify;
pub(crate) mod ops;
pub(crate) mod plan;
pub(crate) mod pr;
pub(crate) mod program;
pub(crate) mod proposals;
pub(crate) mod reparent;
pub(crate) mod restack;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sprite;
pub(crate) mod submit;
pub(crate) mod sync;
pub(crate) mod track;
pub(crate) mod trunk;
pub(crate) mod undo;
pub(crate) mod unlink;
pub(crate) mod untrack;
pub(crate) mod verify;

use lattice_model::name::{BranchName, NameError};

/// A branch name as an argument.
pub(crate) fn branch(text: &str) -> Result<BranchName, NameError> {
    BranchName::new(text)
}
