//! What the fake knows: repositories, items, tokens, and how it is told to misbehave.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::git::Bare;
use crate::http::Reply;

/// One repository.
pub(super) struct Repository {
    pub(super) bare: Bare,
    pub(super) items: BTreeMap<u64, Item>,
}

/// An issue or pull request.
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) open: bool,
    pub(super) author: String,
    pub(super) labels: Vec<String>,
    pub(super) comments: Vec<(u64, String, String)>,
    pub(super) pull: Option<PullPart>,
}

pub(super) struct PullPart {
    pub(super) head: String,
    pub(super) base: String,
    pub(super) draft: bool,
    pub(super) merged: Option<String>,
    /// The last commit that the head was seen at.
    pub(super) head_at: String,
    pub(super) reviewers: Vec<String>,
    pub(super) reviews: Vec<(u64, String, String, String)>,
    /// `owner/name` of a fork.
    pub(super) fork: Option<String>,
}

/// Everything that the fake knows.
#[derive(Default)]
pub(super) struct State {
    pub(super) repositories: BTreeMap<String, Repository>,
    /// Tokens that are accepted, with their users.
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) refresh_tokens: BTreeMap<String, String>,
    /// Repositories that an installation covers.
    pub(super) installed: Vec<String>,
    /// Repositories that tokens may only read.
    pub(super) read_only: Vec<String>,
    /// What a login is told, one after the other; then it is granted.
    pub(super) login_answers: VecDeque<String>,
    pub(super) device_flow_disabled: bool,
    pub(super) granted: u64,
    pub(super) next_id: u64,
    pub(super) faults: Vec<Fault>,
}

/// A way to misbehave, for the next requests whose line begins so.
pub struct Fault {
    /// Such as `POST /repos/acme/tools/pulls`; the API's own prefix is left out.
    pub on: String,
    /// How many requests it concerns.
    pub times: usize,
    /// Whether the request is carried out all the same.
    pub carried_out: bool,
    pub reply: Reply,
}

impl State {
    pub(super) fn id(&mut self) -> u64 {
        self.next_id += 1;
        1000 + self.next_id
    }

    /// A new pair of tokens for a user.
    pub(super) fn grant(&mut self, user: &str) -> Value {
        self.granted += 1;
        let (access, refresh) = (format!("ghu_access{}", self.granted), format!("ghr_refresh{}", self.granted));
        self.tokens.insert(access.clone(), user.to_owned());
        self.refresh_tokens.insert(refresh.clone(), user.to_owned());
        json!({
            "access_token": access, "expires_in": 28_800, "refresh_token": refresh,
            "refresh_token_expires_in": 15_811_200, "scope": "", "token_type": "bearer",
        })
    }
}

impl Repository {
    /// Follows the branches: heads move, and a pull request whose head or base is gone is closed.
    pub(super) fn follow(&mut self) {
        let tips = self.bare.tips();
        for item in self.items.values_mut().filter(|item| item.open) {
            let Some(pull) = item.pull.as_mut().filter(|pull| pull.fork.is_none()) else { continue };
            match (tips.get(&pull.head), tips.get(&pull.base)) {
                (Some(tip), Some(_)) => pull.head_at = tip.clone(),
                (None, _) | (_, None) => item.open = false,
            }
        }
    }

    pub(super) fn next_number(&self) -> u64 {
        self.items.keys().next_back().copied().unwrap_or(0) + 1
    }
}

impl Item {
    pub(super) fn issue_json(&self, web: &str, slug: &str) -> Value {
        let kind = if self.pull.is_some() { "pull" } else { "issues" };
        let mut value = json!({
            "number": self.number, "title": self.title, "body": self.body,
            "state": if self.open { "open" } else { "closed" },
            "user": { "login": self.author }, "node_id": format!("I_{}", self.number),
            "labels": self.labels.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
            "html_url": format!("{web}/{slug}/{kind}/{}", self.number),
        });
        if self.pull.is_some() {
            value["pull_request"] = json!({ "url": format!("{web}/{slug}/pull/{}", self.number) });
        }
        value
    }

    pub(super) fn pull_json(&self, web: &str, slug: &str) -> Option<Value> {
        let pull = self.pull.as_ref()?;
        let mut value = self.issue_json(web, slug);
        value["node_id"] = json!(format!("PR_{}", self.number));
        value["draft"] = json!(pull.draft);
        value["merged"] = json!(pull.merged.is_some());
        value["merged_at"] = if pull.merged.is_some() { json!("2026-01-02T00:00:00Z") } else { Value::Null };
        value["merge_commit_sha"] = json!(pull.merged);
        let head_repo = pull.fork.as_deref().unwrap_or(slug);
        value["head"] = json!({ "ref": pull.head, "sha": pull.head_at, "repo": { "full_name": head_repo } });
        value["base"] = json!({ "ref": pull.base, "repo": { "full_name": slug } });
        value["requested_reviewers"] =
            pull.reviewers.iter().map(|login| json!({ "login": login })).collect::<Vec<_>>().into();
        Some(value)
    }

    pub(super) fn pull_node(&self, web: &str, slug: &str) -> Option<Value> {
        let pull = self.pull.as_ref()?;
        let state = match (&pull.merged, self.open) {
            (Some(_), _) => "MERGED",
            (None, true) => "OPEN",
            (None, false) => "CLOSED",
        };
        Some(json!({
            "id": format!("PR_{}", self.number), "number": self.number,
            "url": format!("{web}/{slug}/pull/{}", self.number), "state": state, "isDraft": pull.draft,
            "title": self.title, "body": self.body, "baseRefName": pull.base, "headRefName": pull.head,
            "headRefOid": pull.head_at, "isCrossRepository": pull.fork.is_some(),
            "author": { "login": self.author }, "headRepository": { "nameWithOwner": pull.fork.as_deref().unwrap_or(slug) },
        }))
    }
}
