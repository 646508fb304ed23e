//! `context map`: the repository in outline, what matters most first.

use clap::Args;
use lattice_context::map::map;
use serde_json::json;

use super::{Counting, ResultDocument, workspace};
use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

/// Print a ranked outline of the repository within a budget
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The most tokens
    #[arg(long, default_value_t = 2000, value_name = "N")]
    budget: usize,
    #[command(flatten)]
    counting: Counting,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let workspace = workspace(app, arguments.counting.tokenizer())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let drawn = map(&workspace, arguments.budget, threads).map_err(super::workspace_failure)?;
    let result = json!({ "content": drawn.content, "tokens": drawn.tokens, "files": drawn.files });
    let note = format!("{} of {} tokens, {} files", drawn.tokens, arguments.budget, drawn.files);
    Ok(Reply::named("context-map", ResultDocument { result }, drawn.content).exact().note(note))
}
