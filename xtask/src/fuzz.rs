//! Runs every fuzz target for a while, with a stable compiler: coverage comes from a pass of LLVM, not from a sanitizer.

use std::path::Path;

use crate::Failure;
use crate::process::Call;

const TARGETS: [&str; 4] = ["lines", "payload", "manifest", "references"];

/// What is kept between runs: inputs that reached something new, and those that broke a promise.
const KEPT: &str = "target/fuzz";

/// Lets each target run for `seconds`, with our own crates instrumented.
pub fn run(root: &Path, seconds: &str) -> Result<(), Failure> {
    if seconds.parse::<u32>().is_err() {
        return Err(Failure::Problems(vec![format!("fuzz wants a number of seconds, not {seconds}")]));
    }
    TARGETS.iter().try_for_each(|target| fuzz(root, target, seconds))
}

fn fuzz(root: &Path, target: &str, seconds: &str) -> Result<(), Failure> {
    let corpus = root.join(KEPT).join(target);
    std::fs::create_dir_all(&corpus).map_err(|cause| Failure::File { path: corpus.clone(), cause })?;
    let (program, limit) = (format!("fuzz-{target}"), format!("-max_total_time={seconds}"));
    let failures = format!("-artifact_prefix={}/failed-{target}-", root.join(KEPT).display());
    let (corpus, wrapper) = (corpus.display().to_string(), root.join("fuzz/instrumented").display().to_string());
    let seeds = root.join("fuzz/seeds").join(target).display().to_string();
    let mut arguments = vec!["test", "--quiet", "--workspace", "--test", &program, "--"];
    arguments.extend([limit.as_str(), &failures, "-verbosity=0", "-print_final_stats=1", &corpus, &seeds]);
    let environment = [("RUSTC_WORKSPACE_WRAPPER", wrapper.as_str())];
    Call { program: "cargo", arguments: &arguments, environment: &environment }.run(root)
}
