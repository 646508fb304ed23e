//! What is asked: the type of the task, and the envelope that carries everything about it.

use std::fmt;
use std::str::FromStr;

use lattice_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::budget::TokenBudget;
use crate::chunk::CompressedContext;

/// The version of the protocol that envelopes follow.
pub const PROTOCOL_VERSION: &str = "1.0.0";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskType {
    #[serde(alias = "IMPLEMENT")]
    Implement,
    #[serde(alias = "DEBUG")]
    Debug,
    #[serde(alias = "REFACTOR")]
    Refactor,
    #[serde(alias = "TEST")]
    Test,
    #[serde(alias = "ANALYZE")]
    Analyze,
}

impl TaskType {
    pub const ALL: [Self; 5] = [Self::Implement, Self::Debug, Self::Refactor, Self::Test, Self::Analyze];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Debug => "debug",
            Self::Refactor => "refactor",
            Self::Test => "test",
            Self::Analyze => "analyze",
        }
    }

    /// What the prompt asks for at its end, after `As a … task, please`.
    pub fn instructions(self) -> &'static str {
        match self {
            Self::Implement => {
                "make the change that the request describes, follow the conventions of the code above, and add tests"
            }
            Self::Debug => "find the cause of the failure, explain it, and fix it with the smallest change that does",
            Self::Refactor => {
                "improve the structure without changing behaviour, and name every caller that is affected"
            }
            Self::Test => "write tests for the behaviour that the request names, in the style of the existing ones",
            Self::Analyze => "answer from the code above, and name the files and lines that support each statement",
        }
    }
}

/// A name that is none of the five task types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no task type: implement, debug, refactor, test or analyze")]
pub struct TaskTypeError(String);

impl FromStr for TaskType {
    type Err = TaskTypeError;
    fn from_str(text: &str) -> Result<Self, TaskTypeError> {
        let lower = text.to_ascii_lowercase();
        Self::ALL.into_iter().find(|kind| kind.as_str() == lower).ok_or_else(|| TaskTypeError(text.to_owned()))
    }
}

impl fmt::Display for TaskType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// Something that was produced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    #[serde(rename = "type")]
    pub kind: String,
    pub path: String,
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// Carries the context of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEnvelope {
    #[serde(default = "protocol_version")]
    pub protocol_version: String,
    pub task_type: TaskType,
    pub user_request: String,
    /// The input as it came.
    pub original_input: String,
    #[serde(default)]
    pub context: CompressedContext,
    #[serde(default)]
    pub tools: Vec<ToolDefinition>,
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    pub session_id: String,
    pub created_at: Timestamp,
    #[serde(default)]
    pub token_budget: TokenBudget,
}

impl TaskEnvelope {
    /// An envelope without context yet. A leading `/command` of the input is no part of the request.
    pub fn new(task_type: TaskType, input: &str, session_id: String, created_at: Timestamp) -> Self {
        Self {
            protocol_version: protocol_version(),
            task_type,
            user_request: request_of(input).to_owned(),
            original_input: input.to_owned(),
            context: CompressedContext::default(),
            tools: Vec::new(),
            artifacts: Vec::new(),
            session_id,
            created_at,
            token_budget: TokenBudget::default(),
        }
    }
}

/// A session id that no other run has, if no other run has this seed.
pub fn session_id(seed: &str) -> String {
    let digest = Sha256::digest(seed.as_bytes());
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("session_{hex}")
}

fn request_of(input: &str) -> &str {
    let trimmed = input.trim();
    let Some(rest) = trimmed.strip_prefix('/') else { return trimmed };
    match rest.split_once(char::is_whitespace) {
        Some((word, request)) if word.parse::<TaskType>().is_ok() => request.trim_start(),
        Some(_) | None => trimmed,
    }
}

fn protocol_version() -> String {
    PROTOCOL_VERSION.to_owned()
}
