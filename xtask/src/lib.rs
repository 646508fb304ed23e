//! Tasks for developers: the test suite, the conformance table, benchmarks, and what the tidy test reads sources with.

#![expect(clippy::print_stderr, reason = "a task tells its user on stderr which step it is at")]

use std::io;
use std::path::{Path, PathBuf};

pub mod agents;
pub mod bench;
pub mod conformance;
pub mod eval;
pub mod fuzz;
mod memory;
pub mod openapi;
mod process;
pub mod samples;
pub mod source;
pub mod storm;
pub mod suite;
mod tools;

/// Why a task ended without success.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("`{command}` failed")]
    Step { command: String, code: u8 },
    #[error("could not start `{command}`")]
    Start {
        command: String,
        #[source]
        cause: io::Error,
    },
    #[error("could not read or write {path}")]
    File {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{}", .0.join("\n"))]
    Problems(Vec<String>),
}

impl Failure {
    /// The exit code to end with: that of the step that failed, else 1.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Step { code, .. } => *code,
            Self::Start { .. } | Self::File { .. } | Self::Problems(_) => 1,
        }
    }
}

/// The root of the workspace that this crate was built in.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies one level below the root of the workspace")
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|cause| Failure::File { path: path.to_owned(), cause })
}
