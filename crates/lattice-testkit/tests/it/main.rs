//! The kit does what tests will rely on.

mod cli;
mod github;
mod power;
mod pty;
mod repo;
mod state;
mod wrapper;
