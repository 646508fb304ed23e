//! `reorder`: puts the branches of a stack into another order.

use std::collections::BTreeSet;

use crate::branch::Parent;
use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Hooks, Plan};
use crate::snapshot::Snapshot;

use super::restack::{Restack, claimed};
use super::rewrite::Rewriting;
use super::scope;

#[derive(Debug, Clone)]
pub struct Reorder {
    /// All branches of the line, bottom first.
    pub order: Vec<BranchName>,
    pub hooks: Hooks,
}

/// The branches that can be put into another order, bottom first: from the trunk through the current branch up to
/// where the stack ends or forks.
pub fn line(snapshot: &Snapshot, current: &BranchName) -> Vec<BranchName> {
    let graph = snapshot.graph();
    let mut line = graph.downstack(current);
    let mut top = current.clone();
    loop {
        line.push(top.clone());
        let children: Vec<_> = graph.children(&top).cloned().collect();
        match &children[..] {
            [only] if !line.contains(only) => top = only.clone(),
            _ => return line,
        }
    }
}

impl Command for Reorder {
    const NAME: &'static str = "reorder";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let current = match scope::tracked(snapshot, None) {
            Ok(current) => current,
            Err(issue) => return vec![issue],
        };
        let line = line(snapshot, &current);
        let same = line.iter().zip(&self.order).take_while(|(old, new)| old == new).count();
        let mut issues: Vec<_> = line[same..].iter().filter_map(|branch| scope::frozen(snapshot, branch)).collect();
        if let Ok(plan) = self.planned(snapshot, &line) {
            issues.extend(scope::occupied(snapshot, claimed(&plan).iter()));
        }
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let current = scope::tracked(snapshot, None).expect("bug: the gate resolved the scope");
        self.planned(snapshot, &line(snapshot, &current))
    }
}

impl Reorder {
    fn planned(&self, snapshot: &Snapshot, line: &[BranchName]) -> Result<Plan, Refusal> {
        self.check_list(line)?;
        let trunk = snapshot.settings.trunk.clone().expect("bug: the gate requires a trunk");
        let mut rewriting = Rewriting::new(snapshot);
        let metadata_of = |branch| snapshot.metadata_of(branch).expect("bug: the line is tracked").0;
        // The trunk, or a branch that is not tracked.
        let mut below = metadata_of(&line[0]).parent.name().clone();
        for branch in &self.order {
            let metadata = metadata_of(branch);
            if *metadata.parent.name() != below {
                rewriting.parent_changes(branch, Parent::of(&below, &trunk));
            }
            rewriting.bring(branch)?;
            below = branch.clone();
        }
        let above = snapshot.graph().upstack(&line[0]);
        for branch in above.iter().filter(|branch| !line.contains(branch)) {
            rewriting.bring(branch)?;
        }
        Ok(rewriting.finish(Plan::new(Self::NAME, self.hooks)).verified())
    }

    /// The list must name each branch of the line once and nothing else.
    fn check_list(&self, line: &[BranchName]) -> Result<(), Refusal> {
        let names = |branches: Vec<&BranchName>| {
            let names: Vec<_> = branches.into_iter().map(BranchName::as_str).collect();
            names.join(", ")
        };
        let mut seen = BTreeSet::new();
        let twice: Vec<_> = self.order.iter().filter(|branch| !seen.insert(*branch)).collect();
        let strangers: Vec<_> = self.order.iter().filter(|branch| !line.contains(branch)).collect();
        let missing: Vec<_> = line.iter().filter(|branch| !self.order.contains(branch)).collect();
        let problem = match (twice.is_empty(), strangers.is_empty(), missing.is_empty()) {
            (false, _, _) => format!("the list has {} more than once", names(twice)),
            (_, false, _) => format!("{} is not part of this line of branches", names(strangers)),
            (_, _, false) => format!("the list leaves out {}", names(missing)),
            (true, true, true) => return Ok(()),
        };
        let all: Vec<_> = line.iter().map(BranchName::as_str).collect();
        Err(Refusal::new("bad-order", problem)
            .hint(format!("name each of these once, the lowest first: --order {}", all.join(","))))
    }
}
