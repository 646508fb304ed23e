//! What the fake knows: repositories, items, tokens, and how it is told to misbehave.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::git::Bare;
use crate::http::Reply;

/// One repository.
pub(super) struct Repository {
    pub(super) bare: Bare,
    pub(super) items: BTreeMap<u64, Item>,
    /// Stacks with the numbers of their pull requests, lowest first, if the fake keeps any.
    pub(super) stacks: Option<BTreeMap<u64, Vec<u64>>>,
    /// Pull requests that land in the background, with how they are to.
    pub(super) landing: BTreeMap<String, (u64, Value)>,
}

/// An issue or pull request.
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) open: bool,
    pub(super) author: String,
    pub(super) at: String,
    pub(super) labels: Vec<String>,
    pub(super) comments: Vec<Said>,
    pub(super) pull: Option<PullPart>,
}

/// Something that somebody said: a comment, a review, or a remark on a line.
pub(super) struct Said {
    pub(super) id: u64,
    pub(super) author: String,
    pub(super) body: String,
    pub(super) at: String,
    /// What only its kind has, such as `state`, or `path` and `line`.
    pub(super) more: Value,
}

/// The state of checks that the token may not see.
pub(super) const HIDDEN_CHECKS: &str = "HIDDEN";

pub(super) struct PullPart {
    pub(super) head: String,
    pub(super) base: String,
    pub(super) draft: bool,
    pub(super) merged: Option<String>,
    /// The last commit that the head was seen at.
    pub(super) head_at: String,
    pub(super) reviewers: Vec<String>,
    pub(super) reviews: Vec<Said>,
    /// Remarks on lines.
    pub(super) remarks: Vec<Said>,
    /// Changed files that were made up; those of the branches if absent.
    pub(super) files: Option<Vec<Value>>,
    /// `owner/name` of a fork.
    pub(super) fork: Option<String>,
    /// The state of all checks together.
    pub(super) checks: Option<String>,
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
    /// Where requests of Git are sent to.
    pub(super) git_elsewhere: Option<String>,
    /// What was sent or answered that GitHub's description does not know.
    pub(super) unlike: Vec<String>,
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
            let lives = |pull: &&mut PullPart| pull.fork.is_none() && pull.files.is_none();
            let Some(pull) = item.pull.as_mut().filter(lives) else { continue };
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

impl PullPart {
    /// A pull request that nobody looked at yet.
    pub(super) fn new(head: String, base: String) -> Self {
        let (reviewers, reviews, remarks) = (Vec::new(), Vec::new(), Vec::new());
        let head_at = String::new();
        Self {
            head,
            base,
            draft: false,
            merged: None,
            head_at,
            reviewers,
            reviews,
            remarks,
            files: None,
            fork: None,
            checks: None,
        }
    }

    fn rollup(&self) -> Option<Value> {
        let state = self.checks.as_deref().filter(|state| *state != HIDDEN_CHECKS)?;
        Some(json!({ "state": state }))
    }

    /// What the last verdicts of all reviewers come to.
    fn decision(&self) -> Option<&str> {
        let verdict =
            |said: &Said| said.more["state"].as_str().filter(|state| *state != "COMMENTED").map(str::to_owned);
        let last: BTreeMap<_, _> =
            self.reviews.iter().filter_map(|said| Some((said.author.clone(), verdict(said)?))).collect();
        let any = |state: &str| last.values().any(|verdict| verdict == state);
        ["CHANGES_REQUESTED", "APPROVED"].into_iter().find(|state| any(state))
    }
}

impl Said {
    /// `time` is the name of the field with the time.
    pub(super) fn json(&self, time: &str) -> Value {
        let user = if self.author.is_empty() { Value::Null } else { json!({ "login": self.author }) };
        let mut value = json!({ "id": self.id, "user": user, "body": self.body });
        value[time] = json!(self.at);
        for (key, more) in self.more.as_object().into_iter().flatten().filter(|(_, more)| !more.is_null()) {
            value[key] = more.clone();
        }
        value
    }
}

impl Item {
    pub(super) fn issue_json(&self, web: &str, slug: &str) -> Value {
        let mut value = self.item_json(web, slug);
        if self.pull.is_some() {
            value["pull_request"] = json!({ "url": format!("{web}/{slug}/pull/{}", self.number) });
        }
        value
    }

    /// What issues and pull requests have in common.
    fn item_json(&self, web: &str, slug: &str) -> Value {
        let kind = if self.pull.is_some() { "pull" } else { "issues" };
        json!({
            "number": self.number, "title": self.title, "body": self.body,
            "state": if self.open { "open" } else { "closed" },
            "user": if self.author.is_empty() { Value::Null } else { json!({ "login": self.author }) }, "node_id": format!("I_{}", self.number),
            "labels": self.labels.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
            "created_at": self.at, "updated_at": self.at,
            "html_url": format!("{web}/{slug}/{kind}/{}", self.number),
        })
    }

    pub(super) fn pull_json(&self, web: &str, slug: &str) -> Option<Value> {
        let pull = self.pull.as_ref()?;
        let mut value = self.item_json(web, slug);
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
            "reviewDecision": pull.decision(),
            "commits": { "nodes": [{ "commit": { "statusCheckRollup": pull.rollup() } }] },
            "author": { "login": self.author }, "headRepository": { "nameWithOwner": pull.fork.as_deref().unwrap_or(slug) },
        }))
    }
}
