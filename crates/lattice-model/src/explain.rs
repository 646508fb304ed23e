//! Explanations for people. They never influence a decision.

use core::future::Future;
use core::pin::Pin;

use crate::issue::{FixEffect, FixOption, Issue, IssueKind};
use crate::plan::Plan;

/// A future explanation.
pub type ExplainFut<'a> = Pin<Box<dyn Future<Output = Result<Explanation, ExplainError>> + Send + 'a>>;

/// Turns an item into prose. It gets the item by shared reference and cannot change anything.
pub trait Explain<T>: Send + Sync {
    fn explain<'a>(&'a self, item: &'a T, ctx: &'a ExplainCtx) -> ExplainFut<'a>;
}

/// What an explainer may know and say.
#[derive(Debug, Clone, Default)]
pub struct ExplainCtx {
    pub redaction: Redaction,
}

/// What leaves the program. Secrets never do, whatever is set here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redaction {
    pub diffs: Disclosure,
    pub remote_urls: Disclosure,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Disclosure {
    #[default]
    Withhold,
    Include,
}

/// The deterministic text, and what an outside explainer added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub baseline: String,
    pub added: Option<String>,
}

/// Why an explainer had nothing to say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    #[error("the explainer took longer than {0} ms")]
    TimedOut(u64),
    #[error("the explainer failed: {0}")]
    Failed(String),
}

/// The offline explainer: the same text for the same item, always.
#[derive(Debug, Clone, Copy, Default)]
pub struct Baseline;

impl Explain<Issue> for Baseline {
    fn explain<'a>(&'a self, item: &'a Issue, _ctx: &'a ExplainCtx) -> ExplainFut<'a> {
        ready(issue_text(item))
    }
}

impl Explain<FixOption> for Baseline {
    fn explain<'a>(&'a self, item: &'a FixOption, _ctx: &'a ExplainCtx) -> ExplainFut<'a> {
        ready(fix_text(item))
    }
}

impl Explain<Plan> for Baseline {
    fn explain<'a>(&'a self, item: &'a Plan, _ctx: &'a ExplainCtx) -> ExplainFut<'a> {
        ready(plan_text(item))
    }
}

fn ready<'a>(baseline: String) -> ExplainFut<'a> {
    Box::pin(core::future::ready(Ok(Explanation { baseline, added: None })))
}

/// What an issue means, why it matters, and what can be done.
pub fn issue_text(issue: &Issue) -> String {
    let mut text = format!("{}\n\n{}\n", issue.summary, meaning(issue.kind));
    if let Some(capability) = issue.kind.removes() {
        text.push_str(&format!("\nWhile this holds, commands that need {} refuse to run.\n", capability.in_words()));
    }
    if !issue.evidence.is_empty() {
        text.push_str("\nEvidence:\n");
        for (name, values) in &issue.evidence {
            text.push_str(&format!("  {name}: {}\n", values.join(" -> ")));
        }
    }
    text.push_str("\nChoices:\n");
    for fix in &issue.fixes {
        text.push_str(&fix_text(fix));
    }
    text
}

/// What a fix would do.
pub fn fix_text(fix: &FixOption) -> String {
    match &fix.effect {
        FixEffect::Plan(plan) => {
            let steps: Vec<_> = plan.preview().iter().map(|line| format!("      {line}\n")).collect();
            format!("  {}: {}\n{}", fix.id, fix.summary, steps.concat())
        }
        FixEffect::UserAction(action) => format!("  {}: {}\n      you: {action}\n", fix.id, fix.summary),
    }
}

/// What a plan would do.
pub fn plan_text(plan: &Plan) -> String {
    if plan.is_empty() {
        return format!("`{}` has nothing to do.\n", plan.command);
    }
    let steps: Vec<_> = plan.preview().iter().map(|line| format!("  {line}\n")).collect();
    format!("`{}` would:\n{}", plan.command, steps.concat())
}

