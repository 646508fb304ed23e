//! `explain`: what an issue means, in prose. Never decides anything.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use clap::Args;
use lattice_engine::{DiffShape, Engine};
use lattice_model::explain::{
    Baseline, Disclosure, Explain, ExplainCtx, ExplainError, ExplainFut, Explanation, Redaction, meaning,
};
use lattice_model::issue::{FixEffect, Issue, IssueKind};
use lattice_model::name::BranchName;
use lattice_model::settings::ExplainSettings;
use lattice_model::snapshot::Snapshot;

use crate::app::{App, Format};
use crate::error::Failure;
use crate::output::documents::{ExplainDocument, ExplanationDocument, IssueDocument};
use crate::output::{Reply, out, printable};
use crate::prompt;

/// Explain an issue that doctor or a refused command named
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The id of the issue
    issue: String,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    let (snapshot, _, _) = engine.diagnose()?;
    let mut issues = lattice_model::doctor::everything_fixable(&snapshot);
    if IssueKind::ALL.iter().any(|kind| kind.concerns_host() && arguments.issue.starts_with(kind.as_str())) {
        issues.extend(engine.host_issues()?);
    }
    let issue = issues.into_iter().find(|issue| issue.id.as_str() == arguments.issue);
    let issue = issue.ok_or_else(|| not_there(&arguments.issue))?;
    let explainer = Explainer::new(&engine, &snapshot);
    let baseline = explainer.baseline(&issue);
    if app.format == Format::Human {
        // The explainer may take its time; what is known without it need not wait.
        out(&printable(&baseline));
    }
    let explanation = ExplanationDocument { added: explainer.added(&issue), baseline };
    let text = explanation.added.as_deref().map(addition).unwrap_or_default();
    let mut document = IssueDocument::of(&issue);
    document.explanation = Some(explanation);
    Ok(Reply::new(ExplainDocument { issue: document }, text))
}

/// An id holds what the issue was found in, so it is gone with that.
fn not_there(id: &str) -> Failure {
    let failure = Failure::new("no-such-issue", format!("there is no issue `{id}` now"));
    let failure = match IssueKind::ALL.iter().find(|kind| id.starts_with(kind.as_str())) {
        Some(kind) => failure
            .cause("if it was named earlier: it was about what that command asked for, or the state has changed since")
            .cause(meaning(*kind)),
        None => failure,
    };
    failure.hint("lattice doctor lists those that there are")
}

/// The baseline, and what the configured explainer adds to it, if it does.
pub(crate) struct Explainer<'a> {
    engine: &'a Engine,
    snapshot: &'a Snapshot,
    settings: ExplainSettings,
    diffs: Disclosure,
}

/// How much of a difference an explainer gets to see.
const DIFF_LIMIT: usize = 64 * 1024;

impl<'a> Explainer<'a> {
    pub(crate) fn new(engine: &'a Engine, snapshot: &'a Snapshot) -> Self {
        let settings = engine.settings().explain;
        let diffs = if settings.include_diffs { Disclosure::Include } else { Disclosure::Withhold };
        Self { engine, snapshot, settings, diffs }
    }

    /// An address is told only where the user has to go there.
    fn context(&self, issue: &Issue) -> ExplainCtx {
        let needed = issue.kind == IssueKind::AppNotInstalled;
        let remote_urls = if needed { Disclosure::Include } else { Disclosure::Withhold };
        ExplainCtx { redaction: Redaction { diffs: self.diffs, remote_urls } }
    }

    pub(crate) fn explain(&self, issue: &Issue) -> ExplanationDocument {
        ExplanationDocument { baseline: self.baseline(issue), added: self.added(issue) }
    }

    fn baseline(&self, issue: &Issue) -> String {
        let explained = block_on(Baseline.explain(issue, &self.context(issue)));
        explained.map_or_else(|_| issue.summary.clone(), |explanation| explanation.baseline)
    }

    /// Whatever the explainer does, the baseline stands.
    fn added(&self, issue: &Issue) -> Option<String> {
        if self.settings.command.is_empty() {
            return None;
        }
        let outside = Outside { settings: &self.settings, diff: self.diff(issue) };
        block_on(outside.explain(issue, &self.context(issue))).ok().and_then(|explanation| explanation.added)
    }

