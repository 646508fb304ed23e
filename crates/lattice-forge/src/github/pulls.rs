//! Many pull requests at once: one request finds those of a whole stack, one changes them.

use std::collections::BTreeMap;

use lattice_model::host::{Draft, Pull, PullState};
use lattice_model::name::BranchName;
use serde_json::{Map, Value, json};

use super::transport::Verb;
use super::{GitHub, is_ambiguous, read};
use crate::{ForgeError, NewPull, PullUpdate};

/// How many branches or changes one request may concern.
const BATCH: usize = 100;

/// What is asked of each pull request.
const FIELDS: &str = "nodes { id number url state isDraft title body baseRefName headRefName headRefOid \
    isCrossRepository author { login } headRepository { nameWithOwner } reviewDecision \
    commits(last: 1) { nodes { commit { statusCheckRollup { state } } } } }";

impl GitHub {
    pub(super) async fn find_pulls(&self, heads: &[BranchName]) -> Result<BTreeMap<BranchName, Pull>, ForgeError> {
        let mut pulls = BTreeMap::new();
        for heads in heads.chunks(BATCH) {
            let mut declared = String::from("$owner: String!, $repo: String!");
            let mut parts = String::new();
            let mut variables = Map::new();
            variables.insert("owner".to_owned(), json!(self.slug.owner));
            variables.insert("repo".to_owned(), json!(self.slug.repo));
            for (at, head) in heads.iter().enumerate() {
                declared.push_str(&format!(", $h{at}: String!"));
                let order = "orderBy: { field: CREATED_AT, direction: DESC }";
                parts
                    .push_str(&format!("h{at}: pullRequests(headRefName: $h{at}, first: 10, {order}) {{ {FIELDS} }} "));
                variables.insert(format!("h{at}"), json!(head.as_str()));
            }
            let query = format!("query({declared}) {{ repository(owner: $owner, name: $repo) {{ {parts} }} }}");
            let answer = self.client.graphql(&query, Value::Object(variables)).await?;
            for (at, head) in heads.iter().enumerate() {
                let nodes = answer["repository"][format!("h{at}")]["nodes"].as_array().cloned().unwrap_or_default();
                if let Some(pull) = self.newest(&nodes)? {
                    pulls.insert(head.clone(), pull);
                }
            }
        }
        Ok(pulls)
    }

    /// The newest pull request from this repository, open ones first. One from a fork only shares the name.
    fn newest(&self, nodes: &[Value]) -> Result<Option<Pull>, ForgeError> {
        let own = nodes.iter().filter(|node| node["isCrossRepository"].as_bool() != Some(true));
        let pulls: Result<Vec<_>, ForgeError> = own
            .map(|node| {
                let pull = read::pull_node(node)?;
                self.remember(pull.number, &node["id"]);
                Ok(pull)
            })
            .collect();
        let pulls = pulls?;
        let open = pulls.iter().find(|pull| pull.state == PullState::Open);
        Ok(open.or(pulls.first()).cloned())
    }

    /// Opens one; if it is not clear whether that was done, the host is asked before anything is tried again.
    pub(super) async fn open_one(&self, new: &NewPull) -> Result<Pull, ForgeError> {
        let body = json!({
            "title": new.title,
            "body": new.body,
            "head": new.head.as_str(),
            "base": new.base.as_str(),
            "draft": new.draft == Draft::Draft,
        });
        let error = match self.client.send(Verb::Post, &self.path("/pulls"), &body).await {
            Ok(answer) => {
                let pull = read::pull(&answer, &self.slug)?;
                self.remember(pull.number, &answer["node_id"]);
                self.see_stack(&answer);
                return Ok(pull);
            }
            Err(error) => error,
        };
        if !is_ambiguous(&error) && !matches!(error, ForgeError::Unprocessable(_)) {
            return Err(error);
        }
        let found = self.find_pulls(std::slice::from_ref(&new.head)).await.unwrap_or_default().remove(&new.head);
        found.filter(|pull| pull.state == PullState::Open).ok_or(error)
    }

    pub(super) async fn change_pulls(&self, updates: &[PullUpdate]) -> Result<(), ForgeError> {
        let mut changes = Vec::new();
        for update in updates {
            let id = self.node_id(update.number).await?;
            let mut input = Map::new();
            if let Some(base) = &update.base {
                input.insert("baseRefName".to_owned(), json!(base.as_str()));
            }
            if let Some(body) = &update.body {
                input.insert("body".to_owned(), json!(body));
            }
            if !input.is_empty() {
                input.insert("pullRequestId".to_owned(), json!(id));
                changes.push(("updatePullRequest", "UpdatePullRequestInput", Value::Object(input)));
            }
            let draft = json!({ "pullRequestId": id });
            match update.draft {
                None => {}
                Some(Draft::Draft) => {
                    changes.push(("convertPullRequestToDraft", "ConvertPullRequestToDraftInput", draft));
                }
                Some(Draft::Ready) => {
                    changes.push(("markPullRequestReadyForReview", "MarkPullRequestReadyForReviewInput", draft));
                }
            }
        }
        for changes in changes.chunks(BATCH) {
            let mut declared = Vec::new();
            let mut parts = String::new();
            let mut variables = Map::new();
            for (at, (name, input_type, input)) in changes.iter().enumerate() {
                declared.push(format!("$m{at}: {input_type}!"));
                parts.push_str(&format!("m{at}: {name}(input: $m{at}) {{ pullRequest {{ number }} }} "));
                variables.insert(format!("m{at}"), input.clone());
            }
            let query = format!("mutation({}) {{ {parts} }}", declared.join(", "));
            self.client.graphql(&query, Value::Object(variables)).await?;
        }
        Ok(())
    }
}
