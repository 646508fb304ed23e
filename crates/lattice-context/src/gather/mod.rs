//! Collects raw chunks. The only part of the pipeline that reads files and asks Git; nothing here is fatal.

mod api_docs;
pub mod dependencies;
pub(crate) mod files;
mod history;
pub mod patterns;
pub(crate) mod structure;

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::chunk::{ChunkType, ContextChunk, ContextPriority};
use crate::workspace::{Skip, Workspace};

pub use files::{Patterns, file_chunk, part_chunks, priority_of};

/// Files that are read at the same time, at most.
const CONCURRENT_READS: usize = 8;

/// What a gather function found, and what it could not get.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    pub chunks: Vec<ContextChunk>,
    pub warnings: Vec<String>,
}

impl Gathered {
    pub fn one(chunk: ContextChunk) -> Self {
        Self { chunks: vec![chunk], warnings: Vec::new() }
    }

    pub fn nothing(warning: impl Into<String>) -> Self {
        Self { chunks: Vec::new(), warnings: vec![warning.into()] }
    }

    pub fn join(&mut self, other: Self) {
        self.chunks.extend(other.chunks);
        self.warnings.extend(other.warnings);
    }
}

/// A future that may be sent to another thread.
pub type GatherFuture<'a> = Pin<Box<dyn Future<Output = Gathered> + Send + 'a>>;

/// A gatherer of somebody else's. It reads files and counts tokens with the workspace that it is given.
pub trait Gatherer: Send + Sync {
    /// For warnings and logs.
    fn name(&self) -> &str;

    fn gather<'a>(&'a self, workspace: &'a Arc<Workspace>) -> GatherFuture<'a>;
}

/// The gather functions of the protocol.
#[derive(Debug, Clone)]
pub struct ContextGatherer {
    workspace: Arc<Workspace>,
}

impl ContextGatherer {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }

    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Files that fit the glob patterns, sorted, at most `max_files` of them.
    pub async fn gather_files(&self, patterns: &[String], max_files: usize) -> Gathered {
        files::gather(&self.workspace, patterns, max_files).await
    }

    /// The folders and files of the workspace down to `depth`.
    pub async fn gather_structure(&self, depth: usize) -> Gathered {
        self.off_thread(move |workspace| structure::gather(workspace, depth)).await
    }

    /// What the manifests and lock files declare.
    pub async fn gather_dependencies(&self) -> Gathered {
        self.off_thread(dependencies::gather).await
    }

    /// The newest commits, one chunk each, newest first.
    pub async fn gather_git_context(&self, commits: usize) -> Gathered {
        self.off_thread(move |workspace| history::gather(workspace, commits)).await
    }

    /// A summary of an OpenAPI specification.
    pub async fn gather_api_docs(&self, path: &str) -> Gathered {
        let path = path.to_owned();
        self.off_thread(move |workspace| api_docs::gather(workspace, &path)).await
    }

    /// Runs blocking work beside the caller.
    async fn off_thread(&self, work: impl FnOnce(&Workspace) -> Gathered + Send + 'static) -> Gathered {
        let workspace = Arc::clone(&self.workspace);
        let done = tokio::task::spawn_blocking(move || work(&workspace)).await;
        done.unwrap_or_else(|error| Gathered::nothing(format!("gathering stopped: {error}")))
    }
}

/// A chunk with its tokens counted.
pub fn chunk(
    workspace: &Workspace,
    content: String,
    source: &str,
    chunk_type: ChunkType,
    priority: ContextPriority,
) -> ContextChunk {
    let tokens = workspace.counter.count(&content);
    ContextChunk { content, source: source.to_owned(), chunk_type, priority, tokens, metadata: Map::new() }
}

/// Adds to the metadata of a chunk.
pub fn with(mut chunk: ContextChunk, key: &str, value: impl Into<Value>) -> ContextChunk {
    chunk.metadata.insert(key.to_owned(), value.into());
    chunk
}

fn skipped(path: &str, skip: &Skip) -> String {
    format!("{path} was left out: {skip}")
}

fn facts(language: Option<&str>, modified: &lattice_model::time::Timestamp) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("language".to_owned(), json!(language.unwrap_or("text")));
    facts.insert("last_modified".to_owned(), json!(modified.as_str()));
    facts
}
