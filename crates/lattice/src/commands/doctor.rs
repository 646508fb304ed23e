//! `doctor`: diagnoses, and repairs what the user chooses.

use clap::Args;
use lattice_engine::{Engine, Evidence, HostStanding, Outcome};
use lattice_model::host::RemoteReading;
use lattice_model::issue::{FixEffect, Issue, RepoHealthReport, Severity};
use lattice_model::snapshot::Snapshot;

use crate::app::{App, Interaction};
use crate::commands::change::paused_failure;
use crate::commands::explain::{self, Explainer};
use crate::commands::hosted::one_line;
use crate::error::{Code, Failure};
use crate::output::documents::{
    DivergenceDocument, DoctorDocument, EventDocument, HostDocument, IssueDocument, PlanDocument, RepositoryDocument,
};
use crate::output::{Reply, err, issues};
use crate::prompt;

/// Find out what is wrong, and repair what you choose
///
/// Without `--fix` nothing is changed; on a terminal you are asked.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Apply the fix with this id; may be given several times
    #[arg(long, value_name = "ID")]
    fix: Vec<String>,
    /// Show what the named fixes would do
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// With the records of the ledger
    #[arg(long)]
    events: bool,
    /// With an explanation of each issue
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    if arguments.fix.is_empty() {
        let (snapshot, report, evidence) = engine.diagnose()?;
        let reply = told(app, &engine, (&snapshot, &report), arguments, Vec::new())?;
        let reply = match evidence {
            Evidence::Complete => reply,
            Evidence::NotRecorded(reason) => reply.note(format!("what was seen could not be recorded: {reason}")),
        };
        return if app.interaction == Interaction::Allowed { offer(app, &engine, &report, reply) } else { Ok(reply) };
    }
    if arguments.dry_run {
        return preview(app, &engine, arguments);
    }
    apply(app, &engine, &arguments.fix, arguments)
}

fn apply(app: &App, engine: &Engine, ids: &[String], arguments: &Arguments) -> Result<Reply, Failure> {
    let applied = engine.apply_fixes(ids)?;
    if let Outcome::Paused(paused) = &applied.outcome {
        return Err(paused_failure(paused));
    }
    let (snapshot, report) = engine.examine()?;
    let done: Vec<_> = applied.fixes.iter().map(|chosen| chosen.fix.id.to_string()).collect();
    let mut reply = told(app, engine, (&snapshot, &report), arguments, done.clone())?;
    let told: String =
        applied.fixes.iter().map(|chosen| format!("applied {}: {}\n", chosen.fix.id, chosen.fix.summary)).collect();
    reply.text = told + &reply.text;
    for chosen in &applied.actions {
        if let FixEffect::UserAction(action) = &chosen.fix.effect {
            reply = reply.note(format!("{} is yours to do: {action}", chosen.fix.id));
        }
    }
    Ok(reply)
}

fn preview(app: &App, engine: &Engine, arguments: &Arguments) -> Result<Reply, Failure> {
    let plan = engine.combined_plan(&engine.find_fixes(&arguments.fix)?)?;
    let (snapshot, report, _) = engine.diagnose()?;
    let mut document = document(engine, (&snapshot, &report), arguments, Vec::new())?;
    document.plan = Some(PlanDocument::of(&plan));
    let text: String = plan.preview().iter().map(|line| format!("{line}\n")).collect();
    let _ = app;
    Ok(Reply::new(document, text).note("this was a dry run: nothing was changed"))
}

/// The dialogue on a terminal: choose, look, confirm.
fn offer(app: &App, engine: &Engine, report: &RepoHealthReport, reply: Reply) -> Result<Reply, Failure> {
    let fixes: Vec<_> = report.issues.iter().flat_map(|issue| &issue.fixes).collect();
    let fixes: Vec<_> = fixes.into_iter().filter(|fix| matches!(fix.effect, FixEffect::Plan(_))).collect();
    if fixes.is_empty() {
        return Ok(reply);
    }
    err(&reply.text);
    for (at, fix) in fixes.iter().enumerate() {
        err(&format!("  {}) {}  {}\n", at + 1, fix.id, fix.summary));
    }
    let ids = loop {
        let answer = prompt::ask("Which fixes? [numbers, empty: none] ").unwrap_or_default();
        let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
        let named = |word: &str| Some(fixes.get(word.parse::<usize>().ok()?.checked_sub(1)?)?.id.to_string());
        if let Some(ids) = words.map(named).collect::<Option<Vec<_>>>() {
            break ids;
        }
        err(&format!("numbers from 1 to {}, please\n", fixes.len()));
    };
    let silent = reply.text(String::new());
    if ids.is_empty() {
        return Ok(silent.note("nothing was changed"));
    }
    let plan = engine.combined_plan(&engine.find_fixes(&ids)?)?;
    err("This would happen:\n");
    plan.preview().iter().for_each(|line| err(&format!("  {line}\n")));
    if !prompt::confirm("Apply this?", "apply") {
        return Ok(silent.note("nothing was changed"));
    }
    apply(app, engine, &ids, &Arguments { fix: ids.clone(), dry_run: false, events: false, explain: false })
}

