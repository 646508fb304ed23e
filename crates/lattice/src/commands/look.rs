//! `parent` and `children`: one step down, one step up, without going there.

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;

use crate::app::App;
use crate::commands::branch;
use crate::error::Failure;
use crate::output::Reply;
use crate::output::documents::{ChildrenDocument, ParentDocument};

/// Print the branch that a branch stands on
#[derive(Debug, Args)]
pub(crate) struct ParentArguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
}

/// Print the branches that stand on a branch
#[derive(Debug, Args)]
pub(crate) struct ChildrenArguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
}

pub(crate) fn run_parent(app: &App, arguments: &ParentArguments) -> Result<Reply, Failure> {
    let snapshot = app.engine()?.observe("parent", WorkingCopyNeed::No)?.snapshot;
    let branch = resolve(&snapshot, arguments.branch.as_ref())?;
    let parent = snapshot.metadata_of(&branch).map(|(metadata, _)| metadata.parent.name().to_string());
    let text = parent.as_ref().map(|parent| format!("{parent}\n")).unwrap_or_default();
    let reply = Reply::new(ParentDocument { branch: branch.to_string(), parent: parent.clone() }, text);
    Ok(match parent {
        Some(_) => reply,
        None => reply.note(format!("{branch} stands on nothing that is tracked")),
    })
}

pub(crate) fn run_children(app: &App, arguments: &ChildrenArguments) -> Result<Reply, Failure> {
    let snapshot = app.engine()?.observe("children", WorkingCopyNeed::No)?.snapshot;
    let branch = resolve(&snapshot, arguments.branch.as_ref())?;
    let children: Vec<_> = snapshot.graph().children(&branch).map(ToString::to_string).collect();
    let text: String = children.iter().map(|child| format!("{child}\n")).collect();
    Ok(Reply::new(ChildrenDocument { branch: branch.to_string(), children }, text))
}

fn resolve(snapshot: &Snapshot, named: Option<&BranchName>) -> Result<BranchName, Failure> {
    match named {
        Some(name) if snapshot.tip(name).is_none() => {
            Err(Failure::new("no-such-branch", snapshot.no_branch(name)).hint("lattice log --show-untracked"))
        }
        Some(name) => Ok(name.clone()),
        None => snapshot.head.branch().cloned().ok_or_else(|| {
            Failure::new("no-current-branch", "HEAD is on no branch").hint("name a branch, or check one out")
        }),
    }
}