/// What issues of a kind mean.
pub fn meaning(kind: IssueKind) -> &'static str {
    match kind {
        IssueKind::ConfigMissing => "Stacks stand on a trunk, and Lattice does not pick one for you.",
        IssueKind::ConfigInvalid => "The file was damaged or edited by hand. It stays as it is until you choose.",
        IssueKind::ConfigForeign => {
            "Another program with the same folder wrote it. Reading it by guess could name the wrong trunk."
        }
        IssueKind::ConfigUnknownKey => "It may be misspelt: an option that is not known has no effect.",
        IssueKind::TrunkMissing => "The branch was deleted or renamed, or this clone never had it.",
        IssueKind::TrunkTracked => "The trunk is what stacks stand on; it has no parent itself.",
        IssueKind::MetadataUnreadable => {
            "Without it the place of this branch in the stack is unknown, and so is that of all above it."
        }
        IssueKind::MetadataVanished => {
            "The branch is untouched. If you meant to stop tracking it, there is nothing to do."
        }
        IssueKind::MetadataOrphaned => "Branches that stood on it have lost their parent; nothing else is affected.",
        IssueKind::ParentKindWrong => {
            "The document contradicts the configuration, and one of the two was edited by hand."
        }
        IssueKind::ParentMissing => {
            "The parent was deleted or renamed outside of Lattice. The commits of this branch are safe."
        }
        IssueKind::Cycle => {
            "Every branch must lead to the trunk; these lead only to each other, so there is no order to restack them in."
        }
        IssueKind::BaseMissing => {
            "The base says which commits are the branch's own. Without it a restack could take too many or too few."
        }
        IssueKind::BaseNotAncestor => {
            "The base says which commits are the branch's own. A base outside of the branch says nothing."
        }
        IssueKind::HistoryUnreadable => {
            "An object is missing or damaged. A branch whose own commits are unknown must not be rewritten."
        }
        IssueKind::OperationInProgress => "Until it is finished or given up, nothing else may change the repository.",
        IssueKind::OpStateDamaged => "A crash or a power cut left it incomplete. Refs were moved all or not at all.",
        IssueKind::GitOperation => "Lattice does not move branches under an operation of Git.",
        IssueKind::Unmerged => "A commit made now would record the conflict markers.",
        IssueKind::WorkingCopyUnknown => "Lattice never treats an unknown working copy as clean.",
        IssueKind::StaleLock => {
            "Git makes such a file for a moment and removes it. If no Git process is running, it is safe to remove."
        }
        IssueKind::Bare => {
            "Reading and whatever changes metadata only works here; rewriting branches needs files to resolve conflicts in."
        }
        IssueKind::Shallow => "Where a branch left its parent may lie below the commits that are here.",
        IssueKind::LedgerDamaged => "The ledger is evidence, not authority: the stack itself is not affected.",
        IssueKind::UnusableName => "Git accepts the name, but as an argument it would be taken for something else.",
        IssueKind::LookAlikeNames => "On a file system that ignores case, one would overwrite the other.",
        IssueKind::BrokenRef => "A ref that Git cannot read is skipped; everything else works.",
        IssueKind::ScopeUnresolved => "The command needs a branch that is part of a stack.",
        IssueKind::Frozen => "Frozen branches keep their commits; that is what freezing is for.",
        IssueKind::CheckedOutElsewhere => "Moving it would show that worktree changes nobody made.",
        IssueKind::RemoteUnresolved => {
            "Without a remote there is nowhere to push to. The stack itself is not affected."
        }
        IssueKind::AuthenticationRequired => "The host asks who you are before it changes anything for you.",
        IssueKind::TokenExpired => "The host gives tokens for a limited time, and neither of yours is valid any more.",
        IssueKind::AppNotInstalled => "A token of the App reaches only repositories where the App is installed.",
        IssueKind::PushNotAllowed => "The token is valid, and it may only read this repository.",
    }
}
