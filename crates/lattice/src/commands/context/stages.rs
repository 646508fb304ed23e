//! `context score`, `compress`, `prompt` and `budget`: the other stages, JSON in and out.

use std::path::PathBuf;

use clap::Args;
use lattice_context::budget::TokenBudget;
use lattice_context::chunk::{ContextChunk, ScoredChunk};
use lattice_context::compress::compress;
use lattice_context::prioritize::{Boost, ContextPrioritizer, Prioritizer};
use lattice_context::prompt::build_prompt;
use lattice_context::task::{TaskEnvelope, TaskType};
use serde::Deserialize;
use serde_json::json;

use super::{Counting, ResultDocument, bare, log, pack, read_json};
use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

/// Score and rank chunks
#[derive(Debug, Args)]
pub(crate) struct ScoreArguments {
    /// A JSON list of chunks; `-` reads stdin
    #[arg(long, default_value = "-", value_name = "FILE")]
    chunks: PathBuf,
    /// What the work is, if no envelope says it
    #[arg(long, default_value = "", value_name = "TEXT")]
    request: String,
    /// What kind of work it is
    #[arg(long, alias = "task-type", default_value = "implement", value_name = "TYPE")]
    task: TaskType,
    /// The envelope to score for, in the place of --task and --request
    #[arg(long, value_name = "FILE")]
    envelope: Option<PathBuf>,
    /// Add to the score of sources that contain this text or fit this glob (repeatable)
    #[arg(long, value_name = "PATTERN=N", allow_negative_numbers = true)]
    boost: Vec<String>,
}

/// Fit chunks into a budget
#[derive(Debug, Args)]
pub(crate) struct CompressArguments {
    /// A JSON list of chunks, scored or not; `-` reads stdin
    #[arg(long, default_value = "-", value_name = "FILE")]
    chunks: PathBuf,
    /// The most tokens
    #[arg(long, default_value_t = TokenBudget::default().context(), value_name = "N")]
    budget: usize,
    #[command(flatten)]
    counting: Counting,
    /// Tell for each chunk why it is in or out
    #[arg(long)]
    explain: bool,
}

/// Print the prompt of an envelope
#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// The envelope; `-` reads stdin
    #[arg(long, default_value = "-", value_name = "FILE")]
    envelope: PathBuf,
}

/// Print how a total is shared
#[derive(Debug, Args)]
pub(crate) struct BudgetArguments {
    /// Tokens for prompt and response together [default: 8000]
    #[arg(long, value_name = "N")]
    total: Option<usize>,
    /// The share of the total that the prompt gets, from 0 to 1 [default: 0.7]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    input_allocation_pct: Option<f64>,
}

/// A chunk with or without a score.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnyChunk {
    Scored(ScoredChunk),
    Plain(ContextChunk),
}

pub(crate) fn run_score(app: &App, arguments: &ScoreArguments) -> Result<Reply, Failure> {
    let envelope: TaskEnvelope = match &arguments.envelope {
        Some(path) => read_json(app, path)?,
        None => {
            let id = lattice_context::task::session_id(&app.seed_and_time());
            TaskEnvelope::new(arguments.task, &arguments.request, id, app.now.clone())
        }
    };
    let chunks: Vec<ContextChunk> = read_json(app, &arguments.chunks)?;
    let boost = |text: &String| {
        let (pattern, amount) = text.rsplit_once('=')?;
        Boost::new(pattern, amount.parse().ok()?).ok()
    };
    let boosts: Option<Vec<Boost>> = arguments.boost.iter().map(boost).collect();
    let boosts = boosts.ok_or_else(|| Failure::usage("--boost: expected PATTERN=NUMBER, such as src/models=200"))?;
    let scored = ContextPrioritizer { boosts }.rank(chunks, &envelope);
    Ok(bare(app, "context-score", &scored))
}

pub(crate) fn run_compress(app: &App, arguments: &CompressArguments) -> Result<Reply, Failure> {
    let chunks: Vec<AnyChunk> = read_json(app, &arguments.chunks)?;
    let chunks: Vec<ScoredChunk> = chunks
        .into_iter()
        .map(|chunk| match chunk {
            AnyChunk::Scored(scored) => scored,
            AnyChunk::Plain(chunk) => chunk.into(),
        })
        .collect();
    let chunks_in = chunks.len();
    let result = compress(chunks, arguments.budget, arguments.counting.tokenizer().counter().as_ref());
    log(app).event(
        "context_compressed",
        json!({ "chunks_in": chunks_in, "chunks_out": result.chunks.len(), "utilization": result.utilization }),
    );
    let reply = bare(app, "context-compress", &result);
    let reply = result.warnings.iter().fold(reply, |reply, warning| reply.note(format!("warning: {warning}")));
    Ok(if arguments.explain { reply.note(pack::explanation(&result.decisions)) } else { reply })
}

pub(crate) fn run_prompt(app: &App, arguments: &PromptArguments) -> Result<Reply, Failure> {
    let envelope: TaskEnvelope = read_json(app, &arguments.envelope)?;
    let prompt = build_prompt(&envelope);
    Ok(Reply::named("context-prompt", ResultDocument { result: json!(prompt) }, prompt).exact())
}

pub(crate) fn run_budget(app: &App, arguments: &BudgetArguments) -> Result<Reply, Failure> {
    let budget = pack::shares(arguments.total, arguments.input_allocation_pct)?;
    Ok(bare(app, "context-budget", &budget))
}
