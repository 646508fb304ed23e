//! `move`: puts a branch onto another parent.

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::reparent::Move;
use lattice_model::name::BranchName;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;

/// Move a branch, with everything above it, onto another branch
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch to move; the current one if absent
    #[arg(long, value_name = "BRANCH", value_parser = branch)]
    source: Option<BranchName>,
    /// Its new parent
    #[arg(long, value_name = "BRANCH", value_parser = branch)]
    onto: BranchName,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let build =
        |_: &_, _: &_| Ok(Move { source: arguments.source.clone(), onto: arguments.onto.clone(), hooks: app.hooks });
    change(app, ("move", arguments.preview), WorkingCopyNeed::No, build)
}
