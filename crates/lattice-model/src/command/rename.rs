//! `rename`: gives the current branch another name.

use crate::branch::Parent;
use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::restack::Restack;
use super::rewrite::{draft_of, expected_metadata};
use super::scope;

#[derive(Debug, Clone)]
pub struct Rename {
    pub name: BranchName,
    pub hooks: Hooks,
}

impl Command for Rename {
    const NAME: &'static str = "rename";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        match scope::tracked(snapshot, None) {
            Ok(branch) => scope::frozen(snapshot, &branch).into_iter().collect(),
            Err(issue) => vec![issue],
        }
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let old = scope::tracked(snapshot, None).expect("bug: the gate resolved the scope");
        scope::check_new_name(snapshot, &self.name)?;
        let (metadata, _) = snapshot.metadata_of(&old).expect("bug: tracked branches have metadata");
        let tip = snapshot.tip(&old).expect("bug: tracked branches exist");
        let to = Some(Place::Object(tip));
        let mut plan = Plan::new(Self::NAME, self.hooks)
            .then(Step::SetRef { name: self.name.branch_ref(), expected: Expected::Absent, to })
            .then(Step::SetRef { name: old.branch_ref(), expected: Expected::At(tip), to: None })
            .then(Step::SetMetadata {
                branch: self.name.clone(),
                expected: Expected::Absent,
                document: draft_of(metadata),
            })
            .then(Step::SetRef { name: old.metadata_ref(), expected: expected_metadata(snapshot, &old), to: None });
        for child in snapshot.graph().children(&old) {
            let (metadata, _) = snapshot.metadata_of(child).expect("bug: children are tracked");
            let mut document = draft_of(metadata);
            document.parent = Parent::Branch(self.name.clone());
            let expected = expected_metadata(snapshot, child);
            plan.steps.push(Step::SetMetadata { branch: child.clone(), expected, document });
        }
        plan.steps.push(Step::MoveOptions { from: old, to: self.name.clone() });
        Ok(plan.then(Step::Switch { to: HeadValue::Branch(self.name.clone()) }).verified())
    }
}
