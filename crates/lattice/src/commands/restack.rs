//! `restack`: brings branches onto their parents' tips.

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::restack::{Reach, Restack};
use lattice_model::name::BranchName;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;

/// Bring branches onto their parents' tips, all levels
///
/// Without a flag this concerns the whole stack of the branch, and on the trunk every stack.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    /// Only this branch
    #[arg(long, group = "reach")]
    only: bool,
    /// This branch and everything above it
    #[arg(long, group = "reach")]
    upstack: bool,
    /// This branch and everything below it
    #[arg(long, group = "reach")]
    downstack: bool,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let reach = match (arguments.only, arguments.upstack, arguments.downstack) {
        (true, _, _) => Reach::Only,
        (_, true, _) => Reach::Upstack,
        (_, _, true) => Reach::Downstack,
        (false, false, false) => Reach::Stack,
    };
    let build = |_: &_, _: &_| Ok(Restack::new(arguments.branch.clone(), reach, app.hooks));
    change(app, ("restack", arguments.preview), WorkingCopyNeed::No, build)
}
