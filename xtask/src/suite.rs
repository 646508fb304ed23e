//! Runs every check of the project in one go, for people and for automation alike.

use std::path::Path;

use crate::process::Call;
use crate::{Failure, fuzz, openapi, samples, storm, tools};

/// Format, lints, doc tests and documentation: what comes before the tests themselves.
const CHECKS: [Call<'static>; 4] = [
    cargo(&["fmt", "--all", "--check"]),
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    cargo(&["test", "--workspace", "--doc"]),
    Call {
        program: "cargo",
        arguments: &["doc", "--workspace", "--no-deps", "--document-private-items"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
];

/// Licences, advisories and sources of dependencies; its tool is optional.
const DEPENDENCIES: Call<'static> = cargo(&["deny", "check"]);

/// More at once than there are cores: half of the time of most tests is waiting for the disk.
const TESTS: [&str; 5] = ["nextest", "run", "--workspace", "--profile", "ci"];

/// How much every run draws anew; `cargo xtask fuzz stack` and `cargo xtask kill` do far more.
const STORMS: [(&str, &str); 2] = [("LATTICE_FUZZ_STEPS", "3000"), ("LATTICE_KILL_POINTS", "200")];

/// Where the storms begin. A storm that fails prints its own.
const SEEDS: [&str; 2] = ["LATTICE_FUZZ_SEED", "LATTICE_KILL_SEED"];

/// How long each fuzz target runs every time; `cargo xtask fuzz` runs them longer.
const FUZZ_SECONDS: &str = "5";

/// Installs what is missing, then runs all checks and stops at the first that fails.
///
/// The tests run last, so that the output ends with the summary of their runner.
pub fn run(root: &Path) -> Result<(), Failure> {
    tools::install(root)?;
    openapi::ensure()?;
    samples::fetch()?;
    for check in &CHECKS {
        check.run(root)?;
    }
    if tools::has_cargo_command("deny") {
        DEPENDENCIES.run(root)?;
    } else {
        eprintln!("\n==> cargo deny check: left out, cargo-deny is not installed");
    }
    fuzz::run(root, FUZZ_SECONDS)?;
    let threads = format!("--test-threads={}", 2 * std::thread::available_parallelism().map_or(1, usize::from));
    let arguments: Vec<_> = TESTS.into_iter().chain([threads.as_str()]).collect();
    let seed = storm::drawn().to_string();
    let environment: Vec<_> = STORMS.into_iter().chain(SEEDS.map(|name| (name, seed.as_str()))).collect();
    Call { program: "cargo", arguments: &arguments, environment: &environment }.run(root)
}

const fn cargo(arguments: &'static [&'static str]) -> Call<'static> {
    Call { program: "cargo", arguments, environment: &[] }
}
