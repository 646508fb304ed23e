//! `continue` and `abort`: finish or give up an operation in progress.

use clap::Args;
use lattice_engine::Outcome;
use lattice_model::plan::StageMode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::commands::change::{dropped_commit, kept_branches, paused_failure};
use crate::error::Failure;
use crate::output::Document;
use crate::output::Reply;
use crate::output::documents::{DroppedDocument, KeptDocument, RefDocument};

/// Go on with the operation in progress
#[derive(Debug, Args)]
pub(crate) struct ContinueArguments {
    /// Stage changes of files that Git knows first, as resolved
    #[arg(short, long)]
    all: bool,
}

/// Go back to where the operation in progress began
#[derive(Debug, Args)]
pub(crate) struct AbortArguments {}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContinueDocument {
    operation: String,
    refs: Vec<RefDocument>,
    kept: Vec<KeptDocument>,
    /// Commits that were left out because what they stand on has their change already.
    dropped: Vec<DroppedDocument>,
}

impl Document for ContinueDocument {
    const COMMAND: &'static str = "continue";
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AbortDocument {
    command: String,
    /// Refs that somebody else changed meanwhile and that were therefore not put back.
    left_alone: Vec<String>,
}

impl Document for AbortDocument {
    const COMMAND: &'static str = "abort";
}

pub(crate) fn run_continue(app: &App, arguments: &ContinueArguments) -> Result<Reply, Failure> {
    let stage = arguments.all.then_some(StageMode::All);
    let resumed = app.engine()?.resume(stage).map_err(|error| match Failure::from(error) {
        // The plan was made for what was there when the operation began.
        failure if failure.name == "ref-moved" => Failure { hints: Vec::new(), ..failure }
            .hint("it was moved while the operation waited: lattice abort, then run the command again")
            .hint("git config rerere.enabled true has Git remember how you resolve conflicts"),
        failure => failure,
    })?;
    match resumed {
        Outcome::Done { op, refs, dropped, plan } => {
            let branches: Vec<_> =
                refs.iter().filter_map(|change| change.name.as_branch()).map(|b| b.to_string()).collect();
            let mut text = format!("done: {}\n", branches.join(", "));
            text.push_str(&kept_branches(&plan));
            text.extend(dropped.iter().map(|commit| format!("dropped {}\n", dropped_commit(commit))));
            let dropped = dropped.iter().map(DroppedDocument::of).collect();
            let refs = refs.iter().map(RefDocument::of).collect();
            let kept = KeptDocument::all(&plan);
            Ok(Reply::new(ContinueDocument { operation: op.to_string(), refs, kept, dropped }, text))
        }
        Outcome::Paused(paused) => Err(paused_failure(&paused)),
        Outcome::Nothing { .. } | Outcome::Planned { .. } | Outcome::Differs { .. } | Outcome::Gated(_) => {
            unreachable!("bug: continuing executes")
        }
    }
}

pub(crate) fn run_abort(app: &App, _arguments: &AbortArguments) -> Result<Reply, Failure> {
    let aborted = app.engine()?.abort()?;
    let left_alone: Vec<_> = aborted.left_alone.iter().map(ToString::to_string).collect();
    let mut reply = Reply::new(
        AbortDocument { command: aborted.command.clone(), left_alone: left_alone.clone() },
        format!("`{}` was given up; everything is as before\n", aborted.command),
    );
    for name in left_alone {
        reply = reply.note(format!("{name} was changed by someone else meanwhile and stays as it is"));
    }
    Ok(reply)
}
