//! `explain`: what an issue means, in prose. Never decides anything.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use clap::Args;
use lattice_model::explain::{
    Baseline, Disclosure, Explain, ExplainCtx, ExplainError, ExplainFut, Explanation, Redaction,
};
use lattice_model::issue::{FixEffect, Issue};
use lattice_model::settings::{ExplainSettings, Settings};

use crate::app::App;
use crate::error::Failure;
use crate::output::documents::{ExplainDocument, ExplanationDocument, IssueDocument};
use crate::output::{Reply, printable};
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
    let issues = lattice_model::doctor::everything_fixable(&snapshot);
    let issue = issues.into_iter().find(|issue| issue.id.as_str() == arguments.issue);
    let issue = issue.ok_or_else(|| {
        Failure::new("no-such-issue", format!("there is no issue `{}` now", arguments.issue))
            .hint("lattice doctor lists those that there are")
    })?;
    let explanation = explain(&engine.settings(), &issue);
    let text = text(&explanation);
    let mut document = IssueDocument::of(&issue);
    document.explanation = Some(explanation);
    Ok(Reply::new(ExplainDocument { issue: document }, text))
}

/// The baseline, and what the configured explainer adds to it, if it does.
pub(crate) fn explain(settings: &Settings, issue: &Issue) -> ExplanationDocument {
    let diffs = if settings.explain.include_diffs { Disclosure::Include } else { Disclosure::Withhold };
    let context = ExplainCtx { redaction: Redaction { diffs, remote_urls: Disclosure::Withhold } };
    let baseline = block_on(Baseline.explain(issue, &context)).map(|explanation| explanation.baseline);
    let baseline = baseline.unwrap_or_else(|_| issue.summary.clone());
    if settings.explain.command.is_empty() {
        return ExplanationDocument { baseline, added: None };
    }
    let outside = Outside { settings: &settings.explain };
    // Whatever the explainer does, the baseline stands.
    let added = block_on(outside.explain(issue, &context)).ok().and_then(|explanation| explanation.added);
    ExplanationDocument { baseline, added }
}

pub(crate) fn text(explanation: &ExplanationDocument) -> String {
    match &explanation.added {
        None => printable(&explanation.baseline),
        Some(added) => format!("{}\nThe explainer adds:\n{}\n", printable(&explanation.baseline), printable(added)),
    }
}

/// The configured command: the redacted item as JSON on its stdin, prose on its stdout.
struct Outside<'s> {
    settings: &'s ExplainSettings,
}

impl Explain<Issue> for Outside<'_> {
    fn explain<'a>(&'a self, item: &'a Issue, ctx: &'a ExplainCtx) -> ExplainFut<'a> {
        Box::pin(async move {
            let input = redacted(item, ctx).to_string();
            let added = prompt::explainer(&self.settings.command, &input, self.settings.timeout_ms);
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
