//! Plans: the only form between a validated state and a change of the repository.

mod derivation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::branch::{Parent, PrState};
use crate::event::HeadValue;
use crate::host::HostAction;
use crate::id::{ContentDigest, Oid};
use crate::name::{BranchName, RefName};
use crate::time::Timestamp;

pub use derivation::{Derivation, Fixup, LineChange};

/// A described change: deterministic, previewable, serialisable, and free of clock and identity.
///
/// The one domain type that is a document by definition: the journal stores it and `continue`
/// reads it back, so it derives its serial form instead of having a twin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub command: String,
    pub hooks: Hooks,
    #[serde(default, skip_serializing_if = "OnConflict::is_pause")]
    pub on_conflict: OnConflict,
    /// In the order of their phases.
    pub steps: Vec<Step>,
    /// What the plan leaves as it is although it was in reach, with the reason.
    pub kept: Vec<Kept>,
}

/// Whether Git's hooks run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hooks {
    #[default]
    Run,
    Skip,
}

/// What happens when commits do not apply to their new place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// The user is asked to resolve it.
    #[default]
    Pause,
    /// The stack stays as it is, and the others move.
    SkipStack,
}

impl OnConflict {
    fn is_pause(&self) -> bool {
        *self == Self::Pause
    }
}

/// A branch that was left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub branch: BranchName,
    pub reason: String,
}

/// The parts of an execution, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    LocalStructural,
    LocalVerification,
    Remote,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LocalStructural => "local-structural",
            Self::LocalVerification => "local-verification",
            Self::Remote => "remote",
        }
    }
}

/// One typed step. There is none that runs an arbitrary command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Replaces the configuration file, or removes it.
    WriteConfig { expected: Option<ContentDigest>, content: Option<String>, old: OldFile },
    /// Adds changes of the working tree to the operation's own copy of the index.
    Stage { what: StageMode },
    /// Makes a commit from that copy, as the new tip of a branch.
    Commit { branch: BranchName, expected: Expected, how: CommitMode, message: Option<String> },
    /// Makes a commit of changes that other commits hold, as the new tip of a branch.
    Derive { branch: BranchName, expected: Expected, how: Derivation, message: Option<String> },
    /// Changes lines of a commit that a later step applies.
    Fixup { fixup: Fixup },
    /// Applies a branch's own commits, oldest first, to another place.
    Rewrite { branch: BranchName, tip: Oid, fork: Oid, commits: Vec<Oid>, onto: Place },
    /// Creates, moves or removes a ref.
    SetRef { name: RefName, expected: Expected, to: Option<Place> },
    /// Writes the metadata document of a branch.
    SetMetadata { branch: BranchName, expected: Expected, document: MetadataDraft },
    /// Gives a branch the options that Git's configuration has for another, as its upstream.
    MoveOptions { from: BranchName, to: BranchName },
    /// Depends on a ref without changing it.
    Guard { name: RefName, expected: Expected },
    /// Checks a branch out in the worktree where the operation runs.
    Switch { to: HeadValue },
    /// Puts HEAD on a branch and leaves index and files as they are.
    LeaveFiles { to: HeadValue },
    /// Puts HEAD, index and files back to where another operation found them.
    RestoreWorktree { head: HeadValue, files_from: Oid, files_to: Oid, index_from: Oid, index_to: Oid },
    /// Removes a damaged marker of an operation, keeping a copy.
    RemoveOpState,
    /// Removes a lock file that was left behind, relative to the common directory.
    RemoveLock { path: String, size: u64 },
    /// Scans again and checks the invariants.
    Verify,
    /// Brings the remote-tracking refs up to date.
    Fetch { remote: String },
    /// Moves branches of a remote, all or none, each only from the value that was seen before planning.
    Push { remote: String, updates: Vec<PushUpdate> },
    /// Asks the host for something.
    Host { action: HostAction },
}

/// A branch of a remote that a push moves or removes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushUpdate {
    pub branch: BranchName,
    pub expected: Expected,
    pub to: Option<Oid>,
}

/// What happens to the old content of a file that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OldFile {
    /// The ledger has it.
    Recorded,
    /// It is no text that the ledger could hold, so it stays beside the new one.
    KeptBeside,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageMode {
    /// Everything, new files included.
    All,
    /// Changes of files that Git knows.
    Tracked,
    /// Hunks that the user picks on the terminal.
    Patch,
}

/// How a commit relates to the branch it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitMode {
    /// A new commit on this one, with the index as its tree.
    OnTop(Oid),
    /// In place of this one, with the index as its tree.
    Amend(Oid),
    /// On this one, with what is staged relative to HEAD applied to it.
    OnTopElsewhere(Oid),
    /// In place of this one, with what is staged relative to HEAD applied to it.
    AmendElsewhere(Oid),
}

impl CommitMode {
    /// The commit that is amended or built on.
    pub fn commit(self) -> Oid {
        match self {
            Self::OnTop(at) | Self::Amend(at) | Self::OnTopElsewhere(at) | Self::AmendElsewhere(at) => at,
        }
    }
}

