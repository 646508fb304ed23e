//! `context pack`: a request becomes a prompt.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use lattice_context::budget::{DEFAULT_INPUT_ALLOCATION, DEFAULT_TOTAL, TokenBudget};
use lattice_context::builders::validation::{ErrorItem, ValidationOutput};
use lattice_context::chunk::Decision;
use lattice_context::pack::{MAX_FILES, PackBudget, PackError, PackRequest, Packed, Secrets, pack};
use lattice_context::prioritize::{Boost, MODIFIERS};
use lattice_context::session::{ContextCheckpoint, SessionState};
use lattice_context::task::{Artifact, TaskType, ToolDefinition};
use lattice_context::tokens::Tokenizer;
use lattice_model::plan::count;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Counting, log, read_input, shared_workspace};
use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

/// The share of its budget from which on a pack would hardly have room for another file.
const ALMOST_FULL: f64 = 0.9;

/// Pack the code that a request needs into a prompt within a token budget
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What is to be done, in your words; `-` reads it from stdin
    request: Option<String>,
    /// What kind of work it is
    #[arg(long, alias = "task-type", default_value = "implement", value_name = "TYPE")]
    task: TaskType,
    /// The most tokens that the prompt may have, everything included
    #[arg(long, value_name = "N", conflicts_with_all = ["total", "input_allocation_pct"])]
    budget: Option<usize>,
    /// Tokens for prompt and response together [default: 8000]
    #[arg(long, value_name = "N")]
    total: Option<usize>,
    /// The share of the total that the prompt gets, from 0 to 1 [default: 0.7]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    input_allocation_pct: Option<f64>,
    #[command(flatten)]
    counting: Counting,
    /// Only files that fit this glob (repeatable)
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// No files that fit this glob (repeatable)
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// A file that must be in, with the line that matters (repeatable)
    #[arg(long, value_name = "PATH[:LINE]")]
    focus: Vec<String>,
    /// Add this issue of the repository's host to the request
    #[arg(long, value_name = "N")]
    issue: Option<u64>,
    /// Put what differs from this commit in front
    #[arg(long, value_name = "BASE")]
    diff: Option<String>,
    /// Errors to work on: JSON, cargo's JSON, SARIF, or lines; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    errors: Option<PathBuf>,
    /// Read the contents of at most so many files
    #[arg(long, default_value_t = MAX_FILES, value_name = "N")]
    max_files: usize,
    /// Add to the score of sources that contain this text or fit this glob (repeatable)
    #[arg(long, value_name = "PATTERN=N", allow_negative_numbers = true)]
    boost: Vec<String>,
    /// Files that fit this glob must be in (repeatable)
    #[arg(long, value_name = "GLOB")]
    critical: Vec<String>,
    /// Mask what looks like a secret
    #[arg(long)]
    redact: bool,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Prompt)]
    format: Format,
    /// Write it to this file instead
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Tell for each piece why it is in or out
    #[arg(long)]
    explain: bool,
    /// Save the session under this id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A tool that the model has: its name, or a JSON object with `name` (repeatable)
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,
    /// Something that was produced already (repeatable)
    #[arg(long, value_name = "TYPE=PATH")]
    artifact: Vec<String>,
    /// Threads for reading [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Prompt,
    Envelope,
}

/// A prompt and how it came about.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PackDocument {
    /// The prompt, or the envelope.
    result: Value,
    digest: String,
    tokens: usize,
    limit: usize,
    /// Tokens of the prompt by those it may have.
    utilization: f64,
    session_id: String,
    chunks: usize,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Value>,
}

/// Ranked files that `--explain` lists.
const LISTED: usize = 100;

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let request = request(app, arguments)?;
    let workspace = shared_workspace(app, arguments.counting.tokenizer())?;
    let packed = lattice_context::drive(pack(workspace.clone(), request, log(app))).map_err(failure)?;
    let mut packed = packed;
    packed.envelope.tools = arguments.tool.iter().map(|tool| tool_of(tool)).collect::<Result<_, _>>()?;
    packed.envelope.artifacts = arguments.artifact.iter().map(|text| artifact_of(text)).collect::<Result<_, _>>()?;
    if let Some(id) = &arguments.session {
        let folder = super::session::storage(app, &workspace, None);
        let saved = ContextCheckpoint::new(folder).save(id, SessionState::from(&packed.envelope), app.now.clone());
        saved.map_err(super::session::failure)?;
    }
    reply(app, arguments, packed)
}

