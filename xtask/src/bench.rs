//! Benchmarks: every figure has its peer, plain Git or another tool, measured in turns in the same run.

mod context;
mod curves;
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

/// What can be measured, in the order of the document.
const ALL: [&str; 6] = ["stack", "forge", "context", "large", "protocol", "sprites"];

/// Measures one thing or all of them with the release binary, prints the tables and writes them to `docs/benchmarks.md`.
///
/// `tree` is a Git working tree to pack; without one, the sources of all dependencies are taken.
pub fn run(root: &Path, name: Option<&str>, tree: Option<&str>) -> Result<(), Failure> {
    let wanted: Vec<_> = ALL.into_iter().filter(|known| name.is_none_or(|name| name == *known)).collect();
    if wanted.is_empty() {
        let what = format!("there is no benchmark `{}`; there are: {}", name.unwrap_or_default(), ALL.join(", "));
        return Err(Failure::Problems(vec![what]));
    }
    let build = Call { program: "cargo", arguments: &["build", "--release"], environment: &[] };
    build.run(root)?;
    for name in wanted {
        let sections = match name {
            "stack" => stack::run(root)?.into_iter().chain(edits::run(root)?).collect(),
            "forge" => forge::run(root)?,
            "context" => context::run(root, tree)?,
            "large" => large::run(root)?,
            "protocol" => protocol::run(root)?,
            _ => sprites::run(root)?,
        };
        let named = if name == "context" && tree.is_some() { " TREE" } else { "" };
        report::write(root, (name, &format!("bench {name}{named}")), &sections)?;
    }
    Ok(())
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
