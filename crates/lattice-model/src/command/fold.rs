//! `fold`: makes one branch of a branch and its parent.

use crate::branch::Parent;
use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::restack::{Restack, claimed};
use super::rewrite::{Rewriting, draft_of, expected_metadata};
use super::scope;

#[derive(Debug, Clone)]
pub struct Fold {
    pub name: KeptName,
    pub hooks: Hooks,
}

/// Which of the two names the branch has afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptName {
    Parent,
    Current,
}

impl Command for Fold {
    const NAME: &'static str = "fold";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let branch = match scope::tracked(snapshot, None) {
            Ok(branch) => branch,
            Err(issue) => return vec![issue],
        };
        let (metadata, _) = snapshot.metadata_of(&branch).expect("bug: tracked branches have metadata");
        let both = [branch.clone(), metadata.parent.name().clone()];
        let mut issues: Vec<_> = both.iter().filter_map(|branch| scope::frozen(snapshot, branch)).collect();
        if let Ok(plan) = self.planned(snapshot, &branch) {
            issues.extend(scope::occupied(snapshot, claimed(&plan).iter()));
        }
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::tracked(snapshot, None).expect("bug: the gate resolved the scope");
        self.planned(snapshot, &branch)
    }
}

impl Fold {
    fn planned(&self, snapshot: &Snapshot, branch: &BranchName) -> Result<Plan, Refusal> {
        let (metadata, _) = snapshot.metadata_of(branch).expect("bug: tracked branches have metadata");
        let Parent::Branch(parent) = &metadata.parent else {
            return Err(Refusal::new(
                "on-trunk",
                format!("`{branch}` stands on the trunk, which nothing is folded into"),
            )
            .hint("lattice squash makes one commit of its commits"));
        };
        if snapshot.metadata_of(parent).is_none() {
            let text = format!("`{branch}` stands on `{parent}`, which is not tracked and so is left alone");
            return Err(Refusal::new("parent-untracked", text)
                .hint(format!("lattice track {} --parent <branch below>, then fold", parent.word())));
        }
        if snapshot.needs_restack(branch) {
            return Err(Refusal::new("needs-restack", format!("`{branch}` does not stand on the tip of `{parent}`"))
                .hint("lattice restack, then fold"));
        }
        match self.name {
            KeptName::Parent => self.to_parent(snapshot, branch, parent),
            KeptName::Current => self.in_place_of_parent(snapshot, branch, parent),
        }
    }

    /// The parent takes the commits; what stands on the branch stands on the parent then.
    fn to_parent(&self, snapshot: &Snapshot, branch: &BranchName, parent: &BranchName) -> Result<Plan, Refusal> {
        let tip = snapshot.tip(branch).expect("bug: tracked branches exist");
        let parent_tip = Expected::from_option(snapshot.tip(parent));
        let to = Some(Place::Object(tip));
        let plan = Plan::new(Self::NAME, self.hooks)
            .then(Step::SetRef { name: parent.branch_ref(), expected: parent_tip, to })
            .then(Step::SetRef { name: branch.branch_ref(), expected: Expected::At(tip), to: None })
            .then(Step::SetRef {
                name: branch.metadata_ref(),
                expected: expected_metadata(snapshot, branch),
                to: None,
            });
        let graph = snapshot.graph();
        let mut rewriting = Rewriting::new(snapshot);
        rewriting.made_at(parent, tip);
        for child in graph.children(branch) {
            rewriting.parent_changes(child, Parent::Branch(parent.clone()));
        }
        for above in graph.upstack(parent).iter().filter(|above| *above != branch) {
            rewriting.bring(above)?;
        }
        let plan = rewriting.finish(plan);
        Ok(plan.then(Step::Switch { to: HeadValue::Branch(parent.clone()) }).verified())
    }

    /// The branch takes the parent's place; its commits are already on top of the parent's.
    fn in_place_of_parent(
        &self,
        snapshot: &Snapshot,
        branch: &BranchName,
        parent: &BranchName,
    ) -> Result<Plan, Refusal> {
        let (below, _) = snapshot.metadata_of(parent).expect("bug: only a tracked parent is folded into");
        let (metadata, _) = snapshot.metadata_of(branch).expect("bug: tracked branches have metadata");
        let tip = snapshot.tip(branch).expect("bug: tracked branches exist");
        let mut document = draft_of(metadata);
        document.parent = below.parent.clone();
        document.base = Place::Object(below.base);
        let plan = Plan::new(Self::NAME, self.hooks)
            .then(Step::SetMetadata { branch: branch.clone(), expected: expected_metadata(snapshot, branch), document })
            .then(Step::Guard { name: branch.branch_ref(), expected: Expected::At(tip) })
            .then(Step::SetRef {
                name: parent.branch_ref(),
                expected: Expected::from_option(snapshot.tip(parent)),
                to: None,
            })
            .then(Step::SetRef {
                name: parent.metadata_ref(),
                expected: expected_metadata(snapshot, parent),
                to: None,
            });
        let graph = snapshot.graph();
        let mut rewriting = Rewriting::new(snapshot);
        let beside: Vec<_> = graph.children(parent).filter(|child| *child != branch).cloned().collect();
        for child in &beside {
            rewriting.parent_changes(child, Parent::Branch(branch.clone()));
        }
        for above in beside.iter().flat_map(|child| std::iter::once(child.clone()).chain(graph.upstack(child))) {
            rewriting.bring(&above)?;
        }
        Ok(rewriting.finish(plan).verified())
    }
}
