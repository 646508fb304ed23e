//! Benchmarks: every figure is a ratio to plain Git on the same repository, measured in turns in one run.

mod fixture;
mod forge;
mod measure;
mod protocol;
mod report;
mod sprites;
mod stack;

use std::path::{Path, PathBuf};

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
        "sprites" => sprites::run(root)?,
        other => {
            let what = format!("there is no benchmark `{other}`; there are: stack, forge, protocol, sprites");
            return Err(Failure::Problems(vec![what]));
        }
    };
    report::write(root, name, &sections)
}

/// The release binary.
#[expect(clippy::disallowed_methods, reason = "where cargo puts what it builds")]
fn program(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("release/lattice")
}