    /// What the branch of the issue changes, if the user lets the explainer see that.
    fn diff(&self, issue: &Issue) -> Option<String> {
        if self.diffs == Disclosure::Withhold {
            return None;
        }
        let branch = BranchName::new(issue.evidence.get("branch")?.first()?).ok()?;
        let (from, to) = (self.snapshot.position(&branch)?.fork?, self.snapshot.tip(&branch)?);
        let diff = self.engine.diff(from, to, DiffShape::Patch).ok()?;
        Some(diff.chars().take(DIFF_LIMIT).collect())
    }
}

pub(crate) fn text(explanation: &ExplanationDocument) -> String {
    printable(&explanation.baseline) + &explanation.added.as_deref().map(addition).unwrap_or_default()
}

fn addition(added: &str) -> String {
    format!("\nThe explainer adds:\n{}\n", printable(added))
}

/// The configured command: the redacted item as JSON on its stdin, prose on its stdout.
struct Outside<'s> {
    settings: &'s ExplainSettings,
    diff: Option<String>,
}

impl Explain<Issue> for Outside<'_> {
    fn explain<'a>(&'a self, item: &'a Issue, ctx: &'a ExplainCtx) -> ExplainFut<'a> {
        Box::pin(async move {
            let mut input = redacted(item, ctx);
            if let Some(diff) = &self.diff {
                let masked: Vec<_> = diff.lines().map(|line| mask_secrets(line, ctx.redaction.remote_urls)).collect();
                input["diff"] = masked.join("\n").into();
            }
            let added = prompt::explainer(&self.settings.command, &input.to_string(), self.settings.timeout_ms);
            let added = added.map_err(ExplainError::Failed)?;
            Ok(Explanation { baseline: lattice_model::explain::issue_text(item), added: Some(added) })
        })
    }
}

/// What leaves the program: names, ids and sentences of ours, with anything that looks like a secret masked.
fn redacted(issue: &Issue, ctx: &ExplainCtx) -> serde_json::Value {
    let mask = |text: &str| mask_secrets(text, ctx.redaction.remote_urls);
    let evidence: serde_json::Map<_, _> = issue
        .evidence
        .iter()
        .map(|(name, values)| ((*name).to_owned(), values.iter().map(|value| mask(value)).collect::<Vec<_>>().into()))
        .collect();
    let fix = |fix: &lattice_model::issue::FixOption| {
        let what = match &fix.effect {
            FixEffect::Plan(plan) => plan.preview().iter().map(|line| mask(line)).collect(),
            FixEffect::UserAction(action) => vec![mask(action)],
        };
        serde_json::json!({ "id": fix.id.to_string(), "summary": mask(&fix.summary), "steps": what })
    };
    serde_json::json!({
        "id": issue.id.to_string(),
        "kind": issue.kind.as_str(),
        "severity": issue.severity.as_str(),
        "summary": mask(&issue.summary),
        "evidence": evidence,
        "fixes": issue.fixes.iter().map(fix).collect::<Vec<_>>(),
        "redaction": { "diffs": format!("{:?}", ctx.redaction.diffs), "remote_urls": format!("{:?}", ctx.redaction.remote_urls) },
    })
}

/// Masks URLs, with the credentials they may hold, and words that have the form of a token.
fn mask_secrets(text: &str, urls: Disclosure) -> String {
    let token = |word: &str| {
        let prefixes = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-", "sk-", "AKIA", "eyJ"];
        prefixes.iter().any(|prefix| word.contains(prefix))
    };
    let mask = |word: &str| {
        let has_user = word
            .split_once("://")
            .is_some_and(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@')));
        if has_user || token(word) {
            return "<redacted>".to_owned();
        }
        if word.contains("://") && urls == Disclosure::Withhold {
            return "<url>".to_owned();
        }
        word.to_owned()
    };
    // Whatever separates words stays as it is.
    text.split_inclusive(char::is_whitespace)
        .map(|word| {
            let end = word.trim_end().len();
            mask(&word[..end]) + &word[end..]
        })
        .collect()
}

/// Waits for a future. The program has nothing else to do meanwhile.
fn block_on<T>(mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