/// What a ref is expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    Absent,
    At(Oid),
}

impl Expected {
    pub fn from_option(value: Option<Oid>) -> Self {
        value.map_or(Self::Absent, Self::At)
    }

    pub fn value(self) -> Option<Oid> {
        match self {
            Self::Absent => None,
            Self::At(oid) => Some(oid),
        }
    }
}

/// A commit that is known now, or the tip that a branch has after the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    Object(Oid),
    TipOf(BranchName),
}

/// Metadata to be written; times are set when it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataDraft {
    pub parent: Parent,
    pub base: Place,
    pub freeze: FreezeDraft,
    pub pr: PrState,
    /// `None` for a branch that was not tracked before.
    pub created_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreezeDraft {
    Keep(crate::branch::FreezeState),
    FreezeNow { reason: Option<String> },
}

/// A ref that the plan changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedRef {
    pub name: RefName,
    pub old: Option<Oid>,
    pub new: NewValue,
}

/// What a ref will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewValue {
    Known(Option<Oid>),
    AfterExecution,
}

impl Plan {
    pub fn new(command: &str, hooks: Hooks) -> Self {
        let on_conflict = OnConflict::Pause;
        Self { command: command.to_owned(), hooks, on_conflict, steps: Vec::new(), kept: Vec::new() }
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Ends the local part: what was done is checked before anyone hears of success.
    #[must_use]
    pub fn verified(self) -> Self {
        self.then(Step::Verify)
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Verify | Step::Guard { .. }))
    }

    /// Whether it does nothing but ask the remote what it has.
    pub fn only_fetches(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Verify | Step::Guard { .. } | Step::Fetch { .. }))
    }

    pub fn digest(&self) -> ContentDigest {
        let bytes = serde_json::to_vec(self).expect("a plan has only string keys and finite numbers");
        ContentDigest::of(&bytes)
    }

    /// The refs that the plan changes, by name.
    pub fn touched_refs(&self) -> Vec<TouchedRef> {
        let mut touched = BTreeMap::new();
        for step in &self.steps {
            if let Some((name, old, new)) = step.touches() {
                touched.insert(name.clone(), TouchedRef { name, old: old.value(), new });
            }
        }
        touched.into_values().collect()
    }

    /// What the plan intends on a remote, with the values that were seen before it was made.
    pub fn remote_intents(&self) -> Vec<String> {
        let shown = |oid: Option<Oid>| oid.map_or("absent".to_owned(), |oid| oid.to_string());
        let mut intents = Vec::new();
        for step in &self.steps {
            match step {
                Step::Push { remote, updates } => intents.extend(updates.iter().map(|update| {
                    let (old, new) = (shown(update.expected.value()), shown(update.to));
                    format!("push {remote} {}: {old} -> {new}", update.branch.branch_ref())
                })),
                _ if step.phase() == Phase::Remote => intents.extend(step.preview()),
                _ => {}
            }
        }
        intents
    }

    /// One line per step, for people.
    pub fn preview(&self) -> Vec<String> {
        let kept = self.kept.iter().map(|kept| format!("keep {} ({})", kept.branch, kept.reason));
        self.steps.iter().filter_map(Step::preview).chain(kept).collect()
    }
}

impl Step {
    pub fn phase(&self) -> Phase {
        match self {
            Self::Verify => Phase::LocalVerification,
            Self::Fetch { .. } | Self::Push { .. } | Self::Host { .. } => Phase::Remote,
            Self::WriteConfig { .. }
            | Self::Stage { .. }
            | Self::Commit { .. }
            | Self::Derive { .. }
            | Self::Rewrite { .. }
            | Self::SetRef { .. }
            | Self::SetMetadata { .. }
            | Self::MoveOptions { .. }
            | Self::Guard { .. }
            | Self::Switch { .. }
            | Self::LeaveFiles { .. }
            | Self::Fixup { .. }
            | Self::RestoreWorktree { .. }
            | Self::RemoveOpState
            | Self::RemoveLock { .. } => Phase::LocalStructural,
        }
    }

    /// The branch that this step checks out.
    pub fn head(&self) -> Option<&BranchName> {
        match self {
            Self::Switch { to: HeadValue::Branch(branch) }
            | Self::LeaveFiles { to: HeadValue::Branch(branch) }
            | Self::RestoreWorktree { head: HeadValue::Branch(branch), .. } => Some(branch),
            _ => None,
        }
    }

