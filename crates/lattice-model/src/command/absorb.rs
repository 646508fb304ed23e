//! `absorb`: gives each staged hunk to the commit of the stack that last touched its lines.

use std::collections::BTreeSet;

use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Fixup, Hooks, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::create::Create;
use super::restack::claimed;
use super::rewrite::Rewriting;
use super::scope;

#[derive(Debug, Clone)]
pub struct Absorb {
    pub hunks: Vec<Hunk>,
    pub hooks: Hooks,
}

/// A staged change of some lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub path: String,
    /// The line of the current commit that it begins at, from 1.
    pub line: usize,
    pub home: Home,
}

/// Where a hunk belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    Commit(Fixup),
    /// Why it stays staged.
    Nowhere(&'static str),
}

impl Hunk {
    /// `path:line`, for people.
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }
}

/// The branch that a hunk goes to, or why it stays.
pub fn home(snapshot: &Snapshot, current: &BranchName, hunk: &Hunk) -> Result<(BranchName, Fixup), &'static str> {
    let fixup = match &hunk.home {
        Home::Commit(fixup) => fixup,
        Home::Nowhere(reason) => return Err(reason),
    };
    let stack = snapshot.graph().downstack(current).into_iter().chain([current.clone()]);
    let holds = |branch: &BranchName, commit: Oid| {
        snapshot.position(branch).is_some_and(|position| position.commits.contains(&commit))
    };
    let branch = stack.into_iter().find(|branch| holds(branch, fixup.commit));
    let branch = branch.ok_or("its lines come from below the stack")?;
    match snapshot.metadata_of(&branch) {
        Some((metadata, _)) if metadata.freeze.is_frozen() => Err("the branch of its lines is frozen"),
        _ => Ok((branch, fixup.clone())),
    }
}

impl Command for Absorb {
    const NAME: &'static str = "absorb";
    const REQUIRES: &'static [Capability] = Create::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        match scope::tracked(snapshot, None) {
            Err(issue) => vec![issue],
            Ok(current) => match self.planned(snapshot, &current) {
                Ok(plan) => scope::occupied(snapshot, claimed(&plan).iter()),
                Err(_) => Vec::new(),
            },
        }
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let current = scope::tracked(ready.snapshot(), None).expect("bug: the gate resolved the scope");
        self.planned(ready.snapshot(), &current)
    }
}

impl Absorb {
    fn planned(&self, snapshot: &Snapshot, current: &BranchName) -> Result<Plan, Refusal> {
        let homes: Vec<_> = self.hunks.iter().filter_map(|hunk| home(snapshot, current, hunk).ok()).collect();
        if homes.is_empty() {
            return Err(self.nothing(snapshot, current));
        }
        let stack: Vec<_> = snapshot.graph().downstack(current).into_iter().chain([current.clone()]).collect();
        if let Some(behind) = stack.iter().find(|branch| snapshot.needs_restack(branch)) {
            return Err(Refusal::new("needs-restack", format!("`{behind}` does not stand on the tip of its parent"))
                .hint("lattice restack, then absorb"));
        }
        let changed: BTreeSet<_> = homes.iter().map(|(branch, _)| branch).collect();
        let lowest = stack.iter().find(|branch| changed.contains(branch)).expect("bug: homes are in the stack");
        let mut plan = Plan::new(Self::NAME, self.hooks);
        plan.steps.extend(homes.iter().map(|(_, fixup)| Step::Fixup { fixup: fixup.clone() }));
        plan.steps.push(in_place(snapshot, lowest)?);
        let mut rewriting = Rewriting::new(snapshot);
        rewriting.tip_changes(lowest);
        for branch in snapshot.graph().upstack(lowest) {
            rewriting.bring(&branch)?;
        }
        let plan = rewriting.finish(plan);
        if let Some(kept) = plan.kept.iter().find(|kept| stack.contains(&kept.branch)) {
            return Err(scope::kept_in_the_way(kept));
        }
        Ok(plan.then(Step::LeaveFiles { to: HeadValue::Branch(current.clone()) }).verified())
    }

    fn nothing(&self, snapshot: &Snapshot, current: &BranchName) -> Refusal {
        if self.hunks.is_empty() {
            return Refusal::new("nothing-staged", "nothing is staged")
                .hint("stage what is to be absorbed: git add -p, or git add <file>");
        }
        let refusal = Refusal::new("nothing-to-absorb", "no staged hunk has a home in this stack");
        self.hunks.iter().fold(refusal, |refusal, hunk| {
            let reason = home(snapshot, current, hunk).err().unwrap_or_default();
            refusal.hint(format!("{}: {reason}", hunk.place()))
        })
    }
}

/// The own commits of a branch once more, on the commit that they stand on.
fn in_place(snapshot: &Snapshot, branch: &BranchName) -> Result<Step, Refusal> {
    let position = snapshot.position(branch).expect("bug: tracked branches have a position");
    let tip = snapshot.tip(branch).expect("bug: tracked branches exist");
    if let Some(merge) = position.merges.first() {
        let text = format!("`{branch}` contains the merge commit {}, which would be flattened", merge.short());
        return Err(Refusal::new("merge-commit", text).hint("make its history linear first"));
    }
    let fork = position
        .fork
        .ok_or_else(|| Refusal::new("unrelated-history", format!("`{branch}` shares no history with its parent")))?;
    let commits = position.commits.into_iter().rev().collect();
    Ok(Step::Rewrite { branch: branch.clone(), tip, fork, commits, onto: Place::Object(fork) })
}
