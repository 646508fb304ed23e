//! The unit of context, and what is known of it on its way through the pipeline.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much a chunk matters before anything about the task is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ContextPriority {
    Minimal,
    Low,
    Medium,
    High,
    Critical,
}

impl ContextPriority {
    /// The score that every modifier is added to.
    pub fn base_score(self) -> f64 {
        match self {
            Self::Critical => 1000.0,
            Self::High => 800.0,
            Self::Medium => 500.0,
            Self::Low => 200.0,
            Self::Minimal => 100.0,
        }
    }
}

/// What a chunk holds. Extensions may add types of their own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ChunkType {
    File,
    Structure,
    Dependency,
    History,
    Other(String),
}

impl ChunkType {
    pub fn as_str(&self) -> &str {
        match self {
            Self::File => "file",
            Self::Structure => "structure",
            Self::Dependency => "dependency",
            Self::History => "history",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for ChunkType {
    fn from(name: String) -> Self {
        match name.as_str() {
            "file" => Self::File,
            "structure" => Self::Structure,
            "dependency" => Self::Dependency,
            "history" => Self::History,
            _ => Self::Other(name),
        }
    }
}

impl From<ChunkType> for String {
    fn from(kind: ChunkType) -> Self {
        kind.as_str().to_owned()
    }
}

/// One discrete piece of context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextChunk {
    pub content: String,
    /// A path relative to the root, with its lines if it is a part of a file; a URL; or `workspace`.
    pub source: String,
    pub chunk_type: ChunkType,
    pub priority: ContextPriority,
    /// The tokens of `content`, by the counter in use.
    pub tokens: usize,
    pub metadata: Map<String, Value>,
}

impl ContextChunk {
    /// The path of a file chunk, without the lines of a part.
    pub fn path(&self) -> &str {
        match self.metadata.get("path").and_then(Value::as_str) {
            Some(path) => path,
            None => &self.source,
        }
    }

    pub fn language(&self) -> Option<&str> {
        self.metadata.get("language").and_then(Value::as_str)
    }

    /// When the file was last changed, in seconds since the start of 1970.
    pub fn last_modified(&self) -> Option<i64> {
        let text = self.metadata.get("last_modified")?.as_str()?;
        lattice_model::time::Timestamp::new(text).ok().map(|time| time.unix_seconds())
    }
}

/// What a score is made of. The parts add up to `final_score`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreParts {
    pub base_score: f64,
    #[serde(default)]
    pub task_relevance_boost: f64,
    #[serde(default)]
    pub recency_boost: f64,
    #[serde(default)]
    pub mention_boost: f64,
    #[serde(default)]
    pub size_penalty: f64,
    /// What retrieval found, from 0 to 199.
    #[serde(default)]
    pub relevance_boost: f64,
    /// What the user asked for with `--boost`, or a prioritizer of somebody else's added.
    #[serde(default)]
    pub custom_boost: f64,
    pub final_score: f64,
}

impl ScoreParts {
    /// The same parts with their sum.
    #[must_use]
    pub fn summed(mut self) -> Self {
        self.final_score = self.base_score
            + self.task_relevance_boost
            + self.recency_boost
            + self.mention_boost
            + self.size_penalty
            + self.relevance_boost
            + self.custom_boost;
        self
    }
}

/// A chunk with its score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoredChunk {
    pub chunk: ContextChunk,
    pub score: f64,
    pub parts: ScoreParts,
}

impl From<ContextChunk> for ScoredChunk {
    fn from(chunk: ContextChunk) -> Self {
        let base_score = chunk.priority.base_score();
        Self { chunk, score: base_score, parts: ScoreParts { base_score, ..ScoreParts::default() }.summed() }
    }
}

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Included,
    Truncated,
    Skipped,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Included => "included",
            Self::Truncated => "truncated",
            Self::Skipped => "skipped",
        }
    }
}

/// How much of a chunk is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fidelity {
    /// Nothing but its name.
    Path,
    /// Some bodies or lines that matter, the rest cut away.
    Excerpt,
    /// All signatures, no bodies.
    Outline,
    /// Bodies that matter, the rest outlined.
    Bodies,
    Full,
}

impl Fidelity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Excerpt => "excerpt",
            Self::Outline => "outline",
            Self::Bodies => "bodies",
            Self::Full => "full",
        }
    }
}

/// Why a chunk is in or out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub source: String,
    pub rank: usize,
    pub parts: ScoreParts,
    pub verdict: Verdict,
    pub fidelity: Fidelity,
    /// Tokens as shown.
    pub tokens: usize,
    /// Tokens of the whole chunk: the price of what was left out.
    pub original_tokens: usize,
    pub reason: String,
}

/// Context within a budget.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompressedContext {
    /// In descending order of score.
    pub chunks: Vec<ContextChunk>,
    pub chunks_included: usize,
    pub tokens_used: usize,
    pub budget: usize,
    /// `tokens_used` divided by `budget`.
    pub utilization: f64,
    #[serde(default)]
    pub decisions: Vec<Decision>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// A name that is none of the five priorities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no priority: CRITICAL, HIGH, MEDIUM, LOW or MINIMAL")]
pub struct PriorityError(String);

impl FromStr for ContextPriority {
    type Err = PriorityError;
    fn from_str(text: &str) -> Result<Self, PriorityError> {
        match text.to_ascii_uppercase().as_str() {
            "CRITICAL" => Ok(Self::Critical),
            "HIGH" => Ok(Self::High),
            "MEDIUM" => Ok(Self::Medium),
            "LOW" => Ok(Self::Low),
            "MINIMAL" => Ok(Self::Minimal),
            _ => Err(PriorityError(text.to_owned())),
        }
    }
}

impl fmt::Display for ChunkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
