//! `context`: the right code within a token budget, and each stage on the way to it.

mod builders;
mod bundle;
mod gather;
mod map;
pub(crate) mod pack;
mod session;
mod source;
mod stages;
mod tokens;
mod utilities;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use lattice_context::log::Log;
use lattice_context::tokens::Tokenizer;
use lattice_context::workspace::{Workspace, WorkspaceError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::app::{App, Format};
use crate::error::Failure;
use crate::output::{Document, Reply, status};

/// Give a model what it needs: pack, build, measure
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Pack(Box<pack::Arguments>),
    Implement(builders::ImplementArguments),
    Review(builders::ReviewArguments),
    Fix(builders::FixArguments),
    Issue(builders::IssueArguments),
    Bundle(bundle::Arguments),
    Truncate(utilities::TruncateArguments),
    Fit(utilities::FitArguments),
    Tokens(tokens::Arguments),
    Expand(utilities::ExpandArguments),
    Map(map::Arguments),
    Gather(gather::Arguments),
    Score(stages::ScoreArguments),
    Compress(stages::CompressArguments),
    Prompt(stages::PromptArguments),
    Budget(stages::BudgetArguments),
    Session(session::Arguments),
}

/// Which tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenizerChoice {
    /// Characters divided by 4
    Estimate,
    /// Exact, as GPT-4o and later count
    O200k,
    /// Exact, as GPT-4 and GPT-3.5 count
    Cl100k,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Counting {
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = TokenizerChoice::Estimate)]
    tokenizer: TokenizerChoice,
}

impl Counting {
    fn tokenizer(self) -> Tokenizer {
        match self.tokenizer {
            TokenizerChoice::Estimate => Tokenizer::Estimate,
            TokenizerChoice::O200k => Tokenizer::O200k,
            TokenizerChoice::Cl100k => Tokenizer::Cl100k,
        }
    }
}

/// A document of a specification, below one key.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResultDocument {
    pub(crate) result: Value,
}

/// The stages and builders, whose documents are those of their specifications.
pub(crate) const RESULTS: &[&str] = &[
    "context-implement",
    "context-review",
    "context-fix",
    "context-issue",
    "context-bundle",
    "context-truncate",
    "context-fit",
    "context-tokens",
    "context-expand",
    "context-map",
    "context-gather",
    "context-score",
    "context-compress",
    "context-prompt",
    "context-budget",
    "context-session",
];

pub(crate) use bundle::{delivery_failure, gather_into};
pub(crate) use pack::PackDocument;

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    match &arguments.action {
        Action::Pack(arguments) => pack::run(app, arguments),
        Action::Implement(arguments) => builders::run_implement(app, arguments),
        Action::Review(arguments) => builders::run_review(app, arguments),
        Action::Fix(arguments) => builders::run_fix(app, arguments),
        Action::Issue(arguments) => builders::run_issue(app, arguments),
        Action::Bundle(arguments) => bundle::run(app, arguments),
        Action::Truncate(arguments) => utilities::run_truncate(app, arguments),
        Action::Fit(arguments) => utilities::run_fit(app, arguments),
        Action::Tokens(arguments) => tokens::run(app, arguments),
        Action::Expand(arguments) => utilities::run_expand(app, arguments),
        Action::Map(arguments) => map::run(app, arguments),
        Action::Gather(arguments) => gather::run(app, arguments),
        Action::Score(arguments) => stages::run_score(app, arguments),
        Action::Compress(arguments) => stages::run_compress(app, arguments),
        Action::Prompt(arguments) => stages::run_prompt(app, arguments),
        Action::Budget(arguments) => stages::run_budget(app, arguments),
        Action::Session(arguments) => session::run(app, arguments),
    }
}

/// The repository or folder that the program was started in.
fn workspace(app: &App, tokenizer: Tokenizer) -> Result<Workspace, Failure> {
    let counter = tokenizer.counter();
    let opened = Workspace::open(&app.git_program(), &app.directory, app.user_cache_dir(), counter);
    Ok(opened.map_err(workspace_failure)?.watched_by(status::reading(app)))
}

fn shared_workspace(app: &App, tokenizer: Tokenizer) -> Result<Arc<Workspace>, Failure> {
    workspace(app, tokenizer).map(Arc::new)
}

fn workspace_failure(error: WorkspaceError) -> Failure {
    match error {
        WorkspaceError::Git(error) => error.into(),
        WorkspaceError::Bare => Failure::new("bare-repository", "a bare repository has no files to gather")
            .hint("run this in a worktree of it: git worktree add <path>"),
        WorkspaceError::Folder { path, source } => {
            Failure::new("unreadable", format!("{} could not be read: {source}", path.display()))
        }
    }
}

/// Where the pipeline tells its decisions: one JSON object per line, if `--debug` asks for it.
fn log(app: &App) -> Log {
    if app.debug { Log(crate::output::log_event) } else { Log::SILENT }
}

/// A reply whose document is printed bare, and stands below `result` in JSON. Only the form that is
/// wanted is made: such documents can have many megabytes.
fn bare<T: Serialize>(app: &App, command: &str, document: &T) -> Reply {
    let broken = "bug: our documents have string keys";
    let (result, text) = match app.format {
        Format::Human => (Value::Null, serde_json::to_string_pretty(document).expect(broken) + "\n"),
        Format::Json => (serde_json::to_value(document).expect(broken), String::new()),
    };
    Reply::named(command, ResultDocument { result }, text).exact()
}

/// The text of a file, or of stdin for `-`.
fn read_input(app: &App, path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| unreadable(path, &error);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(INPUT_LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = std::fs::File::open(app.directory.join(path)).map_err(failed)?;
        file.take(INPUT_LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > INPUT_LIMIT {
        let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
        return Err(Failure::new("input-too-long", format!("{name} has more than {} MiB", INPUT_LIMIT >> 20)));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new("unreadable", format!("{} could not be read: {error}", path.display()))
        .hint("name a file that exists, or - for stdin")
}

/// Inputs are held as a whole, and longer ones refused.
const INPUT_LIMIT: u64 = 32 << 20;

/// A JSON document from a file or stdin.
fn read_json<T: serde::de::DeserializeOwned>(app: &App, path: &Path) -> Result<T, Failure> {
    let text = read_input(app, path)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::new("invalid-input", format!("{} is not as expected: {error}", path.display())))
}

impl Document for PackDocument {
    const COMMAND: &'static str = "context-pack";
}
