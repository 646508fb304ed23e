//! `log`: draws the stacks.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use clap::Args;
use lattice_engine::{CommitLine, Engine, Evidence};
use lattice_model::graph::StackGraph;
use lattice_model::history::Ancestry;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::count;
use lattice_model::snapshot::{ConfigReading, Head, OpStateReading, Snapshot};

use crate::app::App;
use crate::error::Failure;
use crate::output::documents::{BranchDocument, DivergenceDocument, LogDocument, PrDocument, Standings};
use crate::output::graph::{self, Row};
use crate::output::table::width;
use crate::output::{Document, Lazy, Reply, printable};

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
    let observed = engine.glance("log")?;
    let snapshot = observed.snapshot;
    let graph = snapshot.graph();
    let placed = graph.topological();
    let lost = snapshot.tracked().count() - placed.len();
    let shown = shown(&snapshot, &graph, extent);
    let standings = engine.standings();
    let view = View { app, engine: &engine, snapshot: &snapshot, graph: &graph, standings: &standings, detail };
    let mut text = view.drawing(&shown)?;
    if untracked {
        self::untracked(&snapshot).for_each(|name| text.push_str(&format!("  {}  (untracked)\n", printable(&name))));
    }
    let mut notes: Vec<_> = unreadable(&snapshot)
        .map(|(branch, reason)| {
            format!("{branch} is left out, its metadata cannot be used: {reason}; lattice doctor says more")
        })
        .collect();
    if let Evidence::NotRecorded(reason) = observed.evidence {
        notes.push(format!("changes made outside of Lattice were seen and could not be recorded: {reason}"));
    }
    notes.extend(remarks(&snapshot, lost));
    let mut reply = Reply::named(
        LogDocument::COMMAND,
        Lazy(move || document(&snapshot, &graph, &standings, (placed.clone(), &shown))),
        text,
    );
    reply.notes = notes;
    Ok(reply)
}

/// Local branches that Lattice does not manage, whatever their names look like.
fn untracked(snapshot: &Snapshot) -> impl Iterator<Item = String> {
    let branches = snapshot.branches.keys();
    let branches = branches.filter(|branch| !snapshot.is_trunk(branch) && !snapshot.metadata.contains_key(*branch));
    branches.map(ToString::to_string).chain(snapshot.unusable.iter().map(|name| name.name.clone()))
}

/// Branches whose documents cannot be used, and why.
fn unreadable(snapshot: &Snapshot) -> impl Iterator<Item = (String, String)> {
    snapshot
        .metadata
        .iter()
        .filter_map(|(branch, reading)| Some((branch.to_string(), reading.content.as_ref().err()?.to_string())))
}

/// What a reader should know besides the drawing.
fn remarks(snapshot: &Snapshot, lost: usize) -> Vec<String> {
    let mut notes = Vec::new();
    match &snapshot.op_state {
        OpStateReading::Present(state) => {
            notes.push(format!("`{}` is in progress: lattice continue, or lattice abort", state.command));
        }
        OpStateReading::Damaged { .. } => notes.push("an operation was cut off: lattice doctor".to_owned()),
        OpStateReading::Absent => notes.extend(elsewhere(snapshot)),
    }
    let file = snapshot.repository.common_dir.join("lattice").join("config.toml");
    if let ConfigReading::Invalid { reason, .. } = &snapshot.config {
        notes.push(format!("{} is broken: {reason}; lattice doctor says what can be done", file.display()));
    } else if let ConfigReading::Foreign { .. } = &snapshot.config {
        notes.push(format!("{} is that of another program: lattice doctor offers to convert it", file.display()));
    } else if snapshot.settings.trunk.is_none() {
        notes.push("Lattice is not set up here: lattice init".to_owned());
    } else if snapshot.trunk().is_none() {
        notes.push("the configured trunk does not exist: lattice doctor".to_owned());
    } else if snapshot.metadata.is_empty() {
        notes.push("no branch is tracked yet: lattice create <name>, or lattice track".to_owned());
    }
    for gone in snapshot.metadata.keys().filter(|branch| !snapshot.branches.contains_key(*branch)) {
        notes.push(format!("{gone} was deleted or renamed outside of Lattice: lattice doctor"));
    }
    for (metadata, _) in snapshot.tracked().filter(|(metadata, _)| has_left_its_base(snapshot, &metadata.name)) {
        notes.push(format!("{} does not stand on its base any more: lattice doctor", metadata.name));
    }
    if lost > 0 {
        let which = if lost == 1 { "1 branch does".to_owned() } else { format!("{lost} branches do") };
        notes.push(format!("{which} not lead to the trunk: lattice doctor"));
    }
    notes
}

/// Whether a branch was rewritten outside of Lattice, so that nothing says what its own commits are.
fn has_left_its_base(snapshot: &Snapshot, branch: &BranchName) -> bool {
    match snapshot.position(branch).and_then(|position| position.base) {
        Some(Ancestry::NotAncestor | Ancestry::Missing) => true,
        Some(Ancestry::Ancestor) | None => false,
    }
}

