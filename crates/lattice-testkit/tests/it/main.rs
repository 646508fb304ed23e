//! The kit does what tests will rely on.

mod cli;
mod power;
mod pty;
mod repo;
mod state;
mod wrapper;
