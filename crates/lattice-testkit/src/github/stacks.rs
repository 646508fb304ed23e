//! Stacks that the fake keeps, if it was told to: made, added to, taken apart, and landed in the background.

use serde_json::{Value, json};

use super::api::{LONG_AGO, Place, body, listed, merge};
use super::missing;
use super::state::{Item, Repository};
use crate::http::{Request, Response};

pub(super) fn respond(repository: &mut Repository, request: &Request, rest: &[&str], place: &Place<'_>) -> Response {
    let Some(stacks) = repository.stacks.clone() else { return missing() };
    let sent: Vec<u64> =
        body(request)["pull_requests"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let at = rest.first().and_then(|number| number.parse::<u64>().ok());
    let known = at.and_then(|at| stacks.get(&at)).cloned();
    match (request.method.as_str(), rest, known) {
        ("GET", [], _) => {
            let wanted = request.query_value("pull_request").and_then(|number| number.parse::<u64>().ok());
            let holds = |numbers: &[u64]| wanted.is_none_or(|wanted| numbers.contains(&wanted));
            let all = stacks.iter().filter(|(_, numbers)| holds(numbers));
            listed(request, place.web, None, all.map(|(at, numbers)| told(repository, (*at, numbers), place)).collect())
        }
        ("POST", [], _) if sent.len() > 1 => {
            let at = stacks.keys().next_back().copied().unwrap_or(0) + 1;
            put(repository, (at, sent), 201, place)
        }
        ("POST", [_, "add"], Some(numbers)) => {
            let at = at.expect("a known stack has a number");
            put(repository, (at, [numbers, sent].concat()), 200, place)
        }
        ("POST", [_, "unstack"], Some(numbers)) => {
            let at = at.expect("a known stack has a number");
            let merged: Vec<_> = numbers.into_iter().filter(|number| !repository.items[number].open).collect();
            let kept = repository.stacks.as_mut().expect("they are kept");
            if merged.is_empty() {
                kept.remove(&at);
                return Response { status: 204, headers: Vec::new(), body: Vec::new() };
            }
            kept.insert(at, merged.clone());
            Response::json(200, &told(repository, (at, &merged), place))
        }
        ("POST", [], _) => refused("a stack has at least two pull requests"),
        _ => missing(),
    }
}

fn refused(message: &str) -> Response {
    let error = json!({ "code": "custom", "message": message });
    Response::json(422, &json!({ "message": "Validation Failed", "documentation_url": "", "errors": [error] }))
}

/// Keeps a stack, if its pull requests stand on each other and are in no other.
fn put(repository: &mut Repository, (at, numbers): (u64, Vec<u64>), status: u16, place: &Place<'_>) -> Response {
    let pull = |number: &u64| repository.items.get(number).and_then(|item| item.pull.as_ref());
    let open = numbers.iter().filter(|number| repository.items.get(number).is_some_and(|item| item.open));
    let open: Vec<_> = open.filter_map(pull).collect();
    let others = repository.stacks.iter().flatten().filter(|(other, _)| **other != at);
    if others.flat_map(|(_, numbers)| numbers).any(|number| numbers.contains(number)) {
        return refused("a pull request is in another stack");
    }
    if !numbers.iter().all(|number| pull(number).is_some()) || !open.windows(2).all(|two| two[0].head == two[1].base) {
        return refused("the pull requests do not stand on each other");
    }
    let answer = told(repository, (at, &numbers), place);
    repository.stacks.as_mut().expect("they are kept").insert(at, numbers);
    Response::json(status, &answer)
}

fn told(repository: &Repository, (at, numbers): (u64, &[u64]), place: &Place<'_>) -> Value {
    let items = || numbers.iter().map(|number| &repository.items[number]);
    let pulls: Vec<_> =
        items().map(|item| in_short(&item.pull_json(place.web, place.slug).expect("it is one"))).collect();
    json!({
        "id": at, "number": at, "node_id": format!("S_{at}"), "created_at": LONG_AGO,
        "url": format!("{}/repos/{}/stacks/{at}", place.web, place.slug),
        "base": { "ref": base(repository, numbers) }, "open": items().any(|item| item.open), "pull_requests": pulls,
    })
}

/// A pull request as its stack tells it.
fn in_short(pull: &Value) -> Value {
    let mut short: Value = ["number", "state", "draft", "merged_at"]
        .map(|name| (name.to_owned(), pull[name].clone()))
        .into_iter()
        .collect();
    short["head"] = json!({ "ref": pull["head"]["ref"], "sha": pull["head"]["sha"] });
    short
}

/// What the lowest open pull request of a stack is to land on.
fn base(repository: &Repository, numbers: &[u64]) -> String {
    let items = numbers.iter().map(|number| &repository.items[number]);
    let lowest = items.filter(|item| item.open).chain(numbers.last().map(|number| &repository.items[number])).next();
    lowest.and_then(|item| item.pull.as_ref()).map(|pull| pull.base.clone()).unwrap_or_default()
}

/// Whether a pull request is in a stack.
pub(super) fn holds(repository: &Repository, number: u64) -> bool {
    repository.stacks.iter().flatten().any(|(_, numbers)| numbers.contains(&number))
}

/// Adds to an answer about a pull request which stack it is in.
pub(super) fn mentioned(repository: &Repository, mut response: Response) -> Response {
    let Some(stacks) = &repository.stacks else { return response };
    let mut answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    if let (Some(number), true) = (answer["number"].as_u64(), answer["head"].is_object()) {
        let of = |(at, numbers): (&u64, &Vec<u64>)| {
            let position = numbers.iter().position(|own| *own == number)? + 1;
            let lowest = base(repository, numbers);
            let base = json!({ "ref": lowest, "sha": repository.bare.tip(&lowest).unwrap_or_default() });
            Some(json!({ "id": at, "number": at, "base": base, "size": numbers.len(), "position": position }))
        };
        answer["stack"] = stacks.iter().find_map(of).unwrap_or(Value::Null);
        response.body = answer.to_string().into_bytes();
    }
    response
}

/// Lands pull requests in the background: the first answer says that it will be done, the next that it was.
pub(super) fn land(repository: &mut Repository, (request, number): (&Request, u64), rest: &[&str]) -> Response {
    if repository.stacks.is_none() || !repository.items.contains_key(&number) {
        return missing();
    }
    match (request.method.as_str(), rest) {
        ("PUT", []) => {
            let sent = body(request);
            let item = &repository.items[&number];
            let pull = item.pull.as_ref().expect("it is a pull request");
            if let Some(sha) = &pull.merged {
                return result(200, "merged", json!({ "message": "Already merged", "sha": sha }));
            }
            if !item.open || pull.draft {
                return result(400, "failed", json!({ "message": "Pull request is not ready to be merged" }));
            }
            let details = json!({
                "message": "Merge requested", "uuid": format!("land-{number}"), "merge_action": "default",
                "merge_method": sent["merge_method"], "expected_head_sha": sent["sha"],
            });
            repository.landing.insert(format!("land-{number}"), (number, sent));
            result(202, "pending", details)
        }
        ("GET", [uuid]) => match repository.landing.get(*uuid).cloned() {
            Some((number, sent)) => land_now(repository, number, &sent),
            None => missing(),
        },
        _ => missing(),
    }
}

/// Lands everything below a pull request and the pull request itself; what stands on it gets its base.
fn land_now(repository: &mut Repository, number: u64, sent: &Value) -> Response {
    let stacks = repository.stacks.iter().flatten();
    let stack = stacks.map(|(_, numbers)| numbers.clone()).find(|numbers| numbers.contains(&number));
    let stack = stack.unwrap_or_else(|| vec![number]);
    let bare = repository.bare.clone();
    for (at, own) in stack.iter().enumerate() {
        let item = repository.items.get_mut(own).expect("stacks hold what is there");
        if item.open {
            let mut how = sent.clone();
            if *own != number {
                how["sha"] = Value::Null;
            }
            let answer = merge(item, &bare, &how);
            if answer.status != 200 {
                let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                return result(200, "failed", json!({ "message": said["message"] }));
            }
            let landed_on = pull_of(item).base.clone();
            if let Some(above) = stack.get(at + 1).and_then(|above| repository.items.get_mut(above)) {
                above.pull.as_mut().expect("stacks hold pull requests").base = landed_on;
            }
        }
        if *own == number {
            break;
        }
    }
    let sha = pull_of(&repository.items[&number]).merged.clone();
    result(200, "merged", json!({ "message": "Merged", "sha": sha }))
}

fn pull_of(item: &Item) -> &super::state::PullPart {
    item.pull.as_ref().expect("stacks hold pull requests")
}

fn result(status: u16, state: &str, details: Value) -> Response {
    Response::json(status, &json!({ "status": state, "details": details }))
}
