//! Commands that edit the branches of a stack: reorder, split, squash, fold, pop, delete, rename, revert.

mod hunks;

use clap::Args;
use lattice_engine::{Engine, WorkingCopyNeed};
use lattice_model::command::delete::{Delete, DeleteReach, Pop};
use lattice_model::command::fold::{Fold, KeptName};
use lattice_model::command::rename::Rename;
use lattice_model::command::reorder::{Reorder, line};
use lattice_model::command::squash::{Revert, Split, SplitBy, Squash};
use lattice_model::gate::Refusal;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;
use crate::prompt;

/// Put the branches of the current stack into another order
#[derive(Debug, Args)]
pub(crate) struct ReorderArguments {
    /// All branches of the line, the lowest first; an editor opens if absent
    #[arg(long, value_name = "BRANCH,...", value_delimiter = ',', value_parser = branch)]
    order: Option<Vec<BranchName>>,
    #[command(flatten)]
    preview: Preview,
}

/// Make several branches of the current one
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("by").required(true))]
pub(crate) struct SplitArguments {
    /// Every commit becomes a branch; the newest keeps the name
    #[arg(long, group = "by")]
    by_commit: bool,
    /// The changes of these files become a branch below
    #[arg(long, value_name = "PATH", num_args = 1.., group = "by")]
    by_file: Vec<String>,
    /// These changes become a branch below, by their numbers; without numbers you are asked for each
    #[arg(long, value_name = "N,...", num_args = 0.., value_delimiter = ',', group = "by")]
    by_hunk: Option<Vec<usize>>,
    #[command(flatten)]
    preview: Preview,
}

/// Make one commit of the commits of the current branch
#[derive(Debug, Args)]
pub(crate) struct SquashArguments {
    /// The message of the commit; all messages one after another if absent
    #[arg(short, long)]
    message: Option<String>,
    #[command(flatten)]
    preview: Preview,
}

/// Make one branch of the current branch and its parent
#[derive(Debug, Args)]
pub(crate) struct FoldArguments {
    /// Keep the name of the current branch instead of that of its parent
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    preview: Preview,
}

/// Delete the current branch and keep its changes in the working tree
#[derive(Debug, Args)]
pub(crate) struct PopArguments {
    #[command(flatten)]
    preview: Preview,
}

/// Delete a branch; what stands on it moves to what is below
#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    /// With everything that stands on it
    #[arg(long, conflicts_with = "downstack")]
    upstack: bool,
    /// With everything between it and the trunk
    #[arg(long)]
    downstack: bool,
    #[command(flatten)]
    preview: Preview,
}

/// Give the current branch another name
#[derive(Debug, Args)]
pub(crate) struct RenameArguments {
    /// The new name
    #[arg(value_parser = branch)]
    name: BranchName,
    #[command(flatten)]
    preview: Preview,
}

/// Take a commit back on a new branch on the trunk
#[derive(Debug, Args)]
pub(crate) struct RevertArguments {
    /// The commit
    commit: String,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run_reorder(app: &App, arguments: &ReorderArguments) -> Result<Reply, Failure> {
    let order = match &arguments.order {
        Some(order) => order.clone(),
        None => edited_order(app)?,
    };
    let build = |_: &_, _: &_| Ok(Reorder { order: order.clone(), hooks: app.hooks });
    change(app, ("reorder", arguments.preview), WorkingCopyNeed::No, build)
}

/// Lets the user move lines around.
fn edited_order(app: &App) -> Result<Vec<BranchName>, Failure> {
    if app.interaction == Interaction::Never {
        return Err(Failure::usage("the order is needed").hint("say it: --order <lowest>,<next>,..."));
    }
    let engine = app.engine()?;
    let snapshot = engine.observe("reorder", WorkingCopyNeed::No)?.snapshot;
    let current = snapshot.head.branch().filter(|current| snapshot.is_tracked(current));
    let current = current.ok_or_else(|| Failure::usage("the current branch is no part of a stack"))?;
    let mut text: String = line(&snapshot, current).iter().map(|branch| format!("{branch}\n")).collect();
    text.push_str("\n# Move the lines into the order you want, the lowest branch first.\n");
    let file = engine.draft("REORDER");
    let edited = prompt::edit(app, &file, &text)?;
    let names = edited.lines().map(str::trim).filter(|line| !line.is_empty());
    names.map(|name| BranchName::new(name).map_err(|error| Failure::usage(error.to_string()))).collect()
}

pub(crate) fn run_split(app: &App, arguments: &SplitArguments) -> Result<Reply, Failure> {
    if let Some(numbers) = &arguments.by_hunk {
        return hunks::split(app, arguments.preview, numbers);
    }
    if !arguments.by_commit {
        return hunks::split_files(app, arguments.preview, &from_top(app, &arguments.by_file)?);
    }
    let build = |_: &_, _: &_| Ok(Split { by: SplitBy::Commit, hooks: app.hooks });
    change(app, ("split", arguments.preview), WorkingCopyNeed::No, build)
}

/// Paths as the repository has them, from paths as the user sees them.
fn from_top(app: &App, paths: &[String]) -> Result<Vec<String>, Failure> {
    let engine = app.engine()?;
    let Some(top) = engine.repository().work_dir.clone() else { return Ok(paths.to_vec()) };
    let here = std::fs::canonicalize(&app.directory).unwrap_or_else(|_| app.directory.clone());
    let mut found = Vec::new();
    for path in paths {
        let mut whole = here.clone();
        for part in std::path::Path::new(path).components() {
            match part {
                std::path::Component::ParentDir => drop(whole.pop()),
                std::path::Component::CurDir => {}
                std::path::Component::Prefix(_) | std::path::Component::RootDir | std::path::Component::Normal(_) => {
                    whole.push(part)
                }
            }
        }
        let inside = whole.strip_prefix(&top).ok().and_then(std::path::Path::to_str).filter(|path| !path.is_empty());
        let inside = inside.ok_or_else(|| {
            Failure::usage(format!("`{path}` names no file of this repository")).hint("give paths inside of it")
        })?;
        found.push(inside.to_owned());
    }
    Ok(found)
}

pub(crate) fn run_squash(app: &App, arguments: &SquashArguments) -> Result<Reply, Failure> {
    if arguments.message.as_deref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty"));
    }
    let build = |_: &_, _: &_| Ok(Squash { message: arguments.message.clone(), hooks: app.hooks });
    change(app, ("squash", arguments.preview), WorkingCopyNeed::No, build)
}

