//! `get`: takes someone's branch or pull request in.

use clap::Args;
use lattice_engine::{GetOptions, Outcome};
use lattice_model::command::get::{Checkout, FreezeOnGet, Replace};
use lattice_model::id::OpId;
use lattice_model::name::BranchName;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::change::{mode, reply};
use crate::error::Failure;
use crate::output::Reply;

/// Fetch someone's branch or pull request and track it, with what it stands on
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A branch of the remote, or the number of a pull request
    target: String,
    /// Let the branch be rewritten; else it is frozen
    #[arg(long)]
    unfrozen: bool,
    /// Stay on the current branch
    #[arg(long)]
    no_checkout: bool,
    /// Take the remote's commits in the place of yours
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let options = GetOptions {
        target: arguments.target.clone(),
        freeze: if arguments.unfrozen { FreezeOnGet::No } else { FreezeOnGet::Yes },
        checkout: if arguments.no_checkout { Checkout::No } else { Checkout::Yes },
        replace: if arguments.force { Replace::LocalCommits } else { Replace::Never },
        hooks: app.hooks,
    };
    let got =
        app.engine()?.get(&mode(app, arguments.preview), &options).map_err(|error| match Failure::from(error) {
            failure if failure.name == "not-found" => Failure { hints: Vec::new(), ..failure }
                .hint("lattice pr list shows those of this remote (forge.remote); a branch goes by name: lattice get <branch>"),
            failure => failure,
        })?;
    let mut text = String::new();
    let mut last = None;
    for outcome in got.outcomes {
        let nothing = matches!(outcome, Outcome::Nothing { .. });
        let told = reply("get", outcome).map_err(|failure| failure.after(&text))?;
        if !nothing {
            text.push_str(&told.text);
        }
        last = Some(told);
    }
    got.end.map_err(|error| Failure::from(error).after(&text))?;
    let told = last.ok_or_else(|| Failure::new("nothing", "nothing was fetched"))?;
    // Each branch was an operation of its own, and the newest is not always the one that replaced something.
    let back =
        |(branch, op): &(BranchName, OpId)| format!("your commits of `{branch}` come back with: lattice undo {op}");
    Ok(got.replaced.iter().map(back).fold(told.text(text), Reply::note))
}
