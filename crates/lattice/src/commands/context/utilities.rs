//! `context truncate`, `fit` and `expand`.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use lattice_context::builders::fit::{DEFAULT_BUDGET, FitError, explain, fit_to_budget};
use lattice_context::builders::window::truncate_stream;
use lattice_context::builders::{ContextDict, truncate_file};
use lattice_context::expand::{ExpandError, expand};
use lattice_context::tokens::Tokenizer;
use serde_json::json;

use super::{Counting, ResultDocument, bare, read_input, read_json, unreadable, workspace};
use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

/// What is printed of a file at most, however long its lines are.
const MOST_SHOWN: usize = 8 << 20;

/// Print the lines of a file around places that matter
#[derive(Debug, Args)]
pub(crate) struct TruncateArguments {
    /// The file; `-` reads stdin
    file: PathBuf,
    /// Keep at most so many lines
    #[arg(long, value_name = "N")]
    max_lines: usize,
    /// A line to keep, with ten lines before and after it (repeatable)
    #[arg(long, alias = "around-lines", value_name = "LINE")]
    around: Vec<usize>,
}

/// Cut named sections in proportion until they fit a budget
#[derive(Debug, Args)]
pub(crate) struct FitArguments {
    /// A JSON object of names and texts; `-` reads stdin
    #[arg(default_value = "-")]
    sections: PathBuf,
    /// The most tokens
    #[arg(long, default_value_t = DEFAULT_BUDGET, value_name = "N")]
    budget: usize,
    #[command(flatten)]
    counting: Counting,
    /// Print what each section has and gets instead
    #[arg(long)]
    explain: bool,
}

/// Print what an outline left out
#[derive(Debug, Args)]
pub(crate) struct ExpandArguments {
    /// As the outline says it: PATH@BLOB:FIRST-LAST, or PATH@BLOB:NAME
    handle: String,
}

pub(crate) fn run_truncate(app: &App, arguments: &TruncateArguments) -> Result<Reply, Failure> {
    let TruncateArguments { file, max_lines, around } = arguments;
    let path = app.directory.join(file);
    // What is no file, such as a pipe, can be read only once.
    let content = if file != Path::new("-") && path.is_file() {
        let open = || Ok(BufReader::new(std::fs::File::open(&path)?));
        truncate_stream(open, *max_lines, around, MOST_SHOWN).map_err(|error| unreadable(file, &error))?
    } else {
        truncate_file(&read_input(app, file)?, *max_lines, around)
    };
    let result = json!({ "content": content });
    Ok(Reply::named("context-truncate", ResultDocument { result }, content).exact())
}

pub(crate) fn run_fit(app: &App, arguments: &FitArguments) -> Result<Reply, Failure> {
    let sections: ContextDict = read_json(app, &arguments.sections)?;
    let counter = arguments.counting.tokenizer().counter();
    let failed = |error: FitError| Failure::new("invalid-input", error.to_string());
    if arguments.explain {
        let allocations = explain(&sections, arguments.budget, counter.as_ref()).map_err(failed)?;
        return Ok(bare(app, "context-fit", &allocations));
    }
    let fitted = fit_to_budget(&sections, arguments.budget, counter.as_ref()).map_err(failed)?;
    Ok(bare(app, "context-fit", &fitted))
}

pub(crate) fn run_expand(app: &App, arguments: &ExpandArguments) -> Result<Reply, Failure> {
    let workspace = workspace(app, Tokenizer::Estimate)?;
    let expanded = expand(&workspace, &arguments.handle).map_err(|error| {
        let failure = Failure::new("cannot-expand", error.to_string());
        match error {
            ExpandError::Form(_) => failure.hint("handles stand in outlines: PATH@BLOB:FIRST-LAST or PATH@BLOB:NAME"),
            ExpandError::Gone { .. } => failure.hint("pack again: the file has changed since"),
            ExpandError::NoSuchName { .. } | ExpandError::NoSuchLines { .. } | ExpandError::Skipped { .. } => failure,
        }
    })?;
    let result =
        json!({ "path": expanded.path, "first": expanded.first, "last": expanded.last, "content": expanded.content });
    Ok(Reply::named("context-expand", ResultDocument { result }, expanded.content).exact())
}
