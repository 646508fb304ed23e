//! Session records: what a session was about, stored so that another process can go on.

use std::path::{Path, PathBuf};

use lattice_model::time::Timestamp;
use lattice_repo::{ReadError, read_own_file, write_own_file};
use serde::{Deserialize, Serialize};

use crate::chunk::CompressedContext;
use crate::task::{Artifact, TaskEnvelope, TaskType};

/// Stores and restores sessions in one folder.
#[derive(Debug, Clone)]
pub struct ContextCheckpoint {
    storage_dir: PathBuf,
}

/// What is saved of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionState {
    pub task_type: TaskType,
    pub user_request: String,
    #[serde(default)]
    pub context: CompressedContext,
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    #[serde(default = "running")]
    pub state: String,
    #[serde(default)]
    pub conversation_history: Vec<Turn>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub role: Speaker,
    pub content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    User,
    Assistant,
}

/// The document on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRecord {
    pub session_id: String,
    pub timestamp: Timestamp,
    pub task_type: TaskType,
    pub user_request: String,
    pub state: String,
    pub context_summary: ContextSummary,
    pub artifacts: Vec<Artifact>,
    pub conversation_history: Vec<Turn>,
    pub context: CompressedContext,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSummary {
    pub chunks_included: usize,
    pub tokens_used: usize,
    pub utilization: f64,
}

/// A session that cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("`{0}` is no session id: letters, digits, `-`, `_` and `.`, at most 128, not beginning with `.`")]
    Id(String),
    #[error("there is no session `{id}` in {folder}")]
    Unknown { id: String, folder: PathBuf },
    #[error("{path} is no session record")]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("{path} could not be read")]
    Read { path: PathBuf, source: ReadError },
    #[error("{path} could not be written")]
    Write { path: PathBuf, source: std::io::Error },
}

/// A record above this size is none of ours.
const SIZE_LIMIT: u64 = 64 << 20;

impl ContextCheckpoint {
    pub fn new(storage_dir: impl Into<PathBuf>) -> Self {
        Self { storage_dir: storage_dir.into() }
    }

    /// Stores a state; after a crash the old record or the new one is there.
    pub fn save(&self, session_id: &str, state: SessionState, now: Timestamp) -> Result<SessionRecord, SessionError> {
        let path = self.path(session_id)?;
        let context = &state.context;
        let context_summary = ContextSummary {
            chunks_included: context.chunks_included,
            tokens_used: context.tokens_used,
            utilization: context.utilization,
        };
        let record = SessionRecord {
            session_id: session_id.to_owned(),
            timestamp: now,
            task_type: state.task_type,
            user_request: state.user_request,
            state: state.state,
            context_summary,
            artifacts: state.artifacts,
            conversation_history: state.conversation_history,
            context: state.context,
        };
        let text = serde_json::to_vec_pretty(&record).expect("bug: a record has string keys");
        write_own_file(&path, &text).map_err(|source| SessionError::Write { path, source })?;
        Ok(record)
    }

    /// The stored record.
    pub fn restore(&self, session_id: &str) -> Result<SessionRecord, SessionError> {
        let path = self.path(session_id)?;
        let bytes = match read_own_file(&path, SIZE_LIMIT) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                return Err(SessionError::Unknown { id: session_id.to_owned(), folder: self.storage_dir.clone() });
            }
            Err(source) => return Err(SessionError::Read { path, source }),
        };
        serde_json::from_slice(&bytes).map_err(|source| SessionError::Damaged { path, source })
    }

    /// The ids of all stored sessions, sorted.
    pub fn list(&self) -> Vec<String> {
        let Ok(found) = std::fs::read_dir(&self.storage_dir) else { return Vec::new() };
        let id = |name: &str| name.strip_suffix(".json").filter(|id| is_id(id)).map(str::to_owned);
        let mut ids: Vec<String> = found.flatten().filter_map(|entry| id(entry.file_name().to_str()?)).collect();
        ids.sort();
        ids
    }

    pub fn storage_dir(&self) -> &Path {
        &self.storage_dir
    }

    fn path(&self, session_id: &str) -> Result<PathBuf, SessionError> {
        if !is_id(session_id) {
            return Err(SessionError::Id(session_id.to_owned()));
        }
        Ok(self.storage_dir.join(format!("{session_id}.json")))
    }
}

impl From<&TaskEnvelope> for SessionState {
    fn from(envelope: &TaskEnvelope) -> Self {
        Self {
            task_type: envelope.task_type,
            user_request: envelope.user_request.clone(),
            context: envelope.context.clone(),
            artifacts: envelope.artifacts.clone(),
            state: running(),
            conversation_history: Vec::new(),
        }
    }
}

fn is_id(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !id.is_empty() && id.len() <= 128 && !id.starts_with('.') && id.chars().all(fits)
}

fn running() -> String {
    "running".to_owned()
}
