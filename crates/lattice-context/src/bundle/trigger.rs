//! What a bundle is wanted for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::data::{Comment, ItemType};

/// The beginning of a gather. Three fields are needed; the others fill in where the host has nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct Trigger {
    pub kind: ItemType,
    pub number: u64,
    pub repo: RepoName,
    pub title: Option<String>,
    pub body: Option<String>,
    pub author: Option<String>,
    pub labels: Option<Vec<String>>,
    /// The branch of a pull request; work on it then amends that pull request.
    pub head_branch: Option<String>,
    pub base_branch: Option<String>,
    /// Comments that are known already and not fetched again.
    pub thread_context: Option<Vec<Comment>>,
}

/// A repository as `owner/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoName {
    owner: String,
    name: String,
}

/// A document that is no trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    #[error("a trigger is a JSON object")]
    NotAnObject,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{field}` must be {expected}")]
    Wrong { field: &'static str, expected: &'static str },
    #[error("`{0}` is no field of a trigger")]
    Unknown(String),
}

const TYPE: &str = "type";
const NUMBER: &str = "number";
const REPO: &str = "repo";
const TITLE: &str = "title";
const BODY: &str = "body";
const AUTHOR: &str = "author";
const LABELS: &str = "labels";
const HEAD_BRANCH: &str = "head_branch";
const BASE_BRANCH: &str = "base_branch";
const THREAD_CONTEXT: &str = "thread_context";

const REPO_FORM: &str = "a repository as owner/name";

impl Trigger {
    /// A trigger with what is needed and nothing else.
    pub fn new(kind: ItemType, number: u64, repo: RepoName) -> Self {
        Self {
            kind,
            number,
            repo,
            title: None,
            body: None,
            author: None,
            labels: None,
            head_branch: None,
            base_branch: None,
            thread_context: None,
        }
    }
}

impl RepoName {
    pub fn new(text: &str) -> Result<Self, TriggerError> {
        let wrong = TriggerError::Wrong { field: REPO, expected: REPO_FORM };
        // Folders of the Git forge may have any name.
        let is_part = |part: &str| {
            !matches!(part, "" | "." | "..")
                && !part.contains(|c: char| c == '/' || c.is_control())
                && part.trim() == part
        };
        match text.split_once('/') {
            Some((owner, name)) if is_part(owner) && is_part(name) => {
                Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
            }
            Some(_) | None => Err(wrong),
        }
    }

    pub fn owner(&self) -> &str {
        &self.owner
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for RepoName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl TryFrom<Value> for Trigger {
    type Error = TriggerError;

    fn try_from(document: Value) -> Result<Self, TriggerError> {
        let Value::Object(fields) = document else { return Err(TriggerError::NotAnObject) };
        let mut fields = Fields(fields);
        let kind = match fields.text(TYPE)?.as_deref() {
            Some("issue") => ItemType::Issue,
            Some("pull_request") => ItemType::PullRequest,
            Some(_) => return Err(TriggerError::Wrong { field: TYPE, expected: "`issue` or `pull_request`" }),
            None => return Err(TriggerError::Missing(TYPE)),
        };
        let number = match fields.take(NUMBER) {
            None => return Err(TriggerError::Missing(NUMBER)),
            Some(value) => value.as_u64().filter(|number| *number > 0),
        };
        let number = number.ok_or(TriggerError::Wrong { field: NUMBER, expected: "a whole number from 1 on" })?;
        let repo = RepoName::new(&fields.text(REPO)?.ok_or(TriggerError::Missing(REPO))?)?;
        let trigger = Self {
            kind,
            number,
            repo,
            title: fields.text(TITLE)?,
            body: fields.text(BODY)?,
            author: fields.text(AUTHOR)?,
            labels: fields.read(LABELS, "a list of texts")?,
            head_branch: fields.text(HEAD_BRANCH)?,
            base_branch: fields.text(BASE_BRANCH)?,
            thread_context: fields
                .read(THREAD_CONTEXT, "a list of comments, each with `author`, `body` and `created_at`")?,
        };
        match fields.0.into_iter().next() {
            Some((unknown, _)) => Err(TriggerError::Unknown(unknown)),
            None => Ok(trigger),
        }
    }
}

impl From<Trigger> for Value {
    fn from(trigger: Trigger) -> Self {
        let kind = match trigger.kind {
            ItemType::Issue => "issue",
            ItemType::PullRequest => "pull_request",
        };
        let comment = |comment: &Comment| serde_json::json!({ "author": comment.author, "body": comment.body, "created_at": comment.created_at });
        let known = [
            (TYPE, Some(Value::from(kind))),
            (NUMBER, Some(trigger.number.into())),
            (REPO, Some(trigger.repo.to_string().into())),
            (TITLE, trigger.title.map(Value::from)),
            (BODY, trigger.body.map(Value::from)),
            (AUTHOR, trigger.author.map(Value::from)),
            (LABELS, trigger.labels.map(Value::from)),
            (HEAD_BRANCH, trigger.head_branch.map(Value::from)),
            (BASE_BRANCH, trigger.base_branch.map(Value::from)),
            (THREAD_CONTEXT, trigger.thread_context.map(|all| all.iter().map(comment).collect())),
        ];
        let set = known.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
        Value::Object(set.collect())
    }
}

/// Fields of a document that were not looked at yet.
struct Fields(Map<String, Value>);

impl Fields {
    /// `null` is as good as absent.
    fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    fn read<T: serde::de::DeserializeOwned>(
        &mut self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, TriggerError> {
        let read = self.take(field).map(serde_json::from_value).transpose();
        read.map_err(|_| TriggerError::Wrong { field, expected })
    }

    fn text(&mut self, field: &'static str) -> Result<Option<String>, TriggerError> {
        self.read(field, "a text")
    }
}
