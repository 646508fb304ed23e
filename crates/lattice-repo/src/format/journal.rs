//! The journal of one operation: everything that `continue` and `abort` need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lattice_model::event::{ConfigChange, Detail, HeadValue, Origin, RefChange};
use lattice_model::id::{Fingerprint, Oid, OpId};
use lattice_model::name::{BranchName, RefName};
use lattice_model::plan::Plan;
use lattice_model::snapshot::Snapshot;
use lattice_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::sealed::{self, SealError};

pub(crate) const SIZE_LIMIT: u64 = 256 * 1024 * 1024;

/// What is known of an operation, rewritten at each step.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Journal {
    pub(crate) kind: Kind,
    pub(crate) schema_version: u32,
    pub(crate) op_id: OpId,
    pub(crate) origin: Origin,
    pub(crate) started_at: Timestamp,
    pub(crate) plan: Plan,
    pub(crate) before: Fingerprint,
    pub(crate) detail: Detail,
    pub(crate) intent_recorded: bool,
    /// What was seen to have changed outside of Lattice, to be recorded with the operation.
    pub(crate) divergence: Option<DivergenceSeen>,
    /// Whether the operation ever waited for the user.
    pub(crate) paused: bool,
    pub(crate) worktree: Option<WorktreeBefore>,
    /// Where the scan saw branches of the plan checked out.
    #[serde(default)]
    pub(crate) checked_out: BTreeMap<BranchName, PathBuf>,
    /// New tips that were computed so far.
    pub(crate) tips: BTreeMap<BranchName, Oid>,
    /// Commits that were left out because their change is there already.
    #[serde(default)]
    pub(crate) dropped: Vec<Dropped>,
    /// Branches whose tips the user made, by resolving a conflict.
    pub(crate) resolved: BTreeSet<BranchName>,
    /// Branches whose new commits are signed.
    #[serde(default)]
    pub(crate) signed: BTreeSet<BranchName>,
    pub(crate) pause: Option<Pause>,
    pub(crate) prepared: Option<Prepared>,
}

impl Journal {
    /// The commits of a branch without those that were dropped.
    pub(crate) fn remaining(&self, branch: &BranchName, commits: &[Oid]) -> Vec<Oid> {
        let is_gone =
            |commit: &Oid| self.dropped.iter().any(|dropped| dropped.branch == *branch && dropped.commit == *commit);
        commits.iter().filter(|commit| !is_gone(commit)).copied().collect()
    }

    /// That of an operation of the user's which has done nothing yet.
    pub(crate) fn new(snapshot: &Snapshot, plan: Plan, (op_id, started_at): (OpId, Timestamp)) -> Self {
        Self {
            kind: Kind::Journal,
            schema_version: 1,
            op_id,
            origin: Origin::User,
            started_at,
            plan,
            before: snapshot.fingerprint.clone(),
            detail: Detail::default(),
            intent_recorded: false,
            divergence: snapshot.divergence.as_ref().map(|seen| DivergenceSeen {
                prior: seen.prior.clone(),
                current: seen.current.clone(),
                changes: seen.changes.clone(),
            }),
            paused: false,
            worktree: None,
            checked_out: snapshot.worktrees.clone(),
            tips: BTreeMap::new(),
            dropped: Vec::new(),
            resolved: BTreeSet::new(),
            signed: BTreeSet::new(),
            pause: None,
            prepared: None,
        }
    }
}

/// A commit that a branch no longer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    pub branch: BranchName,
    pub commit: Oid,
    pub subject: String,
    #[serde(default)]
    pub because: DropReason,
}

/// Why a commit is dropped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// What it stands on has the same change.
    #[default]
    BelowHasIt,
    /// Nothing was left of it when its conflict was resolved, or the user left it out.
    Resolution,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "lattice.journal")]
    Journal,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DivergenceSeen {
    pub(crate) prior: Fingerprint,
    pub(crate) current: Fingerprint,
    pub(crate) changes: Vec<RefChange>,
}

/// The worktree as the operation found it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorktreeBefore {
    pub(crate) head: HeadValue,
    pub(crate) commit: Oid,
    pub(crate) index: Oid,
    /// The tree that the files stand for: that of HEAD, or of the staged commit.
    pub(crate) files: Oid,
}

/// A conflict that the user resolves in Git's own rebase.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pause {
    pub(crate) branch: BranchName,
    pub(crate) tip: Oid,
    pub(crate) fork: Oid,
    pub(crate) onto: Oid,
    /// Where HEAD is detached when the rebase begins.
    pub(crate) start: Oid,
}

/// All that remains is to move refs, files and HEAD; every value is known.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepared {
    pub(crate) edits: Vec<Edit>,
    pub(crate) head_after: Option<HeadValue>,
    /// From where the files are now, which after a conflict is not where the operation found them.
    pub(crate) files: Option<FileMove>,
    /// Other worktrees, which follow the branches that they have checked out.
    #[serde(default)]
    pub(crate) followers: Vec<Follower>,
    /// Whether the operation's own index becomes the worktree's.
    pub(crate) index: IndexAfter,
    pub(crate) config: Option<ConfigChange>,
    pub(crate) after: Fingerprint,
    /// The number of the event that closes the operation.
    pub(crate) seq: u64,
    pub(crate) ledger_before: Option<Oid>,
    pub(crate) intent: Oid,
    pub(crate) committed: Oid,
    pub(crate) keep: Oid,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    pub(crate) name: RefName,
    pub(crate) old: Option<Oid>,
    pub(crate) new: Option<Oid>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileMove {
    pub(crate) from: Oid,
    pub(crate) to: Oid,
}

/// Another worktree, whose branch moves.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Follower {
    pub(crate) branch: BranchName,
    pub(crate) git_dir: PathBuf,
    pub(crate) work_dir: PathBuf,
    pub(crate) files: FileMove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum IndexAfter {
    /// As it is, or as moving the files leaves it.
    Stays,
    /// The operation's own copy takes its place, before the files move.
    Installed,
    /// It becomes this tree, after the files have moved.
    Restored(Oid),
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Journal, SealError> {
    sealed::unseal(bytes)
}

pub(crate) fn render(journal: &Journal) -> String {
    sealed::seal(journal)
}
