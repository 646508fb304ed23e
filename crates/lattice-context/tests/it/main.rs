//! The context engine through its public interface, as a crate of somebody else's would use it.

#![expect(clippy::disallowed_methods, reason = "tests write files and start programs as they need")]

mod budget;
mod builders;
mod bundle;
mod compress;
mod extension;
mod fidelity;
mod forms;
mod gather;
mod hostile;
mod index;
mod listing;
mod outline;
mod prompt;
mod score;
mod secrets;
mod validation;

use std::sync::Arc;

use lattice_context::chunk::{ChunkType, ContextChunk, ContextPriority};
use lattice_context::task::{TaskEnvelope, TaskType};
use lattice_context::tokens::{TokenCounter, Tokenizer};
use lattice_context::workspace::Workspace;
use lattice_model::time::Timestamp;
use lattice_repo::GitProgram;
use lattice_testkit::TestRepo;
use serde_json::{Map, json};

/// The clock of these tests.
fn now() -> Timestamp {
    Timestamp::new("2026-01-10T00:00:00Z").expect("this is a time")
}

/// A repository as a workspace, counted with the estimate.
fn workspace(repo: &TestRepo) -> Arc<Workspace> {
    workspace_with(repo, Tokenizer::Estimate)
}

fn workspace_with(repo: &TestRepo, tokenizer: Tokenizer) -> Arc<Workspace> {
    let environment = repo.sandbox().variables().into_iter().map(|(name, value)| (name.into(), value)).collect();
    let git = GitProgram { program: repo.sandbox().git().to_owned(), environment };
    let cache = repo.sandbox().root().join("cache");
    Arc::new(Workspace::open(&git, repo.dir(), Some(cache), tokenizer.counter()).expect("a repository"))
}

fn envelope(task: TaskType, request: &str) -> TaskEnvelope {
    TaskEnvelope::new(task, request, "session_test".to_owned(), now())
}

/// A file chunk with this content, of the language that its name says.
fn file(path: &str, content: &str, priority: ContextPriority) -> ContextChunk {
    let language = lattice_context::language::language_of(path).map_or("text", |language| language.name);
    let mut metadata = Map::new();
    metadata.insert("language".to_owned(), json!(language));
    metadata.insert("path".to_owned(), json!(path));
    ContextChunk {
        content: content.to_owned(),
        source: path.to_owned(),
        chunk_type: ChunkType::File,
        priority,
        tokens: Tokenizer::Estimate.count(content),
        metadata,
    }
}
