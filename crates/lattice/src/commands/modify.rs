//! `modify`: amends a branch and restacks what is above.

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::modify::{Modify, ModifyMode};
use lattice_model::name::BranchName;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::change;
use crate::commands::create::Staging;
use crate::error::Failure;
use crate::output::Reply;

/// Amend the current branch with what is staged, and restack what is above
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The new message of the commit
    #[arg(short, long)]
    message: Option<String>,
    #[command(flatten)]
    stage: Staging,
    /// Make a new commit instead of amending
    #[arg(short, long)]
    commit: bool,
    /// Give what is staged to this branch further down
    #[arg(long, value_name = "BRANCH", value_parser = branch)]
    into: Option<BranchName>,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    if arguments.message.as_deref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty"));
    }
    let stage = arguments.stage.mode(app)?;
    let how = if arguments.commit { ModifyMode::NewCommit } else { ModifyMode::Amend };
    let build = |_: &_, _: &_| {
        let (message, into) = (arguments.message.clone(), arguments.into.clone());
        Ok(Modify { message, stage, how, into, hooks: app.hooks })
    };
    change(app, ("modify", arguments.preview), WorkingCopyNeed::Yes, build)
}
