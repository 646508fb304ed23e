//! `build_implementation_context`: the tasks, the conventions, and where the repository stands.

use serde_json::json;

use super::sources::{conventions, text_section};
use super::{BuildError, ContextDict, TruncationMetadata};
use crate::git::GitOperations;
use crate::workspace::Workspace;

/// Commits that are shown.
const COMMITS: usize = 10;

/// Tasks, conventions, branch and recent commits. A task file that does not exist is empty and named.
pub fn build_implementation_context(workspace: &Workspace, task_file: &str) -> Result<ContextDict, BuildError> {
    let git = GitOperations::new(workspace.reader().ok_or(BuildError::NoRepository)?);
    let mut metadata = TruncationMetadata::default();
    let mut context = ContextDict::default();
    context.insert("tasks", text_section(workspace, "tasks", task_file, &mut metadata));
    context.insert("conventions", conventions(workspace, &mut metadata));
    context.insert("branch", branch(&git)?);
    context.insert("recent_commits", json!(git.log(COMMITS)?));
    Ok(metadata.complete(context))
}

/// The current branch; with a detached HEAD, `HEAD`.
fn branch(git: &GitOperations<'_>) -> Result<String, BuildError> {
    let name = git.current_branch()?;
    Ok(if name.is_empty() { "HEAD".to_owned() } else { name })
}
