//! Benchmarks: every figure is a ratio to plain Git on the same repository, measured in turns in one run.

mod context;
mod edits;
mod fixture;
mod forge;
mod large;
mod measure;
mod peers;
mod protocol;
mod report;
mod sprites;
mod stack;

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::process::Call;

pub(crate) use fixture::write as write_file;
pub(crate) use report::{Section, write as write_report};

/// Builds the release binary, measures, prints the tables and writes them to `docs`.
pub fn run(root: &Path, name: &str, tree: Option<&str>) -> Result<(), Failure> {
    let build = Call { program: "cargo", arguments: &["build", "--release"], environment: &[] };
    build.run(root)?;
    let sections = match name {
        "context" => context::run(root, tree)?,
        "large" => large::run(root)?,
        "stack" => stack::run(root)?.into_iter().chain(edits::run(root)?).collect(),
        "forge" => forge::run(root)?,
        "protocol" => protocol::run(root)?,
        "sprites" => sprites::run(root)?,
        other => {
            let all = "stack, forge, protocol, sprites, context, large";
            let what = format!("there is no benchmark `{other}`; there are: {all}");
            return Err(Failure::Problems(vec![what]));
        }
    };
    let file = if name == "stack" { "docs/benchmarks.md".to_owned() } else { format!("docs/benchmarks-{name}.md") };
    let command = if name == "context" { "bench context TREE".to_owned() } else { format!("bench {name}") };
    report::write(root, (&file, &command), &sections)
}

/// The release binary.
pub(crate) fn program(root: &Path) -> PathBuf {
    target(root).join("release/lattice")
}

/// Where cargo puts what it builds.
#[expect(clippy::disallowed_methods, reason = "cargo is told so by the environment")]
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
