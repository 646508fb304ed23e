//! `move`: puts a branch and everything above it onto another parent.

use crate::branch::Parent;
use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::history::Ancestry;
use crate::issue::{Issue, IssueKind, evidence};
use crate::name::BranchName;
use crate::plan::{Hooks, Plan};
use crate::snapshot::Snapshot;

use super::restack::{Restack, claimed, rewritten};
use super::rewrite::Rewriting;
use super::scope;

#[derive(Debug, Clone)]
pub struct Move {
    pub source: Option<BranchName>,
    pub onto: BranchName,
    pub hooks: Hooks,
}

impl Command for Move {
    const NAME: &'static str = "move";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let source = match scope::tracked(snapshot, self.source.as_ref()) {
            Ok(source) => source,
            Err(issue) => return vec![issue],
        };
        let known = snapshot.is_tracked(&self.onto) || snapshot.is_trunk(&self.onto);
        if !known || snapshot.tip(&self.onto).is_none() {
            let facts = evidence([("branch", self.onto.to_string())]);
            let summary = format!("`{}` is neither the trunk nor a tracked branch", self.onto);
            return vec![Issue::new(IssueKind::ScopeUnresolved, summary, facts).action(
                "track",
                "track it first",
                format!("lattice track {} --parent <branch below>", self.onto.word()),
            )];
        }
        let mut issues: Vec<_> = scope::frozen(snapshot, &source).into_iter().collect();
        if let Ok(plan) = self.planned(snapshot, &source) {
            issues.extend(scope::occupied(snapshot, claimed(&plan).iter()));
        }
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let source = scope::tracked(snapshot, self.source.as_ref()).expect("bug: the gate resolved the scope");
        self.planned(snapshot, &source)
    }
}

/// The plan that puts a branch without a parent, and everything above it, onto the trunk; `None` where that is already
/// so or cannot be done without asking more.
pub(crate) fn rescue(snapshot: &Snapshot, branch: &BranchName, trunk: &BranchName) -> Option<Plan> {
    snapshot.tip(trunk)?;
    let mut rewriting = Rewriting::new(snapshot);
    rewriting.parent_changes(branch, Parent::Trunk(trunk.clone()));
    for moving in std::iter::once(branch.clone()).chain(snapshot.graph().upstack(branch)) {
        // Without its base below it, nobody knows which commits are a branch's own.
        snapshot.tip(&moving)?;
        snapshot.position(&moving)?.base.filter(|base| *base == Ancestry::Ancestor)?;
        rewriting.bring(&moving).ok()?;
    }
    let plan = rewriting.finish(Plan::new("doctor", Hooks::Run)).verified();
    let moved = rewritten(&plan);
    let free = scope::occupied(snapshot, moved.iter()).is_empty();
    let thawed = moved.contains(branch);
    (free && thawed).then_some(plan)
}

impl Move {
    fn planned(&self, snapshot: &Snapshot, source: &BranchName) -> Result<Plan, Refusal> {
        let graph = snapshot.graph();
        let above = graph.upstack(source);
        if self.onto == *source || above.contains(&self.onto) {
            return Err(Refusal::new(
                "move-onto-itself",
                format!("`{source}` cannot stand on `{}`, which is {source} itself or above it", self.onto),
            )
            .hint("pick a branch that is not part of what is moved"));
        }
        let trunk = snapshot.settings.trunk.clone().expect("bug: the gate requires a trunk");
        let mut rewriting = Rewriting::new(snapshot);
        rewriting.parent_changes(source, Parent::of(&self.onto, &trunk));
        rewriting.bring(source)?;
        for branch in &above {
            rewriting.bring(branch)?;
        }
        Ok(rewriting.finish(Plan::new(Self::NAME, self.hooks)).verified())
    }
}
