//! Facts that a snapshot proves, of which each command requires some.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::issue::Issue;

/// One thing that is known to be true. It exists or it does not; there is no half of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Capability {
    RepoOpen,
    TrunkKnown,
    NoLatticeOpInProgress,
    NoExternalGitOpInProgress,
    MetadataReadable,
    GraphValid,
    /// The branch that the command is about was found and is of the right kind.
    ScopeResolved,
    /// No frozen branch would be rewritten.
    FrozenPolicySatisfied,
    WorkingCopyStateKnown,
    WorkingDirectoryAvailable,
    /// All commits are here; a shallow clone cannot tell where a branch left its parent.
    HistoryComplete,
    /// No branch that the command rewrites is checked out in another worktree.
    BranchesFree,
    /// No lock file that a dead process left behind is in the way of Git.
    RefsWritable,
    /// The remote is known, and so are owner and name of the repository on its host.
    RemoteResolved,
    /// There is a token for the host that is valid or can be refreshed, or the host needs none.
    AuthAvailable,
    /// The token reaches the repository.
    RepoAuthorized,
}

impl Capability {
    /// What every scan says something about.
    pub const ALL: &'static [Self] = &[
        Self::RepoOpen,
        Self::TrunkKnown,
        Self::NoLatticeOpInProgress,
        Self::NoExternalGitOpInProgress,
        Self::MetadataReadable,
        Self::GraphValid,
        Self::ScopeResolved,
        Self::FrozenPolicySatisfied,
        Self::WorkingCopyStateKnown,
        Self::WorkingDirectoryAvailable,
        Self::HistoryComplete,
        Self::BranchesFree,
        Self::RefsWritable,
    ];

    /// What only a command that concerns a host asks for.
    pub const HOST: &'static [Self] = &[Self::RemoteResolved, Self::AuthAvailable, Self::RepoAuthorized];

    /// What there is if it holds, for a sentence such as "commands that need ...".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::RepoOpen => "a repository that can be read",
            Self::TrunkKnown => "a trunk",
            Self::NoLatticeOpInProgress => "that no operation of Lattice is in progress",
            Self::NoExternalGitOpInProgress => "that no rebase, merge or the like of Git's is in progress",
            Self::MetadataReadable => "metadata that can be read",
            Self::GraphValid => "stacks in which every branch leads to the trunk",
            Self::ScopeResolved => "the branch that they are about",
            Self::FrozenPolicySatisfied => "that no frozen branch is rewritten",
            Self::WorkingCopyStateKnown => "to know what is changed in the working directory",
            Self::WorkingDirectoryAvailable => "a working directory",
            Self::HistoryComplete => "the whole history",
            Self::BranchesFree => "branches that no other worktree has checked out",
            Self::RefsWritable => "refs that Git can write",
            Self::RemoteResolved => "a remote with a known host",
            Self::AuthAvailable => "a token for the host",
            Self::RepoAuthorized => "a token that reaches the repository",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// All capabilities that no issue removes. Every absence thereby has an issue that explains it.
pub fn remaining(issues: &[Issue]) -> BTreeSet<Capability> {
    let removed: BTreeSet<_> = issues.iter().filter_map(|issue| issue.kind.removes()).collect();
    Capability::ALL.iter().copied().filter(|capability| !removed.contains(capability)).collect()
}
