//! `freeze` and `unfreeze`: protect branches from being rewritten.

use crate::branch::FreezeState;
use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{FreezeDraft, Hooks, Plan, Step};
use crate::snapshot::Snapshot;

use super::rewrite::{draft_of, expected_metadata};
use super::scope;

/// Freezes a branch and everything below it, for a fixed base is only as fixed as what it stands on.
#[derive(Debug, Clone)]
pub struct Freeze {
    pub branch: Option<BranchName>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Unfreeze {
    pub branch: Option<BranchName>,
}

/// What changes metadata alone needs; it works in a bare repository too.
pub(super) const METADATA_ONLY: &[Capability] = &[
    Capability::RepoOpen,
    Capability::TrunkKnown,
    Capability::NoLatticeOpInProgress,
    Capability::MetadataReadable,
    Capability::GraphValid,
    Capability::ScopeResolved,
    Capability::RefsWritable,
];

impl Command for Freeze {
    const NAME: &'static str = "freeze";
    const REQUIRES: &'static [Capability] = METADATA_ONLY;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        scope::tracked(snapshot, self.branch.as_ref()).err().into_iter().collect()
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::tracked(snapshot, self.branch.as_ref()).expect("bug: the gate resolved the scope");
        let mut branches = snapshot.graph().downstack(&branch);
        branches.push(branch);
        let mut plan = Plan::new(Self::NAME, Hooks::Run);
        for branch in branches {
            let (metadata, _) = snapshot.metadata_of(&branch).expect("bug: tracked branches have metadata");
            if !metadata.freeze.is_frozen() {
                let freeze = FreezeDraft::FreezeNow { reason: self.reason.clone() };
                plan.steps.push(refreeze(snapshot, &branch, freeze));
            }
        }
        Ok(plan.verified())
    }
}

impl Command for Unfreeze {
    const NAME: &'static str = "unfreeze";
    const REQUIRES: &'static [Capability] = METADATA_ONLY;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        scope::tracked(snapshot, self.branch.as_ref()).err().into_iter().collect()
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::tracked(snapshot, self.branch.as_ref()).expect("bug: the gate resolved the scope");
        let (metadata, _) = snapshot.metadata_of(&branch).expect("bug: tracked branches have metadata");
        let mut plan = Plan::new(Self::NAME, Hooks::Run);
        if metadata.freeze.is_frozen() {
            plan.steps.push(refreeze(snapshot, &branch, FreezeDraft::Keep(FreezeState::Unfrozen {})));
        }
        Ok(plan.verified())
    }
}

fn refreeze(snapshot: &Snapshot, branch: &BranchName, freeze: FreezeDraft) -> Step {
    let (metadata, _) = snapshot.metadata_of(branch).expect("bug: tracked branches have metadata");
    let mut document = draft_of(metadata);
    document.freeze = freeze;
    Step::SetMetadata { branch: branch.clone(), expected: expected_metadata(snapshot, branch), document }
}
