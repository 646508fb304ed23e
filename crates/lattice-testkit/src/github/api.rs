//! The part of the REST API that Lattice uses.

use serde_json::{Value, json};

use super::state::{Item, PullPart, Repository, Said, State};
use super::{missing, stacks};
use crate::http::{Request, Response};

/// GitHub takes no longer body.
const BODY_CHARS: usize = 65_536;

/// Items of a page, unless the client asks for another number.
const PER_PAGE: usize = 30;

/// When everything happened that nobody gave a time.
pub(super) const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// Who asks, and where people would look.
type Who<'a> = (&'a str, &'a str);

pub(super) fn new_item(number: u64, title: &str, body: &str, author: &str) -> Item {
    Item {
        number,
        title: title.to_owned(),
        body: body.to_owned(),
        open: true,
        author: author.to_owned(),
        at: LONG_AGO.to_owned(),
        labels: Vec::new(),
        comments: Vec::new(),
        pull: None,
    }
}

pub(super) fn respond(state: &mut State, request: &Request, path: &str, who: Who<'_>) -> Response {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["user"] => Response::json(200, &json!({ "login": who.0 })),
        ["user", "installations"] => {
            let all: Vec<_> = (0..state.installed.len()).map(|id| json!({ "id": id + 1 })).collect();
            listed(request, who.1, Some("installations"), all)
        }
        ["user", "installations", id, "repositories"] => {
            let at = id.parse::<usize>().unwrap_or(0).wrapping_sub(1);
            let name = state.installed.get(at).cloned();
            listed(request, who.1, Some("repositories"), name.iter().map(|name| json!({ "full_name": name })).collect())
        }
        ["repos", owner, repo, rest @ ..] => {
            let slug = format!("{owner}/{repo}");
            let (id, read_only) = (state.id(), state.read_only.contains(&slug));
            let Some(repository) = state.repositories.get_mut(&slug) else { return missing() };
            repository.follow();
            let place = Place { slug: &slug, web: who.1, user: who.0, id };
            match rest {
                [] => Response::json(
                    200,
                    &json!({ "full_name": slug, "permissions": { "push": !read_only, "pull": true } }),
                ),
                ["issues", rest @ ..] => issues(repository, request, rest, &place),
                ["stacks", rest @ ..] => stacks::respond(repository, request, rest, &place),
                ["pulls", number, "merge-async", rest @ ..] => {
                    stacks::land(repository, (request, number.parse().unwrap_or(0)), rest)
                }
                ["pulls", number, "merge"] if stacks::holds(repository, number.parse().unwrap_or(0)) => {
                    Response::json(405, &json!({ "message": "A stacked pull request is merged asynchronously" }))
                }
                ["pulls", rest @ ..] => {
                    let answer = pulls(repository, request, rest, &place);
                    stacks::mentioned(repository, answer)
                }
                _ => missing(),
            }
        }
        _ => missing(),
    }
}

pub(super) struct Place<'a> {
    pub(super) slug: &'a str,
    pub(super) web: &'a str,
    user: &'a str,
    /// For what is made now.
    id: u64,
}

impl Place<'_> {
    /// Something that the user says now.
    fn said(&self, body: &Value, more: Value) -> Said {
        Said { id: self.id, author: self.user.to_owned(), body: text(body), at: LONG_AGO.to_owned(), more }
    }
}

pub(super) fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// One page of a list, with the address of the next.
pub(super) fn listed(request: &Request, web: &str, field: Option<&str>, all: Vec<Value>) -> Response {
    let number = |name: &str, usual: usize| request.query_value(name).and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (size, page) = (number("per_page", PER_PAGE).clamp(1, 100), number("page", 1).max(1));
    let items: Vec<_> = all.iter().skip(size * (page - 1)).take(size).cloned().collect();
    let more = all.len() > size * page;
    let answer = match field {
        Some(field) => json!({ "total_count": all.len(), field: items }),
        None => Value::Array(items),
    };
    let response = Response::json(200, &answer);
    if !more {
        return response;
    }
    let link = format!("<{web}{}?per_page={size}&page={}>; rel=\"next\"", request.path, page + 1);
    response.with("link", &link)
}

