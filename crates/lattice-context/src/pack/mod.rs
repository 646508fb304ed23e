//! From a request to a prompt: gather, score, compress, render.

mod select;

use std::sync::Arc;

use lattice_model::time::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::budget::TokenBudget;
use crate::builders::validation::ErrorItem;
use crate::chunk::{ChunkType, ContextChunk, ContextPriority, ScoredChunk};
use crate::compress::fill::{Fill, Means, Pricing};
use crate::gather::files::set_relevance;
use crate::gather::structure::Folder;
use crate::gather::{ContextGatherer, Gathered, Gatherer, Patterns, chunk, file_chunk, part_chunks, patterns};
use crate::git::GitOperations;
use crate::index::Index;
use crate::log::Log;
use crate::parallel::parallel;
use crate::prioritize::{Boost, ContextPrioritizer, Prioritizer, Role};
use crate::prompt::{bare, build_prompt};
use crate::retrieve::history::History;
use crate::retrieve::imports::ModuleMap;
use crate::retrieve::passage::Passages;
use crate::retrieve::rank::{Ranked, Ranker};
use crate::retrieve::request::{self, Query};
use crate::secrets;
use crate::task::{TaskEnvelope, TaskType, session_id};
use crate::workspace::{Entry, Workspace, WorkspaceError};
use select::{Candidate, Selection};

/// What is wanted.
pub struct PackRequest {
    pub task: TaskType,
    pub input: String,
    pub budget: PackBudget,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Files in front, with the line that matters.
    pub focus: Vec<(String, Option<u32>)>,
    /// Compare with this, and put what changed in front.
    pub diff_base: Option<String>,
    pub errors: Vec<ErrorItem>,
    pub max_files: usize,
    pub boosts: Vec<Boost>,
    pub critical: Vec<String>,
    pub secrets: Secrets,
    pub session_id: Option<String>,
    pub now: Timestamp,
    pub threads: usize,
    /// Gatherers of somebody else's.
    pub gatherers: Vec<Arc<dyn Gatherer>>,
    /// A prioritizer of somebody else's, in the place of the standard one.
    pub prioritizer: Option<Arc<dyn Prioritizer>>,
}

impl PackRequest {
    /// A request for `input` with nothing said about the rest.
    pub fn new(task: TaskType, input: impl Into<String>, budget: PackBudget, now: Timestamp) -> Self {
        Self {
            task,
            input: input.into(),
            budget,
            include: Vec::new(),
            exclude: Vec::new(),
            focus: Vec::new(),
            diff_base: None,
            errors: Vec::new(),
            max_files: MAX_FILES,
            boosts: Vec::new(),
            critical: Vec::new(),
            secrets: Secrets::Warn,
            session_id: None,
            now,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            gatherers: Vec::new(),
            prioritizer: None,
        }
    }
}

/// What limits the prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PackBudget {
    /// The most that the prompt may have.
    Prompt(usize),
    /// Shares of a total, of which a part is for the response.
    Shares(TokenBudget),
}

/// What happens to text that looks like a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    Warn,
    Redact,
}

/// The result.
#[derive(Debug, Clone)]
pub struct Packed {
    pub envelope: TaskEnvelope,
    pub prompt: String,
    pub prompt_tokens: usize,
    /// The most that the prompt could have had.
    pub limit: usize,
    /// SHA-256 of the prompt.
    pub digest: String,
    /// All files that anything speaks for, best first.
    pub ranked: Vec<Ranked>,
    pub warnings: Vec<String>,
    /// Contents that were read for the index.
    pub scanned: usize,
}

/// A request that cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("the request alone needs {needed} tokens, and the prompt may have {limit}")]
    TooSmall { needed: usize, limit: usize },
    #[error("`{pattern}` is no pattern")]
    Pattern { pattern: String, source: globset::Error },
    #[error("{path} cannot be put in front: {reason}")]
    Focus { path: String, reason: String },
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Git(#[from] crate::git::GitOperationError),
    #[error("the work was interrupted")]
    Stopped,
}

