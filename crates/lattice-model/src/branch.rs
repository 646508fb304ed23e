//! What is known of a tracked branch: parent, base, freeze state, cached link to a pull request.

use serde::{Deserialize, Serialize};

use crate::id::Oid;
use crate::name::BranchName;
use crate::time::Timestamp;

/// The metadata of one tracked branch, as the document at `refs/branch-metadata/<branch>` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchMetadataV1 {
    pub name: BranchName,
    pub parent: Parent,
    /// The commit where the branch left its parent.
    pub base: Oid,
    pub freeze: FreezeState,
    /// Cached: may be missing or stale, and never justifies a structural change.
    pub pr: PrState,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The branch below, and whether it is the configured trunk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "lowercase", deny_unknown_fields)]
pub enum Parent {
    Trunk(BranchName),
    Branch(BranchName),
}

impl Parent {
    /// The parent `name` in a repository whose trunk is `trunk`.
    pub fn of(name: &BranchName, trunk: &BranchName) -> Self {
        if name == trunk { Self::Trunk(name.clone()) } else { Self::Branch(name.clone()) }
    }

    pub fn name(&self) -> &BranchName {
        match self {
            Self::Trunk(name) | Self::Branch(name) => name,
        }
    }
}

/// Whether a branch may be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", deny_unknown_fields)]
pub enum FreezeState {
    // With braces, serde also refuses fields that do not belong here.
    Unfrozen {},
    Frozen { scope: FreezeScope, reason: Option<String>, frozen_at: Timestamp },
}

impl FreezeState {
    pub fn is_frozen(&self) -> bool {
        matches!(self, Self::Frozen { .. })
    }

    /// Why it is frozen, if someone said so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Frozen { reason, .. } => reason.as_deref(),
            Self::Unfrozen {} => None,
        }
    }
}

/// How far a freeze reached when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreezeScope {
    Single,
    DownstackInclusive,
}

/// The cached link to a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", deny_unknown_fields)]
pub enum PrState {
    None {},
    Linked { forge: String, number: u64, url: String, last_known: Option<PrStatus> },
}

/// What the host last said of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrStatus {
    pub state: String,
    pub is_draft: bool,
}