/// Where one is, if the drawing does not have it.
fn elsewhere(snapshot: &Snapshot) -> Option<String> {
    match &snapshot.head {
        Head::Branch { name, .. } if !snapshot.metadata.is_empty() && !snapshot.is_trunk(name) => {
            let is_drawn = snapshot.metadata.contains_key(name);
            (!is_drawn).then(|| format!("you are on {name}, which is not tracked: lattice track --parent <branch>"))
        }
        Head::Detached(commit) => {
            Some(format!("HEAD is on no branch, at {}: lattice checkout <branch> goes to one", commit.short()))
        }
        Head::Branch { .. } | Head::Unborn(_) | Head::Unusable(_) => None,
    }
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

fn document(
    snapshot: &Snapshot,
    graph: &StackGraph,
    standings: &Standings,
    (mut order, shown): (Vec<BranchName>, &BTreeSet<BranchName>),
) -> LogDocument {
    order.retain(|branch| shown.contains(branch));
    let placed: BTreeSet<_> = order.iter().cloned().collect();
    // Branches that do not lead to the trunk are broken, not invisible.
    order.extend(shown.iter().filter(|branch| !placed.contains(*branch)).cloned());
    LogDocument {
        trunk: snapshot.settings.trunk.as_ref().map(ToString::to_string),
        current: snapshot.head.branch().map(ToString::to_string),
        branches: order.iter().filter_map(|branch| BranchDocument::of(snapshot, graph, standings, branch)).collect(),
        untracked: untracked(snapshot).collect(),
        unreadable: unreadable(snapshot).collect(),
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
    standings: &'a Standings,
    detail: Detail,
}

impl View<'_> {
    fn drawing(&self, shown: &BTreeSet<BranchName>) -> Result<String, Failure> {
        let current = self.snapshot.head.branch();
        let mut rows = Vec::new();
        if let Some(trunk) = &self.snapshot.settings.trunk {
            rows = graph::draw(self.graph, trunk, current, shown, self.app.style);
        }
        let drawn: HashSet<_> = rows.iter().map(|row| row.branch.clone()).collect();
        let lost = shown.iter().filter(|branch| !drawn.contains(*branch));
        rows.extend(lost.map(|branch| Row { drawing: "?".to_owned(), below: String::new(), branch: branch.clone() }));
        let names = rows.iter().map(|row| width(&row.drawing) + 1 + width(row.branch.as_str()));
        // What is said of branches stands in a column, which one long name does not push out of the terminal.
        let most = self.app.style.columns.map_or(usize::MAX, |columns| columns / 2);
        let names = names.filter(|wide| *wide <= most).max().unwrap_or(0);
        let mut text = String::new();
        let subjects = self.subjects(&rows)?;
        for row in &rows {
            text.push_str(&self.line(row, names));
            for commit in self.own_commits(&row.branch).iter().filter_map(|commit| subjects.get(commit)) {
                let id = self.app.style.dim(&commit.commit.short());
                text.push_str(&format!("{}   {id} {}\n", row.below, printable(&commit.subject)));
            }
        }
        Ok(text)
    }

    /// A branch with what is said of it, which goes below its name where there is no room beside it.
    fn line(&self, row: &Row, names: usize) -> String {
        let name = printable(row.branch.as_str());
        let remarks = match self.detail {
            Detail::Names => Vec::new(),
            Detail::Usual | Detail::Commits => self.remarks(&row.branch),
        };
        let here = self.snapshot.head.branch() == Some(&row.branch);
        let shown = if here { self.app.style.bold(&name) } else { name.clone() };
        let pad = names.saturating_sub(width(&row.drawing) + 1 + width(&name));
        let remarks = remarks.join("  ");
        let line = format!("{} {shown}{}  {remarks}", row.drawing, " ".repeat(pad));
        match self.app.style.columns {
            Some(columns) if width(&line) > columns && !remarks.is_empty() => {
                format!("{} {shown}\n{}   {remarks}\n", row.drawing, row.below)
            }
            Some(_) | None => format!("{}\n", line.trim_end()),
        }
    }

    fn remarks(&self, branch: &BranchName) -> Vec<String> {
        let style = self.app.style;
        let Some((metadata, _)) = self.snapshot.metadata_of(branch) else { return vec![style.dim("trunk")] };
        let commits = self.snapshot.position(branch).map_or(0, |position| position.commits.len());
        let mut remarks = vec![style.dim(&count(commits, "commit"))];
        if self.snapshot.needs_restack(branch) {
            remarks.push(style.warn("needs restack"));
        }
        if metadata.freeze.is_frozen() {
            remarks.push("frozen".to_owned());
        }
        if let Some(pr) = PrDocument::of(&metadata.pr, self.standings) {
            remarks.push(pr.text());
        }
        let here = self.snapshot.repository.work_dir.as_ref();
        if let Some(elsewhere) = self.snapshot.worktrees.get(branch).filter(|path| Some(*path) != here) {
            let gone = if self.snapshot.gone_worktrees.contains(elsewhere) { ", which is gone" } else { "" };
            remarks.push(format!("in {}{gone}", printable(&elsewhere.display().to_string())));
        }
        if self.snapshot.head.branch() == Some(branch) {
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
