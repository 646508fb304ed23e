//! Git as context needs it: a read-only facade with values of the builders' formats.

use lattice_repo::{DiffRange, GitError, Reader};
use serde::{Deserialize, Serialize};

/// The most of a diff that is kept as text.
pub const DIFF_LIMIT: u64 = 8 << 20;

/// Reads the repository; changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct GitOperations<'a> {
    reader: &'a Reader,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitInfo {
    /// The short hash.
    pub hash: String,
    /// The first line of the message.
    pub message: String,
    pub author: String,
    /// The author's date with its zone, ISO 8601.
    pub date: String,
}

/// How much a diff changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiffStats {
    pub files_changed: u64,
    pub insertions: u64,
    pub deletions: u64,
}

/// Git said no, or did not know the name.
#[derive(Debug, thiserror::Error)]
pub enum GitOperationError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("`{0}` is no branch, tag or commit")]
    UnknownName(String),
}

impl<'a> GitOperations<'a> {
    pub fn new(reader: &'a Reader) -> Self {
        Self { reader }
    }

    pub fn reader(&self) -> &'a Reader {
        self.reader
    }

    /// The branch that HEAD is on; empty if it is detached.
    pub fn current_branch(&self) -> Result<String, GitError> {
        Ok(self.reader.current_branch()?.unwrap_or_default())
    }

    /// The newest `n` commits, newest first.
    pub fn log(&self, n: usize) -> Result<Vec<CommitInfo>, GitError> {
        let commits = self.reader.log(n)?.into_iter();
        Ok(commits
            .map(|commit| CommitInfo {
                hash: commit.short,
                message: commit.subject,
                author: commit.author,
                date: commit.date,
            })
            .collect())
    }

    /// The difference between two commits, or between a commit and the working tree; at most 8 MiB of it.
    pub fn diff(&self, base: &str, head: Option<&str>) -> Result<String, GitOperationError> {
        let beginning = self.reader.diff(self.range(base, head)?, DIFF_LIMIT, |_| {})?;
        Ok(String::from_utf8_lossy(&beginning.bytes).into_owned())
    }

    /// How much differs between a commit and the working tree.
    pub fn diff_stats(&self, base: &str) -> Result<DiffStats, GitOperationError> {
        let files = self.reader.changed_files(self.range(base, None)?)?;
        Ok(DiffStats::of(&files))
    }

    /// What two names stand for.
    pub fn range(&self, base: &str, head: Option<&str>) -> Result<DiffRange, GitOperationError> {
        let commit =
            |name: &str| self.reader.resolve(name)?.ok_or_else(|| GitOperationError::UnknownName(name.to_owned()));
        match head {
            None => Ok(DiffRange::ToWorkTree(commit(base)?)),
            Some(head) => Ok(DiffRange::Between(commit(base)?, commit(head)?)),
        }
    }
}

impl DiffStats {
    pub fn of(files: &[lattice_repo::ChangedFile]) -> Self {
        let lines = files.iter().filter_map(|file| file.lines);
        Self {
            files_changed: files.len() as u64,
            insertions: lines.clone().map(|(added, _)| added).sum(),
            deletions: lines.map(|(_, removed)| removed).sum(),
        }
    }
}
