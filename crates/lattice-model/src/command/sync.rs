//! `sync`: fetches, moves the trunk forward, and tidies up after what landed.

use std::collections::{BTreeMap, BTreeSet};

use crate::branch::Parent;
use crate::capability::Capability;
use crate::doctor::host;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::host::HostFacts;
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, Kept, MetadataDraft, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::rewrite::{draft_of, expected_metadata};
use super::scope;

/// Why a landed branch stays that was to be deleted.
pub const ELSEWHERE: &str = "landed, checked out in another worktree";
/// The same of the current branch, where the trunk cannot take its place.
pub const NOWHERE_TO_GO: &str = "landed, checked out here, and the trunk in another worktree";

/// What begins with a look at the remote: everything that what follows needs, so that nothing is begun in vain.
const FETCHES: &[Capability] = &[
    Capability::RepoOpen,
    Capability::TrunkKnown,
    Capability::NoLatticeOpInProgress,
    Capability::NoExternalGitOpInProgress,
    Capability::MetadataReadable,
    Capability::GraphValid,
    Capability::HistoryComplete,
    Capability::BranchesFree,
    Capability::RefsWritable,
    Capability::RemoteResolved,
    Capability::AuthAvailable,
    Capability::RepoAuthorized,
];

/// Brings the remote-tracking refs up to date. The beginning of other commands.
#[derive(Debug, Clone)]
pub struct Fetch {
    pub command: &'static str,
    pub host: HostFacts,
}

impl Command for Fetch {
    const NAME: &'static str = "fetch";
    const REQUIRES: &'static [Capability] = FETCHES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        host::issues(&self.host, &snapshot.settings.forge.github)
    }

    fn plan(&self, _ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let remote = self.host.remote.name().to_owned();
        Ok(Plan::new(self.command, Hooks::Run).verified().then(Step::Fetch { remote }))
    }
}

/// Where the remote's trunk stands, seen from the local one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrunkRelation {
    /// The remote has no such branch, or the same commit, or less.
    NothingNew,
    Ahead(Oid),
    Diverged(Oid),
}

/// Moves the local trunk forward, tidies up after landed branches, and deletes those that the user lets go.
#[derive(Debug, Clone)]
pub struct Sync {
    pub trunk: TrunkRelation,
    /// How many commits of each branch, from the lowest, the trunk has.
    pub landed: BTreeMap<BranchName, usize>,
    pub delete: BTreeSet<BranchName>,
    pub hooks: Hooks,
    pub host: HostFacts,
}

impl Command for Sync {
    const NAME: &'static str = "sync";
    const REQUIRES: &'static [Capability] = super::submit::HOSTED;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let mut issues = host::issues(&self.host, &snapshot.settings.forge.github);
        if let (Some(trunk), TrunkRelation::Ahead(_)) = (&snapshot.settings.trunk, self.trunk) {
            issues.extend(scope::out_of_reach(snapshot, trunk));
        }
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let (trunk, tip) = snapshot.trunk().expect("bug: the gate found the trunk");
        let mut plan = Plan::new(Self::NAME, self.hooks);
        match self.trunk {
            TrunkRelation::NothingNew => {}
            TrunkRelation::Ahead(to) => plan.steps.push(Step::SetRef {
                name: trunk.branch_ref(),
                expected: Expected::At(tip),
                to: Some(Place::Object(to)),
            }),
            TrunkRelation::Diverged(there) => {
                let summary = format!("`{trunk}` has commits that the remote does not have, and the remote has others");
                return Err(Refusal::new("trunk-diverged", summary)
                    .hint(format!("the remote's is at {}; yours was not moved", there.short()))
                    .hint(scope::own_commits(there, trunk)));
            }
        }
        self.tidy(snapshot, trunk, &mut plan);
        Ok(plan.verified())
    }
}

impl Sync {
    /// A request that would change nothing, to see what is in its way.
    pub fn probe(host: HostFacts, hooks: Hooks) -> Self {
        let (trunk, landed, delete) = (TrunkRelation::NothingNew, BTreeMap::new(), BTreeSet::new());
        Self { trunk, landed, delete, hooks, host }
    }

