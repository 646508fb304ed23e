//! `untrack`: stops tracking a branch.

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::track::{Above, Untrack};
use lattice_model::name::BranchName;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;

/// Stop tracking a branch; the branch itself stays
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    /// Stop tracking everything above it too
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let above = if arguments.force { Above::UntrackToo } else { Above::Refuse };
    let build = |_: &_, _: &_| Ok(Untrack { branch: arguments.branch.clone(), above });
    change(app, ("untrack", arguments.preview), WorkingCopyNeed::No, build)
}
