//! Events of the ledger: what Lattice intended, did, saw and proposed.

use serde::{Deserialize, Serialize};

use crate::id::{ContentDigest, Fingerprint, Oid, OpId};
use crate::name::{BranchName, RefName};
use crate::time::Timestamp;

/// One record of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the chain, from 1.
    pub seq: u64,
    pub category: Category,
    pub op: OpId,
    pub command: String,
    pub origin: Origin,
    pub at: Timestamp,
    /// The refs concerned with their values before, and after where it is known.
    pub refs: Vec<RefChange>,
    pub before: Fingerprint,
    pub after: Option<Fingerprint>,
    /// The fingerprint of the newest `Committed` event up to this one, so that the tip suffices.
    pub committed: Option<Fingerprint>,
    /// The fingerprints that were reported as divergence since then.
    pub observed: Vec<Fingerprint>,
    pub plan: Option<ContentDigest>,
    pub detail: Detail,
}

impl Event {
    /// Whether the operation changed anything in this repository. What only concerns a remote did not.
    pub fn changed_something(&self) -> bool {
        let files = self.detail.worktree.as_ref().is_some_and(WorktreeChange::changed_something);
        files || self.detail.config.is_some() || !self.refs.is_empty()
    }
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Category {
    IntentRecorded,
    Committed,
    Aborted,
    DivergenceObserved,
    DoctorProposed,
    DoctorApplied,
}

/// Who asked for an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    User,
    Doctor,
    /// The sprite with this name.
    Sprite(String),
}

impl Origin {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Doctor => "doctor",
            Self::Sprite(_) => "sprite",
        }
    }
}

/// A ref and its value before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefChange {
    pub name: RefName,
    pub old: Option<Oid>,
    pub new: Option<Oid>,
}

/// What only some categories carry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detail {
    /// What is needed to reverse the part of the operation that is no ref.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeChange>,
    /// The configuration file before and after, where the operation changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigChange>,
    /// The operation that this one reverses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<OpId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<String>,
    /// What the operation intends on a remote, with the values that were seen before planning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote: Vec<String>,
    /// Why an operation was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an operation did to HEAD, index and files of the worktree it ran in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorktreeChange {
    pub git_dir: String,
    pub head_before: HeadValue,
    pub head_after: HeadValue,
    /// The commits that HEAD stood for.
    #[serde(default)]
    pub commit_before: Option<Oid>,
    #[serde(default)]
    pub commit_after: Option<Oid>,
    /// The files went from the first tree to the second; equal where they stayed.
    pub files_from: Option<Oid>,
    pub files_to: Option<Oid>,
    /// The index as trees.
    pub index_before: Option<Oid>,
    pub index_after: Option<Oid>,
}

impl WorktreeChange {
    pub fn changed_something(&self) -> bool {
        self.head_before != self.head_after || self.files_from != self.files_to || self.index_before != self.index_after
    }
}

/// What HEAD says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeadValue {
    Branch(BranchName),
    Detached(Oid),
}

/// The configuration file before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigChange {
    pub old: Option<String>,
    pub new: Option<String>,
}
