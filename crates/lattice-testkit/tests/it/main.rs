//! The kit does what tests will rely on.

mod repo;
mod state;
