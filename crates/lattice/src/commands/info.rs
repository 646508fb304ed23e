//! `info`: one branch in detail.

use clap::Args;
use lattice_engine::DiffShape;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;

use crate::app::App;
use crate::commands::branch;
use crate::error::Failure;
use crate::output::documents::{BranchDocument, CommitDocument, DivergenceDocument, InfoDocument, RepositoryDocument};
use crate::output::{Reply, printable};

/// Show a branch: parent, base, commits, and what it changes
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    /// With the difference to its base
    #[arg(long, visible_alias = "patch", conflicts_with = "stat")]
    diff: bool,
    /// With the number of changed lines per file
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    let observed = engine.glance("info")?;
    let snapshot = &observed.snapshot;
    let branch = arguments.branch.clone().or_else(|| snapshot.head.branch().cloned());
    if let Some(named) = &arguments.branch
        && snapshot.tip(named).is_none()
    {
        return Err(Failure::new("no-such-branch", snapshot.no_branch(named)).hint("lattice log --show-untracked"));
    }
    let graph = snapshot.graph();
    let standings = engine.standings();
    let facts = branch.as_ref().and_then(|branch| BranchDocument::of(snapshot, &graph, &standings, branch));
    let position = branch.as_ref().and_then(|branch| snapshot.position(branch));
    let commits = match &position {
        Some(position) => engine.commits(&position.commits)?,
        None => Vec::new(),
    };
    let shape = match (arguments.diff, arguments.stat) {
        (true, _) => Some(DiffShape::Patch),
        (_, true) => Some(DiffShape::Stat),
        (false, false) => None,
    };
    let range = branch.as_ref().and_then(|branch| Some((position.as_ref()?.fork?, snapshot.tip(branch)?)));
    let diff = match (shape, range) {
        (Some(shape), Some((from, to))) => Some(engine.diff(from, to, shape)?),
        _ => None,
    };
    let commit = |commit: &lattice_engine::CommitLine| CommitDocument {
        id: commit.commit.to_string(),
        subject: commit.subject.clone(),
        author: commit.author.clone(),
        date: commit.date.clone(),
    };
    let document = InfoDocument {
        repository: RepositoryDocument::of(&snapshot.repository),
        branch: facts,
        commits: commits.iter().map(commit).collect(),
        diff,
        divergence: snapshot.divergence.as_ref().map(DivergenceDocument::of),
    };
    let hint = match (&branch, &document.branch) {
        (None, _) => Some("lattice checkout <branch>".to_owned()),
        (Some(name), None) if snapshot.is_trunk(name) => None,
        (Some(name), None) => Some(format!("lattice track {} --parent <branch> puts it on a stack", name.word())),
        (Some(_), Some(_)) => None,
    };
    let text = text(snapshot, &document, branch.as_ref());
    let reply = Reply::new(document, text);
    Ok(match hint {
        Some(hint) => reply.note(hint),
        None => reply,
    })
}

fn text(snapshot: &Snapshot, document: &InfoDocument, branch: Option<&BranchName>) -> String {
    let Some(name) = branch else { return "HEAD is on no branch\n".to_owned() };
    let Some(facts) = &document.branch else {
        let what = if snapshot.is_trunk(name) { "the trunk: stacks stand on it" } else { "not tracked" };
        return format!("{name}\n  {what}\n");
    };
    let mut text = format!("{name}\n");
    for (key, value) in facts.lines() {
        text.push_str(&format!("  {key:<9} {value}\n"));
    }
    for commit in &document.commits {
        text.push_str(&format!(
            "  {} {} ({})\n",
            &commit.id[..8],
            printable(&commit.subject),
            printable(&commit.author)
        ));
    }
    if let Some(diff) = &document.diff {
        text.push('\n');
        text.push_str(&printable(diff));
    }
    text
}
