//! Hermetic repositories, a runner for the program, and a git wrapper for tests.
//!
//! Everything here panics with a full account instead of returning errors: a test that cannot set up its world
//! has nothing to decide. Nothing of the machine leaks in but `PATH`, dates come from counters, so the same test
//! makes the same object ids everywhere.

#![expect(clippy::disallowed_methods, reason = "the harness starts git and the program, and writes plain files")]

pub mod asked;
pub mod cli;
mod draw;
pub mod env;
pub mod fetched;
pub mod git_versions;
pub mod github;
mod guard;
pub mod http;
mod import;
pub mod metadata;
pub mod output;
pub mod power;
pub mod pty;
pub mod repo;
pub mod setup;
pub mod shape;
pub mod state;
pub mod tracer;
pub mod wrapper;

pub use cli::{Lattice, Running};
pub use output::Output;
pub use repo::TestRepo;
pub use setup::Setup;
pub use shape::shape;
pub use state::{RepoState, assert_same};
pub use wrapper::{Action, GitWrapper, Occurrence};
