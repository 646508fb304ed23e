//! `build_issue_context`: an issue, the files it talks about, and what changed lately.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::sources::{SECTION_LIMIT, Sources};
use super::{BuildError, ContextDict, TruncationMetadata};
use crate::git::GitOperations;
use crate::workspace::{Skip, Workspace};

/// An issue as it comes from a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitHubIssue {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub labels: Vec<String>,
    pub state: String,
    pub assignees: Vec<String>,
    pub url: String,
}

/// Commits that are shown.
const COMMITS: usize = 5;

/// Files that an issue can bring in.
const MOST_FILES: usize = 50;

/// A body is searched for paths this far.
const BODY_LIMIT: usize = 1 << 20;

/// The issue, the files that its body names and that exist, and recent commits.
pub fn build_issue_context(workspace: &Workspace, issue: &GitHubIssue) -> Result<ContextDict, BuildError> {
    let git = GitOperations::new(workspace.reader().ok_or(BuildError::NoRepository)?);
    let mut metadata = TruncationMetadata::default();
    let mut sources = Sources::new("related_files", &mut metadata);
    for path in related_paths(workspace, &issue.body) {
        match workspace.read_bytes(&path, SECTION_LIMIT.min(sources.left)) {
            Ok((content, _)) => sources.add(&path, content, &[]),
            // It is an untrusted text that names files; what is not there is nothing to tell.
            Err(Skip::Missing | Skip::Outside | Skip::NotAFile) => {}
            Err(skip) => sources.metadata.warnings.push(format!("{path} was left out: {skip}")),
        }
    }
    let related = sources.files;
    let mut context = ContextDict::default();
    context.insert(
        "issue",
        json!({
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "labels": issue.labels,
            "state": issue.state,
            "url": issue.url,
        }),
    );
    context.insert("related_files", related);
    context.insert("recent_changes", json!(git.log(COMMITS)?));
    Ok(metadata.complete(context))
}

/// Paths that a text names and that are files beneath the root, each once, in the order of the text.
fn related_paths(workspace: &Workspace, body: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | '~');
    for word in crate::text::at_most(body, BODY_LIMIT).split(|c: char| !is_part(c)) {
        let word = word.trim_end_matches(['.', '-', '+', '~']);
        let looks_like_path = word.contains('.') || word.contains('/');
        if !looks_like_path || found.len() >= MOST_FILES {
            continue;
        }
        if let Ok(path) = workspace.resolve(word)
            && !found.contains(&path)
            && workspace.open_file(&path).is_ok()
        {
            found.push(path);
        }
    }
    found
}
