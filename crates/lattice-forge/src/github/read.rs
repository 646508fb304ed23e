//! From GitHub's JSON to our types. Fields that we do not know are left alone; those that we need must be there.

use lattice_model::host::{ChecksState, Draft, Pull, PullState, ReviewState, Slug, Standing};
use lattice_model::id::Oid;
use lattice_model::remote::FileChange;
use serde_json::Value;

use crate::{Comment, ForgeError, Issue, ItemState, Review, ReviewComment, Verdict};

/// Text, or nothing where GitHub has none.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A deleted account has no user.
fn login(value: &Value) -> String {
    value["login"].as_str().unwrap_or("ghost").to_owned()
}

fn number(value: &Value) -> Result<u64, ForgeError> {
    value["number"].as_u64().ok_or_else(|| ForgeError::BadAnswer("an item without a number".to_owned()))
}

fn id(value: &Value) -> Result<u64, ForgeError> {
    value["id"].as_u64().ok_or_else(|| ForgeError::BadAnswer("an item without an id".to_owned()))
}

/// One part of a path, whatever characters it has.
pub(super) fn segment(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let part = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

pub(super) fn issue(value: &Value) -> Result<Issue, ForgeError> {
    Ok(Issue {
        number: number(value)?,
        title: text(&value["title"]),
        body: text(&value["body"]),
        state: if value["state"] == "open" { ItemState::Open } else { ItemState::Closed },
        author: login(&value["user"]),
        labels: labels(&value["labels"]),
        created_at: text(&value["created_at"]),
        updated_at: text(&value["updated_at"]),
        url: text(&value["html_url"]),
        is_pull: value.get("pull_request").is_some(),
    })
}

/// Labels are objects, or in old answers plain text.
pub(super) fn labels(value: &Value) -> Vec<String> {
    let name = |label: &Value| label.as_str().or_else(|| label["name"].as_str()).map(str::to_owned);
    value.as_array().into_iter().flatten().filter_map(name).collect()
}

pub(super) fn comment(value: &Value) -> Result<Comment, ForgeError> {
    Ok(Comment {
        id: id(value)?,
        author: login(&value["user"]),
        body: text(&value["body"]),
        created_at: text(&value["created_at"]),
    })
}

/// A pull request as REST tells it.
pub(super) fn pull(value: &Value, slug: &Slug) -> Result<Pull, ForgeError> {
    let merged = value["merged"].as_bool() == Some(true) || value["merged_at"].is_string();
    let head_repo = value["head"]["repo"]["full_name"].as_str();
    Ok(Pull {
        number: number(value)?,
        url: text(&value["html_url"]),
        state: match (merged, value["state"] == "open") {
            (true, _) => PullState::Merged,
            (false, true) => PullState::Open,
            (false, false) => PullState::Closed,
        },
        draft: if value["draft"].as_bool() == Some(true) { Draft::Draft } else { Draft::Ready },
        title: text(&value["title"]),
        body: text(&value["body"]),
        author: login(&value["user"]),
        head: text(&value["head"]["ref"]),
        base: text(&value["base"]["ref"]),
        head_at: value["head"]["sha"].as_str().and_then(|sha| Oid::new(sha).ok()),
        fork: head_repo.filter(|name| !name.eq_ignore_ascii_case(&slug.to_string())).map(str::to_owned),
        // Only GraphQL tells it.
        standing: Standing::default(),
    })
}

/// A pull request as GraphQL tells it.
pub(super) fn pull_node(value: &Value) -> Result<Pull, ForgeError> {
    let state = match value["state"].as_str() {
        Some("OPEN") => PullState::Open,
        Some("MERGED") => PullState::Merged,
        Some("CLOSED") => PullState::Closed,
        Some(_) | None => return Err(ForgeError::BadAnswer("a pull request without a state".to_owned())),
    };
    Ok(Pull {
        number: number(value)?,
        url: text(&value["url"]),
        state,
        draft: if value["isDraft"].as_bool() == Some(true) { Draft::Draft } else { Draft::Ready },
        title: text(&value["title"]),
        body: text(&value["body"]),
        author: login(&value["author"]),
        head: text(&value["headRefName"]),
        base: text(&value["baseRefName"]),
        head_at: value["headRefOid"].as_str().and_then(|sha| Oid::new(sha).ok()),
        fork: None,
        standing: standing(value),
    })
}

/// The field with the checks of a commit. Not every token may see them.
pub(super) const ROLLUP: &str = "statusCheckRollup";

fn standing(value: &Value) -> Standing {
    let review = match value["reviewDecision"].as_str() {
        Some("APPROVED") => Some(ReviewState::Approved),
        Some("CHANGES_REQUESTED") => Some(ReviewState::ChangesRequested),
        Some("REVIEW_REQUIRED") => Some(ReviewState::Required),
        Some(_) | None => None,
    };
    let checks = match value["commits"]["nodes"][0]["commit"][ROLLUP]["state"].as_str() {
        Some("SUCCESS") => Some(ChecksState::Passed),
        Some("FAILURE" | "ERROR") => Some(ChecksState::Failed),
        Some("PENDING" | "EXPECTED") => Some(ChecksState::Running),
        Some(_) | None => None,
    };
    Standing { review, checks }
}

pub(super) fn file(value: &Value) -> FileChange {
    FileChange {
        path: text(&value["filename"]),
        status: match value["status"].as_str() {
            Some("added") => 'A',
            Some("removed") => 'D',
            Some("renamed") => 'R',
            Some("copied") => 'C',
            Some(_) | None => 'M',
        },
        additions: value["additions"].as_u64().unwrap_or(0),
        deletions: value["deletions"].as_u64().unwrap_or(0),
    }
}

pub(super) fn review(value: &Value) -> Result<Review, ForgeError> {
    Ok(Review {
        id: id(value)?,
        author: login(&value["user"]),
        verdict: match value["state"].as_str() {
            Some("APPROVED") => Verdict::Approve,
            Some("CHANGES_REQUESTED") => Verdict::RequestChanges,
            Some(_) | None => Verdict::Comment,
        },
        body: text(&value["body"]),
        at: value["commit_id"].as_str().map(str::to_owned),
        created_at: text(&value["submitted_at"]),
    })
}

pub(super) fn review_comment(value: &Value) -> Result<ReviewComment, ForgeError> {
    Ok(ReviewComment {
        id: id(value)?,
        author: login(&value["user"]),
        path: text(&value["path"]),
        line: value["line"].as_u64(),
        body: text(&value["body"]),
        created_at: text(&value["created_at"]),
    })
}
