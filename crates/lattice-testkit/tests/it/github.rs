//! The fake GitHub against GitHub's own description of its API.

use std::io::{Read, Write};
use std::net::TcpStream;

use lattice_testkit::TestRepo;
use lattice_testkit::github::GitHub;
use serde_json::{Value, json};

/// Asks as a client would, and gives status and answer.
fn ask(github: &GitHub, line: &str, body: &Value) -> (u16, Value) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let host = github.web_url().replace("http://", "");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(&host).expect("it listens");
    let head = format!("{method} /api/v3{path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer ghp_test\r\n");
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("it is connected");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// A repository with the branches `a`, `b` and `c` on each other.
fn served(repo: &TestRepo) -> GitHub {
    let github = GitHub::start(repo);
    let url = github.create("acme/tools");
    github.accept("ghp_test", "octocat");
    repo.git(&["push", "--quiet", &url, "main", "a", "b", "c"]);
    github
}

/// Every kind of request that Lattice makes, with the status that it gets. What GitHub would not take or send fails the
/// test when the fake ends.
#[test]
fn every_request_and_answer_is_as_github_describes_it() {
    let repo = TestRepo::draw("main <- a <- b <- c*");
    let github = served(&repo);
    github.keep_stacks("acme/tools");
    let number = github.add_issue("acme/tools", "one", "text");
    assert_eq!(number, 1);
    let pull =
        |head: &str, base: &str| json!({ "title": head, "body": "text", "head": head, "base": base, "draft": false });
    let review =
        json!({ "event": "APPROVE", "body": "fine", "comments": [{ "path": "a.txt", "line": 1, "body": "here" }] });
    let land = json!({ "merge_method": "squash", "sha": repo.rev("a") });
    let late = json!({ "merge_method": "merge", "sha": repo.rev("main") });
    for (line, body, status) in [
        ("GET /user", Value::Null, 200),
        ("GET /user/installations", Value::Null, 200),
        ("GET /user/installations/1/repositories", Value::Null, 200),
        ("GET /repos/acme/tools", Value::Null, 200),
        ("GET /repos/acme/none", Value::Null, 404),
        ("POST /repos/acme/tools/issues", json!({ "title": "two", "body": "", "labels": ["bug"] }), 201),
        ("GET /repos/acme/tools/issues", Value::Null, 200),
        ("GET /repos/acme/tools/issues/2", Value::Null, 200),
        ("PATCH /repos/acme/tools/issues/2", json!({ "state": "closed" }), 200),
        ("POST /repos/acme/tools/issues/1/comments", json!({ "body": "words" }), 201),
        ("GET /repos/acme/tools/issues/1/comments", Value::Null, 200),
        ("PATCH /repos/acme/tools/issues/comments/9", json!({ "body": "words" }), 404),
        ("POST /repos/acme/tools/issues/1/labels", json!({ "labels": ["bug", "odd"] }), 200),
        ("GET /repos/acme/tools/issues/1/labels", Value::Null, 200),
        ("DELETE /repos/acme/tools/issues/1/labels/bug", Value::Null, 200),
        ("POST /repos/acme/tools/pulls", pull("a", "main"), 201),
        ("POST /repos/acme/tools/pulls", pull("a", "main"), 422),
        ("POST /repos/acme/tools/pulls", pull("b", "a"), 201),
        ("POST /repos/acme/tools/pulls", pull("c", "b"), 201),
        ("GET /repos/acme/tools/issues", Value::Null, 200),
        ("GET /repos/acme/tools/pulls/3", Value::Null, 200),
        ("GET /repos/acme/tools/pulls/3/files", Value::Null, 200),
        ("POST /repos/acme/tools/pulls/3/requested_reviewers", json!({ "reviewers": ["ann"] }), 201),
        ("POST /repos/acme/tools/pulls/3/reviews", review, 200),
        ("GET /repos/acme/tools/pulls/3/reviews", Value::Null, 200),
        ("GET /repos/acme/tools/pulls/3/comments", Value::Null, 200),
        ("POST /repos/acme/tools/stacks", json!({ "pull_requests": [4, 3] }), 422),
        ("POST /repos/acme/tools/stacks", json!({ "pull_requests": [3, 4] }), 201),
        ("POST /repos/acme/tools/stacks/1/add", json!({ "pull_requests": [5] }), 200),
        ("GET /repos/acme/tools/stacks?pull_request=4", Value::Null, 200),
        ("GET /repos/acme/tools/pulls/4", Value::Null, 200),
        ("PUT /repos/acme/tools/pulls/3/merge", land.clone(), 405),
        ("PUT /repos/acme/tools/pulls/3/merge-async", land.clone(), 202),
        ("GET /repos/acme/tools/pulls/3/merge-async/land-3", Value::Null, 200),
        ("PUT /repos/acme/tools/pulls/3/merge-async", land, 200),
        ("POST /repos/acme/tools/stacks/1/unstack", Value::Null, 200),
        ("PUT /repos/acme/tools/pulls/4/merge", late, 409),
        ("PUT /repos/acme/tools/pulls/4/merge", json!({ "merge_method": "merge", "sha": repo.rev("b") }), 200),
        ("PUT /repos/acme/tools/pulls/4/merge-async", json!({}), 200),
    ] {
        let (got, answer) = ask(&github, line, &body);
        assert_eq!(got, status, "{line}: {answer:#}");
    }
    let (_, lowest) = ask(&github, "GET /repos/acme/tools/pulls/3", &Value::Null);
    assert_eq!((&lowest["merged"], &lowest["stack"]["position"]), (&json!(true), &json!(1)), "{lowest:#}");
    assert!(lowest["author_association"].is_string(), "what nobody here looks at is there too: {lowest:#}");
}

#[test]
#[should_panic(expected = "unlike GitHub")]
fn a_request_that_github_does_not_take_fails_the_test() {
    let repo = TestRepo::draw("main <- a <- b <- c*");
    let github = served(&repo);
    ask(&github, "POST /repos/acme/tools/issues", &json!({ "titel": "one" }));
}