fn document(
    engine: &Engine,
    (snapshot, report): (&Snapshot, &RepoHealthReport),
    arguments: &Arguments,
    applied: Vec<String>,
) -> Result<DoctorDocument, Failure> {
    let ledger = match arguments.events {
        false => None,
        true => {
            let events = engine.ledger(None)?;
            Some(events.iter().map(|(commit, event)| EventDocument::of(&commit.to_string(), event)).collect())
        }
    };
    // A way to a host that cannot even be looked for is told by the commands that need one.
    let standing = engine.host_standing().ok();
    let of_host = standing.iter().flat_map(|standing| &standing.capabilities);
    Ok(DoctorDocument {
        issues: report.issues.iter().map(IssueDocument::of).collect(),
        capabilities: report.capabilities.iter().chain(of_host).map(ToString::to_string).collect(),
        host: standing.as_ref().and_then(host_document),
        fingerprint: report.fingerprint.to_string(),
        divergence: report.divergence.as_ref().map(DivergenceDocument::of),
        ledger,
        applied,
        plan: None,
        repository: RepositoryDocument::of(&snapshot.repository),
    })
}

fn host_document(standing: &HostStanding) -> Option<HostDocument> {
    let RemoteReading::Resolved { name, slug, forge } = &standing.remote else { return None };
    let issues = standing.issues.iter().map(IssueDocument::of).collect();
    Some(HostDocument { remote: name.clone(), repository: slug.to_string(), forge: forge.as_str(), issues })
}

/// One line on where pull requests go.
fn host_line(host: &HostDocument) -> String {
    let summaries: String = host.issues.iter().map(|issue| format!("; {}", issue.summary)).collect();
    format!("host: {} at `{}` ({}){}\n", one_line(&host.repository), one_line(&host.remote), host.forge, summaries)
}

fn told(
    app: &App,
    engine: &Engine,
    (snapshot, report): (&Snapshot, &RepoHealthReport),
    arguments: &Arguments,
    applied: Vec<String>,
) -> Result<Reply, Failure> {
    let mut document = document(engine, (snapshot, report), arguments, applied)?;
    let mut text = issues::text(&report.issues, app.style);
    if let Some(divergence) = &report.divergence {
        text.push_str("changed outside of Lattice since its last operation:\n");
        divergence.files.iter().for_each(|file| text.push_str(&format!("  {file}\n")));
        for change in &divergence.changes {
            let shown = |oid: Option<lattice_model::id::Oid>| oid.map_or("absent".to_owned(), |oid| oid.short());
            text.push_str(&format!("  {}: {} -> {}\n", change.name, shown(change.old), shown(change.new)));
        }
    }
    for event in document.ledger.iter().flatten() {
        text.push_str(&format!("{}\n", event.line()));
    }
    if arguments.explain {
        text.push_str(&explanations(app, &Explainer::new(engine, snapshot), &report.issues, &mut document));
    }
    let blocking = report.issues.iter().filter(|issue| issue.severity == Severity::Blocking).count();
    if report.issues.is_empty() {
        text.push_str("no issues\n");
    }
    document.host.iter().for_each(|host| text.push_str(&host_line(host)));
    let reply = Reply::new(document, text);
    let fixes = report.issues.iter().flat_map(|issue| &issue.fixes);
    let on_offer = fixes.filter(|fix| matches!(fix.effect, FixEffect::Plan(_))).count();
    Ok(match (blocking, on_offer) {
        (0, _) => reply,
        (_, 0) => reply.code(Code::Failed),
        (_, _) => reply.code(Code::Failed).note("apply a fix with: lattice doctor --fix <id>"),
    })
}

fn explanations(app: &App, explainer: &Explainer<'_>, issues: &[Issue], document: &mut DoctorDocument) -> String {
    let mut text = String::new();
    for (issue, slot) in issues.iter().zip(&mut document.issues) {
        let explanation = explainer.explain(issue);
        text.push_str(&format!("\n{}\n{}", app.style.bold(issue.id.as_str()), explain::text(&explanation)));
        slot.explanation = Some(explanation);
    }
    text
}
