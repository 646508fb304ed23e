//! What hosts are asked for and what they answer.

use lattice_model::host::{Draft, Through};
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::remote::MergeMethod;
use serde::{Deserialize, Serialize};

/// Whether an issue or pull request still asks for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemState {
    Open,
    Closed,
}

impl ItemState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub state: ItemState,
    pub author: String,
    pub labels: Vec<String>,
    pub created_at: String,
    pub updated_at: String,
    pub url: String,
    /// Whether the number is that of a pull request.
    pub is_pull: bool,
}

/// Which issues to list.
#[derive(Debug, Clone, Default)]
pub struct IssueFilter {
    /// All states if absent.
    pub state: Option<ItemState>,
    pub labels: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct NewIssue {
    pub title: String,
    pub body: String,
    pub labels: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct LabelChange {
    pub add: Vec<String>,
    pub remove: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub created_at: String,
}

#[derive(Debug, Clone)]
pub struct NewPull {
    pub head: BranchName,
    pub base: BranchName,
    pub title: String,
    pub body: String,
    pub draft: Draft,
}

/// Only what is set changes.
#[derive(Debug, Clone, Default)]
pub struct PullUpdate {
    pub number: u64,
    pub base: Option<BranchName>,
    pub body: Option<String>,
    pub draft: Option<Draft>,
}

#[derive(Debug, Clone)]
pub struct MergeRequest {
    pub number: u64,
    /// The commit that the head must still be at.
    pub at: Oid,
    pub method: MergeMethod,
    pub through: Through,
}

/// Whether the host keeps the stack now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stacked {
    Kept,
    NotKept,
}

/// What a reviewer thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Approve,
    RequestChanges,
    Comment,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::RequestChanges => "changes requested",
            Self::Comment => "commented",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    pub id: u64,
    pub author: String,
    pub verdict: Verdict,
    pub body: String,
    /// The commit that was looked at.
    pub at: Option<String>,
    pub created_at: String,
}

/// A remark on a line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewComment {
    pub id: u64,
    pub author: String,
    pub path: String,
    pub line: Option<u64>,
    pub body: String,
    pub created_at: String,
}

#[derive(Debug, Clone)]
pub struct NewReview {
    pub verdict: Verdict,
    pub body: String,
    /// Remarks on lines: path, line, text.
    pub remarks: Vec<(String, u64, String)>,
}