/// Requests by default.
pub const MAX_FILES: usize = 50;

/// A file larger than this share of the budget is split.
const SPLIT_SHARE: usize = 8;

/// The structure and dependencies may take this share of the budget each.
const SIDE_SHARE: usize = 20;

/// How often the fill is repeated with less room, because counts of parts do not add up exactly.
const CORRECTIONS: usize = 4;

struct Prepared {
    ranked: Vec<Ranked>,
    candidates: Vec<Candidate>,
    passages: Arc<Passages>,
    paths: Vec<String>,
    patterns: Option<ContextChunk>,
    warnings: Vec<String>,
    scanned: usize,
}

/// Runs the whole chain.
pub async fn pack(workspace: Arc<Workspace>, request: PackRequest, log: Log) -> Result<Packed, PackError> {
    let request = Arc::new(request);
    let counter = Arc::clone(&workspace.counter);
    let mut envelope = envelope(&request);
    let limit = match request.budget {
        PackBudget::Prompt(tokens) => tokens,
        PackBudget::Shares(budget) => budget.input(),
    };
    let needed = counter.count(&bare(&envelope));
    if needed > limit {
        return Err(PackError::TooSmall { needed, limit });
    }
    let prepared = prepare(&workspace, &request).await?;
    let mut gathered = gather(&workspace, &request, &prepared, limit).await?;
    gathered.warnings.splice(0..0, prepared.warnings.iter().cloned());
    if request.secrets == Secrets::Redact {
        gathered.chunks.iter_mut().for_each(|chunk| redact(chunk, &workspace));
    }
    log.event("context_gathered", json!({ "stage": "gatherer", "chunks": gathered.chunks.len() }));
    let standard = ContextPrioritizer { boosts: request.boosts.clone() };
    let prioritizer: &dyn Prioritizer = request.prioritizer.as_deref().unwrap_or(&standard);
    let scored = prioritizer.rank(gathered.chunks, &envelope);
    log.event("context_scored", json!({ "stage": "prioritizer", "chunks": scored.len() }));
    let focus = focus_lines(&request);
    let frame = counter.units(&bare(&envelope));
    let mut room = counter.most_units(limit).saturating_sub(frame);
    if let PackBudget::Shares(budget) = request.budget {
        room = room.min(counter.most_units(budget.context()));
    }
    let chunks_in = scored.len();
    let means = Means { counter: counter.as_ref(), outlines: workspace.outlines(), threads: request.threads };
    let filling = Filling { scored, means, passages: &prepared.passages, focus: &focus, limit, room };
    let (prompt, prompt_tokens) = filling.fill(&mut envelope);
    workspace.outlines().save();
    let (chunks_out, utilization) = (envelope.context.chunks.len(), envelope.context.utilization);
    log.event(
        "context_compressed",
        json!({ "stage": "compressor", "chunks_in": chunks_in, "chunks_out": chunks_out, "utilization": utilization }),
    );
    log.event("prompt_built", json!({ "stage": "prompt", "tokens": prompt_tokens }));
    let mut warnings = gathered.warnings;
    warnings.extend(envelope.context.warnings.iter().cloned());
    if request.secrets == Secrets::Warn {
        warnings.extend(secret_warnings(&envelope));
    }
    let digest = Sha256::digest(prompt.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Packed {
        envelope,
        prompt,
        prompt_tokens,
        limit,
        digest,
        ranked: prepared.ranked,
        warnings,
        scanned: prepared.scanned,
    })
}

/// Everything that the fill of a prompt works with.
struct Filling<'a> {
    scored: Vec<ScoredChunk>,
    means: Means<'a>,
    passages: &'a Passages,
    focus: &'a [(String, u32)],
    /// What the prompt may have, in tokens.
    limit: usize,
    /// What its chunks may have, in units.
    room: u64,
}

