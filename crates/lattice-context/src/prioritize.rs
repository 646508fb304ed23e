//! Scores chunks. Every modifier and its number stand in one table.

use serde_json::Value;

use crate::chunk::{ChunkType, ContextChunk, ScoreParts, ScoredChunk};
use crate::retrieve::files::{FileKind, stem};
use crate::retrieve::terms;
use crate::task::{TaskEnvelope, TaskType};

/// The sizes of all modifiers.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Modifiers {
    /// For what changed within `recent_days` before the envelope was made.
    pub recency_boost: f64,
    pub recent_days: i64,
    /// For what the request names by path, file name or stem.
    pub mention_boost: f64,
    /// For chunks with more than `large_share` of the context budget.
    pub size_penalty: f64,
    pub large_share: f64,
    /// The most that retrieval can add.
    pub relevance_boost: f64,
    pub debug_boost: f64,
    pub test_boost: f64,
    pub implement_boost: f64,
    pub refactor_boost: f64,
}

pub const MODIFIERS: Modifiers = Modifiers {
    recency_boost: 100.0,
    recent_days: 7,
    mention_boost: 250.0,
    size_penalty: -150.0,
    large_share: 0.25,
    relevance_boost: 199.0,
    debug_boost: 300.0,
    test_boost: 250.0,
    implement_boost: 400.0,
    refactor_boost: 200.0,
};

/// Words in a path that say that a file concerns errors.
const ERROR_WORDS: &[&str] = &["error", "exception", "err", "panic", "failure", "fault", "traceback"];

/// Stems that say nothing about the file: a request that contains them does not mean it.
const NAMELESS: &[&str] = &["__init__", "index", "main", "mod", "lib"];

/// What a chunk is to the target of the task; gatherers write it into the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Target,
    /// What the target is built on.
    Interface,
    /// What a target of a refactoring depends on.
    Dependency,
    /// What uses the target.
    Importer,
    Test,
    Fixture,
    Trace,
    Recent,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Interface => "interface",
            Self::Dependency => "dependency",
            Self::Importer => "importer",
            Self::Test => "test",
            Self::Fixture => "fixture",
            Self::Trace => "trace",
            Self::Recent => "recent",
        }
    }
}

/// Scores and ranks. A prioritizer of somebody else's can ask the standard one and add to its parts.
pub trait Prioritizer: Send + Sync {
    /// What the score of a chunk is made of.
    fn score_parts(&self, chunk: &ContextChunk, envelope: &TaskEnvelope) -> ScoreParts;

    fn score_chunk(&self, chunk: &ContextChunk, envelope: &TaskEnvelope) -> f64 {
        self.score_parts(chunk, envelope).final_score
    }

    /// All chunks, best first; ties in the order of their sources. Nothing is dropped.
    fn rank(&self, chunks: Vec<ContextChunk>, envelope: &TaskEnvelope) -> Vec<ScoredChunk> {
        let score = |chunk: ContextChunk| {
            let parts = self.score_parts(&chunk, envelope);
            ScoredChunk { chunk, score: parts.final_score, parts }
        };
        let mut scored: Vec<_> = chunks.into_iter().map(score).collect();
        sort(&mut scored);
        scored
    }
}

/// Best first; ties in the order of sources.
pub fn sort(scored: &mut [ScoredChunk]) {
    scored.sort_by(|one, other| {
        let by_source = || one.chunk.source.cmp(&other.chunk.source);
        other.score.total_cmp(&one.score).then_with(by_source).then_with(|| one.chunk.content.cmp(&other.chunk.content))
    });
}

/// The prioritizer of the protocol, with what the user adds for paths.
#[derive(Debug, Clone, Default)]
pub struct ContextPrioritizer {
    /// Parts of paths, or globs, and what each adds.
    pub boosts: Vec<Boost>,
}

/// A number for all sources that a pattern fits.
#[derive(Debug, Clone)]
pub struct Boost {
    pattern: String,
    glob: Option<globset::GlobMatcher>,
    amount: f64,
}

