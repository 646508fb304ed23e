//! What a host knows of an issue or pull request, as plain data: the whole input of the renderer.

use serde::{Deserialize, Serialize};

use super::manifest::ExpansionBudget;
use super::trigger::Trigger;

/// Everything that the renderer needs, and nothing that it would have to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gathered {
    pub trigger: Trigger,
    /// The item, with what the trigger knew where the host had nothing.
    pub item: Item,
    /// Oldest first.
    pub comments: Vec<Comment>,
    pub pull: Option<PullParts>,
    pub linked: Vec<Item>,
    pub expansion_budget: ExpansionBudget,
    pub warnings: Vec<String>,
}

/// What only a pull request has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullParts {
    pub pull: PullRequest,
    pub files: Vec<ChangedFile>,
    pub reviews: Vec<Review>,
    pub comments: Vec<InlineComment>,
}

/// Whether a number is that of an issue or of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemType {
    Issue,
    PullRequest,
}

impl ItemType {
    /// The word for people.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Issue => "Issue",
            Self::PullRequest => "Pull request",
        }
    }
}

/// An issue, or a pull request seen as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    #[serde(rename = "type")]
    pub kind: ItemType,
    pub number: u64,
    pub title: String,
    pub body: String,
    pub author: String,
    pub labels: Vec<String>,
    /// `open` or `closed`.
    pub state: String,
    pub created_at: String,
    pub url: String,
}

/// Something that was said about an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comment {
    pub author: String,
    pub body: String,
    pub created_at: String,
}

/// What only a pull request has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub head_branch: String,
    pub base_branch: String,
    /// `open`, `closed` or `merged`.
    pub state: String,
    pub draft: bool,
}

/// A file that a pull request changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    pub path: String,
    pub status: FileStatus,
    pub additions: u64,
    pub deletions: u64,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    Added,
    Removed,
    Renamed,
    Copied,
    Modified,
}

impl FileStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Renamed => "renamed",
            Self::Copied => "copied",
            Self::Modified => "modified",
        }
    }
}

/// What a reviewer decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub author: String,
    /// `approved`, `changes requested` or `commented`.
    pub verdict: String,
    pub body: String,
    pub created_at: String,
}

/// A remark on a line of a changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineComment {
    pub author: String,
    pub path: String,
    /// Absent where the line is no longer part of the change.
    pub line: Option<u64>,
    pub body: String,
    pub created_at: String,
}