impl Filling<'_> {
    /// Fills the envelope's context and returns the prompt with its tokens.
    fn fill(self, envelope: &mut TaskEnvelope) -> (String, usize) {
        let counter = self.means.counter;
        let (mut room, budget) = (self.room, counter.tokens_of(self.room));
        let (mut prompt, mut tokens) = (String::new(), usize::MAX);
        for _ in 0..CORRECTIONS {
            let mut fill = Fill::new(self.scored.clone(), self.means, Pricing::Prompt, room);
            fill.first_pass();
            fill.improve(self.passages, self.focus);
            envelope.context = fill.finish(budget);
            prompt = build_prompt(envelope);
            tokens = counter.count(&prompt);
            let over = tokens.saturating_sub(self.limit);
            if over == 0 {
                break;
            }
            room = room.saturating_sub(over as u64 + 1);
        }
        while tokens > self.limit && envelope.context.chunks.pop().is_some() {
            prompt = build_prompt(envelope);
            tokens = counter.count(&prompt);
        }
        (prompt, tokens)
    }
}

fn envelope(request: &PackRequest) -> TaskEnvelope {
    let id = request.session_id.clone().unwrap_or_else(|| session_id(&format!("{}\0{}", request.now, request.input)));
    let mut envelope = TaskEnvelope::new(request.task, &request.input, id, request.now.clone());
    envelope.token_budget = match request.budget {
        PackBudget::Shares(budget) => budget,
        // All of it is for the prompt.
        PackBudget::Prompt(tokens) => TokenBudget::new(tokens.max(1), 1.0).unwrap_or_default(),
    };
    envelope
}

/// Lists, indexes, ranks and chooses, beside the caller.
async fn prepare(workspace: &Arc<Workspace>, request: &Arc<PackRequest>) -> Result<Prepared, PackError> {
    let (workspace, request) = (Arc::clone(workspace), Arc::clone(request));
    let work = tokio::task::spawn_blocking(move || prepare_now(&workspace, &request));
    work.await.map_err(|_| PackError::Stopped)?
}

fn prepare_now(workspace: &Workspace, request: &PackRequest) -> Result<Prepared, PackError> {
    let compiled = |patterns: &Vec<String>| -> Result<Option<Patterns>, PackError> {
        let failed = |source| PackError::Pattern { pattern: patterns.join(" "), source };
        if patterns.is_empty() { Ok(None) } else { Patterns::new(patterns).map(Some).map_err(failed) }
    };
    let (include, exclude, critical) =
        (compiled(&request.include)?, compiled(&request.exclude)?, compiled(&request.critical)?);
    let focus = focus_paths(workspace, request)?;
    let history = std::thread::scope(|scope| {
        let history = scope.spawn(|| workspace.reader().map(History::read).unwrap_or_default());
        let entries = workspace.entries();
        (entries, history.join().unwrap_or_default())
    });
    let (entries, history) = (history.0?, history.1);
    let paths: Vec<String> = entries.iter().map(|entry| entry.path.clone()).collect();
    let wanted = |entry: &&Entry| {
        include.as_ref().is_none_or(|patterns| patterns.fits(&entry.path))
            && exclude.as_ref().is_none_or(|patterns| !patterns.fits(&entry.path))
    };
    let index = Index::open(workspace, entries.iter().filter(wanted).cloned().collect(), request.threads);
    let mut text = request.input.clone();
    for error in &request.errors {
        text.push_str(&format!("\n{}:{}: {}", error.file, error.line, error.message));
    }
    let query: Query = request::parse(&text);
    let modules = ModuleMap::new(index.files.iter().map(|file| file.path.as_str()));
    let ranker = Ranker { index: &index, history: &history, modules: &modules, task: request.task };
    let terms = ranker.look_up(&query);
    let ranked = ranker.rank(&terms);
    let passages = Arc::new(Passages::new(&query, ranker.term_weights(&terms)));
    let error_places = error_places(workspace, request);
    let changed = changed_paths(workspace, request)?;
    let selection = Selection {
        index: &index,
        history: &history,
        modules: &modules,
        ranked: &ranked,
        task: request.task,
        focus: &focus,
        error_places: &error_places,
        changed: &changed,
        critical: critical.as_ref(),
        include: include.as_ref(),
        exclude: exclude.as_ref(),
        max_files: request.max_files,
    };
    let candidates = selection.candidates();
    let patterns = match request.task {
        TaskType::Analyze => patterns::patterns(workspace, &index),
        TaskType::Implement | TaskType::Debug | TaskType::Refactor | TaskType::Test => None,
    };
    let (warnings, scanned) = (index.warnings.clone(), index.scanned);
    Ok(Prepared { ranked, candidates, passages, paths, patterns, warnings, scanned })
}

