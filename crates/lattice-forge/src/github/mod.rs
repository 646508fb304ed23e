//! GitHub and GitHub Enterprise: REST for single things, GraphQL where many are asked for at once.

pub mod cache;
mod client;
mod pulls;
mod read;
mod stacks;
pub(crate) mod transport;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lattice_model::host::{ForgeKind, HostStacks, Pull, PullState, Slug, Through};
use lattice_model::name::BranchName;
use lattice_model::remote::FileChange;
use serde_json::{Value, json};

use self::client::Client;
pub use self::client::Notice;
use self::transport::{Transport, Verb};
use crate::token::{Clock, TokenProvider};
use crate::{
    Comment, Forge, ForgeError, Issue, IssueFilter, ItemState, LabelChange, MergeRequest, NewIssue, NewPull, NewReview,
    PullUpdate, Review, ReviewComment, Stacked, Verdict,
};

/// One repository on GitHub.
pub struct GitHub {
    client: Client,
    slug: Slug,
    /// Ids that GraphQL knows pull requests by.
    node_ids: Mutex<BTreeMap<u64, String>>,
    /// Whether a pull request was seen that says of itself which stack it is in.
    stacks_seen: AtomicBool,
}

/// Where GitHub is and how it is talked to.
pub struct Connection {
    pub api_url: String,
    pub tokens: Arc<dyn TokenProvider>,
    pub cache: Option<cache::Cache>,
    pub notice: Notice,
    pub clock: Clock,
    pub timeout_ms: u64,
}

impl GitHub {
    /// Must be called where asynchronous code runs, for connections belong to it.
    pub fn new(slug: Slug, connection: Connection) -> Result<Self, ForgeError> {
        let transport = Transport::new(&connection.api_url)?.with_timeout(connection.timeout_ms);
        let client = Client::new(transport, connection);
        Ok(Self { client, slug, node_ids: Mutex::new(BTreeMap::new()), stacks_seen: AtomicBool::new(false) })
    }

    pub fn slug(&self) -> &Slug {
        &self.slug
    }

    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", read::segment(&self.slug.owner), read::segment(&self.slug.repo))
    }

    /// The repository as GitHub tells it.
    pub(crate) async fn repository(&self) -> Result<Value, ForgeError> {
        self.client.get(&self.path("")).await
    }

    pub(crate) async fn all(&self, path: &str, field: Option<&str>) -> Result<Vec<Value>, ForgeError> {
        self.client.all(path, field).await
    }

    fn remember(&self, number: u64, node_id: &Value) {
        if let (Some(id), Ok(mut known)) = (node_id.as_str(), self.node_ids.lock()) {
            known.insert(number, id.to_owned());
        }
    }

    async fn node_id(&self, number: u64) -> Result<String, ForgeError> {
        let known = self.node_ids.lock().ok().and_then(|known| known.get(&number).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let found = numbered(number, self.client.get(&self.path(&format!("/pulls/{number}"))).await)?;
        let id = found["node_id"].as_str().ok_or_else(|| ForgeError::BadAnswer("no id".to_owned()))?;
        self.remember(number, &found["node_id"]);
        Ok(id.to_owned())
    }
}

/// A missing page about a number is a missing item.
fn numbered<T>(number: u64, answer: Result<T, ForgeError>) -> Result<T, ForgeError> {
    answer.map_err(|error| match error {
        ForgeError::Missing(_) => ForgeError::NotFound(number),
        other => other,
    })
}

#[async_trait]
impl Forge for GitHub {
    fn kind(&self) -> ForgeKind {
        ForgeKind::GitHub
    }

    async fn identity(&self) -> Result<String, ForgeError> {
        Ok(read::text(&self.client.get("/user").await?["login"]))
    }

    async fn issue(&self, number: u64) -> Result<Issue, ForgeError> {
        read::issue(&numbered(number, self.client.get(&self.path(&format!("/issues/{number}"))).await)?)
    }

    async fn issues(&self, filter: &IssueFilter) -> Result<Vec<Issue>, ForgeError> {
        let state = filter.state.map_or("all", ItemState::as_str);
        let labels: Vec<_> = filter.labels.iter().map(|label| read::segment(label)).collect();
        let path = format!("/issues?per_page=100&state={state}&labels={}", labels.join(","));
        let found = self.client.all(&self.path(&path), None).await?;
        let issues: Result<Vec<_>, _> = found.iter().map(read::issue).collect();
        Ok(issues?.into_iter().filter(|issue| !issue.is_pull).collect())
    }

    async fn open_issue(&self, new: &NewIssue) -> Result<Issue, ForgeError> {
        let body = json!({ "title": new.title, "body": new.body, "labels": new.labels });
        read::issue(&self.client.send(Verb::Post, &self.path("/issues"), &body).await?)
    }

    async fn label(&self, number: u64, change: &LabelChange) -> Result<Vec<String>, ForgeError> {
        let path = self.path(&format!("/issues/{number}/labels"));
        for label in &change.remove {
            let one = format!("{path}/{}", read::segment(label));
            match self.client.send(Verb::Delete, &one, &Value::Null).await {
                // A label that is not there is removed already.
                Ok(_) | Err(ForgeError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let labels = match change.add.as_slice() {
            [] => self.client.get(&path).await,
            add => self.client.send(Verb::Post, &path, &json!({ "labels": add })).await,
        };
        Ok(read::labels(&numbered(number, labels)?))
    }

    async fn close(&self, number: u64) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/{number}"));
        numbered(number, self.client.send(Verb::Patch, &path, &json!({ "state": "closed" })).await).map(drop)
    }

    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let path = self.path(&format!("/issues/{number}/comments?per_page=100"));
        numbered(number, self.client.all(&path, None).await)?.iter().map(read::comment).collect()
    }

    async fn comment(&self, number: u64, body: &str) -> Result<Comment, ForgeError> {
        let path = self.path(&format!("/issues/{number}/comments"));
        read::comment(&numbered(number, self.client.send(Verb::Post, &path, &json!({ "body": body })).await)?)
    }

    async fn edit_comment(&self, _number: u64, comment: u64, body: &str) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/comments/{comment}"));
        self.client.send(Verb::Patch, &path, &json!({ "body": body })).await.map(drop)
    }

