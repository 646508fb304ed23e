//! `log`: draws the stacks.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use lattice_engine::{CommitLine, Engine, Evidence, WorkingCopyNeed};
use lattice_model::name::BranchName;
use lattice_model::plan::count;
use lattice_model::snapshot::{OpStateReading, Snapshot};

use crate::app::App;
use crate::error::Failure;
use crate::output::documents::{BranchDocument, DivergenceDocument, LogDocument};
use crate::output::graph::{self, Row};
use crate::output::{Reply, printable};

/// Draw the stacks: tips on top, the trunk at the bottom
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Every stack (this is the default)
    #[arg(long, conflicts_with = "stack")]
    all: bool,
    /// Only the stack of the current branch
    #[arg(long)]
    stack: bool,
    /// Only names
    #[arg(long, conflicts_with = "long")]
    short: bool,
    /// With the commits of each branch
    #[arg(long)]
    long: bool,
    /// With branches that are not tracked
    #[arg(long)]
    show_untracked: bool,
}

/// Draw the stacks with names only
#[derive(Debug, Args)]
pub(crate) struct ShortArguments {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Names,
    Usual,
    Commits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    Stack,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let detail = match (arguments.short, arguments.long) {
        (true, _) => Detail::Names,
        (_, true) => Detail::Commits,
        (false, false) => Detail::Usual,
    };
    // `--all` spells out the default, for scripts that want to be sure.
    let extent = if arguments.stack && !arguments.all { Extent::Stack } else { Extent::All };
    log(app, detail, extent, arguments.show_untracked)
}

pub(crate) fn run_short(app: &App, _arguments: &ShortArguments) -> Result<Reply, Failure> {
    log(app, Detail::Names, Extent::All, false)
}

/// What `lattice` says without a command: the state, and what to do next.
pub(crate) fn overview(app: &App) -> Result<Reply, Failure> {
    let reply = log(app, Detail::Usual, Extent::All, false)?;
    let initialised = reply.fields["trunk"].is_string();
    Ok(if initialised { reply.note("lattice --help lists the commands") } else { reply })
}

fn log(app: &App, detail: Detail, extent: Extent, untracked: bool) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    let observed = engine.observe("log", WorkingCopyNeed::No)?;
    let snapshot = &observed.snapshot;
    let shown = shown(snapshot, extent);
    let document = document(snapshot, &shown);
    let mut text = drawing(app, &engine, snapshot, (&shown, detail), &document)?;
    if untracked {
        document.untracked.iter().for_each(|name| text.push_str(&format!("  {}  (untracked)\n", printable(name))));
    }
    let mut reply = Reply::new(&document, text);
    for (branch, reason) in &document.unreadable {
        reply = reply
            .note(format!("{branch} is left out, its metadata cannot be used: {reason}; lattice doctor says more"));
    }
    if let Evidence::NotRecorded(reason) = observed.evidence {
        reply = reply.note(format!("changes made outside of Lattice were seen and could not be recorded: {reason}"));
    }
    Ok(remarks(snapshot, reply))
}

/// What a reader should know besides the drawing.
fn remarks(snapshot: &Snapshot, reply: Reply) -> Reply {
    let mut reply = reply;
    match &snapshot.op_state {
        OpStateReading::Present(state) => {
            reply = reply.note(format!("`{}` is in progress: lattice continue, or lattice abort", state.command));
        }
        OpStateReading::Damaged { .. } => reply = reply.note("an operation was cut off: lattice doctor"),
        OpStateReading::Absent => {}
    }
    if snapshot.settings.trunk.is_none() {
        reply = reply.note("Lattice is not set up here: lattice init");
    } else if snapshot.trunk().is_none() {
        reply = reply.note("the configured trunk does not exist: lattice doctor");
    } else if snapshot.metadata.is_empty() {
        reply = reply.note("no branch is tracked yet: lattice create <name>, or lattice track");
    }
    let lost = snapshot.tracked().filter(|(metadata, _)| !leads_to_trunk(snapshot, &metadata.name)).count();
    if lost > 0 {
        reply = reply.note(format!(
            "{} not lead to the trunk: lattice doctor",
            if lost == 1 { "1 branch does".to_owned() } else { format!("{lost} branches do") }
        ));
    }
    reply
}

fn leads_to_trunk(snapshot: &Snapshot, branch: &BranchName) -> bool {
    let graph = snapshot.graph();
    let lowest = graph.downstack(branch).first().cloned().unwrap_or_else(|| branch.clone());
    graph.parent(&lowest) == snapshot.settings.trunk.as_ref()
}

fn shown(snapshot: &Snapshot, extent: Extent) -> BTreeSet<BranchName> {
    let graph = snapshot.graph();
    match (extent, snapshot.head.branch()) {
        (Extent::Stack, Some(current)) if graph.contains(current) => {
            let around = graph.downstack(current).into_iter().chain(graph.upstack(current));
            around.chain([current.clone()]).collect()
        }
        (Extent::Stack | Extent::All, _) => snapshot.tracked().map(|(metadata, _)| metadata.name.clone()).collect(),
    }
}