/// Tokens of the code that a sprite gets with its task.
const TASK_BUDGET: usize = 8000;

/// The code that a task seems to need, without what looks like a secret and without these files and folders.
pub(crate) fn for_task(app: &App, text: &str, without: &[String]) -> Result<Packed, Failure> {
    let workspace = Arc::new(super::workspace(app, Tokenizer::Estimate)?.without(without));
    let asked = PackRequest::new(TaskType::Implement, text, PackBudget::Prompt(TASK_BUDGET), app.now.clone());
    let request = PackRequest { secrets: Secrets::Redact, ..asked };
    lattice_context::drive(pack(workspace, request, log(app))).map_err(failure)
}

fn request(app: &App, arguments: &Arguments) -> Result<PackRequest, Failure> {
    let mut input = match arguments.request.as_deref() {
        Some("-") => read_input(app, Path::new("-"))?,
        Some(text) => text.to_owned(),
        None => String::new(),
    };
    if let Some(number) = arguments.issue {
        let issue = super::builders::fetched(app, number)?;
        let text = format!("Issue #{number}: {}\n\n{}", issue.title, issue.body);
        input = [input.trim_end(), text.trim_end()].join("\n\n").trim_start().to_owned();
    }
    let errors: Vec<ErrorItem> = match &arguments.errors {
        Some(path) => {
            let parsed = ValidationOutput::parse(&read_input(app, path)?);
            parsed.map_err(super::builders::validation_failure)?.errors()
        }
        None => Vec::new(),
    };
    let boost = |text: &String| {
        let (pattern, amount) = text.rsplit_once('=').ok_or_else(|| boost_failure(text))?;
        let amount: f64 = amount.parse().map_err(|_| boost_failure(text))?;
        Boost::new(pattern, amount).map_err(|_| boost_failure(text))
    };
    let asked = PackRequest::new(arguments.task, input, budget(arguments)?, app.now.clone());
    Ok(PackRequest {
        include: arguments.include.clone(),
        exclude: arguments.exclude.clone(),
        focus: arguments.focus.iter().map(|text| place(text)).collect(),
        diff_base: arguments.diff.clone(),
        errors,
        max_files: arguments.max_files,
        boosts: arguments.boost.iter().map(boost).collect::<Result<_, _>>()?,
        critical: arguments.critical.clone(),
        secrets: if arguments.redact { Secrets::Redact } else { Secrets::Warn },
        session_id: arguments.session.clone().or_else(|| Some(lattice_context::task::session_id(&app.seed_and_time()))),
        threads: arguments.threads.unwrap_or(asked.threads),
        ..asked
    })
}

fn budget(arguments: &Arguments) -> Result<PackBudget, Failure> {
    if let Some(tokens) = arguments.budget {
        return Ok(PackBudget::Prompt(tokens));
    }
    shares(arguments.total, arguments.input_allocation_pct).map(PackBudget::Shares)
}

/// A total and its share, as two options that say which of them is wrong.
pub(super) fn shares(total: Option<usize>, share: Option<f64>) -> Result<TokenBudget, Failure> {
    let made = TokenBudget::new(total.unwrap_or(DEFAULT_TOTAL), share.unwrap_or(DEFAULT_INPUT_ALLOCATION));
    made.map_err(|error| {
        let option = match error {
            lattice_context::budget::BudgetError::NoTotal => "--total",
            lattice_context::budget::BudgetError::Share(_) => "--input-allocation-pct",
        };
        Failure::usage(format!("{option}: {error}"))
    })
}

fn boost_failure(text: &str) -> Failure {
    Failure::usage(format!("--boost: `{text}` is not of the form PATTERN=NUMBER, such as src/models=200"))
}

/// `path`, or `path:line`.
fn place(text: &str) -> (String, Option<u32>) {
    match text.rsplit_once(':') {
        Some((path, line)) if line.parse::<u32>().is_ok() => (path.to_owned(), line.parse().ok()),
        Some(_) | None => (text.to_owned(), None),
    }
}

fn tool_of(text: &str) -> Result<ToolDefinition, Failure> {
    if !text.trim_start().starts_with('{') {
        return Ok(ToolDefinition { name: text.to_owned(), details: Map::new() });
    }
    serde_json::from_str(text).map_err(|error| Failure::usage(format!("--tool: {error}")))
}