fn issues(repository: &mut Repository, request: &Request, rest: &[&str], place: &Place<'_>) -> Response {
    let sent = body(request);
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let state = request.query_value("state").unwrap_or("open");
            let labels: Vec<_> =
                request.query_value("labels").unwrap_or("").split(',').filter(|l| !l.is_empty()).collect();
            let wanted = |item: &&Item| {
                (state == "all" || (state == "open") == item.open)
                    && labels.iter().all(|label| item.labels.iter().any(|own| own == label))
            };
            let all = repository.items.values().filter(wanted).map(|item| item.issue_json(place.web, place.slug));
            listed(request, place.web, None, all.collect())
        }
        ("POST", []) => {
            let number = repository.next_number();
            let mut item = new_item(number, &text(&sent["title"]), &text(&sent["body"]), place.user);
            item.labels = sent["labels"].as_array().into_iter().flatten().map(text).collect();
            let answer = item.issue_json(place.web, place.slug);
            repository.items.insert(number, item);
            Response::json(201, &answer)
        }
        ("PATCH", ["comments", id]) => {
            let id = id.parse::<u64>().unwrap_or(0);
            let comment = repository.items.values_mut().flat_map(|item| &mut item.comments).find(|c| c.id == id);
            let Some(comment) = comment else { return missing() };
            comment.body = text(&sent["body"]);
            Response::json(200, &comment_json(comment))
        }
        (_, [number, rest @ ..]) => {
            let Some(item) = number.parse().ok().and_then(|number: u64| repository.items.get_mut(&number)) else {
                return missing();
            };
            one_issue(item, request, rest, place)
        }
        _ => missing(),
    }
}

fn one_issue(item: &mut Item, request: &Request, rest: &[&str], place: &Place<'_>) -> Response {
    let sent = body(request);
    let labels = |item: &Item| item.labels.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>();
    match (request.method.as_str(), rest) {
        ("GET", []) => Response::json(200, &item.issue_json(place.web, place.slug)),
        ("PATCH", []) => {
            if sent["state"] == "closed" {
                item.open = false;
            }
            Response::json(200, &item.issue_json(place.web, place.slug))
        }
        ("GET", ["comments"]) => listed(request, place.web, None, item.comments.iter().map(comment_json).collect()),
        ("POST", ["comments"]) => {
            item.comments.push(place.said(&sent["body"], Value::Null));
            Response::json(201, &comment_json(item.comments.last().expect("one was just added")))
        }
        ("GET", ["labels"]) => Response::json(200, &labels(item).into()),
        ("POST", ["labels"]) => {
            for label in sent["labels"].as_array().into_iter().flatten().map(text) {
                if !item.labels.contains(&label) {
                    item.labels.push(label);
                }
            }
            Response::json(200, &labels(item).into())
        }
        ("DELETE", ["labels", label]) => {
            item.labels.retain(|own| own != label);
            Response::json(200, &labels(item).into())
        }
        _ => missing(),
    }
}

fn comment_json(comment: &Said) -> Value {
    comment.json("created_at")
}

fn pulls(repository: &mut Repository, request: &Request, rest: &[&str], place: &Place<'_>) -> Response {
    match (request.method.as_str(), rest) {
        ("POST", []) => open_pull(repository, &body(request), place),
        ("GET", []) => {
            let state = request.query_value("state").unwrap_or("open");
            let wanted =
                repository.items.values().rev().filter(|item| state == "all" || (state == "open") == item.open);
            let listed_pull = |item: &Item| {
                let mut pull = item.pull_json(place.web, place.slug)?;
                // Of those in a list, only the time of landing is told.
                pull.as_object_mut()?.remove("merged");
                Some(pull)
            };
            listed(request, place.web, None, wanted.filter_map(listed_pull).collect())
        }
        (_, [number, rest @ ..]) => {
            let bare = repository.bare.clone();
            let found = number.parse().ok().and_then(|number: u64| repository.items.get_mut(&number));
            let Some(item) = found.filter(|item| item.pull.is_some()) else { return missing() };
            match (request.method.as_str(), rest) {
                ("PUT", ["merge"]) => merge(item, &bare, &body(request)),
                ("GET", ["files"]) => {
                    let pull = item.pull.as_ref().expect("it was looked at");
                    if let Some(files) = &pull.files {
                        return listed(request, place.web, None, files.clone());
                    }
                    let base = bare.tip(&pull.base).unwrap_or_default();
                    let status = |letter: &str| match letter {
                        "A" => "added",
                        "D" => "removed",
                        _ => "modified",
                    };
                    let file = |(path, letter, added, removed): (String, String, u64, u64)| json!({ "filename": path, "status": status(&letter), "additions": added, "deletions": removed });
                    listed(request, place.web, None, bare.files(&base, &pull.head_at).into_iter().map(file).collect())
                }
                _ => one_pull(item, request, rest, place),
            }
        }
        _ => missing(),
    }
}

