//! `merge`: lands the lowest pull request of a stack.

use crate::capability::Capability;
use crate::doctor::host;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::host::{Draft, HostAction, HostFacts, Pull, PullState, Through};
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, Plan, Step};
use crate::remote::MergeMethod;
use crate::snapshot::Snapshot;

use super::scope;

/// Lands one branch that stands on the trunk.
#[derive(Debug, Clone)]
pub struct Merge {
    pub branch: BranchName,
    /// What is to land after it. Nothing lands while it is known of one of them that it would not.
    pub then: Vec<BranchName>,
    pub method: MergeMethod,
    pub trunk: TrunkFollows,
    pub host: HostFacts,
}

/// Whether the local trunk can go where the remote's goes when something lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrunkFollows {
    Forward,
    /// It has commits that the remote's does not have, which is here.
    Not {
        there: Oid,
    },
}

impl Command for Merge {
    const NAME: &'static str = "merge";
    const REQUIRES: &'static [Capability] = super::submit::HOSTED;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let mut issues: Vec<_> = scope::tracked(snapshot, Some(&self.branch)).err().into_iter().collect();
        issues.extend(host::issues(&self.host, &snapshot.settings.forge.github));
        // What lands later is brought onto the trunk first.
        issues.extend(self.then.iter().filter_map(|branch| scope::frozen(snapshot, branch)));
        // What landed stays landed, so whatever keeps the trunk here from following is said before.
        issues.extend(snapshot.settings.trunk.iter().filter_map(|trunk| scope::out_of_reach(snapshot, trunk)));
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let (trunk, _) = snapshot.trunk().expect("bug: the gate found the trunk");
        let (metadata, _) = snapshot.metadata_of(&self.branch).expect("bug: tracked branches have metadata");
        if metadata.parent.name() != trunk {
            let below = metadata.parent.name();
            return Err(Refusal::new(
                "not-lowest",
                format!("`{}` stands on `{below}`, which has not landed", self.branch),
            )
            .hint(format!("land that first: lattice merge from {}", below.word())));
        }
        self.host.check_public(&self.branch, trunk)?;
        self.check_trunk(trunk)?;
        let (pull, tip) = self.ready_to_land(snapshot, &self.branch)?;
        for branch in &self.then {
            self.ready_to_land(snapshot, branch)?;
        }
        let guard = Step::Guard { name: self.branch.branch_ref(), expected: Expected::At(tip) };
        let mut plan = Plan::new(Self::NAME, Hooks::Run).then(guard).verified();
        let stack = self.host.stacks.of(pull.number);
        // A host may close what stands on a branch that it deletes, so whatever does is moved first; where the host
        // keeps the stack, moving is its own task.
        for child in snapshot.graph().children(&self.branch) {
            let above = self.host.pulls.get(child).filter(|pull| pull.state == PullState::Open);
            let above = above.filter(|above| stack.is_none_or(|stack| !stack.pulls.contains(&above.number)));
            if let Some(above) = above.filter(|above| above.base != trunk.as_str()) {
                let action = HostAction::UpdatePull {
                    number: above.number,
                    head: child.clone(),
                    base: Some(trunk.clone()),
                    draft: None,
                };
                plan = plan.then(Step::Host { action });
            }
        }
        if pull.base != trunk.as_str() {
            let (head, base) = (self.branch.clone(), Some(trunk.clone()));
            let action = HostAction::UpdatePull { number: pull.number, head, base, draft: None };
            plan = plan.then(Step::Host { action });
        }
        let through = if stack.is_some() { Through::Stack } else { Through::Pull };
        let (number, head, method) = (pull.number, self.branch.clone(), self.method);
        let action = HostAction::MergePull { number, head, at: tip, method, through };
        Ok(plan.then(Step::Host { action }))
    }
}

impl Merge {
    /// Refuses what would leave the local trunk and the remote's with different commits.
    fn check_trunk(&self, trunk: &BranchName) -> Result<(), Refusal> {
        match self.trunk {
            TrunkFollows::Forward => Ok(()),
            TrunkFollows::Not { there } => {
                let summary = format!("`{trunk}` has commits that the remote does not have, and could not follow");
                Err(Refusal::new("trunk-diverged", summary)
                    .hint(format!("the remote's is at {}", there.short()))
                    .hint(scope::own_commits(there, trunk)))
            }
        }
    }

    /// The pull request of a branch and the commit that it would land.
    fn ready_to_land(&self, snapshot: &Snapshot, branch: &BranchName) -> Result<(&Pull, Oid), Refusal> {
        let pull = self.host.pulls.get(branch).filter(|pull| pull.state == PullState::Open);
        let pull = pull.ok_or_else(|| {
            let is_empty = snapshot.position(branch).is_some_and(|position| position.commits.is_empty());
            let landed = self.host.pulls.get(branch).is_some_and(|pull| pull.state == PullState::Merged);
            Refusal::new("no-pull-request", format!("`{branch}` has no open pull request")).hint(match is_empty {
                _ if landed => {
                    "it has landed; lattice sync tidies up, lattice submit pushes the rest, then lattice merge lands it"
                }
                true => "it has no commit of its own; what it stands on lands from there: lattice down, lattice merge",
                false => "lattice submit",
            })
        })?;
        if pull.draft == Draft::Draft {
            return Err(Refusal::new("draft", format!("#{} is a draft", pull.number)).hint("lattice submit --publish"));
        }
        let Some(tip) = snapshot.tip(branch).filter(|tip| pull.head_at == Some(*tip)) else {
            let what = format!("#{} is not at the commit that `{branch}` is at here", pull.number);
            return Err(Refusal::new("not-submitted", what).hint(format!(
                "lattice submit pushes yours, lattice get {} takes in theirs, unless both have commits",
                branch.word()
            )));
        };
        Ok((pull, tip))
    }
}
