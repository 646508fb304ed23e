//! What can go wrong with git, by category and never by the wording of a message.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A failure of git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("the program `{0}` was not found")]
    NotInstalled(PathBuf),
    #[error("git {command} could not be started")]
    Start { command: String, source: io::Error },
    #[error("git {command} failed with exit code {code}")]
    Failed { command: String, code: i32, stderr: String },
    #[error("git {command} was killed by signal {signal}")]
    Killed { command: String, signal: i32 },
    #[error("talking to git {command} failed")]
    Pipe { command: String, source: io::Error },
    #[error("git {command} answered something unexpected: {what}")]
    Unexpected { command: String, what: String },
    #[error("{0} is not inside a Git repository")]
    NotARepository(PathBuf),
    #[error("{0} belongs to another user, and Git does not trust it")]
    NotTrusted(PathBuf),
    #[error("the hook {hook} refused")]
    Hook { hook: &'static str },
    #[error("the hook {hook} did not end within {limit:?} and was stopped")]
    HookHangs { hook: &'static str, limit: Duration },
    #[error("another git is changing the index")]
    IndexLocked { lock: PathBuf },
    #[error("{path} could not be read")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} could not be written")]
    Write { path: PathBuf, source: io::Error },
}

impl GitError {
    pub(crate) fn unexpected(command: &str, what: impl Into<String>) -> Self {
        Self::Unexpected { command: command.to_owned(), what: what.into() }
    }

    /// Whether the disk refused. What is tried again then may pass for written without being so.
    pub(crate) fn is_of_the_disk(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    /// What git itself wrote, for people.
    pub fn stderr(&self) -> Option<&str> {
        match self {
            Self::Failed { stderr, .. } => Some(stderr.trim()),
            Self::NotInstalled(_)
            | Self::Start { .. }
            | Self::Killed { .. }
            | Self::Pipe { .. }
            | Self::Unexpected { .. }
            | Self::NotARepository(_)
            | Self::NotTrusted(_)
            | Self::Hook { .. }
            | Self::HookHangs { .. }
            | Self::IndexLocked { .. }
            | Self::Read { .. }
            | Self::Write { .. } => None,
        }
    }
}
