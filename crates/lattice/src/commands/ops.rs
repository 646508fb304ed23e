//! `ops`: what was done, by whom, and what can still be undone.

use clap::{Args, Subcommand};
use lattice_engine::{Operation, OperationState};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::Failure;
use crate::output::documents::{OperationDocument, OpsDocument};
use crate::output::table::table;
use crate::output::{Document, Reply, Style, printable};

/// List operations, newest first
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show one operation with its refs
    Show {
        /// The operation, or the beginning of its id
        operation: String,
    },
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpsShowDocument {
    operation: OperationDocument,
}

impl Document for OpsShowDocument {
    const COMMAND: &'static str = "ops-show";
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    engine.observe("ops", lattice_engine::WorkingCopyNeed::No)?;
    match &arguments.action {
        Some(Action::Show { operation }) => {
            let operation = engine.operation(operation)?;
            let mut text = table(&[row(app, &operation)], Style { columns: None, ..app.style });
            for change in &operation.refs {
                let shown = |oid: Option<lattice_model::id::Oid>| oid.map_or("absent".to_owned(), |oid| oid.short());
                text.push_str(&format!("  {}: {} -> {}\n", change.name, shown(change.old), shown(change.new)));
            }
            for line in &operation.remote {
                text.push_str(&format!("  remote: {}\n", printable(line)));
            }
            if let Some(reason) = &operation.reason {
                text.push_str(&format!("  reason: {}\n", printable(reason)));
            }
            Ok(Reply::new(OpsShowDocument { operation: OperationDocument::of(&operation) }, text))
        }
        None => {
            let mut operations = engine.operations()?;
            let more = operations.len().saturating_sub(arguments.limit as usize);
            operations.truncate(arguments.limit as usize);
            let text = table(&operations.iter().map(|operation| row(app, operation)).collect::<Vec<_>>(), app.style);
            let document = OpsDocument { operations: operations.iter().map(OperationDocument::of).collect() };
            let reply = Reply::new(document, text);
            Ok(match (operations.is_empty(), more) {
                (true, _) => reply.note("no operations yet"),
                (false, 0) => reply,
                (false, more) => reply.note(format!("and {more} before them: --limit")),
            })
        }
    }
}

fn row(app: &App, operation: &Operation) -> Vec<String> {
    let state = operation.state.as_str();
    let state = match operation.state {
        OperationState::Committed => state.to_owned(),
        OperationState::Aborted => app.style.warn(state),
        OperationState::Undone | OperationState::Observed => app.style.dim(state),
    };
    let undo = if operation.undoable { "" } else { "  (cannot be undone)" };
    let undo = if operation.state == OperationState::Committed { undo } else { "" };
    let command = match operation.state {
        OperationState::Observed => "plain git",
        OperationState::Committed | OperationState::Aborted | OperationState::Undone => operation.command.as_str(),
    };
    let refs = lattice_model::plan::count(operation.refs.len(), "ref");
    vec![operation.id.to_string(), operation.at.to_string(), command.to_owned(), state, format!("{refs}{undo}")]
}
