//! `undo` and `redo`: reverse an operation.

use clap::Args;
use lattice_engine::{Operation, Outcome, Pick, Reversal};

use crate::app::App;
use crate::cli::Preview;
use crate::commands::change::{mode, reply};
use crate::error::Failure;
use crate::output::Reply;

/// Reverse an operation: refs, metadata, index and files
#[derive(Debug, Args)]
pub(crate) struct UndoArguments {
    /// The operation, or the beginning of its id; the newest that changed something here if absent
    operation: Option<String>,
    #[command(flatten)]
    preview: Preview,
}

/// Reverse the newest undo
#[derive(Debug, Args)]
pub(crate) struct RedoArguments {
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run_undo(app: &App, arguments: &UndoArguments) -> Result<Reply, Failure> {
    let pick = arguments.operation.clone().map_or(Pick::Newest, Pick::Id);
    let result = app.engine()?.undo(&pick, &mode(app, arguments.preview))?;
    told("undo", "undid", result)
}

pub(crate) fn run_redo(app: &App, arguments: &RedoArguments) -> Result<Reply, Failure> {
    let result = app.engine()?.redo(&mode(app, arguments.preview))?;
    told("redo", "redid what was undone by", result)
}

fn told(name: &str, verb: &str, reversal: Reversal) -> Result<Reply, Failure> {
    let Reversal { operation, passed_over, outcome } = reversal;
    let done = matches!(outcome, Outcome::Done { .. });
    let reply = passed_over.iter().fold(reply(name, outcome)?, |reply, operation| {
        reply.note(format!("passed over `{}` ({}), which changed nothing here", operation.command, operation.id))
    });
    if !done {
        return Ok(reply);
    }
    let changed = match operation.refs.len() {
        0 => String::new(),
        n => format!(", {} put back", lattice_model::plan::count(n, "ref")),
    };
    let reply = reply.text(format!("{verb} `{}` ({}){changed}\n", operation.command, operation.id));
    // Others may have seen it by now; taking that back is for the user to decide.
    let stays = passed_over.iter().chain([&operation]).flat_map(remaining);
    Ok(stays.fold(reply, |reply, line| reply.note(format!("stays on the remote: {}", crate::output::printable(line)))))
}

/// What an operation did on a remote, where an undo does not reach.
fn remaining(operation: &Operation) -> impl Iterator<Item = &String> {
    operation.remote.iter().filter(|line| !line.starts_with("fetch"))
}
