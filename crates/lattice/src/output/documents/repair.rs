//! Documents about what is wrong and what was done about it.

use std::collections::BTreeMap;

use lattice_model::event::Event;
use lattice_model::issue::{FixEffect, FixOption, Issue};
use schemars::JsonSchema;
use serde::Serialize;

use super::{DivergenceDocument, Document, PlanDocument, RefDocument, RepositoryDocument};

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixDocument {
    id: String,
    summary: String,
    preconditions: Vec<String>,
    preview: Vec<String>,
    user_action: Option<String>,
    plan: Option<PlanDocument>,
}

impl FixDocument {
    fn of(fix: &FixOption) -> Self {
        let (preview, user_action, plan) = match &fix.effect {
            FixEffect::Plan(plan) => (plan.preview(), None, Some(PlanDocument::of(plan))),
            FixEffect::UserAction(action) => (Vec::new(), Some(action.clone()), None),
        };
        Self {
            id: fix.id.to_string(),
            summary: fix.summary.clone(),
            preconditions: fix.preconditions.iter().map(ToString::to_string).collect(),
            preview,
            user_action,
            plan,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IssueDocument {
    id: String,
    kind: &'static str,
    severity: &'static str,
    pub(crate) summary: String,
    evidence: BTreeMap<String, Vec<String>>,
    fixes: Vec<FixDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<ExplanationDocument>,
}

impl IssueDocument {
    pub(crate) fn of(issue: &Issue) -> Self {
        Self {
            id: issue.id.to_string(),
            kind: issue.kind.as_str(),
            severity: issue.severity.as_str(),
            summary: issue.summary.clone(),
            evidence: issue.evidence.iter().map(|(name, values)| ((*name).to_owned(), values.clone())).collect(),
            fixes: issue.fixes.iter().map(FixDocument::of).collect(),
            explanation: None,
        }
    }
}

/// The deterministic text, and what an outside explainer added.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplanationDocument {
    pub(crate) baseline: String,
    pub(crate) added: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DoctorDocument {
    pub(crate) issues: Vec<IssueDocument>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) fingerprint: String,
    pub(crate) divergence: Option<DivergenceDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ledger: Option<Vec<EventDocument>>,
    pub(crate) applied: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PlanDocument>,
    pub(crate) repository: RepositoryDocument,
    /// The way to the host of the stack, as far as it is known without asking anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostDocument>,
}

/// Where pull requests go, and what is missing for it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HostDocument {
    pub(crate) remote: String,
    /// Owner and name.
    pub(crate) repository: String,
    /// `git` or `github`.
    pub(crate) forge: &'static str,
    /// What a command that concerns the host would be refused for.
    pub(crate) issues: Vec<IssueDocument>,
}

impl Document for DoctorDocument {
    const COMMAND: &'static str = "doctor";
}

/// One record of the ledger, or why it cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventDocument {
    commit: String,
    seq: Option<u64>,
    event: Option<String>,
    operation: Option<String>,
    command: Option<String>,
    at: Option<String>,
    refs: Vec<RefDocument>,
    fixes: Vec<String>,
    problem: Option<String>,
}

impl EventDocument {
    pub(crate) fn of(commit: &str, event: &Result<Event, String>) -> Self {
        let (event, problem) = match event {
            Ok(event) => (Some(event), None),
            Err(problem) => (None, Some(problem.clone())),
        };
        Self {
            commit: commit.to_owned(),
            seq: event.map(|event| event.seq),
            event: event.map(|event| format!("{:?}", event.category)),
            operation: event.map(|event| event.op.to_string()),
            command: event.map(|event| event.command.clone()),
            at: event.map(|event| event.at.to_string()),
            refs: event.map(|event| event.refs.iter().map(RefDocument::of).collect()).unwrap_or_default(),
            fixes: event.map(|event| event.detail.fixes.clone()).unwrap_or_default(),
            problem,
        }
    }

    pub(crate) fn line(&self) -> String {
        match &self.problem {
            Some(problem) => format!("{}  cannot be read: {problem}", &self.commit[..8]),
            None => format!(
                "{:>5}  {}  {:<18} {}  {}",
                self.seq.unwrap_or_default(),
                self.at.as_deref().unwrap_or_default(),
                self.event.as_deref().unwrap_or_default(),
                self.operation.as_deref().unwrap_or_default(),
                self.command.as_deref().unwrap_or_default(),
            ),
        }
    }
}
