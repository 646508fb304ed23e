//! `create`: a new branch on the current one.

use crate::branch::{FreezeState, Parent, PrState};
use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{CommitMode, Expected, FreezeDraft, Hooks, MetadataDraft, Place, Plan, StageMode, Step};
use crate::snapshot::{Snapshot, WorkingCopy};

use super::restack::claimed;
use super::rewrite::Rewriting;
use super::scope;

#[derive(Debug, Clone)]
pub struct Create {
    pub name: BranchName,
    pub message: Option<String>,
    pub stage: Option<StageMode>,
    pub place: PlaceInStack,
    pub hooks: Hooks,
}

/// Where the new branch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceInStack {
    OnTop,
    /// Between the current branch and those that stand on it.
    Between,
}

/// Whether a commit would have anything in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    Nothing,
    Something,
}

impl Command for Create {
    const NAME: &'static str = "create";
    const REQUIRES: &'static [Capability] = &[
        Capability::RepoOpen,
        Capability::TrunkKnown,
        Capability::NoLatticeOpInProgress,
        Capability::NoExternalGitOpInProgress,
        Capability::MetadataReadable,
        Capability::GraphValid,
        Capability::ScopeResolved,
        Capability::WorkingCopyStateKnown,
        Capability::WorkingDirectoryAvailable,
        Capability::HistoryComplete,
        Capability::BranchesFree,
        Capability::RefsWritable,
    ];

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        match self.parent(snapshot) {
            Err(issue) => vec![issue],
            Ok(parent) => match self.planned(snapshot, &parent) {
                Ok(plan) => scope::occupied(snapshot, claimed(&plan).iter()),
                Err(_) => Vec::new(),
            },
        }
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let parent = self.parent(snapshot).expect("bug: the gate resolved the scope");
        scope::check_new_name(snapshot, &self.name)?;
        self.planned(snapshot, &parent)
    }
}

impl Create {
    /// The current branch: the trunk or a tracked one.
    fn parent(&self, snapshot: &Snapshot) -> Result<BranchName, Issue> {
        let current = scope::named_or_current(snapshot, None)?;
        if snapshot.is_trunk(&current) {
            return Ok(current);
        }
        scope::tracked(snapshot, Some(&current))
    }

    fn planned(&self, snapshot: &Snapshot, parent: &BranchName) -> Result<Plan, Refusal> {
        let trunk = snapshot.settings.trunk.clone().expect("bug: the gate requires a trunk");
        let tip = snapshot.tip(parent).expect("bug: the current branch has a commit");
        let mut plan = Plan::new(Self::NAME, self.hooks);
        let commits = pending(snapshot, self.stage) == Pending::Something;
        if commits {
            let message = self.message.clone().ok_or_else(missing_message)?;
            plan.steps.extend(self.stage.map(|what| Step::Stage { what }));
            let how = CommitMode::OnTop(tip);
            let expected = Expected::Absent;
            plan.steps.push(Step::Commit { branch: self.name.clone(), expected, how, message: Some(message) });
        } else {
            let to = Some(Place::Object(tip));
            plan.steps.push(Step::SetRef { name: self.name.branch_ref(), expected: Expected::Absent, to });
        }
        let document = MetadataDraft {
            parent: Parent::of(parent, &trunk),
            base: Place::Object(tip),
            freeze: FreezeDraft::Keep(FreezeState::Unfrozen {}),
            pr: PrState::None {},
            created_at: None,
        };
        plan.steps.push(Step::SetMetadata { branch: self.name.clone(), expected: Expected::Absent, document });
        plan.steps.push(Step::Guard { name: parent.branch_ref(), expected: Expected::At(tip) });
        if self.place == PlaceInStack::Between {
            let made_at = (!commits).then_some(tip);
            plan = self.lift_children(snapshot, (parent, made_at), plan)?;
        }
        Ok(plan.then(Step::Switch { to: HeadValue::Branch(self.name.clone()) }).verified())
    }

    /// Puts what stood on the parent onto the new branch, which is empty if its tip is known now.
    fn lift_children(
        &self,
        snapshot: &Snapshot,
        (parent, made_at): (&BranchName, Option<Oid>),
        plan: Plan,
    ) -> Result<Plan, Refusal> {
        let graph = snapshot.graph();
        let mut rewriting = Rewriting::new(snapshot);
        match made_at {
            Some(tip) => rewriting.made_at(&self.name, tip),
            None => rewriting.tip_changes(&self.name),
        }
        for child in graph.children(parent) {
            rewriting.parent_changes(child, Parent::Branch(self.name.clone()));
        }
        for branch in graph.upstack(parent) {
            rewriting.bring(&branch)?;
        }
        Ok(rewriting.finish(plan))
    }
}

/// Whether staging `stage` on top of what is staged gives a commit anything to hold.
pub fn pending(snapshot: &Snapshot, stage: Option<StageMode>) -> Pending {
    let WorkingCopy::Known { staged, unstaged, untracked, .. } = &snapshot.working_copy else {
        return Pending::Nothing;
    };
    let more = match stage {
        None => false,
        Some(StageMode::All) => !unstaged.is_empty() || !untracked.is_empty(),
        // Which hunks are picked is only known afterwards.
        Some(StageMode::Tracked | StageMode::Patch) => !unstaged.is_empty(),
    };
    if more || !staged.is_empty() { Pending::Something } else { Pending::Nothing }
}

pub(super) fn missing_message() -> Refusal {
    Refusal::new("message-required", "there is something to commit and no message for it")
        .hint("give one with -m <message>")
}

/// What a template of names may have in braces.
pub const PLACEHOLDERS: [&str; 2] = ["{slug}", "{date}"];

/// The first thing in braces of a template that stands for nothing.
pub fn unknown_placeholder(template: &str) -> Option<&str> {
    let (_, mut rest) = template.split_at(template.find('{')?);
    loop {
        let end = rest.find('}').map_or(rest.len(), |close| close + 1);
        let (found, after) = rest.split_at(end);
        if !PLACEHOLDERS.contains(&found) {
            return Some(found);
        }
        (_, rest) = after.split_at(after.find('{')?);
    }
}

/// A branch name from a message, as `template` says: `{slug}` is the message, `{date}` the day.
pub fn name_from_message(message: &str, template: &str, date: &str) -> Result<BranchName, Refusal> {
    let subject = message.lines().next().unwrap_or_default();
    let mut slug = String::new();
    for word in subject.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if slug.len() + word.len() > 60 && !slug.is_empty() {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.extend(word.chars().flat_map(char::to_lowercase));
    }
    let unusable = || {
        Refusal::new("name-required", "no branch name can be made from the message")
            .hint("name it: lattice create <name>")
    };
    if slug.is_empty() {
        return Err(unusable());
    }
    BranchName::new(template.replace("{slug}", &slug).replace("{date}", date)).map_err(|_| unusable())
}
