//! The part of GraphQL that Lattice uses: pull requests by head, and changes of them.

use serde_json::{Map, Value, json};

use super::stacks;
use super::state::{HIDDEN_CHECKS, State};
use crate::http::{Request, Response};

pub(super) fn respond(state: &mut State, request: &Request, web: &str) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let query = body["query"].as_str().unwrap_or_default().to_owned();
    let variables = &body["variables"];
    let answer =
        if query.starts_with("mutation") { mutate(state, &query, variables) } else { find(state, variables, web) };
    match answer {
        Ok((data, errors)) if errors.is_empty() => Response::json(200, &json!({ "data": data })),
        Ok((data, errors)) => Response::json(200, &json!({ "data": data, "errors": errors })),
        Err((kind, message)) => {
            Response::json(200, &json!({ "data": null, "errors": [{ "type": kind, "message": message }] }))
        }
    }
}

type Failure = (&'static str, String);

/// What was asked for, and what of it could not be told.
type Answer = (Value, Vec<Value>);

fn find(state: &mut State, variables: &Value, web: &str) -> Result<Answer, Failure> {
    let text = |name: &str| variables[name].as_str().unwrap_or_default().to_owned();
    let slug = format!("{}/{}", text("owner"), text("repo"));
    let repository = state.repositories.get_mut(&slug).ok_or(("NOT_FOUND", format!("no repository {slug}")))?;
    repository.follow();
    let (mut found, mut errors) = (Map::new(), Vec::new());
    for (alias, head) in variables.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with('h')) {
        let of_head = repository
            .items
            .values()
            .rev()
            .filter(|item| item.pull.as_ref().is_some_and(|pull| Some(pull.head.as_str()) == head.as_str()));
        let of_head: Vec<_> = of_head.collect();
        for (at, item) in of_head.iter().enumerate() {
            if item.pull.as_ref().and_then(|pull| pull.checks.as_deref()) == Some(HIDDEN_CHECKS) {
                let path =
                    json!(["repository", alias, "nodes", at, "commits", "nodes", 0, "commit", "statusCheckRollup"]);
                let message = "Resource not accessible by personal access token";
                errors.push(json!({ "type": "FORBIDDEN", "path": path, "message": message }));
            }
        }
        let nodes: Vec<_> = of_head.iter().filter_map(|item| item.pull_node(web, &slug)).collect();
        found.insert(alias.clone(), json!({ "nodes": nodes }));
    }
    Ok((json!({ "repository": found }), errors))
}

fn mutate(state: &mut State, query: &str, variables: &Value) -> Result<Answer, Failure> {
    let mut answers = Map::new();
    for (alias, input) in variables.as_object().into_iter().flatten() {
        let after = query.split_once(&format!("{alias}: ")).map(|(_, rest)| rest);
        let after = query
            .match_indices(&format!("{alias}: "))
            .map(|(at, _)| &query[at + alias.len() + 2..])
            .find(|rest| !rest.contains("Input!"))
            .or(after);
        let name = after.and_then(|rest| rest.split('(').next()).unwrap_or_default().to_owned();
        let number = input["pullRequestId"].as_str().and_then(|id| id.strip_prefix("PR_")?.parse::<u64>().ok());
        let number = number.ok_or(("NOT_FOUND", "no such node".to_owned()))?;
        let repository = state.repositories.values_mut().find(|repository| repository.items.contains_key(&number));
        let repository = repository.ok_or(("NOT_FOUND", "no such node".to_owned()))?;
        if input["baseRefName"].is_string() && stacks::holds(repository, number) {
            return Err(("UNPROCESSABLE", "the base of a stacked pull request is the one below".to_owned()));
        }
        let item = repository.items.get_mut(&number).expect("it was just seen");
        let pull = item.pull.as_mut().ok_or(("NOT_FOUND", "no such node".to_owned()))?;
        match name.as_str() {
            "updatePullRequest" => {
                if let Some(base) = input["baseRefName"].as_str() {
                    pull.base = base.to_owned();
                }
                if let Some(body) = input["body"].as_str() {
                    item.body = body.to_owned();
                }
            }
            "convertPullRequestToDraft" => pull.draft = true,
            "markPullRequestReadyForReview" => pull.draft = false,
            other => return Err(("UNKNOWN", format!("no mutation {other}"))),
        }
        answers.insert(alias.clone(), json!({ "pullRequest": { "number": number } }));
    }
    Ok((Value::Object(answers), Vec::new()))
}
