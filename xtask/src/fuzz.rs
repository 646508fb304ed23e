//! Runs every fuzz target for a while. Needs a nightly compiler and cargo-fuzz; without them it says so.

use std::path::Path;

use crate::Failure;
use crate::process::Call;
use crate::tools;

const TARGETS: [&str; 4] = ["lines", "payload", "manifest", "references"];

pub fn run(root: &Path, seconds: &str) -> Result<(), Failure> {
    if !tools::has_cargo_command("fuzz") {
        let what = "cargo-fuzz is not installed: rustup toolchain install nightly, then cargo install cargo-fuzz";
        return Err(Failure::Problems(vec![what.to_owned()]));
    }
    let limit = format!("-max_total_time={seconds}");
    for target in TARGETS {
        let arguments = ["+nightly", "fuzz", "run", target, "--", limit.as_str()];
        Call { program: "cargo", arguments: &arguments, environment: &[] }.run(root)?;
    }
    Ok(())
}