pub(crate) fn run_fold(app: &App, arguments: &FoldArguments) -> Result<Reply, Failure> {
    let name = if arguments.keep { KeptName::Current } else { KeptName::Parent };
    let build = |_: &_, _: &_| Ok(Fold { name, hooks: app.hooks });
    removing(app, || change(app, ("fold", arguments.preview), WorkingCopyNeed::No, build))
}

pub(crate) fn run_pop(app: &App, arguments: &PopArguments) -> Result<Reply, Failure> {
    let build = |_: &_, _: &_| Ok(Pop { hooks: app.hooks });
    removing(app, || change(app, ("pop", arguments.preview), WorkingCopyNeed::No, build))
}

pub(crate) fn run_delete(app: &App, arguments: &DeleteArguments) -> Result<Reply, Failure> {
    let reach = match (arguments.upstack, arguments.downstack) {
        (true, _) => DeleteReach::Upstack,
        (false, true) => DeleteReach::Downstack,
        (false, false) => DeleteReach::Only,
    };
    let build = |_: &_, _: &_| Ok(Delete { branch: arguments.branch.clone(), reach, hooks: app.hooks });
    removing(app, || change(app, ("delete", arguments.preview), WorkingCopyNeed::No, build))
}

pub(crate) fn run_rename(app: &App, arguments: &RenameArguments) -> Result<Reply, Failure> {
    let build = |_: &_, _: &_| Ok(Rename { name: arguments.name.clone(), hooks: app.hooks });
    let engine = app.engine()?;
    let current = engine.glance("rename")?.snapshot.head.branch().cloned();
    let link = current.and_then(|current| engine.open_pulls().ok()?.remove_entry(&current));
    let reply = change(app, ("rename", arguments.preview), WorkingCopyNeed::No, build)?;
    Ok(match link {
        Some((old, number)) => {
            reply.note(format!("#{number} stays with {old} on the host; lattice submit opens another for the new name"))
        }
        None => reply,
    })
}

/// Does what removes branches, and names their pull requests, which nothing here closes.
fn removing(app: &App, remove: impl FnOnce() -> Result<Reply, Failure>) -> Result<Reply, Failure> {
    // Whatever keeps this from being read keeps the command from its work, and is told by it.
    let before = app.engine()?.open_pulls().unwrap_or_default();
    let mut reply = remove()?;
    if before.is_empty() {
        return Ok(reply);
    }
    let after = app.later().engine()?.branches()?;
    for (branch, number) in before.iter().filter(|(branch, _)| !after.contains(branch)) {
        reply = reply.note(format!("#{number} of {branch} is still open on the host; lattice pr close {number}"));
    }
    Ok(reply)
}

pub(crate) fn run_revert(app: &App, arguments: &RevertArguments) -> Result<Reply, Failure> {
    let build = |engine: &Engine, _: &Snapshot| {
        let commit = engine.find_commit(&arguments.commit).ok_or_else(|| {
            Refusal::new("no-such-commit", format!("`{}` names no commit", arguments.commit))
                .hint("lattice log --long shows the commits of the stacks")
        })?;
        Ok(Revert { commit, hooks: app.hooks })
    };
    change(app, ("revert", arguments.preview), WorkingCopyNeed::No, build)
}
