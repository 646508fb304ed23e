//! Benchmarks that build a repository, run the program in it and print how long each part took.
//!
//! A benchmark is one entry of [`BENCHES`]; the task `cargo xtask bench <name>` is to look it up there.

use std::path::Path;

use crate::Failure;

/// A benchmark under the name it is called by.
pub struct Bench {
    pub name: &'static str,
    /// Measures and prints; the argument is the root of the workspace.
    pub run: fn(&Path) -> Result<(), Failure>,
}

/// All benchmarks, in the order in which they are listed.
pub const BENCHES: &[Bench] = &[];