fn artifact_of(text: &str) -> Result<Artifact, Failure> {
    let (kind, path) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("--artifact: `{text}` is not of the form TYPE=PATH, such as file=src/auth.py"))
    })?;
    Ok(Artifact { kind: kind.to_owned(), path: path.to_owned(), details: Map::new() })
}

fn reply(app: &App, arguments: &Arguments, packed: Packed) -> Result<Reply, Failure> {
    let utilization = if packed.limit == 0 { 0.0 } else { packed.prompt_tokens as f64 / packed.limit as f64 };
    let (result, text) = match arguments.format {
        Format::Prompt => (json!(packed.prompt), packed.prompt.clone()),
        Format::Envelope => {
            let text = serde_json::to_string_pretty(&packed.envelope).expect("bug: an envelope has string keys") + "\n";
            (json!(packed.envelope), text)
        }
    };
    let decisions = &packed.envelope.context.decisions;
    let explain = arguments.explain.then(|| {
        let ranked = &packed.ranked[..packed.ranked.len().min(LISTED)];
        json!({ "modifiers": MODIFIERS, "decisions": decisions, "files": ranked, "scanned": packed.scanned })
    });
    let document = PackDocument {
        result,
        digest: packed.digest.clone(),
        tokens: packed.prompt_tokens,
        limit: packed.limit,
        utilization,
        session_id: packed.envelope.session_id.clone(),
        chunks: packed.envelope.context.chunks.len(),
        warnings: packed.warnings.clone(),
        explain,
    };
    let mut reply = match &arguments.out {
        Some(path) => {
            let written = crate::output::write_file(&app.directory.join(path), &text);
            written.map_err(|error| Failure::new("io", format!("{} could not be written: {error}", path.display())))?;
            Reply::new(document, String::new())
        }
        None => Reply::new(document, text).exact(),
    };
    if arguments.explain {
        reply = reply.note(explanation(decisions));
    }
    for warning in &packed.warnings {
        reply = reply.note(format!("warning: {warning}"));
    }
    if packed.ranked.len() > arguments.max_files && utilization < ALMOST_FULL {
        reply = reply.note(format!(
            "there is room left: {} of {} that have to do with the request were looked at; --max-files takes more in",
            arguments.max_files,
            count(packed.ranked.len(), "file")
        ));
    }
    Ok(reply.note(format!(
        "{} of {} tokens ({:.1}%), {}, sha256 {}",
        packed.prompt_tokens,
        packed.limit,
        utilization * 100.0,
        count(packed.envelope.context.chunks.len(), "piece"),
        packed.digest
    )))
}

/// One line per piece, best first.
pub(super) fn explanation(decisions: &[Decision]) -> String {
    let mut lines = vec![format!(
        "{:>4} {:>7} {:<9} {:<8} {:>13}  source (base+task+recency+mention+size+relevance+custom)",
        "rank", "score", "verdict", "fidelity", "tokens"
    )];
    for decision in decisions {
        let parts = &decision.parts;
        let sum = format!(
            "{}{:+}{:+}{:+}{:+}{:+.0}{:+}",
            parts.base_score,
            parts.task_relevance_boost,
            parts.recency_boost,
            parts.mention_boost,
            parts.size_penalty,
            parts.relevance_boost,
            parts.custom_boost
        );
        let tokens = format!("{}/{}", decision.tokens, decision.original_tokens);
        lines.push(format!(
            "{:>4} {:>7.1} {:<9} {:<8} {tokens:>13}  {} ({sum}): {}",
            decision.rank,
            parts.final_score,
            decision.verdict.as_str(),
            decision.fidelity.as_str(),
            decision.source,
            decision.reason
        ));
    }
    lines.join("\n")
}

fn failure(error: PackError) -> Failure {
    let text = error.to_string();
    match error {
        PackError::TooSmall { needed, .. } => Failure::new("budget-too-small", text)
            .hint(format!("raise --budget to {needed} or more, or shorten the request")),
        PackError::Pattern { source, .. } => Failure::usage(format!("{text}: {source}")),
        PackError::Focus { .. } => Failure::new("no-such-file", text).hint("--focus takes files below the root"),
        PackError::Workspace(error) => super::workspace_failure(error),
        PackError::Git(error) => super::builders::git_failure(error),
        PackError::Stopped => Failure::new("stopped", text),
    }
}
