//! The six questions that gathering asks a host, and any forge as the one who answers.

use async_trait::async_trait;
use lattice_forge::{Forge, ForgeError};
use lattice_model::host::{Draft, Pull};
use lattice_model::remote::FileChange;

use super::data::{ChangedFile, Comment, FileStatus, InlineComment, Item, ItemType, PullRequest, Review};

/// What a host is asked for. Lists are whole: every page of them.
#[async_trait]
pub trait Capability: Send + Sync {
    /// An issue, or a pull request seen as one.
    async fn get_issue(&self, number: u64) -> Result<Item, ForgeError>;
    async fn list_comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError>;
    async fn get_pull_request(&self, number: u64) -> Result<PullRequest, ForgeError>;
    async fn list_pr_files(&self, number: u64) -> Result<Vec<ChangedFile>, ForgeError>;
    async fn list_reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError>;
    async fn list_review_comments(&self, number: u64) -> Result<Vec<InlineComment>, ForgeError>;
}

/// A forge, asked for nothing but what it knows.
pub struct ForgeReader<'a>(pub &'a dyn Forge);

#[async_trait]
impl Capability for ForgeReader<'_> {
    async fn get_issue(&self, number: u64) -> Result<Item, ForgeError> {
        let issue = self.0.issue(number).await?;
        Ok(Item {
            kind: if issue.is_pull { ItemType::PullRequest } else { ItemType::Issue },
            number,
            title: issue.title,
            body: issue.body,
            author: issue.author,
            labels: issue.labels,
            state: issue.state.as_str().to_owned(),
            created_at: issue.created_at,
            url: issue.url,
        })
    }

    async fn list_comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let comments = self.0.comments(number).await?.into_iter();
        Ok(comments
            .map(|comment| Comment { author: comment.author, body: comment.body, created_at: comment.created_at })
            .collect())
    }

    async fn get_pull_request(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let Pull { head, base, state, draft, .. } = self.0.pull(number).await?;
        let draft = draft == Draft::Draft;
        Ok(PullRequest { head_branch: head, base_branch: base, state: state.as_str().to_owned(), draft })
    }

    async fn list_pr_files(&self, number: u64) -> Result<Vec<ChangedFile>, ForgeError> {
        let file = |FileChange { path, status, additions, deletions }| {
            let status = match status {
                'A' => FileStatus::Added,
                'D' => FileStatus::Removed,
                'R' => FileStatus::Renamed,
                'C' => FileStatus::Copied,
                _ => FileStatus::Modified,
            };
            ChangedFile { path, status, additions, deletions }
        };
        Ok(self.0.files(number).await?.into_iter().map(file).collect())
    }

    async fn list_reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        let review = |review: lattice_forge::Review| Review {
            author: review.author,
            verdict: review.verdict.as_str().to_owned(),
            body: review.body,
            created_at: review.created_at,
        };
        Ok(self.0.reviews(number).await?.into_iter().map(review).collect())
    }

    async fn list_review_comments(&self, number: u64) -> Result<Vec<InlineComment>, ForgeError> {
        let comment = |comment: lattice_forge::ReviewComment| InlineComment {
            author: comment.author,
            path: comment.path,
            line: comment.line,
            body: comment.body,
            created_at: comment.created_at,
        };
        Ok(self.0.review_comments(number).await?.into_iter().map(comment).collect())
    }
}
