//! Tests of reading requests: what is refused, and in which words.

use serde_json::{Value, json};

use super::{Action, read_action, work_item_number};

fn read(name: &str, parameters: Value) -> Result<Action, String> {
    read_action(name, parameters.as_object().expect("an object"))
}

#[test]
fn what_is_wrong_with_a_request_is_said_by_parameter() {
    let pr = |change: Value| {
        let mut all = json!({ "title": "t", "body": "b", "base": "main", "head": "sprite/x" });
        for (name, value) in change.as_object().expect("an object") {
            all[name] = value.clone();
        }
        all
    };
    let cases = [
        ("DELETE_REPO", json!({}), "there is no action `DELETE_REPO`"),
        ("OPEN_PR", json!({ "title": "t" }), "`base` is missing"),
        ("OPEN_PR", pr(json!({ "title": "two\r\nlines" })), "`title` must be one line without control characters"),
        ("OPEN_PR", pr(json!({ "title": "\u{1b}[2J" })), "`title` must be one line without control characters"),
        ("OPEN_PR", pr(json!({ "title": " " })), "`title` is empty"),
        ("OPEN_PR", pr(json!({ "body": "x".repeat(1 << 20) })), "`body` has more than 60000 characters"),
        ("OPEN_PR", pr(json!({ "draft": "yes" })), "`draft` must be true or false"),
        (
            "OPEN_PR",
            pr(json!({ "reviewers": "all" })),
            "OPEN_PR has no parameter `reviewers`; it has title, body, base, head, draft",
        ),
        ("POST_COMMENT", json!({ "body": 1 }), "`body` must be text"),
        ("POST_COMMENT", json!({ "body": "x", "issue": 3 }), "POST_COMMENT has no parameter `issue`; it has body"),
        ("LABEL_ISSUE", json!({ "labels": "bug" }), "`labels` must be a list of texts"),
        ("LABEL_ISSUE", json!({ "labels": [] }), "`labels` must have 1 to 20 entries"),
        ("NOTIFY_USER", json!({ "message": "" }), "`message` is empty"),
    ];
    for (name, parameters, wanted) in cases {
        assert_eq!(read(name, parameters), Err(wanted.to_owned()), "{name}");
    }
    for head in ["--output=x", "-h", "a..b", "", "refs/heads/../x"] {
        let problem = read("OPEN_PR", pr(json!({ "head": head }))).expect_err("no name");
        assert!(problem.starts_with("`head`: "), "{problem}");
    }
}

#[test]
fn nobody_is_called_by_an_agent() {
    let read = read("POST_COMMENT", json!({ "body": "@all, see a@b.org and @org/team" }));
    let body = "@\u{200b}all, see a@b.org and @\u{200b}org/team".to_owned();
    assert_eq!(read, Ok(Action::PostComment { body }));
}

#[test]
fn a_work_item_is_an_issue_a_pull_request_or_neither() {
    let numbers = ["issue-17", "pr-3", "task-9", "issue-", "issue-x"].map(work_item_number);
    assert_eq!(numbers, [Some(17), Some(3), None, None, None]);
}
