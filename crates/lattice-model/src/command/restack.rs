//! `restack`: brings branches onto their parents' tips, all levels.

use std::collections::{BTreeMap, BTreeSet};

use crate::branch::Parent;
use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Hooks, NewValue, OnConflict, Plan, Step, TouchedRef};
use crate::snapshot::Snapshot;

use super::rewrite::Rewriting;
use super::scope;

/// Which branches, seen from the one that was named or is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Only,
    Upstack,
    Downstack,
    Stack,
}

#[derive(Debug, Clone)]
pub struct Restack {
    /// The current branch if absent; on the trunk that means every stack.
    pub branch: Option<BranchName>,
    pub reach: Reach,
    /// Branches in reach that stay where they are, because they have landed.
    pub landed: BTreeSet<BranchName>,
    pub hooks: Hooks,
}

impl Restack {
    /// One that leaves nothing out.
    pub fn new(branch: Option<BranchName>, reach: Reach, hooks: Hooks) -> Self {
        Self { branch, reach, landed: BTreeSet::new(), hooks }
    }

    fn start(&self, snapshot: &Snapshot) -> Result<BranchName, Issue> {
        let branch = scope::named_or_current(snapshot, self.branch.as_ref())?;
        if snapshot.is_trunk(&branch) {
            return Ok(branch);
        }
        scope::tracked(snapshot, Some(&branch))
    }

    /// The branches in reach, parents before children.
    fn branches(&self, snapshot: &Snapshot, start: &BranchName) -> Vec<BranchName> {
        let graph = snapshot.graph();
        if snapshot.is_trunk(start) {
            return graph.topological();
        }
        let mut branches = match self.reach {
            Reach::Downstack | Reach::Stack => graph.downstack(start),
            Reach::Only | Reach::Upstack => Vec::new(),
        };
        branches.push(start.clone());
        if matches!(self.reach, Reach::Upstack | Reach::Stack) {
            branches.extend(graph.upstack(start));
        }
        branches
    }
}

impl Command for Restack {
    const NAME: &'static str = "restack";
    const REQUIRES: &'static [Capability] = &[
        Capability::RepoOpen,
        Capability::TrunkKnown,
        Capability::NoLatticeOpInProgress,
        Capability::NoExternalGitOpInProgress,
        Capability::MetadataReadable,
        Capability::GraphValid,
        Capability::ScopeResolved,
        Capability::FrozenPolicySatisfied,
        Capability::WorkingDirectoryAvailable,
        Capability::HistoryComplete,
        Capability::BranchesFree,
        Capability::RefsWritable,
    ];

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let start = match self.start(snapshot) {
            Ok(start) => start,
            Err(issue) => return vec![issue],
        };
        let mut issues = Vec::new();
        // A frozen branch elsewhere in reach is a fixed base and is kept; one that the user
        // asked to restack is a contradiction.
        if snapshot.needs_restack(&start) {
            issues.extend(scope::frozen(snapshot, &start));
        }
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let start = self.start(snapshot).expect("bug: the gate resolved the scope");
        let mut branches = self.branches(snapshot, &start);
        branches.retain(|branch| !self.landed.contains(branch));
        planned(snapshot, &branches, self.hooks)
    }
}

fn planned(snapshot: &Snapshot, branches: &[BranchName], hooks: Hooks) -> Result<Plan, Refusal> {
    let mut rewriting = Rewriting::new(snapshot);
    for branch in branches {
        if snapshot.metadata_of(branch).is_some() && snapshot.tip(branch).is_some() {
            if snapshot.metadata_of(branch).is_some_and(|(m, _)| snapshot.tip(m.parent.name()).is_none()) {
                continue;
            }
            rewriting.bring(branch)?;
        }
    }
    let mut plan = rewriting.finish(Plan::new(Restack::NAME, hooks)).verified();
    if stacks(snapshot, &plan) > 1 {
        plan.on_conflict = OnConflict::SkipStack;
    }
    Ok(plan)
}

/// How many stacks a plan rewrites something of.
fn stacks(snapshot: &Snapshot, plan: &Plan) -> usize {
    // The lowest branch of the stack, for each branch that was seen; no part of a stack is walked twice.
    let mut lowest: BTreeMap<&BranchName, &BranchName> = BTreeMap::new();
    let mut stacks = BTreeSet::new();
    for step in &plan.steps {
        let Step::Rewrite { branch, .. } = step else { continue };
        let (mut at, mut walked) = (branch, vec![branch]);
        let bottom = loop {
            if let Some(known) = lowest.get(at) {
                break *known;
            }
            match snapshot.metadata_of(at).map(|(metadata, _)| &metadata.parent) {
                Some(Parent::Branch(below)) if snapshot.is_tracked(below) => at = below,
                Some(Parent::Branch(_) | Parent::Trunk(_)) | None => break at,
            }
            walked.push(at);
        };
        lowest.extend(walked.into_iter().map(|branch| (branch, bottom)));
        stacks.insert(bottom);
    }
    stacks.len()
}

/// The branches whose tips a plan changes.
pub(super) fn rewritten(plan: &Plan) -> Vec<BranchName> {
    plan.touched_refs().iter().filter_map(|touched| touched.name.as_branch()).collect()
}

/// The branches that no other worktree may have: those that a plan removes, since a worktree follows a branch that moves
/// but not one that is gone, and those that it checks out here.
pub(super) fn claimed(plan: &Plan) -> Vec<BranchName> {
    let is_gone = |touched: &&TouchedRef| touched.new == NewValue::Known(None);
    let touched = plan.touched_refs();
    let gone = touched.iter().filter(is_gone).filter_map(|gone| gone.name.as_branch());
    gone.chain(plan.steps.iter().filter_map(Step::head).cloned()).collect()
}
