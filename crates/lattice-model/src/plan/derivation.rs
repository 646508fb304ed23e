//! Commits that are made of the changes of others.

use serde::{Deserialize, Serialize};

use crate::id::Oid;
use crate::name::BranchName;

use super::count;

/// Lines of one file that take the place of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixup {
    pub commit: Oid,
    pub path: String,
    /// How many lines of the commit's file come before.
    pub at: usize,
    /// How many lines of the current commit's file come before.
    pub here: usize,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

/// Where the changes of a new commit come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Derivation {
    /// All changes of these commits, oldest first, on the commit below them.
    Squash { commits: Vec<Oid>, onto: Oid },
    /// What `from` changed in these files since `onto`.
    Files { from: Oid, onto: Oid, paths: Vec<String> },
    /// Some of what `from` changed since `onto`: lines of files, and whole files.
    Hunks { from: Oid, onto: Oid, lines: Vec<LineChange>, paths: Vec<String> },
    /// What is left of the changes of these commits on top of a branch that took some of them.
    Rest { commits: Vec<Oid>, below: BranchName },
    /// The opposite of a commit.
    Revert { commit: Oid, onto: Oid },
}

/// Lines of a file that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineChange {
    pub path: String,
    /// How many lines of the file come before, as it was.
    pub at: usize,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

impl Derivation {
    pub(super) fn preview(&self, branch: &BranchName) -> String {
        match self {
            Self::Squash { commits, .. } => format!("make one commit of the {} of {branch}", commits.len()),
            Self::Files { paths, .. } => format!("commit the changes of {} to {branch}", paths.join(", ")),
            Self::Hunks { lines, paths, .. } => {
                format!("commit {} to {branch}", count(lines.len() + paths.len(), "hunk"))
            }
            Self::Rest { below, .. } => format!("commit the rest of {branch} on the new {below}"),
            Self::Revert { commit, .. } => format!("take {} back on {branch}", commit.short()),
        }
    }
}
