//! `checkout`, `up`, `down`, `top`, `bottom`: move around.

use std::num::NonZeroUsize;

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::navigate::{Destination, Navigate};
use lattice_model::name::{BranchName, NameError};

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;
use crate::pick;

/// Check out a branch
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch; `-` is the one before this one; on a terminal you are asked if it is absent
    #[arg(value_parser = named)]
    branch: Option<Named>,
    #[command(flatten)]
    preview: Preview,
}

#[derive(Debug, Clone)]
enum Named {
    Branch(BranchName),
    Before,
}

fn named(text: &str) -> Result<Named, NameError> {
    if text == "-" { Ok(Named::Before) } else { branch(text).map(Named::Branch) }
}

/// Go up to a branch that stands on this one
#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    /// How many levels
    #[arg(default_value = "1")]
    levels: NonZeroUsize,
    /// Which way to go where several branches stand on one
    #[arg(long, value_name = "BRANCH", value_parser = branch)]
    to: Option<BranchName>,
    #[command(flatten)]
    preview: Preview,
}

/// Go down to the branch that this one stands on
#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// How many levels
    #[arg(default_value = "1")]
    levels: NonZeroUsize,
    #[command(flatten)]
    preview: Preview,
}

/// Go to the top of the stack
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Which way to go where several branches stand on one
    #[arg(long, value_name = "BRANCH", value_parser = branch)]
    to: Option<BranchName>,
    #[command(flatten)]
    preview: Preview,
}

/// Go to the lowest branch of the stack
#[derive(Debug, Args)]
pub(crate) struct BottomArguments {
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let branch = match &arguments.branch {
        Some(Named::Branch(branch)) => branch.clone(),
        Some(Named::Before) => app.engine()?.branch_before()?.ok_or_else(|| {
            Failure::new("no-branch-before", "git knows no branch from before that is still there").hint("lattice log")
        })?,
        None => pick(app)?,
    };
    go(app, ("checkout", arguments.preview), &Destination::Branch(branch))
}

pub(crate) fn run_up(app: &App, arguments: &UpArguments) -> Result<Reply, Failure> {
    let to = Destination::Up { levels: arguments.levels.get(), towards: arguments.to.clone() };
    go(app, ("up", arguments.preview), &to)
}

pub(crate) fn run_down(app: &App, arguments: &DownArguments) -> Result<Reply, Failure> {
    go(app, ("down", arguments.preview), &Destination::Down { levels: arguments.levels.get() })
}

pub(crate) fn run_top(app: &App, arguments: &TopArguments) -> Result<Reply, Failure> {
    go(app, ("top", arguments.preview), &Destination::Top { towards: arguments.to.clone() })
}

pub(crate) fn run_bottom(app: &App, arguments: &BottomArguments) -> Result<Reply, Failure> {
    go(app, ("bottom", arguments.preview), &Destination::Bottom)
}

fn go(app: &App, what: (&'static str, Preview), to: &Destination) -> Result<Reply, Failure> {
    change(app, what, WorkingCopyNeed::No, |_, _| Ok(Navigate { to: to.clone() }))
}

fn pick(app: &App) -> Result<BranchName, Failure> {
    let needed = || Failure::usage("a branch is needed").hint("lattice checkout <branch>; lattice log shows them");
    if app.interaction == Interaction::Never {
        return Err(needed());
    }
    let snapshot = app.engine()?.observe("checkout", WorkingCopyNeed::No)?.snapshot;
    let branches: Vec<_> = snapshot.settings.trunk.clone().into_iter().chain(snapshot.graph().topological()).collect();
    let names: Vec<_> = branches.iter().map(ToString::to_string).collect();
    pick::pick("Which branch?", &names).map(|at| branches[at].clone()).ok_or_else(needed)
}
