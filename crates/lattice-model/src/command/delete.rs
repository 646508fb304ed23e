//! `delete` and `pop`: take branches out of a stack.

use std::collections::BTreeSet;

use crate::branch::Parent;
use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, Plan, Step};
use crate::snapshot::Snapshot;

use super::restack::Restack;
use super::rewrite::{Rewriting, expected_metadata};
use super::scope;

/// Removes branches; what stands on them moves to what is below them, without their commits.
#[derive(Debug, Clone)]
pub struct Delete {
    pub branch: Option<BranchName>,
    pub reach: DeleteReach,
    pub hooks: Hooks,
}

/// Which branches go besides the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteReach {
    Only,
    Upstack,
    Downstack,
}

/// Removes the current branch and leaves its changes in the working tree, staged.
#[derive(Debug, Clone)]
pub struct Pop {
    pub hooks: Hooks,
}

impl Command for Delete {
    const NAME: &'static str = "delete";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        match scope::tracked(snapshot, self.branch.as_ref()) {
            Ok(branch) => check_removal(snapshot, &self.removed(snapshot, &branch)),
            Err(issue) => vec![issue],
        }
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::tracked(snapshot, self.branch.as_ref()).expect("bug: the gate resolved the scope");
        let removed = self.removed(snapshot, &branch);
        let mut plan = removal(snapshot, &removed, Plan::new(Self::NAME, self.hooks))?;
        if let Some(current) = snapshot.head.branch().filter(|current| removed.contains(*current)) {
            plan.steps.push(Step::Switch { to: HeadValue::Branch(surviving(snapshot, current, &removed)) });
        }
        Ok(plan.verified())
    }
}

impl Delete {
    fn removed(&self, snapshot: &Snapshot, branch: &BranchName) -> BTreeSet<BranchName> {
        let graph = snapshot.graph();
        let more = match self.reach {
            DeleteReach::Only => Vec::new(),
            DeleteReach::Upstack => graph.upstack(branch),
            DeleteReach::Downstack => graph.downstack(branch),
        };
        more.into_iter().chain([branch.clone()]).collect()
    }
}

impl Command for Pop {
    const NAME: &'static str = "pop";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        match scope::tracked(snapshot, None) {
            Ok(branch) => check_removal(snapshot, &BTreeSet::from([branch])),
            Err(issue) => vec![issue],
        }
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::tracked(snapshot, None).expect("bug: the gate resolved the scope");
        if snapshot.needs_restack(&branch) {
            return Err(Refusal::new(
                "needs-restack",
                format!(
                    "`{branch}` does not stand on the tip of its parent; its changes would come out mixed with others"
                ),
            )
            .hint("lattice restack --only, then pop"));
        }
        let removed = BTreeSet::from([branch.clone()]);
        let below = surviving(snapshot, &branch, &removed);
        let plan = removal(snapshot, &removed, Plan::new(Self::NAME, self.hooks))?;
        Ok(plan.then(Step::LeaveFiles { to: HeadValue::Branch(below) }).verified())
    }
}

fn check_removal(snapshot: &Snapshot, removed: &BTreeSet<BranchName>) -> Vec<Issue> {
    let mut issues: Vec<_> = removed.iter().filter_map(|branch| scope::frozen(snapshot, branch)).collect();
    // Where the current branch goes, HEAD goes to the one below.
    let current = snapshot.head.branch().filter(|current| removed.contains(*current));
    let below = current.map(|current| surviving(snapshot, current, removed));
    issues.extend(scope::occupied(snapshot, removed.iter().chain(&below)));
    issues
}

/// The nearest branch below that stays.
fn surviving(snapshot: &Snapshot, branch: &BranchName, removed: &BTreeSet<BranchName>) -> BranchName {
    let mut below = branch.clone();
    while removed.contains(&below) {
        let (metadata, _) = snapshot.metadata_of(&below).expect("bug: only tracked branches are removed");
        below = metadata.parent.name().clone();
    }
    below
}

fn removal(snapshot: &Snapshot, removed: &BTreeSet<BranchName>, plan: Plan) -> Result<Plan, Refusal> {
    let graph = snapshot.graph();
    let trunk = snapshot.settings.trunk.clone().expect("bug: the gate requires a trunk");
    let mut rewriting = Rewriting::new(snapshot);
    for child in removed.iter().flat_map(|branch| graph.children(branch)).filter(|child| !removed.contains(*child)) {
        rewriting
            .parent_changes(child, Parent::of(&surviving(snapshot, child_parent(snapshot, child), removed), &trunk));
    }
    let above: BTreeSet<_> = removed.iter().flat_map(|branch| graph.upstack(branch)).collect();
    for branch in graph.all().iter().filter(|branch| above.contains(*branch) && !removed.contains(*branch)) {
        rewriting.bring(branch)?;
    }
    let mut plan = rewriting.finish(plan);
    if let Some(kept) = plan.kept.first() {
        return Err(scope::kept_in_the_way(kept));
    }
    for branch in removed {
        let tip = Expected::from_option(snapshot.tip(branch));
        plan.steps.push(Step::SetRef { name: branch.branch_ref(), expected: tip, to: None });
        let expected = expected_metadata(snapshot, branch);
        plan.steps.push(Step::SetRef { name: branch.metadata_ref(), expected, to: None });
    }
    Ok(plan)
}

fn child_parent<'a>(snapshot: &'a Snapshot, child: &BranchName) -> &'a BranchName {
    let (metadata, _) = snapshot.metadata_of(child).expect("bug: children are tracked");
    metadata.parent.name()
}
