//! One issue or pull request as it is stored: a JSON document at `refs/lattice/forge/items/<n>`.

use std::collections::BTreeMap;

use lattice_model::host::{Draft, Pull, PullState, ReviewState, Standing};
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use serde::{Deserialize, Serialize};

use crate::{Comment, Issue, ItemState, Review, ReviewComment, Verdict};

/// Larger documents are not read.
pub(super) const SIZE_LIMIT: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemV1 {
    kind: Kind,
    schema_version: u32,
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) state: ItemState,
    pub(super) author: String,
    pub(super) labels: Vec<String>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) comments: Vec<CommentV1>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pull: Option<PullV1>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    #[serde(rename = "lattice.forge-item")]
    Item,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommentV1 {
    pub(super) id: u64,
    pub(super) author: String,
    pub(super) body: String,
    pub(super) created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PullV1 {
    pub(super) head: BranchName,
    pub(super) base: BranchName,
    pub(super) draft: Draft,
    pub(super) reviewers: Vec<String>,
    pub(super) reviews: Vec<ReviewV1>,
    /// Where the head was when the pull request landed, and what the base became.
    pub(super) merged: Option<MergedV1>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MergedV1 {
    pub(super) head: Oid,
    pub(super) commit: Oid,
    pub(super) by: String,
    pub(super) at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewV1 {
    pub(super) id: u64,
    pub(super) author: String,
    pub(super) verdict: Verdict,
    pub(super) body: String,
    pub(super) at: Option<Oid>,
    pub(super) remarks: Vec<RemarkV1>,
    pub(super) created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemarkV1 {
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) body: String,
}

impl ItemV1 {
    /// An open item without a conversation.
    pub(super) fn new(title: &str, body: &str, author: &str, now: &str) -> Self {
        Self {
            kind: Kind::Item,
            schema_version: 1,
            number: 0,
            title: title.to_owned(),
            body: body.to_owned(),
            state: ItemState::Open,
            author: author.to_owned(),
            labels: Vec::new(),
            created_at: now.to_owned(),
            updated_at: now.to_owned(),
            comments: Vec::new(),
            pull: None,
        }
    }

    pub(super) fn parse(bytes: &[u8], number: u64) -> Result<Self, String> {
        if bytes.len() > SIZE_LIMIT {
            return Err(format!("it has {} bytes; the limit is {SIZE_LIMIT}", bytes.len()));
        }
        let item: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if item.schema_version != 1 {
            return Err(format!("it has version {}; this program knows version 1", item.schema_version));
        }
        if item.number != number {
            return Err(format!("it says that it is #{}", item.number));
        }
        Ok(item)
    }

    pub(super) fn render(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("bug: the document has string keys");
        bytes.push(b'\n');
        bytes
    }

    /// An id that no comment or review of this item has yet.
    pub(super) fn next_id(&self) -> u64 {
        let comments = self.comments.iter().map(|comment| comment.id);
        let reviews = self.pull.iter().flat_map(|pull| &pull.reviews);
        let reviews = reviews.flat_map(|review| (0..=review.remarks.len() as u64).map(move |at| review.id + at));
        comments.chain(reviews).max().unwrap_or(0) + 1
    }

    pub(super) fn to_issue(&self, url: String) -> Issue {
        Issue {
            number: self.number,
            title: self.title.clone(),
            body: self.body.clone(),
            state: self.state,
            author: self.author.clone(),
            labels: self.labels.clone(),
            created_at: self.created_at.clone(),
            updated_at: self.updated_at.clone(),
            url,
            is_pull: self.pull.is_some(),
        }
    }

    /// The pull request, with its head where the remote has it now. One whose head is gone is closed.
    pub(super) fn to_pull(&self, url: String, head_at: Option<Oid>) -> Option<Pull> {
        let pull = self.pull.as_ref()?;
        let state = match (&pull.merged, self.state, head_at) {
            (Some(_), _, _) => PullState::Merged,
            (None, ItemState::Closed, _) | (None, ItemState::Open, None) => PullState::Closed,
            (None, ItemState::Open, Some(_)) => PullState::Open,
        };
        Some(Pull {
            number: self.number,
            url,
            state,
            draft: pull.draft,
            title: self.title.clone(),
            body: self.body.clone(),
            author: self.author.clone(),
            head: pull.head.to_string(),
            base: pull.base.to_string(),
            head_at: pull.merged.as_ref().map(|merged| merged.head).or(head_at),
            fork: None,
            standing: Standing { review: pull.reviewed(), checks: None },
        })
    }

    pub(super) fn to_comments(&self) -> Vec<Comment> {
        let comment = |comment: &CommentV1| Comment {
            id: comment.id,
            author: comment.author.clone(),
            body: comment.body.clone(),
            created_at: comment.created_at.clone(),
        };
        self.comments.iter().map(comment).collect()
    }
}

impl PullV1 {
    /// What the reviewers say together; the last verdict of each counts.
    fn reviewed(&self) -> Option<ReviewState> {
        let verdicts = self.reviews.iter().filter(|review| review.verdict != Verdict::Comment);
        let last: BTreeMap<_, _> = verdicts.map(|review| (&review.author, review.verdict)).collect();
        match (last.is_empty(), last.values().any(|verdict| *verdict == Verdict::RequestChanges)) {
            (true, _) => None,
            (false, true) => Some(ReviewState::ChangesRequested),
            (false, false) => Some(ReviewState::Approved),
        }
    }
}

impl ReviewV1 {
    pub(super) fn to_review(&self) -> Review {
        Review {
            id: self.id,
            author: self.author.clone(),
            verdict: self.verdict,
            body: self.body.clone(),
            at: self.at.map(|oid| oid.to_string()),
            created_at: self.created_at.clone(),
        }
    }

    pub(super) fn to_comments(&self) -> impl Iterator<Item = ReviewComment> {
        self.remarks.iter().enumerate().map(|(at, remark)| ReviewComment {
            id: self.id + 1 + at as u64,
            author: self.author.clone(),
            path: remark.path.clone(),
            line: Some(remark.line),
            body: remark.body.clone(),
            created_at: self.created_at.clone(),
        })
    }
}