    /// The ref that this step changes.
    pub fn touches(&self) -> Option<(RefName, Expected, NewValue)> {
        match self {
            Self::Commit { branch, expected, .. } | Self::Derive { branch, expected, .. } => {
                Some((branch.branch_ref(), *expected, NewValue::AfterExecution))
            }
            Self::Rewrite { branch, tip, .. } => {
                Some((branch.branch_ref(), Expected::At(*tip), NewValue::AfterExecution))
            }
            Self::SetRef { name, expected, to } => Some((name.clone(), *expected, known(to.as_ref()))),
            Self::SetMetadata { branch, expected, .. } => {
                Some((branch.metadata_ref(), *expected, NewValue::AfterExecution))
            }
            Self::WriteConfig { .. }
            | Self::Stage { .. }
            | Self::MoveOptions { .. }
            | Self::Guard { .. }
            | Self::Switch { .. }
            | Self::LeaveFiles { .. }
            | Self::Fixup { .. }
            | Self::RestoreWorktree { .. }
            | Self::RemoveOpState
            | Self::RemoveLock { .. }
            | Self::Verify
            | Self::Fetch { .. }
            | Self::Push { .. }
            | Self::Host { .. } => None,
        }
    }

    fn preview(&self) -> Option<String> {
        let line = match self {
            Self::WriteConfig { content: Some(_), .. } => "write lattice/config.toml".to_owned(),
            Self::WriteConfig { content: None, .. } => "remove lattice/config.toml".to_owned(),
            Self::Stage { what: StageMode::All } => "stage all changes".to_owned(),
            Self::Stage { what: StageMode::Tracked } => "stage changes of tracked files".to_owned(),
            Self::Stage { what: StageMode::Patch } => "stage the hunks you pick".to_owned(),
            Self::Commit { branch, how, .. } => match how {
                CommitMode::OnTop(at) => format!("commit to {branch} on {}", at.short()),
                CommitMode::Amend(at) => format!("amend {} of {branch}", at.short()),
                CommitMode::OnTopElsewhere(at) => format!("apply what is staged to {branch} on {}", at.short()),
                CommitMode::AmendElsewhere(at) => format!("apply what is staged to {} of {branch}", at.short()),
            },
            Self::Derive { branch, how, .. } => how.preview(branch),
            Self::Fixup { fixup } => {
                format!("change {}:{} in {}", fixup.path, fixup.at + 1, fixup.commit.short())
            }
            Self::Rewrite { branch, commits, onto, .. } => {
                format!("rebase {branch} ({}) onto {onto}", count(commits.len(), "commit"))
            }
            Self::SetRef { name, to, expected } => preview_ref(name, *expected, to.as_ref()),
            Self::SetMetadata { branch, document, expected } => preview_metadata(branch, *expected, document),
            Self::Switch { to: HeadValue::Branch(branch) } => format!("check out {branch}"),
            Self::Switch { to: HeadValue::Detached(commit) } => format!("check out {} (detached)", commit.short()),
            Self::LeaveFiles { to: HeadValue::Branch(branch) } => format!("go to {branch} and leave the files"),
            Self::LeaveFiles { to: HeadValue::Detached(commit) } => {
                format!("go to {} and leave the files", commit.short())
            }
            Self::RestoreWorktree { .. } => "put HEAD, index and files back".to_owned(),
            Self::RemoveOpState => "set lattice/op-state.json aside".to_owned(),
            Self::RemoveLock { path, .. } => format!("remove {path}"),
            Self::Fetch { remote } => format!("fetch from {remote}"),
            Self::Push { remote, updates } => preview_push(remote, updates),
            Self::Host { action } => action.preview(),
            Self::MoveOptions { .. } | Self::Guard { .. } | Self::Verify => return None,
        };
        Some(line)
    }
}

fn known(place: Option<&Place>) -> NewValue {
    match place {
        None => NewValue::Known(None),
        Some(Place::Object(oid)) => NewValue::Known(Some(*oid)),
        Some(Place::TipOf(_)) => NewValue::AfterExecution,
    }
}

fn preview_ref(name: &RefName, expected: Expected, to: Option<&Place>) -> String {
    match (expected, to) {
        (Expected::Absent, Some(place)) => format!("create {name} at {place}"),
        (Expected::At(old), Some(place)) => format!("move {name} from {} to {place}", old.short()),
        (Expected::At(old), None) => format!("delete {name} (was {})", old.short()),
        (Expected::Absent, None) => format!("expect {name} to be absent"),
    }
}

fn preview_push(remote: &str, updates: &[PushUpdate]) -> String {
    let names: Vec<_> = updates.iter().map(|update| update.branch.to_string()).collect();
    format!("push {} to {remote}", names.join(", "))
}

fn preview_metadata(branch: &BranchName, expected: Expected, document: &MetadataDraft) -> String {
    let verb = if expected == Expected::Absent { "track" } else { "update" };
    let frozen = match &document.freeze {
        FreezeDraft::FreezeNow { .. } => ", frozen",
        FreezeDraft::Keep(state) if state.is_frozen() => ", frozen",
        FreezeDraft::Keep(_) => "",
    };
    format!("{verb} {branch}: parent {}, base {}{frozen}", document.parent.name(), document.base)
}

/// `1 commit`, `2 commits`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(oid) => f.write_str(&oid.short()),
            Self::TipOf(branch) => write!(f, "the new {branch}"),
        }
    }
}
