//! Benchmarks: every figure is a ratio to plain Git on the same repository, measured in turns in one run.

mod fixture;
mod forge;
mod measure;
mod protocol;
mod report;
mod stack;

use std::path::Path;

use crate::Failure;
use crate::process::Call;

/// Builds the release binary, measures, prints the tables and writes them to `docs`.
pub fn run(root: &Path, name: &str) -> Result<(), Failure> {
    let build = Call { program: "cargo", arguments: &["build", "--release"], environment: &[] };
    build.run(root)?;
    let sections = match name {
        "stack" => stack::run(root)?,
        "forge" => forge::run(root)?,
        "protocol" => protocol::run(root)?,
        other => {
            let what = format!("there is no benchmark `{other}`; there are: stack, forge, protocol");
            return Err(Failure::Problems(vec![what]));
        }
    };
    report::write(root, name, &sections)
}
