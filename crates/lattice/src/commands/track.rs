//! `track`: starts tracking a branch.

use clap::Args;
use lattice_engine::{Engine, WorkingCopyNeed};
use lattice_model::command::track::{FreezeOnTrack, Retrack, Track};
use lattice_model::gate::Refusal;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;
use crate::pick;

/// Start tracking a branch
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    /// The branch below it
    #[arg(long, value_parser = branch)]
    parent: Option<BranchName>,
    /// Take the nearest tracked branch below as the parent, and write it even if the branch is tracked
    #[arg(long)]
    force: bool,
    /// Protect the branch from being rewritten
    #[arg(long)]
    as_frozen: bool,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let parent = match (&arguments.parent, arguments.force) {
        (Some(parent), _) => Some(parent.clone()),
        (None, true) => None,
        (None, false) => Some(ask(app, arguments.branch.as_ref())?),
    };
    let build = |engine: &Engine, snapshot: &Snapshot| {
        let branch = arguments.branch.clone().or_else(|| snapshot.head.branch().cloned());
        let parent = match (&parent, &branch) {
            (Some(parent), _) => parent.clone(),
            (None, Some(branch)) => nearest(engine, snapshot, branch)?,
            (None, None) => return Err(Refusal::new("no-current-branch", "HEAD is on no branch")),
        };
        let merge_base = branch.as_ref().and_then(|branch| engine.merge_base(snapshot, branch, &parent));
        Ok(Track {
            branch,
            parent,
            merge_base,
            retrack: if arguments.force { Retrack::Allow } else { Retrack::Refuse },
            freeze: if arguments.as_frozen { FreezeOnTrack::Yes } else { FreezeOnTrack::No },
        })
    };
    change(app, ("track", arguments.preview), WorkingCopyNeed::No, build)
}

fn ask(app: &App, branch: Option<&BranchName>) -> Result<BranchName, Failure> {
    let snapshot = app.engine()?.observe("track", WorkingCopyNeed::No)?.snapshot;
    if let Some(branch) = branch.filter(|branch| snapshot.tip(branch).is_none()) {
        return Err(Failure::new("no-such-branch", format!("there is no branch `{branch}`"))
            .hint(format!("lattice create {} makes one", branch.word())));
    }
    let needed = || {
        Failure::usage("the parent is needed")
            .hint("say which: --parent <branch>, or --force for the nearest one below")
    };
    if app.interaction == Interaction::Never {
        return Err(needed());
    }
    let candidates = candidates(&snapshot);
    let names: Vec<_> = candidates.iter().map(ToString::to_string).collect();
    pick::pick("On which branch does it stand?", &names).map(|at| candidates[at].clone()).ok_or_else(needed)
}

fn candidates(snapshot: &Snapshot) -> Vec<BranchName> {
    let tracked = snapshot.tracked().map(|(metadata, _)| metadata.name.clone());
    snapshot.settings.trunk.clone().into_iter().chain(tracked).collect()
}

/// The tracked branch or trunk whose tip is below `branch` and closest to it.
fn nearest(engine: &Engine, snapshot: &Snapshot, branch: &BranchName) -> Result<BranchName, Refusal> {
    let above = snapshot.graph().upstack(branch);
    let possible = |candidate: &BranchName| candidate != branch && !above.contains(candidate);
    let candidates: Vec<_> = candidates(snapshot).into_iter().filter(possible).collect();
    // What git cannot tell is as doubtful as what it finds several answers to.
    let nearest = engine.nearest_below(snapshot, branch, &candidates).unwrap_or_default();
    let lowest_first = snapshot.graph().topological();
    // Of branches at the same commit, one that stands on the others is nearer than those.
    let height = |name: &BranchName| lowest_first.iter().position(|other| other == name);
    let stands_on = |one: &BranchName, other: &BranchName| snapshot.graph().upstack(other).contains(one);
    let top = nearest.iter().max_by_key(|name| height(name));
    let top = top.filter(|top| nearest.iter().all(|other| other == *top || stands_on(top, other)));
    top.cloned().ok_or_else(|| {
        Refusal::new("no-parent-found", format!("no tracked branch is clearly the nearest below `{branch}`"))
            .hint("say which: --parent <branch>")
    })
}
