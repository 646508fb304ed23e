//! The kit does what tests will rely on.

mod cli;
mod repo;
mod state;
