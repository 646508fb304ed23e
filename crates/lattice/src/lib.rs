//! The `lattice` program: arguments to request to outcome to text or JSON.

mod app;
mod cli;
mod commands;
mod complete;
mod dispatch;
mod error;
mod output;
mod pick;
mod prompt;

use std::process::ExitCode;

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    dispatch::main()
}
