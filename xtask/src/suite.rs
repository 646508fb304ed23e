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
const SEEDS: [&str; 3] = ["LATTICE_FUZZ_SEED", "LATTICE_KILL_SEED", "LATTICE_OTHERS_SEED"];

const SHARED_MEMORY: &str = "/dev/shm";

/// So much has to be free in memory for the tests to use it.
const LEAST_GIGABYTES: u64 = 8;

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
    DEPENDENCIES.run(root)?;
    if ADVISORY_DATABASE.answer().is_some() {
        ADVISORIES.run(root)?;
    } else {
        eprintln!(
            "\n==> cargo deny check advisories: left out, the database of advisories cannot be reached from here"
        );
    }
    fuzz::run(root, FUZZ_SECONDS)?;
    let threads = format!("--test-threads={}", 2 * std::thread::available_parallelism().map_or(1, usize::from));
    let arguments: Vec<_> = TESTS.into_iter().chain([threads.as_str()]).collect();
    let seed = storm::drawn().to_string();
    let mut environment = STORMS.to_vec();
    environment.extend(SEEDS.map(|name| (name, seed.as_str())));
    let memory = in_memory();
    let folder = memory.as_ref().map(|folder| folder.path().display().to_string());
    environment.extend(folder.as_ref().map(|folder| ("TMPDIR", folder.as_str())));
    Call { program: "cargo", arguments: &arguments, environment: &environment }.run(root)
}

/// A folder in memory for what the tests write, where there is room for it: they wait for the disk more than for
/// anything else.
fn in_memory() -> Option<tempfile::TempDir> {
    let asked = ["--output=fstype,avail", "--block-size=G", SHARED_MEMORY];
    let said = Call { program: "df", arguments: &asked, environment: &[] }.answer()?;
    let (kind, free) = said.lines().nth(1)?.trim().split_once(' ')?;
    let free: u64 = free.trim().trim_end_matches('G').parse().ok()?;
    if kind != "tmpfs" || free < LEAST_GIGABYTES {
        return None;
    }
    // Sandboxes of root belong to another user, who has to get this far.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    tempfile::Builder::new().prefix("lattice-tests-").permissions(open).tempdir_in(SHARED_MEMORY).ok()
}

const fn cargo(arguments: &'static [&'static str]) -> Call<'static> {
    Call { program: "cargo", arguments, environment: &[] }
}
