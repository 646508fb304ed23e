//! Runs every check of the project in one go, for people and for automation alike.

use std::path::Path;

use crate::process::Call;
use crate::{Failure, fuzz, memory, openapi, samples, storm, tools};

/// Format, lints, doc tests and documentation: what comes before the tests themselves.
const CHECKS: [Call<'static>; 4] = [
    cargo(&["fmt", "--all", "--check"]),
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    cargo(&["test", "--workspace", "--doc"]),
    // Naming examples, of which there are none, gives dependencies the features that clippy has checked them with; a plain
    // `cargo doc` checks sixty of them again.
    Call {
        program: "cargo",
        arguments: &["doc", "--workspace", "--no-deps", "--document-private-items", "--lib", "--bins", "--examples"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
];

/// What `deny.toml` says of licences, sources and versions of dependencies.
const DEPENDENCIES: Call<'static> = cargo(&["deny", "check", "bans", "licenses", "sources"]);

/// Known faults of dependencies. They are looked up in a database that lies elsewhere.
const ADVISORIES: Call<'static> = cargo(&["deny", "check", "advisories"]);
const ADVISORY_DATABASE: Call<'static> = cargo(&["deny", "fetch", "db"]);

/// More at once than there are cores: half of the time of most tests is waiting for the disk.
const TESTS: [&str; 5] = ["nextest", "run", "--workspace", "--profile", "ci"];

/// How much every run draws, each anew; `cargo xtask fuzz stack`, `kill` and `others` draw far more.
const STORMS: [(&str, &str); 3] =
    [("LATTICE_FUZZ_STEPS", "3000"), ("LATTICE_KILL_POINTS", "200"), ("LATTICE_OTHERS_STEPS", "300")];

/// Where the draws begin; a storm that finds something says it.
const SEEDS: [&str; 4] = ["LATTICE_FUZZ_SEED", "LATTICE_KILL_SEED", "LATTICE_FAULT_SEED", "LATTICE_OTHERS_SEED"];

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
    DEPENDENCIES.run(root)?;
    if ADVISORY_DATABASE.answer().is_some() {
        ADVISORIES.run(root)?;
    } else {
        eprintln!(
            "\n==> cargo deny check advisories: left out, the database of advisories cannot be reached from here"
        );
    }
    fuzz::replay(root)?;
    let threads = format!("--test-threads={}", 2 * std::thread::available_parallelism().map_or(1, usize::from));
    let arguments: Vec<_> = TESTS.into_iter().chain([threads.as_str()]).collect();
    let seed = storm::drawn().to_string();
    let mut environment = STORMS.to_vec();
    environment.extend(SEEDS.map(|name| (name, seed.as_str())));
    let memory = memory::folder();
    let folder = memory.as_ref().map(|folder| folder.path().display().to_string());
    environment.extend(folder.as_ref().map(|folder| ("TMPDIR", folder.as_str())));
    Call { program: "cargo", arguments: &arguments, environment: &environment }.run(root)
}

const fn cargo(arguments: &'static [&'static str]) -> Call<'static> {
    Call { program: "cargo", arguments, environment: &[] }
}
