//! The JSON documents, typed, so that their schemas can be printed.

use std::collections::BTreeMap;

use lattice_engine::{Conflict, DropReason, Dropped, Operation};
use lattice_model::branch::PrState;
use lattice_model::event::RefChange;
use lattice_model::graph::StackGraph;
use lattice_model::host::{ChecksState, PullState, ReviewState, Standing};
use lattice_model::name::BranchName;
use lattice_model::plan::{NewValue, Plan, Step};
use lattice_model::snapshot::{Divergence, Repository, Snapshot};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Document, printable};

mod repair;

pub(crate) use repair::{DoctorDocument, EventDocument, ExplanationDocument, HostDocument, IssueDocument};

/// A ref and its values; `new` is null where the ref is absent or not known yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RefDocument {
    name: String,
    old: Option<String>,
    new: Option<String>,
}

impl RefDocument {
    pub(crate) fn of(change: &RefChange) -> Self {
        Self {
            name: change.name.to_string(),
            old: change.old.map(|oid| oid.to_string()),
            new: change.new.map(|oid| oid.to_string()),
        }
    }
}

/// What a changing command did or would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeDocument {
    pub(crate) changed: bool,
    pub(crate) operation: Option<String>,
    pub(crate) refs: Vec<RefDocument>,
    pub(crate) kept: Vec<KeptDocument>,
    /// Commits that are left out because what they stand on has their change already.
    pub(crate) dropped: Vec<DroppedDocument>,
    /// The branch that is checked out afterwards.
    pub(crate) current: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PlanDocument>,
    /// Branches that a dry run found to conflict.
    pub(crate) conflicts: Vec<ConflictDocument>,
    /// Why a dry run cannot tell.
    pub(crate) notes: Vec<String>,
}

/// The first commit of a branch that does not apply to its new place, and the files where it does not.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConflictDocument {
    branch: String,
    commit: String,
    files: Vec<String>,
}

