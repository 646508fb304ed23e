//! `unlink`: forgets the pull request of a branch.

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::link::Unlink;
use lattice_model::name::BranchName;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::Reply;

/// Forget which pull request belongs to a branch; on the host nothing changes
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch; the current one if absent
    #[arg(value_parser = branch)]
    branch: Option<BranchName>,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let build = |_: &_, _: &_| Ok(Unlink { branch: arguments.branch.clone() });
    change(app, ("unlink", arguments.preview), WorkingCopyNeed::No, build)
}