    async fn pull(&self, number: u64) -> Result<Pull, ForgeError> {
        let found = numbered(number, self.client.get(&self.path(&format!("/pulls/{number}"))).await)?;
        self.remember(number, &found["node_id"]);
        read::pull(&found, &self.slug)
    }

    async fn pulls(&self, state: Option<ItemState>) -> Result<Vec<Pull>, ForgeError> {
        let state = state.map_or("all", ItemState::as_str);
        let found = self.client.all(&self.path(&format!("/pulls?per_page=100&state={state}")), None).await?;
        found.iter().map(|pull| read::pull(pull, &self.slug)).collect()
    }

    async fn pulls_of(&self, heads: &[BranchName]) -> Result<BTreeMap<BranchName, Pull>, ForgeError> {
        self.find_pulls(heads).await
    }

    async fn open_pulls(&self, new: &[NewPull]) -> Result<Vec<Pull>, ForgeError> {
        let mut opened = Vec::new();
        for new in new {
            opened.push(self.open_one(new).await?);
        }
        Ok(opened)
    }

    async fn update_pulls(&self, updates: &[PullUpdate]) -> Result<(), ForgeError> {
        self.change_pulls(updates).await
    }

    async fn request_reviewers(&self, number: u64, reviewers: &[String]) -> Result<(), ForgeError> {
        let path = self.path(&format!("/pulls/{number}/requested_reviewers"));
        numbered(number, self.client.send(Verb::Post, &path, &json!({ "reviewers": reviewers })).await).map(drop)
    }

    async fn stack_of(&self, number: u64) -> Result<HostStacks, ForgeError> {
        self.find_stack(number).await
    }

    async fn stack_pulls(&self, numbers: &[u64], onto: Option<u64>) -> Result<Stacked, ForgeError> {
        self.put_on_stack(numbers, onto).await
    }

    async fn unstack(&self, stack: u64) -> Result<(), ForgeError> {
        self.take_apart(stack).await
    }

    async fn merge_pull(&self, merge: &MergeRequest) -> Result<(), ForgeError> {
        let refused = |reason: String| ForgeError::NotMergeable { number: merge.number, reason };
        let landed = match merge.through {
            Through::Pull => {
                let path = self.path(&format!("/pulls/{}/merge", merge.number));
                let body = json!({ "merge_method": merge.method.as_str(), "sha": merge.at.to_string() });
                self.client.send(Verb::Put, &path, &body).await.map(drop)
            }
            Through::Stack => self.land_on_stack(merge).await,
        };
        match landed {
            Ok(()) => Ok(()),
            Err(ForgeError::Conflict(reason) | ForgeError::Unprocessable(reason)) => Err(refused(reason)),
            Err(ForgeError::Missing(_)) => Err(ForgeError::NotFound(merge.number)),
            // Whether it was done before the connection broke is asked and not guessed.
            Err(error) if is_ambiguous(&error) => match self.pull(merge.number).await {
                Ok(pull) if pull.state == PullState::Merged => Ok(()),
                Ok(_) | Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn files(&self, number: u64) -> Result<Vec<FileChange>, ForgeError> {
        let path = self.path(&format!("/pulls/{number}/files?per_page=100"));
        Ok(numbered(number, self.client.all(&path, None).await)?.iter().map(read::file).collect())
    }

    async fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        let path = self.path(&format!("/pulls/{number}/reviews?per_page=100"));
        numbered(number, self.client.all(&path, None).await)?.iter().map(read::review).collect()
    }

    async fn review(&self, number: u64, new: &NewReview) -> Result<Review, ForgeError> {
        let event = match new.verdict {
            Verdict::Approve => "APPROVE",
            Verdict::RequestChanges => "REQUEST_CHANGES",
            Verdict::Comment => "COMMENT",
        };
        let remark = |(path, line, body): &(String, u64, String)| json!({ "path": path, "line": line, "body": body });
        let remarks: Vec<_> = new.remarks.iter().map(remark).collect();
        let body = json!({ "event": event, "body": new.body, "comments": remarks });
        let path = self.path(&format!("/pulls/{number}/reviews"));
        read::review(&numbered(number, self.client.send(Verb::Post, &path, &body).await)?)
    }

    async fn review_comments(&self, number: u64) -> Result<Vec<ReviewComment>, ForgeError> {
        let path = self.path(&format!("/pulls/{number}/comments?per_page=100"));
        numbered(number, self.client.all(&path, None).await)?.iter().map(read::review_comment).collect()
    }
}

/// Whether the host may have done what it was asked for although it did not say so.
fn is_ambiguous(error: &ForgeError) -> bool {
    matches!(
        error,
        ForgeError::Unreachable { .. } | ForgeError::TimedOut { .. } | ForgeError::Server(_) | ForgeError::BadAnswer(_)
    )
}