/// The named files, which must be files of the workspace.
fn focus_paths(workspace: &Workspace, request: &PackRequest) -> Result<Vec<String>, PackError> {
    let resolve = |(path, _): &(String, Option<u32>)| {
        let resolved = workspace.resolve(path).and_then(|path| workspace.open_file(&path).map(|_| path));
        resolved.map_err(|skip| PackError::Focus { path: path.clone(), reason: skip.to_string() })
    };
    request.focus.iter().map(resolve).collect()
}

fn error_places(workspace: &Workspace, request: &PackRequest) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for error in &request.errors {
        if let Ok(path) = workspace.resolve(&error.file)
            && !places.contains(&path)
            && workspace.open_file(&path).is_ok()
        {
            places.push(path);
        }
    }
    places.truncate(8);
    places
}

fn changed_paths(workspace: &Workspace, request: &PackRequest) -> Result<Vec<String>, PackError> {
    let (Some(base), Some(reader)) = (&request.diff_base, workspace.reader()) else { return Ok(Vec::new()) };
    let range = GitOperations::new(reader).range(base, None)?;
    let files = reader.changed_files(range).map_err(crate::git::GitOperationError::from)?;
    Ok(files.into_iter().filter_map(|file| String::from_utf8(file.path).ok()).collect())
}

/// Lines that the user or a compiler points at.
fn focus_lines(request: &PackRequest) -> Vec<(String, u32)> {
    let focused = request.focus.iter().filter_map(|(path, line)| Some((path.clone(), (*line)?)));
    let query = request::parse(&request.input);
    let named = query.paths.into_iter().filter_map(|(path, line)| Some((path, line?)));
    let errors = request.errors.iter().map(|error| (error.file.clone(), error.line));
    let shorten = |(path, line): (String, u32)| (path.trim_start_matches("./").to_owned(), line);
    focused.chain(named).chain(errors).map(shorten).collect()
}

/// Everything that may become part of the prompt.
async fn gather(
    workspace: &Arc<Workspace>,
    request: &Arc<PackRequest>,
    prepared: &Prepared,
    limit: usize,
) -> Result<Gathered, PackError> {
    let gatherer = ContextGatherer::new(Arc::clone(workspace));
    let mut gathered = read_candidates(workspace, request, prepared, limit).await?;
    gathered.chunks.extend(structure(workspace, &prepared.paths, limit));
    let mut dependencies = gatherer.gather_dependencies().await;
    let is_wide = request.task == TaskType::Analyze;
    dependencies.chunks.retain(|chunk| is_wide || chunk.tokens <= limit / SIDE_SHARE);
    gathered.join(dependencies);
    if matches!(request.task, TaskType::Debug | TaskType::Analyze) {
        gathered.join(gatherer.gather_git_context(5).await);
    }
    gathered.chunks.extend(prepared.patterns.clone());
    for custom in &request.gatherers {
        gathered.join(custom.gather(workspace).await);
    }
    if !request.errors.is_empty() {
        let lines: String = request.errors.iter().map(ErrorItem::line_of_text).collect();
        let kind = ChunkType::Other("errors".to_owned());
        gathered.chunks.push(chunk(workspace, lines, "errors", kind, ContextPriority::High));
    }
    if let (Some(base), Some(reader)) = (&request.diff_base, workspace.reader()) {
        let diff = GitOperations::new(reader).diff(base, None)?;
        let kind = ChunkType::Other("diff".to_owned());
        let text = format!("```diff\n{}```\n", diff.replace("```", "` ` `"));
        gathered.chunks.push(chunk(workspace, text, base, kind, ContextPriority::High));
    }
    Ok(gathered)
}

