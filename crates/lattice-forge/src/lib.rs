//! Hosts of issues and pull requests behind one trait: any Git remote, and GitHub.

pub mod access;
pub mod device_flow;
pub mod git;
pub mod github;
pub mod notes;
pub mod secret;
pub mod token;
mod types;
pub mod url;

use std::collections::BTreeMap;

use async_trait::async_trait;
use lattice_model::host::{ForgeKind, HostStacks, Pull};
use lattice_model::name::BranchName;
use lattice_model::remote::{FileChange, RemoteError};

pub use types::{
    Comment, Issue, IssueFilter, ItemState, LabelChange, MergeRequest, NewIssue, NewPull, NewReview, PullUpdate,
    Review, ReviewComment, Stacked, Verdict,
};

/// A host of issues and pull requests for one repository.
///
/// Every function may be called again after a failure: what was done before is found and not done twice.
#[async_trait]
pub trait Forge: Send + Sync {
    fn kind(&self) -> ForgeKind;

    /// The user on whose behalf requests are made.
    async fn identity(&self) -> Result<String, ForgeError>;

    async fn issue(&self, number: u64) -> Result<Issue, ForgeError>;
    async fn issues(&self, filter: &IssueFilter) -> Result<Vec<Issue>, ForgeError>;
    async fn open_issue(&self, new: &NewIssue) -> Result<Issue, ForgeError>;
    /// Changes labels of an issue or pull request and gives those that it has then.
    async fn label(&self, number: u64, change: &LabelChange) -> Result<Vec<String>, ForgeError>;
    /// Closes an issue or pull request.
    async fn close(&self, number: u64) -> Result<(), ForgeError>;
    /// The conversation of an issue or pull request, oldest first.
    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError>;
    async fn comment(&self, number: u64, body: &str) -> Result<Comment, ForgeError>;
    /// Replaces the text of a comment.
    async fn edit_comment(&self, number: u64, comment: u64, body: &str) -> Result<(), ForgeError>;

    async fn pull(&self, number: u64) -> Result<Pull, ForgeError>;
    /// All pull requests, or those in one state, newest first; one that landed is closed.
    async fn pulls(&self, state: Option<ItemState>) -> Result<Vec<Pull>, ForgeError>;
    /// The newest pull request of each of these branches, open ones first.
    async fn pulls_of(&self, heads: &[BranchName]) -> Result<BTreeMap<BranchName, Pull>, ForgeError>;
    /// Opens pull requests, or gives the open one that there is for the same head.
    async fn open_pulls(&self, new: &[NewPull]) -> Result<Vec<Pull>, ForgeError>;
    /// Changes several pull requests, with as few requests as the host allows.
    async fn update_pulls(&self, updates: &[PullUpdate]) -> Result<(), ForgeError>;
    async fn request_reviewers(&self, number: u64, reviewers: &[String]) -> Result<(), ForgeError>;
    /// The stack that the host keeps a pull request in, if it keeps stacks.
    async fn stack_of(&self, _number: u64) -> Result<HostStacks, ForgeError> {
        Ok(HostStacks::NotKept)
    }
    /// Makes pull requests, lowest first, one stack of the host, or puts them on top of one.
    async fn stack_pulls(&self, _numbers: &[u64], _onto: Option<u64>) -> Result<Stacked, ForgeError> {
        Ok(Stacked::NotKept)
    }
    /// Takes the open pull requests out of a stack that the host keeps.
    async fn unstack(&self, _stack: u64) -> Result<(), ForgeError> {
        Ok(())
    }
    /// Lands a pull request whose head is still where it was seen.
    async fn merge_pull(&self, merge: &MergeRequest) -> Result<(), ForgeError>;
    async fn files(&self, number: u64) -> Result<Vec<FileChange>, ForgeError>;
    async fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError>;
    async fn review(&self, number: u64, new: &NewReview) -> Result<Review, ForgeError>;
    async fn review_comments(&self, number: u64) -> Result<Vec<ReviewComment>, ForgeError>;
}

/// What stood in the way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReached {
    /// No connection, or one that broke.
    Connection,
    /// The host shows a certificate that nobody vouches for who is trusted here.
    Certificate,
}

/// Why a host did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("there is no issue or pull request #{0}")]
    NotFound(u64),
    #[error("#{0} is an issue, not a pull request")]
    NotAPull(u64),
    #[error("#{number} cannot land: {reason}")]
    NotMergeable { number: u64, reason: String },
    #[error("the remote refused")]
    Rejected { reason: String },
    #[error("the branch `{0}` is not on the remote")]
    NoSuchHead(String),
    #[error("the host does not accept the token")]
    Unauthorized,
    #[error("the host refuses: {0}")]
    Forbidden(String),
    #[error("the host has nothing at {0}")]
    Missing(String),
    #[error("the host says that something else came between: {0}")]
    Conflict(String),
    #[error("the host does not accept the request: {0}")]
    Unprocessable(String),
    #[error("the host asks to wait {seconds} s before the next request")]
    RateLimited { seconds: u64 },
    #[error("the host failed with status {0}")]
    Server(u16),
    #[error("the host could not be reached")]
    Unreachable { detail: String, why: NotReached },
    #[error("the host did not answer within {seconds} s")]
    TimedOut { seconds: u64 },
    #[error("the host answered something unexpected: {0}")]
    BadAnswer(String),
    #[error("the host sends us to {0}, where no token is sent")]
    Redirected(String),
    #[error(transparent)]
    Auth(#[from] token::AuthError),
    #[error("others keep changing the same item")]
    Busy,
    #[error("item #{number} on the remote cannot be read: {reason}")]
    Damaged { number: u64, reason: String },
}