fn document(snapshot: &Snapshot, shown: &BTreeSet<BranchName>) -> LogDocument {
    let graph = snapshot.graph();
    let mut order: Vec<_> = graph.topological().into_iter().filter(|branch| shown.contains(branch)).collect();
    let placed: BTreeSet<_> = order.iter().cloned().collect();
    // Branches that do not lead to the trunk are broken, not invisible.
    order.extend(shown.iter().filter(|branch| !placed.contains(*branch)).cloned());
    let is_trunk = |branch: &BranchName| snapshot.settings.trunk.as_ref() == Some(branch);
    let untracked =
        snapshot.branches.keys().filter(|branch| !is_trunk(branch) && !snapshot.metadata.contains_key(*branch));
    let unreadable = snapshot
        .metadata
        .iter()
        .filter_map(|(branch, reading)| Some((branch.to_string(), reading.content.as_ref().err()?.to_string())));
    LogDocument {
        trunk: snapshot.settings.trunk.as_ref().map(ToString::to_string),
        current: snapshot.head.branch().map(ToString::to_string),
        branches: order.iter().filter_map(|branch| BranchDocument::of(snapshot, &graph, branch)).collect(),
        untracked: untracked
            .map(ToString::to_string)
            .chain(snapshot.unusable.iter().map(|name| name.name.clone()))
            .collect(),
        unreadable: unreadable.collect(),
        divergence: snapshot.divergence.as_ref().map(DivergenceDocument::of),
        operation: match &snapshot.op_state {
            OpStateReading::Present(state) => Some(state.op.to_string()),
            OpStateReading::Absent | OpStateReading::Damaged { .. } => None,
        },
    }
}

fn drawing(
    app: &App,
    engine: &Engine,
    snapshot: &Snapshot,
    (shown, detail): (&BTreeSet<BranchName>, Detail),
    document: &LogDocument,
) -> Result<String, Failure> {
    let graph = snapshot.graph();
    let current = snapshot.head.branch();
    let mut rows = Vec::new();
    if let Some(trunk) = &snapshot.settings.trunk {
        rows = graph::draw(&graph, trunk, current, shown, app.style);
    }
    let drawn: BTreeSet<_> = rows.iter().map(|row| row.branch.clone()).collect();
    let lost = shown.iter().filter(|branch| !drawn.contains(*branch));
    rows.extend(lost.map(|branch| Row { drawing: "?".to_owned(), below: String::new(), branch: branch.clone() }));
    let lines = match detail {
        Detail::Commits => commit_lines(engine, snapshot, &rows)?,
        Detail::Names | Detail::Usual => BTreeMap::new(),
    };
    let facts: BTreeMap<&str, &BranchDocument> =
        document.branches.iter().map(|branch| (branch.name.as_str(), branch)).collect();
    let width =
        rows.iter().map(|row| row.drawing.chars().count() + 1 + row.branch.as_str().chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in &rows {
        let name = printable(row.branch.as_str());
        let remarks = match (detail, facts.get(row.branch.as_str())) {
            (Detail::Names, _) => Vec::new(),
            (Detail::Usual | Detail::Commits, Some(branch)) => remarks_of(app, snapshot, branch),
            (Detail::Usual | Detail::Commits, None) => vec![app.style.dim("trunk")],
        };
        let here = current == Some(&row.branch);
        let shown_name = if here { app.style.bold(&name) } else { name.clone() };
        let pad = width.saturating_sub(row.drawing.chars().count() + 1 + name.chars().count());
        let line = format!("{} {shown_name}{}  {}", row.drawing, " ".repeat(pad), remarks.join("  "));
        text.push_str(line.trim_end());
        text.push('\n');
        if detail == Detail::Commits {
            text.push_str(&commits(app, row, lines.get(&row.branch).map(Vec::as_slice).unwrap_or_default()));
        }
    }
    Ok(text)
}

fn remarks_of(app: &App, snapshot: &Snapshot, branch: &BranchDocument) -> Vec<String> {
    let style = app.style;
    let mut remarks = vec![style.dim(&count(branch.commits, "commit"))];
    if branch.needs_restack {
        remarks.push(style.warn("needs restack"));
    }
    if branch.frozen {
        remarks.push("frozen".to_owned());
    }
    if let Some(pr) = &branch.pr {
        remarks.push(pr.text());
    }
    let here = snapshot.repository.work_dir.as_ref().map(|path| path.display().to_string());
    if branch.checked_out.is_some() && branch.checked_out != here {
        remarks.push(format!("in {}", printable(branch.checked_out.as_deref().unwrap_or_default())));
    }
    if snapshot.head.branch().is_some_and(|current| current.as_str() == branch.name) {
        remarks.push(style.good("(current)"));
    }
    remarks
}

/// The commits of every row, read at once: a process per branch would make long stacks slow.
fn commit_lines(
    engine: &Engine,
    snapshot: &Snapshot,
    rows: &[Row],
) -> Result<BTreeMap<BranchName, Vec<CommitLine>>, Failure> {
    let own = |row: &Row| Some((row.branch.clone(), snapshot.position(&row.branch)?.commits));
    let own: Vec<_> = rows.iter().filter_map(own).collect();
    let ids: BTreeSet<_> = own.iter().flat_map(|(_, commits)| commits.iter().copied()).collect();
    let lines = engine.commits(&ids.into_iter().collect::<Vec<_>>())?;
    let lines: BTreeMap<_, _> = lines.into_iter().map(|line| (line.commit, line)).collect();
    let of_branch = |commits: Vec<_>| commits.iter().filter_map(|commit| lines.get(commit).cloned()).collect();
    Ok(own.into_iter().map(|(branch, commits)| (branch, of_branch(commits))).collect())
}

fn commits(app: &App, row: &Row, lines: &[CommitLine]) -> String {
    let line = |commit: &CommitLine| {
        format!("{}   {} {}\n", row.below, app.style.dim(&commit.commit.short()), printable(&commit.subject))
    };
    lines.iter().map(line).collect()
}
