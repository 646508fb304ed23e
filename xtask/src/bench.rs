//! Benchmarks: every figure is a ratio to plain Git on the same repository, measured in turns in one run.

mod fixture;
mod measure;
mod report;
mod stack;

use std::path::Path;

use crate::Failure;
use crate::process::Call;

/// Builds the release binary, measures, prints the tables and writes `docs/benchmarks.md`.
pub fn run(root: &Path, name: &str) -> Result<(), Failure> {
    let build = Call { program: "cargo", arguments: &["build", "--release"], environment: &[] };
    build.run(root)?;
    let sections = match name {
        "stack" => stack::run(root)?,
        other => return Err(Failure::Problems(vec![format!("there is no benchmark `{other}`; there is: stack")])),
    };
    report::write(root, &sections)
}