impl Boost {
    /// A pattern with `*`, `?` or `[` is a glob; any other fits every source that contains it.
    pub fn new(pattern: &str, amount: f64) -> Result<Self, globset::Error> {
        let glob = match pattern.contains(['*', '?', '[']) {
            true => Some(globset::Glob::new(pattern)?.compile_matcher()),
            false => None,
        };
        Ok(Self { pattern: pattern.to_owned(), glob, amount })
    }

    pub fn fits(&self, source: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.is_match(source),
            None => source.contains(&self.pattern),
        }
    }
}

impl Prioritizer for ContextPrioritizer {
    fn score_parts(&self, chunk: &ContextChunk, envelope: &TaskEnvelope) -> ScoreParts {
        let mentioned = is_mentioned(chunk, &envelope.user_request);
        ScoreParts {
            base_score: chunk.priority.base_score(),
            task_relevance_boost: task_boost(chunk, envelope.task_type, mentioned),
            recency_boost: if is_recent(chunk, envelope) { MODIFIERS.recency_boost } else { 0.0 },
            mention_boost: if mentioned { MODIFIERS.mention_boost } else { 0.0 },
            size_penalty: if is_large(chunk, envelope) { MODIFIERS.size_penalty } else { 0.0 },
            relevance_boost: relevance_of(chunk) * MODIFIERS.relevance_boost,
            custom_boost: self.boosts.iter().filter(|boost| boost.fits(chunk.path())).map(|boost| boost.amount).sum(),
            final_score: 0.0,
        }
        .summed()
    }
}

/// What retrieval said of a chunk, from 0 to 1.
pub fn relevance_of(chunk: &ContextChunk) -> f64 {
    chunk.metadata.get("relevance").and_then(Value::as_f64).unwrap_or(0.0).clamp(0.0, 1.0)
}

fn has_role(chunk: &ContextChunk, role: Role) -> bool {
    chunk.metadata.get("role").and_then(Value::as_str) == Some(role.as_str())
}

fn task_boost(chunk: &ContextChunk, task: TaskType, mentioned: bool) -> f64 {
    let path = chunk.path();
    let is_file = chunk.chunk_type == ChunkType::File;
    match task {
        TaskType::Debug if is_file && concerns_errors(path) => MODIFIERS.debug_boost,
        TaskType::Test if is_file && matches!(FileKind::of(path), FileKind::Test | FileKind::Fixture) => {
            MODIFIERS.test_boost
        }
        TaskType::Implement if is_file && (mentioned || has_role(chunk, Role::Target)) => MODIFIERS.implement_boost,
        TaskType::Refactor if chunk.chunk_type == ChunkType::Dependency || has_role(chunk, Role::Dependency) => {
            MODIFIERS.refactor_boost
        }
        TaskType::Debug | TaskType::Test | TaskType::Implement | TaskType::Refactor | TaskType::Analyze => 0.0,
    }
}

fn concerns_errors(path: &str) -> bool {
    let mut found = false;
    for word in terms::words(path) {
        terms::of_word(word, |term| found |= ERROR_WORDS.contains(&term));
    }
    found
}

fn is_recent(chunk: &ContextChunk, envelope: &TaskEnvelope) -> bool {
    let Some(modified) = chunk.last_modified() else { return false };
    let age = envelope.created_at.unix_seconds() - modified;
    (0..=MODIFIERS.recent_days * 86_400).contains(&age)
}

fn is_large(chunk: &ContextChunk, envelope: &TaskEnvelope) -> bool {
    chunk.tokens as f64 > MODIFIERS.large_share * envelope.token_budget.context() as f64
}

/// Whether a request names a file by path, file name or stem, as a word of its own.
fn is_mentioned(chunk: &ContextChunk, request: &str) -> bool {
    if chunk.chunk_type != ChunkType::File {
        return false;
    }
    let path = chunk.path();
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = stem(path);
    contains_word(request, path)
        || contains_word(request, name)
        || (!NAMELESS.contains(&stem) && contains_word(request, stem))
}

fn contains_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    let joins = |c: char| terms::is_word(c) || c == '-';
    text.match_indices(word).any(|(at, found)| {
        let after = &text[at + found.len()..];
        let continues = after.strip_prefix('.').is_some_and(|rest| rest.starts_with(terms::is_word));
        !text[..at].ends_with(joins) && !after.starts_with(joins) && (!continues || word.contains('.'))
    })
}
