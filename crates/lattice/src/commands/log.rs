//! `log`: draws the stacks.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use lattice_engine::{CommitLine, Engine, Evidence, WorkingCopyNeed};
use lattice_model::graph::StackGraph;
use lattice_model::id::Oid;
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
    let initialised = reply.field("trunk").is_string();
    Ok(if initialised { reply.note("lattice --help lists the commands") } else { reply })
}

fn log(app: &App, detail: Detail, extent: Extent, untracked: bool) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    let observed = engine.observe("log", WorkingCopyNeed::No)?;
    let snapshot = &observed.snapshot;
    let graph = snapshot.graph();
    let shown = shown(snapshot, &graph, extent);
    let document = document(snapshot, &graph, &shown);
    let view = View { app, engine: &engine, snapshot, graph: &graph, detail };
    let mut text = view.drawing(&shown, &document)?;
    if untracked {
        document.untracked.iter().for_each(|name| text.push_str(&format!("  {}  (untracked)\n", printable(name))));
    }
    let unreadable = document.unreadable.clone();
    let mut reply = Reply::new(document, text);
    for (branch, reason) in &unreadable {
        reply = reply
            .note(format!("{branch} is left out, its metadata cannot be used: {reason}; lattice doctor says more"));
    }
    if let Evidence::NotRecorded(reason) = observed.evidence {
        reply = reply.note(format!("changes made outside of Lattice were seen and could not be recorded: {reason}"));
    }
    Ok(remarks(snapshot, &graph, reply))
}

/// What a reader should know besides the drawing.
fn remarks(snapshot: &Snapshot, graph: &StackGraph, reply: Reply) -> Reply {
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
    let lost = snapshot.tracked().count() - graph.topological().len();
    if lost > 0 {
        let which = if lost == 1 { "1 branch does".to_owned() } else { format!("{lost} branches do") };
        reply = reply.note(format!("{which} not lead to the trunk: lattice doctor"));
    }
    reply
}

fn shown(snapshot: &Snapshot, graph: &StackGraph, extent: Extent) -> BTreeSet<BranchName> {
    match (extent, snapshot.head.branch()) {
        (Extent::Stack, Some(current)) if graph.contains(current) => {
            let around = graph.downstack(current).into_iter().chain(graph.upstack(current));
            around.chain([current.clone()]).collect()
        }
        (Extent::Stack | Extent::All, _) => snapshot.tracked().map(|(metadata, _)| metadata.name.clone()).collect(),
    }
}

fn document(snapshot: &Snapshot, graph: &StackGraph, shown: &BTreeSet<BranchName>) -> LogDocument {
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
        branches: order.iter().filter_map(|branch| BranchDocument::of(snapshot, graph, branch)).collect(),
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

/// Everything that drawing a line needs.
struct View<'a> {
    app: &'a App,
    engine: &'a Engine,
    snapshot: &'a Snapshot,
    graph: &'a StackGraph,
    detail: Detail,
}

impl View<'_> {
    fn drawing(&self, shown: &BTreeSet<BranchName>, document: &LogDocument) -> Result<String, Failure> {
        let current = self.snapshot.head.branch();
        let mut rows = Vec::new();
        if let Some(trunk) = &self.snapshot.settings.trunk {
            rows = graph::draw(self.graph, trunk, current, shown, self.app.style);
        }
        let drawn: BTreeSet<_> = rows.iter().map(|row| row.branch.clone()).collect();
        let lost = shown.iter().filter(|branch| !drawn.contains(*branch));
        rows.extend(lost.map(|branch| Row { drawing: "?".to_owned(), below: String::new(), branch: branch.clone() }));
        let facts: BTreeMap<&str, &BranchDocument> =
            document.branches.iter().map(|branch| (branch.name.as_str(), branch)).collect();
        let width = rows.iter().map(|row| columns(&row.drawing) + 1 + columns(row.branch.as_str())).max().unwrap_or(0);
        let mut text = String::new();
        let subjects = self.subjects(&rows)?;
        for row in &rows {
            text.push_str(&self.line(row, facts.get(row.branch.as_str()).copied(), width));
            for commit in self.own_commits(&row.branch).iter().filter_map(|commit| subjects.get(commit)) {
                let id = self.app.style.dim(&commit.commit.short());
                text.push_str(&format!("{}   {id} {}\n", row.below, printable(&commit.subject)));
            }
        }
        Ok(text)
    }

    fn line(&self, row: &Row, facts: Option<&BranchDocument>, width: usize) -> String {
        let name = printable(row.branch.as_str());
        let remarks = match (self.detail, facts) {
            (Detail::Names, _) => Vec::new(),
            (Detail::Usual | Detail::Commits, Some(branch)) => self.remarks(branch),
            (Detail::Usual | Detail::Commits, None) => vec![self.app.style.dim("trunk")],
        };
        let here = self.snapshot.head.branch() == Some(&row.branch);
        let shown = if here { self.app.style.bold(&name) } else { name.clone() };
        let pad = width.saturating_sub(columns(&row.drawing) + 1 + columns(&name));
        let line = format!("{} {shown}{}  {}", row.drawing, " ".repeat(pad), remarks.join("  "));
        format!("{}\n", line.trim_end())
    }

    fn remarks(&self, branch: &BranchDocument) -> Vec<String> {
        let style = self.app.style;
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
        let here = self.snapshot.repository.work_dir.as_ref().map(|path| path.display().to_string());
        if branch.checked_out.is_some() && branch.checked_out != here {
            remarks.push(format!("in {}", printable(branch.checked_out.as_deref().unwrap_or_default())));
        }
        if self.snapshot.head.branch().is_some_and(|current| current.as_str() == branch.name) {
            remarks.push(style.good("(current)"));
        }
        remarks
    }

    /// All commits that are shown, read with one process.
    fn subjects(&self, rows: &[Row]) -> Result<BTreeMap<Oid, CommitLine>, Failure> {
        let ids: Vec<_> = rows.iter().flat_map(|row| self.own_commits(&row.branch)).collect();
        Ok(self.engine.commits(&ids)?.into_iter().map(|commit| (commit.commit, commit)).collect())
    }

    fn own_commits(&self, branch: &BranchName) -> Vec<Oid> {
        match self.detail {
            Detail::Names | Detail::Usual => Vec::new(),
            Detail::Commits => self.snapshot.position(branch).map(|position| position.commits).unwrap_or_default(),
        }
    }
}

/// How many columns a name takes, near enough for aligning.
fn columns(text: &str) -> usize {
    text.chars().count()
}
