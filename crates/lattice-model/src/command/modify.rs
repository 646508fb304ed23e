//! `modify`: amends a branch, or adds a commit to it, and brings what is above along.

use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{CommitMode, Expected, Hooks, Plan, StageMode, Step};
use crate::snapshot::Snapshot;

use super::create::{Pending, missing_message, pending};
use super::restack::{claimed, rewritten};
use super::rewrite::Rewriting;
use super::scope;

#[derive(Debug, Clone)]
pub struct Modify {
    pub message: Option<String>,
    pub stage: Option<StageMode>,
    pub how: ModifyMode,
    /// Another branch of the stack that gets what is staged.
    pub into: Option<BranchName>,
    pub hooks: Hooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModifyMode {
    Amend,
    NewCommit,
}

impl Command for Modify {
    const NAME: &'static str = "modify";
    const REQUIRES: &'static [Capability] = &[
        Capability::RepoOpen,
        Capability::TrunkKnown,
        Capability::NoLatticeOpInProgress,
        Capability::NoExternalGitOpInProgress,
        Capability::MetadataReadable,
        Capability::GraphValid,
        Capability::ScopeResolved,
        Capability::FrozenPolicySatisfied,
        Capability::WorkingCopyStateKnown,
        Capability::WorkingDirectoryAvailable,
        Capability::HistoryComplete,
        Capability::BranchesFree,
        Capability::RefsWritable,
    ];

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let target = match self.target(snapshot) {
            Ok(target) => target,
            Err(issue) => return vec![issue],
        };
        let mut issues: Vec<_> = scope::frozen(snapshot, &target).into_iter().collect();
        if let Ok(plan) = self.planned(snapshot, &target) {
            issues.extend(scope::occupied(snapshot, claimed(&plan).iter()));
        }
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let target = self.target(snapshot).expect("bug: the gate resolved the scope");
        self.planned(snapshot, &target)
    }
}

impl Modify {
    fn target(&self, snapshot: &Snapshot) -> Result<BranchName, Issue> {
        scope::tracked(snapshot, None)?;
        scope::tracked(snapshot, self.into.as_ref())
    }

    fn planned(&self, snapshot: &Snapshot, target: &BranchName) -> Result<Plan, Refusal> {
        let changes = pending(snapshot, self.stage);
        let position = snapshot.position(target).expect("bug: tracked branches have a position");
        let has_commits = !position.commits.is_empty();
        let amends = self.how == ModifyMode::Amend && has_commits;
        if changes == Pending::Nothing && !(amends && self.message.is_some()) {
            let refusal = Refusal::new("nothing-to-modify", "nothing is staged")
                .hint("stage something with git add, or use -a (everything), -u (tracked files) or -p (pick hunks)");
            return Err(match amends {
                true => refusal.hint("-m alone changes the message of the newest commit"),
                false => refusal,
            });
        }
        if !amends && self.message.is_none() {
            // An empty branch has no commit of its own that could be amended.
            return Err(missing_message());
        }
        let tip = snapshot.tip(target).expect("bug: tracked branches exist");
        let elsewhere = snapshot.head.branch() != Some(target);
        let how = match (amends, elsewhere) {
            (true, false) => CommitMode::Amend(tip),
            (true, true) => CommitMode::AmendElsewhere(tip),
            (false, false) => CommitMode::OnTop(tip),
            (false, true) => CommitMode::OnTopElsewhere(tip),
        };
        let mut plan = Plan::new(Self::NAME, self.hooks);
        plan.steps.extend(self.stage.map(|what| Step::Stage { what }));
        let message = self.message.clone();
        plan.steps.push(Step::Commit { branch: target.clone(), expected: Expected::At(tip), how, message });
        let mut rewriting = Rewriting::new(snapshot);
        rewriting.tip_changes(target);
        for branch in snapshot.graph().upstack(target) {
            rewriting.bring(&branch)?;
        }
        let plan = rewriting.finish(plan).verified();
        self.reaches_current(snapshot, target, &plan)?;
        Ok(plan)
    }

    /// Refuses to take staged changes away to a branch that the current one does not stand on.
    fn reaches_current(&self, snapshot: &Snapshot, target: &BranchName, plan: &Plan) -> Result<(), Refusal> {
        let current = snapshot.head.branch().expect("bug: the gate resolved the current branch");
        if rewritten(plan).contains(current) {
            return Ok(());
        }
        Err(Refusal::new(
            "not-below",
            format!("`{current}` does not stand on `{target}`, so what is staged here would vanish from view"),
        )
        .hint(format!("lattice checkout {} and modify there", target.word())))
    }
}
