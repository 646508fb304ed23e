//! One immutable reading of a repository, with exactly the facts a scan was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::branch::BranchMetadataV1;
use crate::event::{Event, HeadValue, RefChange};
use crate::graph::StackGraph;
use crate::history::{History, Position};
use crate::id::{ContentDigest, Fingerprint, Oid, OpId};
use crate::name::BranchName;
use crate::settings::Settings;
use crate::similar::did_you_mean;

/// Everything that decisions are made from.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub repository: Repository,
    pub head: Head,
    pub config: ConfigReading,
    pub settings: Settings,
    /// All local branches whose names Lattice can use.
    pub branches: BTreeMap<BranchName, Oid>,
    /// Branch and metadata refs whose names Lattice refuses to use, made printable.
    pub unusable: Vec<UnusableRef>,
    /// Where branches are checked out.
    pub worktrees: BTreeMap<BranchName, PathBuf>,
    /// Those of them whose folders are gone.
    pub gone_worktrees: BTreeSet<PathBuf>,
    /// Branches that cannot move because the worktree that has them cannot follow, with the reason.
    pub held: BTreeMap<BranchName, String>,
    pub metadata: BTreeMap<BranchName, MetadataReading>,
    pub history: History,
    /// Tracked branches whose commits Git cannot walk, with what it says of them.
    pub unreadable: BTreeMap<BranchName, String>,
    pub op_state: OpStateReading,
    pub git_operation: Option<GitOperation>,
    pub working_copy: WorkingCopy,
    pub ledger: LedgerReading,
    pub completeness: Completeness,
    /// Lock files of Git that no living process seems to hold.
    pub stale_locks: Vec<StaleLock>,
    /// What Git warned of while it listed the refs.
    pub warnings: Vec<String>,
    pub fingerprint: Fingerprint,
    pub divergence: Option<Divergence>,
    /// What the ledger last saw of branches whose refs changed outside of Lattice.
    pub recorded: BTreeMap<BranchName, Recorded>,
}

/// The last state of a branch that the ledger knows, where its objects still exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub event: Oid,
    pub tip: Option<Oid>,
    pub metadata: Option<(Oid, BranchMetadataV1)>,
}

/// Where the repository is and of which kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub context: Context,
    pub git_dir: PathBuf,
    pub common_dir: PathBuf,
    pub work_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    Normal,
    Worktree,
    Bare,
}

impl Context {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Worktree => "worktree",
            Self::Bare => "bare",
        }
    }
}

/// What HEAD of this worktree points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    Branch {
        name: BranchName,
        tip: Oid,
    },
    Detached(Oid),
    /// A branch without a commit.
    Unborn(String),
    /// A branch whose name Lattice does not use, or a HEAD that cannot be read.
    Unusable(String),
}

impl Head {
    pub fn branch(&self) -> Option<&BranchName> {
        match self {
            Self::Branch { name, .. } => Some(name),
            Self::Detached(_) | Self::Unborn(_) | Self::Unusable(_) => None,
        }
    }

    pub fn commit(&self) -> Option<Oid> {
        match self {
            Self::Branch { tip, .. } | Self::Detached(tip) => Some(*tip),
            Self::Unborn(_) | Self::Unusable(_) => None,
        }
    }

    /// The part that an operation can put back.
    pub fn value(&self) -> Option<HeadValue> {
        match self {
            Self::Branch { name, .. } => Some(HeadValue::Branch(name.clone())),
            Self::Detached(commit) => Some(HeadValue::Detached(*commit)),
            Self::Unborn(_) | Self::Unusable(_) => None,
        }
    }
}

/// The repository's configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigReading {
    Absent,
    Invalid {
        digest: ContentDigest,
        reason: String,
        rest: ReadableRest,
    },
    /// The layout of another program: `trunk = "…"` at the top level.
    Foreign {
        digest: ContentDigest,
        trunk: String,
        converted: String,
    },
    Valid {
        digest: ContentDigest,
        content: String,
        unknown_keys: Vec<String>,
    },
}

impl ConfigReading {
    pub fn digest(&self) -> Option<&ContentDigest> {
        match self {
            Self::Absent => None,
            Self::Invalid { digest, .. } | Self::Foreign { digest, .. } | Self::Valid { digest, .. } => Some(digest),
        }
    }
}

/// What a file says that cannot be read as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadableRest {
    pub content: String,
    /// Lines and options that are not in it.
    pub left_out: Vec<String>,
}

/// A ref that Lattice lists and does not touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableRef {
    pub name: String,
    pub reason: String,
}

/// A metadata ref and what its object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataReading {
    pub oid: Oid,
    pub content: Result<BranchMetadataV1, MetadataProblem>,
}

