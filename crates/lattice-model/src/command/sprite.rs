//! What sprites do to a repository: keep the commit they start from, and land their work as branches of the stack.

use std::collections::BTreeSet;

use crate::branch::{FreezeState, Parent, PrState};
use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::{BranchName, NameError, RefName};
use crate::plan::{Expected, FreezeDraft, Hooks, MetadataDraft, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::freeze::METADATA_ONLY;
use super::rewrite::{draft_of, expected_metadata};
use super::scope;

/// Keeps a commit alive for a sprite.
#[derive(Debug, Clone)]
pub struct KeepBase {
    pub keep: RefName,
    pub commit: Oid,
}

/// Lets the commit of a sprite go.
#[derive(Debug, Clone)]
pub struct ReleaseBase {
    pub keep: RefName,
    pub commit: Oid,
}

/// Takes the branches of a sprite over.
#[derive(Debug, Clone)]
pub struct Import {
    /// Parents before their children.
    pub branches: Vec<Imported>,
}

/// One branch that a sprite made or moved. Its commits are in the repository already.
#[derive(Debug, Clone)]
pub struct Imported {
    pub branch: BranchName,
    /// Where the branch was when the sprite last had it.
    pub expected: Expected,
    pub tip: Oid,
    pub parent: BranchName,
    /// Where it leaves its parent.
    pub base: Oid,
}

/// The ref that keeps the base of a sprite.
pub fn base_ref(sprite: &str) -> Result<RefName, NameError> {
    RefName::new(format!("refs/lattice/sprites/{sprite}/base"))
}

const LOCAL_REFS: &[Capability] =
    &[Capability::RepoOpen, Capability::TrunkKnown, Capability::NoLatticeOpInProgress, Capability::RefsWritable];

impl Command for KeepBase {
    const NAME: &'static str = "run";
    const REQUIRES: &'static [Capability] = LOCAL_REFS;

    fn plan(&self, _: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let to = Some(Place::Object(self.commit));
        let step = Step::SetRef { name: self.keep.clone(), expected: Expected::Absent, to };
        Ok(Plan::new(Self::NAME, Hooks::Run).then(step).verified())
    }
}

impl Command for ReleaseBase {
    const NAME: &'static str = "sprite destroy";
    const REQUIRES: &'static [Capability] = LOCAL_REFS;

    fn plan(&self, _: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let step = Step::SetRef { name: self.keep.clone(), expected: Expected::At(self.commit), to: None };
        Ok(Plan::new(Self::NAME, Hooks::Run).then(step).verified())
    }
}

impl Command for Import {
    const NAME: &'static str = "import";
    const REQUIRES: &'static [Capability] = METADATA_ONLY;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let moved = self.branches.iter().map(|imported| &imported.branch);
        scope::occupied(snapshot, moved.filter(|branch| snapshot.tip(branch).is_some()))
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let trunk = snapshot.settings.trunk.clone().expect("bug: the gate requires a trunk");
        let mut plan = Plan::new(Self::NAME, Hooks::Run);
        for imported in &self.branches {
            let Imported { branch, expected, tip, parent, base } = imported;
            if *branch == trunk {
                return Err(Refusal::new("trunk-import", "a sprite cannot move the trunk"));
            }
            if snapshot.tip(branch) != expected.value() {
                return Err(Refusal::new("branch-moved", format!("`{branch}` is not where the sprite left it"))
                    .hint(format!("lattice info {}", branch.word())));
            }
            let to = Some(Place::Object(*tip));
            plan.steps.push(Step::SetRef { name: branch.branch_ref(), expected: *expected, to });
            let known = snapshot
                .tracked()
                .find(|(metadata, _)| metadata.name == *branch)
                .map(|(metadata, _)| draft_of(metadata));
            let document = known.unwrap_or_else(|| MetadataDraft {
                parent: Parent::of(parent, &trunk),
                base: Place::Object(*base),
                freeze: FreezeDraft::Keep(FreezeState::Unfrozen {}),
                pr: PrState::None {},
                created_at: None,
            });
            let expected = expected_metadata(snapshot, branch);
            plan.steps.push(Step::SetMetadata { branch: branch.clone(), expected, document });
        }
        let made = |name: &BranchName| self.branches.iter().any(|imported| imported.branch == *name);
        let parents: BTreeSet<_> = self.branches.iter().map(|imported| &imported.parent).collect();
        for parent in parents.into_iter().filter(|parent| !made(parent)) {
            let expected = Expected::from_option(snapshot.tip(parent));
            plan.steps.push(Step::Guard { name: parent.branch_ref(), expected });
        }
        Ok(plan.verified())
    }
}