fn open_pull(repository: &mut Repository, sent: &Value, place: &Place<'_>) -> Response {
    let (head, base) = (text(&sent["head"]), text(&sent["base"]));
    let refused = |message: String| {
        Response::json(422, &json!({ "message": "Validation Failed", "errors": [{ "message": message }] }))
    };
    let exists = |item: &Item| {
        item.open && item.pull.as_ref().is_some_and(|own| own.fork.is_none() && own.head == head && own.base == base)
    };
    if text(&sent["body"]).chars().count() > BODY_CHARS {
        return refused(format!("body is too long (maximum is {BODY_CHARS} characters)"));
    }
    if repository.items.values().any(exists) {
        return refused(format!("A pull request already exists for {}:{head}.", place.user));
    }
    let (Some(head_at), Some(base_at)) = (repository.bare.tip(&head), repository.bare.tip(&base)) else {
        return refused("head or base is missing".to_owned());
    };
    if head_at == base_at {
        return refused(format!("No commits between {base} and {head}"));
    }
    let number = repository.next_number();
    let mut item = new_item(number, &text(&sent["title"]), &text(&sent["body"]), place.user);
    let draft = sent["draft"].as_bool() == Some(true);
    item.pull = Some(PullPart { draft, head_at, ..PullPart::new(head, base) });
    let answer = item.pull_json(place.web, place.slug).expect("it has a pull part");
    repository.items.insert(number, item);
    Response::json(201, &answer)
}

pub(super) fn merge(item: &mut Item, bare: &super::git::Bare, sent: &Value) -> Response {
    let (open, title, number) = (item.open, item.title.clone(), item.number);
    let pull = item.pull.as_mut().expect("it was looked at");
    let refused = |status: u16, message: &str| Response::json(status, &json!({ "message": message }));
    if !open || pull.draft {
        return refused(405, "Pull Request is not mergeable");
    }
    if sent["sha"].as_str().is_some_and(|sha| sha != pull.head_at) {
        return refused(409, "Head branch was modified. Review and try the merge again.");
    }
    let method = sent["merge_method"].as_str().unwrap_or("merge");
    let Some(commit) = bare.land(&pull.base, &pull.head_at, method, &format!("{title} (#{number})")) else {
        return refused(405, "Merge conflict");
    };
    pull.merged = Some(commit.clone());
    item.open = false;
    Response::json(200, &json!({ "sha": commit, "merged": true, "message": "Pull Request successfully merged" }))
}

fn one_pull(item: &mut Item, request: &Request, rest: &[&str], place: &Place<'_>) -> Response {
    let sent = body(request);
    let whole = |item: &Item| item.pull_json(place.web, place.slug).expect("it was looked at");
    let review = |review: &Said| review.json("submitted_at");
    match (request.method.as_str(), rest) {
        ("GET", []) => Response::json(200, &whole(item)),
        ("POST", ["requested_reviewers"]) => {
            let names = sent["reviewers"].as_array().into_iter().flatten().map(text);
            item.pull.as_mut().expect("it was looked at").reviewers.extend(names);
            let mut answer = whole(item);
            answer.as_object_mut().expect("it is one").remove("merged");
            Response::json(201, &answer)
        }
        ("GET", ["reviews"]) => {
            let pull = item.pull.as_ref().expect("it was looked at");
            listed(request, place.web, None, pull.reviews.iter().map(review).collect())
        }
        ("POST", ["reviews"]) => {
            let state = match sent["event"].as_str() {
                Some("APPROVE") => "APPROVED",
                Some("REQUEST_CHANGES") => "CHANGES_REQUESTED",
                _ => "COMMENTED",
            };
            let pull = item.pull.as_mut().expect("it was looked at");
            let remark = |remark: &Value| place.said(&remark["body"], remark.clone());
            pull.remarks.extend(sent["comments"].as_array().into_iter().flatten().map(remark));
            pull.reviews.push(place.said(&sent["body"], json!({ "state": state })));
            Response::json(200, &review(pull.reviews.last().expect("one was just added")))
        }
        ("GET", ["comments"]) => {
            let pull = item.pull.as_ref().expect("it was looked at");
            listed(request, place.web, None, pull.remarks.iter().map(comment_json).collect())
        }
        _ => missing(),
    }
}