/// The deepest tree that is worth its price.
fn structure(workspace: &Workspace, paths: &[String], limit: usize) -> Option<ContextChunk> {
    let root = Folder::of(paths.iter().map(String::as_str));
    (1..=3).rev().find_map(|depth| {
        let content = root.tree(depth);
        let made = chunk(workspace, content, "workspace", ChunkType::Structure, ContextPriority::Medium);
        (made.tokens <= limit / SIDE_SHARE && !made.content.is_empty()).then_some(made)
    })
}

/// Reads the candidates beside each other and splits what is large.
async fn read_candidates(
    workspace: &Arc<Workspace>,
    request: &Arc<PackRequest>,
    prepared: &Prepared,
    limit: usize,
) -> Result<Gathered, PackError> {
    let (workspace, threads) = (Arc::clone(workspace), request.threads);
    let (candidates, passages) = (prepared.candidates.clone(), Arc::clone(&prepared.passages));
    let work = move || parallel(threads, &candidates, |one| candidate_chunks(&workspace, one, &passages, limit));
    let mut gathered = Gathered::default();
    for result in tokio::task::spawn_blocking(work).await.map_err(|_| PackError::Stopped)? {
        match result {
            Ok(chunks) => gathered.chunks.extend(chunks),
            Err(warning) => gathered.warnings.push(warning),
        }
    }
    Ok(gathered)
}

fn candidate_chunks(
    workspace: &Workspace,
    candidate: &Candidate,
    passages: &Passages,
    limit: usize,
) -> Result<Vec<ContextChunk>, String> {
    let failed = |skip| format!("{} was left out: {skip}", candidate.path);
    let mut whole = file_chunk(workspace, &candidate.path, candidate.priority).map_err(failed)?;
    if let Some(role) = candidate.role {
        whole.metadata.insert("role".to_owned(), json!(role.as_str()));
    }
    let is_in_front = candidate.role == Some(Role::Target) && candidate.priority == ContextPriority::Critical;
    let most = if is_in_front { limit } else { limit / SPLIT_SHARE };
    let mut parts = part_chunks(workspace, whole, most);
    if parts.len() == 1 {
        parts.iter_mut().for_each(|part| set_relevance(part, candidate.relevance));
        return Ok(parts);
    }
    let scores: Vec<f64> = parts.iter().map(|part| passages.score(&part.content)).collect();
    let best = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (part, score) in parts.iter_mut().zip(scores) {
        let share = score / best;
        set_relevance(part, candidate.relevance * (0.3 + 0.7 * share));
        if share < 0.4 && part.priority == ContextPriority::High {
            part.priority = ContextPriority::Medium;
        }
    }
    Ok(parts)
}

fn redact(chunk: &mut ContextChunk, workspace: &Workspace) {
    let found = secrets::find(&chunk.content).len();
    if found > 0 {
        chunk.content = secrets::redact(&chunk.content);
        chunk.tokens = workspace.counter.count(&chunk.content);
        chunk.metadata.insert("redacted".to_owned(), Value::from(found));
    }
}

fn secret_warnings(envelope: &TaskEnvelope) -> Vec<String> {
    let chunks = envelope.context.chunks.iter();
    chunks.flat_map(|chunk| secrets::warnings(&chunk.source, &chunk.content)).collect()
}