impl ConflictDocument {
    pub(crate) fn of(conflict: &Conflict) -> Self {
        let (branch, commit) = (conflict.branch.to_string(), conflict.commit.to_string());
        Self { branch, commit, files: conflict.files.clone() }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DroppedDocument {
    branch: String,
    commit: String,
    subject: String,
    /// `below-has-it` or `resolution`.
    because: &'static str,
}

impl DroppedDocument {
    pub(crate) fn of(dropped: &Dropped) -> Self {
        let (branch, commit) = (dropped.branch.to_string(), dropped.commit.to_string());
        let because = match dropped.because {
            DropReason::BelowHasIt => "below-has-it",
            DropReason::Resolution => "resolution",
        };
        Self { branch, commit, subject: dropped.subject.clone(), because }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeptDocument {
    pub(crate) branch: String,
    pub(crate) reason: String,
}

impl KeptDocument {
    pub(crate) fn all(plan: &Plan) -> Vec<Self> {
        let kept = plan.kept.iter();
        kept.map(|kept| Self { branch: kept.branch.to_string(), reason: kept.reason.clone() }).collect()
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanDocument {
    digest: String,
    command: String,
    steps: Vec<StepDocument>,
    touched_refs: Vec<RefDocument>,
    preview: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepDocument {
    phase: &'static str,
    refs: Vec<String>,
    #[serde(flatten)]
    step: serde_json::Value,
}

impl PlanDocument {
    pub(crate) fn of(plan: &Plan) -> Self {
        let step = |step: &Step| StepDocument {
            phase: step.phase().as_str(),
            refs: step.touches().into_iter().map(|(name, _, _)| name.to_string()).collect(),
            step: serde_json::to_value(step).expect("bug: a step has string keys"),
        };
        let touched = plan.touched_refs().into_iter().map(|touched| RefDocument {
            name: touched.name.to_string(),
            old: touched.old.map(|oid| oid.to_string()),
            new: match touched.new {
                NewValue::Known(value) => value.map(|oid| oid.to_string()),
                NewValue::AfterExecution => None,
            },
        });
        Self {
            digest: plan.digest().to_string(),
            command: plan.command.clone(),
            steps: plan.steps.iter().map(step).collect(),
            touched_refs: touched.collect(),
            preview: plan.preview(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DivergenceDocument {
    prior: String,
    current: String,
    changes: Vec<RefDocument>,
    /// What changed and is no ref.
    files: Vec<String>,
}

impl DivergenceDocument {
    pub(crate) fn of(divergence: &Divergence) -> Self {
        Self {
            prior: divergence.prior.to_string(),
            current: divergence.current.to_string(),
            changes: divergence.changes.iter().map(RefDocument::of).collect(),
            files: divergence.files.iter().map(|file| (*file).to_owned()).collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PrDocument {
    number: u64,
    url: String,
    state: Option<String>,
    draft: bool,
    /// What reviewers said when the host was last asked.
    review: Option<&'static str>,
    /// What the checks came to then.
    checks: Option<&'static str>,
}

impl PrDocument {
    pub(crate) fn of(pr: &PrState, standings: &Standings) -> Option<Self> {
        match pr {
            PrState::None {} => None,
            PrState::Linked { number, url, last_known, .. } => {
                let standing = standings.get(url).copied().unwrap_or_default();
                Some(Self {
                    number: *number,
                    url: url.clone(),
                    state: last_known.as_ref().map(|known| known.state.clone()),
                    draft: last_known.as_ref().is_some_and(|known| known.is_draft),
                    review: standing.review.map(ReviewState::as_str),
                    checks: standing.checks.map(ChecksState::as_str),
                })
            }
        }
    }

    /// `#12 open, draft, approved, checks failed`; of a pull request that has ended, only how.
    pub(crate) fn text(&self) -> String {
        let state = self.state.as_deref().unwrap_or_default();
        let live = state.is_empty() || state == PullState::Open.as_str();
        let standing = [self.draft.then_some("draft"), self.review, self.checks].into_iter().flatten().filter(|_| live);
        let words: Vec<_> = [state].into_iter().filter(|word| !word.is_empty()).chain(standing).collect();
        format!("#{} {}", self.number, words.join(", ").replace('-', " ")).trim_end().to_owned()
    }
}

/// What is known of pull requests by their addresses.
pub(crate) type Standings = BTreeMap<String, Standing>;

/// One branch of a stack.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BranchDocument {
    pub(crate) name: String,
    parent: String,
    base: String,
    tip: String,
    children: Vec<String>,
    pub(crate) frozen: bool,
    /// Why it is frozen, if someone said so.
    frozen_because: Option<String>,
    pub(crate) needs_restack: bool,
    pub(crate) commits: usize,
    pub(crate) pr: Option<PrDocument>,
    pub(crate) checked_out: Option<String>,
}

impl BranchDocument {
    pub(crate) fn of(
        snapshot: &Snapshot,
        graph: &StackGraph,
        standings: &Standings,
        branch: &BranchName,
    ) -> Option<Self> {
        let (metadata, _) = snapshot.metadata_of(branch)?;
        Some(Self {
            name: branch.to_string(),
            parent: metadata.parent.name().to_string(),
            base: metadata.base.to_string(),
            tip: snapshot.tip(branch)?.to_string(),
            children: graph.children(branch).map(ToString::to_string).collect(),
            frozen: metadata.freeze.is_frozen(),
            frozen_because: metadata.freeze.reason().map(str::to_owned),
            needs_restack: snapshot.needs_restack(branch),
            commits: snapshot.position(branch).map_or(0, |position| position.commits.len()),
            pr: PrDocument::of(&metadata.pr, standings),
            checked_out: snapshot.worktrees.get(branch).map(|path| path.display().to_string()),
        })
    }
}

impl BranchDocument {
    /// The facts for people, by name.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("parent", self.parent.clone()), ("base", self.base.clone()), ("tip", self.tip.clone())];
        if !self.children.is_empty() {
            lines.push(("children", self.children.join(", ")));
        }
        let mut state = Vec::new();
        if self.needs_restack {
            state.push("needs restack".to_owned());
        }
        if self.frozen {
            let why = self.frozen_because.as_ref().map(|why| format!(" ({})", printable(why)));
            state.push(format!("frozen{}", why.unwrap_or_default()));
        }
        if !state.is_empty() {
            lines.push(("state", state.join(", ")));
        }
        if let Some(pr) = &self.pr {
            lines.push(("pr", format!("{} {}", pr.text(), pr.url)));
        }
        lines
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogDocument {
    pub(crate) trunk: Option<String>,
    pub(crate) current: Option<String>,
    pub(crate) branches: Vec<BranchDocument>,
    pub(crate) untracked: Vec<String>,
    /// Tracked branches whose metadata cannot be used, with the reason.
    pub(crate) unreadable: BTreeMap<String, String>,
    pub(crate) divergence: Option<DivergenceDocument>,
    /// The operation in progress, if there is one.
    pub(crate) operation: Option<String>,
}

impl Document for LogDocument {
    const COMMAND: &'static str = "log";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RepositoryDocument {
    context: &'static str,
    git_dir: String,
    common_dir: String,
    work_dir: Option<String>,
}

impl RepositoryDocument {
    pub(crate) fn of(repository: &Repository) -> Self {
        Self {
            context: repository.context.as_str(),
            git_dir: repository.git_dir.display().to_string(),
            common_dir: repository.common_dir.display().to_string(),
            work_dir: repository.work_dir.as_ref().map(|path| path.display().to_string()),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommitDocument {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) author: String,
    pub(crate) date: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InfoDocument {
    pub(crate) repository: RepositoryDocument,
    pub(crate) branch: Option<BranchDocument>,
    pub(crate) commits: Vec<CommitDocument>,
    pub(crate) diff: Option<String>,
    pub(crate) divergence: Option<DivergenceDocument>,
}

impl Document for InfoDocument {
    const COMMAND: &'static str = "info";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ParentDocument {
    pub(crate) branch: String,
    pub(crate) parent: Option<String>,
}

impl Document for ParentDocument {
    const COMMAND: &'static str = "parent";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChildrenDocument {
    pub(crate) branch: String,
    pub(crate) children: Vec<String>,
}

impl Document for ChildrenDocument {
    const COMMAND: &'static str = "children";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TrunkDocument {
    pub(crate) trunk: Option<String>,
}

impl Document for TrunkDocument {
    const COMMAND: &'static str = "trunk";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OperationDocument {
    id: String,
    command: String,
    origin: String,
    at: String,
    state: &'static str,
    undoable: bool,
    undoes: Option<String>,
    reason: Option<String>,
    remote: Vec<String>,
    refs: Vec<RefDocument>,
}

impl OperationDocument {
    pub(crate) fn of(operation: &Operation) -> Self {
        Self {
            id: operation.id.to_string(),
            command: operation.command.clone(),
            origin: operation.origin.to_owned(),
            at: operation.at.to_string(),
            state: operation.state.as_str(),
            undoable: operation.undoable,
            undoes: operation.undoes.as_ref().map(ToString::to_string),
            reason: operation.reason.clone(),
            remote: operation.remote.clone(),
            refs: operation.refs.iter().map(RefDocument::of).collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpsDocument {
    pub(crate) operations: Vec<OperationDocument>,
}

impl Document for OpsDocument {
    const COMMAND: &'static str = "ops";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerifyDocument {
    pub(crate) holds: bool,
    pub(crate) checked: Vec<String>,
    pub(crate) violations: Vec<String>,
}

impl Document for VerifyDocument {
    const COMMAND: &'static str = "verify";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigDocument {
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) file: Option<String>,
    pub(crate) operation: Option<String>,
}

impl Document for ConfigDocument {
    const COMMAND: &'static str = "config";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplainDocument {
    pub(crate) issue: IssueDocument,
}

impl Document for ExplainDocument {
    const COMMAND: &'static str = "explain";
}

/// The plan file that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanFileDocument {
    pub(crate) file: String,
    pub(crate) plan: PlanDocument,
}

impl Document for PlanFileDocument {
    const COMMAND: &'static str = "plan";
}

/// Text that a command prints about the program itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TextDocument {
    pub(crate) text: String,
}

/// The version of the program and of what it writes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VersionDocument {
    pub(crate) version: &'static str,
    pub(crate) formats: BTreeMap<&'static str, u32>,
    /// The version of the context protocol that envelopes follow.
    pub(crate) context_protocol: &'static str,
}

impl Document for VersionDocument {
    const COMMAND: &'static str = "version";
}
