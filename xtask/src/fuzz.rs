//! Runs the targets of libFuzzer, with a stable compiler: coverage comes from a pass of LLVM, not from a sanitizer.

use std::path::Path;

use crate::Failure;
use crate::bench::{Section, write_report};
use crate::process::Call;

const TARGETS: [&str; 4] = ["lines", "payload", "manifest", "references"];

/// Inputs that every test run tries.
const SEEDS: &str = "fuzz/seeds";

/// What is kept between runs: inputs that reached something new, and those that broke a promise.
const KEPT: &str = "target/fuzz";

/// How long each target runs for docs/benchmarks.md.
const WHOLE_SECONDS: &str = "120";

/// Tries the seeds of all targets in each of them, once, and without the instrumented build that looking for more takes.
pub(crate) fn replay(root: &Path) -> Result<(), Failure> {
    let programs = TARGETS.map(|target| format!("fuzz-{target}"));
    let seeds = TARGETS.map(|target| root.join(SEEDS).join(target).display().to_string());
    let mut arguments = vec!["test", "--quiet", "--workspace"];
    arguments.extend(programs.iter().flat_map(|program| ["--test", program]));
    arguments.extend(["--", "-runs=0", "-verbosity=0"]);
    arguments.extend(seeds.iter().map(String::as_str));
    Call { program: "cargo", arguments: &arguments, environment: &[] }.run(root)
}

/// Lets each target run for so many seconds, with our own crates instrumented. Without a number it is the whole run, and
/// its result is kept.
pub fn run(root: &Path, seconds: Option<&str>) -> Result<(), Failure> {
    let each = seconds.unwrap_or(WHOLE_SECONDS);
    if each.parse::<u32>().is_err() {
        return Err(Failure::Problems(vec![format!("fuzz wants a number of seconds, not {each}")]));
    }
    TARGETS.iter().try_for_each(|target| fuzz(root, target, each))?;
    if seconds.is_some() { Ok(()) } else { keep(root) }
}

fn fuzz(root: &Path, target: &str, seconds: &str) -> Result<(), Failure> {
    let corpus = root.join(KEPT).join(target);
    std::fs::create_dir_all(&corpus).map_err(|cause| Failure::File { path: corpus.clone(), cause })?;
    let (program, limit) = (format!("fuzz-{target}"), format!("-max_total_time={seconds}"));
    let failures = format!("-artifact_prefix={}/failed-{target}-", root.join(KEPT).display());
    let (corpus, wrapper) = (corpus.display().to_string(), root.join("fuzz/instrumented").display().to_string());
    let seeds = root.join(SEEDS).join(target).display().to_string();
    let mut arguments = vec!["test", "--quiet", "--workspace", "--test", &program, "--"];
    arguments.extend([limit.as_str(), &failures, "-verbosity=0", "-print_final_stats=1", &corpus, &seeds]);
    let environment = [("RUSTC_WORKSPACE_WRAPPER", wrapper.as_str())];
    Call { program: "cargo", arguments: &arguments, environment: &environment }.run(root)
}

/// Only what passed gets here: a target that finds something ends with an error.
fn keep(root: &Path) -> Result<(), Failure> {
    let about = "Inputs that libFuzzer makes, guided by what they reach. Nothing was found.";
    let mut section = Section::new("passed", about, &["target", "seconds"]);
    for target in TARGETS {
        section.row(vec![target.to_owned(), WHOLE_SECONDS.to_owned()]);
    }
    write_report(root, ("fuzz", "fuzz"), &[section])
}