    fn has_landed(&self, snapshot: &Snapshot, branch: &BranchName) -> bool {
        let own = snapshot.position(branch).map_or(0, |position| position.commits.len());
        self.landed.get(branch).is_some_and(|landed| *landed > 0 && *landed >= own)
    }

    /// Landed branches let go of what stands on them; partly landed ones keep only the rest as their own.
    fn tidy(&self, snapshot: &Snapshot, trunk: &BranchName, plan: &mut Plan) {
        let graph = snapshot.graph();
        for branch in graph.topological() {
            let Some((metadata, _)) = snapshot.metadata_of(&branch) else { continue };
            let expected = expected_metadata(snapshot, &branch);
            if self.has_landed(snapshot, &branch) {
                self.let_go(snapshot, trunk, &branch, plan);
                continue;
            }
            let mut document = draft_of(metadata);
            if self.has_landed(snapshot, metadata.parent.name()) {
                document.parent = Parent::of(&self.standing_below(snapshot, &branch, trunk), trunk);
            }
            if let Some(base) = self.last_landed(snapshot, &branch) {
                document.base = Place::Object(base);
            }
            if document != draft_of(metadata) {
                plan.steps.push(Step::SetMetadata { branch: branch.clone(), expected, document });
            }
        }
    }

    /// The first branch below that has not landed.
    fn standing_below(&self, snapshot: &Snapshot, branch: &BranchName, trunk: &BranchName) -> BranchName {
        let below = snapshot.graph().downstack(branch);
        below.into_iter().rev().find(|below| !self.has_landed(snapshot, below)).unwrap_or_else(|| trunk.clone())
    }

    /// The newest commit of a partly landed branch that the trunk has.
    fn last_landed(&self, snapshot: &Snapshot, branch: &BranchName) -> Option<Oid> {
        let landed = self.landed.get(branch).copied().filter(|landed| *landed > 0)?;
        snapshot.position(branch)?.commits.iter().rev().nth(landed - 1).copied()
    }

    /// Whether a branch is deleted.
    fn goes(&self, snapshot: &Snapshot, branch: &BranchName) -> bool {
        self.has_landed(snapshot, branch) && self.why_it_stays(snapshot, branch).is_none()
    }

    fn why_it_stays(&self, snapshot: &Snapshot, branch: &BranchName) -> Option<&'static str> {
        if !self.delete.contains(branch) {
            return Some("landed");
        }
        if !scope::occupied(snapshot, [branch]).is_empty() {
            return Some(ELSEWHERE);
        }
        let is_here = snapshot.head.branch() == Some(branch);
        (is_here && !scope::occupied(snapshot, &snapshot.settings.trunk).is_empty()).then_some(NOWHERE_TO_GO)
    }

    /// A landed branch that stays stands on what stays below it.
    fn put_down(&self, snapshot: &Snapshot, trunk: &BranchName, branch: &BranchName) -> Option<Step> {
        let (metadata, _) = snapshot.metadata_of(branch)?;
        if !self.goes(snapshot, metadata.parent.name()) {
            return None;
        }
        let mut below = snapshot.graph().downstack(branch).into_iter().rev();
        let below = below.find(|below| !self.goes(snapshot, below)).unwrap_or_else(|| trunk.clone());
        let document = MetadataDraft { parent: Parent::of(&below, trunk), ..draft_of(metadata) };
        let expected = expected_metadata(snapshot, branch);
        Some(Step::SetMetadata { branch: branch.clone(), expected, document })
    }

    fn let_go(&self, snapshot: &Snapshot, trunk: &BranchName, branch: &BranchName, plan: &mut Plan) {
        if let Some(reason) = self.why_it_stays(snapshot, branch) {
            plan.kept.push(Kept { branch: branch.clone(), reason: reason.to_owned() });
            plan.steps.extend(self.put_down(snapshot, trunk, branch));
            return;
        }
        let tip = Expected::from_option(snapshot.tip(branch));
        plan.steps.push(Step::SetRef { name: branch.branch_ref(), expected: tip, to: None });
        let metadata = expected_metadata(snapshot, branch);
        plan.steps.push(Step::SetRef { name: branch.metadata_ref(), expected: metadata, to: None });
        if snapshot.head.branch() == Some(branch) {
            plan.steps.push(Step::Switch { to: HeadValue::Branch(trunk.clone()) });
        }
    }
}