/// Why a metadata ref says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataProblem {
    #[error("the ref points to a {0}, not to a blob")]
    NotABlob(String),
    #[error("the object {0} is missing")]
    Missing(Oid),
    #[error("the document has {size} bytes; the limit is {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("the document is not valid: {0}")]
    Malformed(String),
    #[error("the document has schema version {0}; this program knows version 1")]
    UnknownVersion(String),
    #[error("the document describes branch `{0}`")]
    NameMismatch(String),
}

/// The marker of an operation of Lattice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpStateReading {
    Absent,
    Present(OpState),
    Damaged { reason: String },
}

/// An operation that is executing, was interrupted, or waits for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpState {
    pub op: OpId,
    pub command: String,
    pub phase: OpPhase,
    pub plan: ContentDigest,
    pub touched: Vec<RefChange>,
    pub origin_git_dir: PathBuf,
    pub origin_work_dir: Option<PathBuf>,
    /// Whether a living process holds the lock for it.
    pub holder: Holder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpPhase {
    Executing,
    AwaitingUser,
}

impl OpPhase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executing => "executing",
            Self::AwaitingUser => "awaiting_user",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Alive,
    Gone,
}

/// An operation of Git in this worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOperation {
    Rebase,
    Merge,
    CherryPick,
    Revert,
    Bisect,
    ApplyMailbox,
}

impl GitOperation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rebase => "rebase",
            Self::Merge => "merge",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
            Self::ApplyMailbox => "am",
        }
    }
}

/// The state of index and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkingCopy {
    /// A bare repository has none.
    None,
    /// The command did not ask.
    NotRead,
    Unknown {
        reason: String,
    },
    Known {
        staged: Vec<String>,
        unstaged: Vec<String>,
        unmerged: Vec<String>,
        untracked: Vec<String>,
    },
}

/// The tip of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerReading {
    Absent,
    Tip {
        commit: Oid,
        tree: Oid,
        event: Box<Event>,
    },
    /// `below` is what a new record can stand on: the tip, if it is a commit at all.
    Damaged {
        commit: Oid,
        below: Option<Oid>,
        reason: String,
    },
}

/// Whether all commits are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    Shallow,
}

/// A lock file of Git that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleLock {
    /// Relative to the common directory, with `/` between parts.
    pub path: String,
    pub age_seconds: u64,
    pub size: u64,
}

/// Changes outside of Lattice since its last operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    pub prior: Fingerprint,
    pub current: Fingerprint,
    pub changes: Vec<RefChange>,
    /// What changed and is no ref, by name.
    pub files: Vec<&'static str>,
}

impl Snapshot {
    /// The trunk, if it is configured and exists.
    pub fn trunk(&self) -> Option<(&BranchName, Oid)> {
        let name = self.settings.trunk.as_ref()?;
        self.branches.get(name).map(|tip| (name, *tip))
    }

    /// Branches that exist and whose metadata can be read.
    pub fn tracked(&self) -> impl Iterator<Item = (&BranchMetadataV1, Oid)> {
        self.metadata.iter().filter_map(|(name, reading)| {
            let tip = self.branches.get(name)?;
            Some((reading.content.as_ref().ok()?, *tip))
        })
    }

    /// The metadata of one tracked branch and the id of its document.
    pub fn metadata_of(&self, branch: &BranchName) -> Option<(&BranchMetadataV1, Oid)> {
        let reading = self.metadata.get(branch)?;
        Some((reading.content.as_ref().ok()?, reading.oid))
    }

    /// Says that there is no such branch, and which one may have been meant.
    pub fn no_branch(&self, name: &BranchName) -> String {
        let meant = did_you_mean(name.as_str(), self.branches.keys().map(BranchName::as_str));
        format!("there is no branch `{name}`{meant}")
    }

    pub fn tip(&self, branch: &BranchName) -> Option<Oid> {
        self.branches.get(branch).copied()
    }

    pub fn is_tracked(&self, branch: &BranchName) -> bool {
        self.branches.contains_key(branch) && self.metadata.contains_key(branch)
    }

    pub fn is_trunk(&self, branch: &BranchName) -> bool {
        self.settings.trunk.as_ref() == Some(branch)
    }

    pub fn graph(&self) -> StackGraph {
        let edges = self.tracked().map(|(metadata, _)| (metadata.name.clone(), metadata.parent.name().clone()));
        StackGraph::new(self.settings.trunk.clone(), edges)
    }

    /// Where a tracked branch stands.
    pub fn position(&self, branch: &BranchName) -> Option<Position> {
        let (metadata, _) = self.metadata_of(branch)?;
        let parent_tip = self.tip(metadata.parent.name());
        Some(self.history.position(self.tip(branch)?, metadata.base, parent_tip))
    }

    /// Whether the parent has moved away from the recorded base.
    pub fn needs_restack(&self, branch: &BranchName) -> bool {
        self.metadata_of(branch)
            .is_some_and(|(metadata, _)| self.tip(metadata.parent.name()).is_some_and(|tip| tip != metadata.base))
    }
}
