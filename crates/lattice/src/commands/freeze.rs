//! `freeze` and `unfreeze`: protect branches from being rewritten.

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::freeze::{Freeze, Unfreeze};
use lattice_model::name::BranchName;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;

/// Protect a branch, and everything below it, from being rewritten
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    /// Why, for those who wonder later
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    preview: Preview,
}

/// Let a branch be rewritten again
#[derive(Debug, Args)]
pub(crate) struct UnfreezeArguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let build = |_: &_, _: &_| Ok(Freeze { branch: arguments.branch.clone(), reason: arguments.reason.clone() });
    change(app, ("freeze", arguments.preview), WorkingCopyNeed::No, build)
}

pub(crate) fn run_unfreeze(app: &App, arguments: &UnfreezeArguments) -> Result<Reply, Failure> {
    let build = |_: &_, _: &_| Ok(Unfreeze { branch: arguments.branch.clone() });
    change(app, ("unfreeze", arguments.preview), WorkingCopyNeed::No, build)
}
