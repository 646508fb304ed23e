//! Recent commits as chunks.

use super::{Gathered, chunk, with};
use crate::chunk::{ChunkType, ContextPriority};
use crate::git::GitOperations;
use crate::workspace::Workspace;

pub(super) fn gather(workspace: &Workspace, commits: usize) -> Gathered {
    let Some(reader) = workspace.reader() else {
        return Gathered::nothing("there is no history: this is no Git repository");
    };
    match GitOperations::new(reader).log(commits) {
        Ok(found) => {
            let one = |commit: crate::git::CommitInfo| {
                let content = format!("- {} {} ({}, {})", commit.hash, commit.message, commit.author, commit.date);
                let made = chunk(workspace, content, &commit.hash, ChunkType::History, ContextPriority::Medium);
                with(made, "date", commit.date)
            };
            Gathered { chunks: found.into_iter().map(one).collect(), warnings: Vec::new() }
        }
        Err(error) => Gathered::nothing(format!("the history could not be read: {error}")),
    }
}
