//! Items that a test makes up, as documents with the names that GitHub uses.
//!
//! ```json
//! {"number": 7, "title": "…", "body": "…", "user": "alice", "labels": ["bug"], "created_at": "2026-01-01T00:00:00Z",
//!  "comments": [{"user": "bob", "body": "…", "created_at": "…"}],
//!  "pull_request": {"head": "fix", "base": "main", "files": [{"filename": "a.rs", "status": "modified",
//!    "additions": 1, "deletions": 2}], "reviews": [{"user": "…", "state": "APPROVED", "body": "…"}],
//!    "comments": [{"user": "…", "path": "a.rs", "line": 3, "body": "…"}]}}
//! ```

use serde_json::Value;

use super::api::{LONG_AGO, new_item};
use super::state::{Item, PullPart, Said};

/// Ids of what was made up begin here.
const FIRST_ID: u64 = 500_000;

pub(super) fn item(document: &Value) -> Item {
    let text = |name: &str| document[name].as_str().unwrap_or_default();
    let number = document["number"].as_u64().expect("an item has a number");
    let mut item = new_item(number, text("title"), text("body"), text("user"));
    item.open = document["state"] != "closed";
    item.at = time(&document["created_at"]);
    item.labels = list(&document["labels"]).map(|label| label.as_str().unwrap_or_default().to_owned()).collect();
    item.comments = said(&document["comments"]);
    item.pull = document.get("pull_request").map(pull);
    item
}

fn pull(document: &Value) -> PullPart {
    let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    PullPart {
        draft: document["draft"].as_bool() == Some(true),
        head_at: "1".repeat(40),
        reviews: said(&document["reviews"]),
        remarks: said(&document["comments"]),
        files: Some(list(&document["files"]).cloned().collect()),
        ..PullPart::new(text("head"), text("base"))
    }
}

fn said(documents: &Value) -> Vec<Said> {
    let one = |(id, document): (u64, &Value)| {
        let mut more = document.clone();
        let fields = more.as_object_mut().expect("what is said is an object");
        let author = fields.remove("user").and_then(|user| user.as_str().map(str::to_owned)).unwrap_or_default();
        let body = fields.remove("body").and_then(|body| body.as_str().map(str::to_owned)).unwrap_or_default();
        let at = time(&fields.remove("created_at").unwrap_or_default());
        Said { id, author, body, at, more }
    };
    (FIRST_ID..).zip(list(documents)).map(one).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn time(value: &Value) -> String {
    value.as_str().unwrap_or(LONG_AGO).to_owned()
}
