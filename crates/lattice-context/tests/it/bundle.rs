//! Bundles against a host that is made up: what is asked, what is rendered, and how it is delivered.

mod delivery;
mod gathering;
mod hostile;
mod mutation;

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use lattice_context::bundle::data::{ChangedFile, Comment, FileStatus, InlineComment, Item, PullRequest, Review};
use lattice_context::bundle::{
    Bundle, Call, Capability, GatherError, Gathered, ItemType, Options, RepoName, Trigger, fetch, gather,
};
use lattice_forge::ForgeError;

use crate::now;

/// A host with six functions and nothing else. It notes what it was asked for.
#[derive(Default)]
struct MadeUp {
    items: BTreeMap<u64, Item>,
    comments: Vec<Comment>,
    pull: Option<PullRequest>,
    files: Vec<ChangedFile>,
    reviews: Vec<Review>,
    inline: Vec<InlineComment>,
    /// The question that is not answered.
    fails: Option<Call>,
    asked: Mutex<Vec<String>>,
}

impl MadeUp {
    /// Items with these numbers and bodies.
    fn with(bodies: &[(u64, &str)]) -> Self {
        let items = bodies.iter().map(|(number, body)| (*number, item(*number, body))).collect();
        Self { items, ..Self::default() }
    }

    /// A pull request #1 with one of everything.
    fn pull_request() -> Self {
        let said = |author: &str, body: &str| (author.to_owned(), body.to_owned(), "2026-01-02T00:00:00Z".to_owned());
        let (author, body, created_at) = said("bob", "Looks right, see #3.");
        let comments = vec![Comment { author, body, created_at }];
        let (author, body, created_at) = said("carol", "Please add a test.");
        let reviews = vec![Review { author, verdict: "changes requested".to_owned(), body, created_at }];
        let (author, body, created_at) = said("carol", "Off by one.");
        let inline = vec![InlineComment { author, path: "src/cart.rs".to_owned(), line: Some(12), body, created_at }];
        let (path, status) = ("src/cart.rs".to_owned(), FileStatus::Modified);
        let mut host = Self::with(&[(1, "Fixes #2."), (2, "The total is wrong. #9"), (3, "Rates")]);
        host.items.get_mut(&3).expect("it was made").kind = ItemType::PullRequest;
        let (head_branch, base_branch) = ("fix-total".to_owned(), "main".to_owned());
        Self {
            comments,
            pull: Some(PullRequest { head_branch, base_branch, state: "open".to_owned(), draft: false }),
            files: vec![ChangedFile { path, status, additions: 4, deletions: 1 }],
            reviews,
            inline,
            ..host
        }
    }

    fn ask(&self, call: Call, number: u64) -> Result<(), ForgeError> {
        self.asked.lock().expect("no test panics with it").push(format!("{call} {number}"));
        if self.fails == Some(call) { Err(ForgeError::Server(500)) } else { Ok(()) }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics with it").clone()
    }

    fn try_gather(&self, trigger: Trigger, options: &Options) -> Result<Bundle, GatherError> {
        lattice_context::drive(gather(trigger, self, options))
    }

    fn gather(&self, trigger: Trigger) -> Bundle {
        self.try_gather(trigger, &options()).expect("the host answers")
    }

    fn fetch(&self, trigger: Trigger) -> Gathered {
        lattice_context::drive(fetch(trigger, self, 5)).expect("the host answers")
    }
}

#[async_trait]
impl Capability for MadeUp {
    async fn get_issue(&self, number: u64) -> Result<Item, ForgeError> {
        self.ask(Call::GetIssue, number)?;
        self.items.get(&number).cloned().ok_or(ForgeError::NotFound(number))
    }

    async fn list_comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        self.ask(Call::ListComments, number).map(|()| self.comments.clone())
    }

    async fn get_pull_request(&self, number: u64) -> Result<PullRequest, ForgeError> {
        self.ask(Call::GetPullRequest, number)?;
        self.pull.clone().ok_or(ForgeError::NotAPull(number))
    }

    async fn list_pr_files(&self, number: u64) -> Result<Vec<ChangedFile>, ForgeError> {
        self.ask(Call::ListPrFiles, number).map(|()| self.files.clone())
    }

    async fn list_reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        self.ask(Call::ListReviews, number).map(|()| self.reviews.clone())
    }

    async fn list_review_comments(&self, number: u64) -> Result<Vec<InlineComment>, ForgeError> {
        self.ask(Call::ListReviewComments, number).map(|()| self.inline.clone())
    }
}

fn item(number: u64, body: &str) -> Item {
    Item {
        kind: ItemType::Issue,
        number,
        title: format!("Title of {number}"),
        body: body.to_owned(),
        author: "alice".to_owned(),
        labels: vec!["bug".to_owned()],
        state: "open".to_owned(),
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        url: format!("https://host.invalid/{number}"),
    }
}

fn comment(body: &str, created_at: &str) -> Comment {
    Comment { author: "bob".to_owned(), body: body.to_owned(), created_at: created_at.to_owned() }
}

fn trigger(kind: ItemType, number: u64) -> Trigger {
    Trigger::new(kind, number, RepoName::new("acme/tools").expect("a repository"))
}

fn issue(number: u64) -> Trigger {
    trigger(ItemType::Issue, number)
}

fn pull(number: u64) -> Trigger {
    trigger(ItemType::PullRequest, number)
}

fn options() -> Options {
    Options::new(now())
}

/// The content of one file of a bundle.
fn content<'a>(bundle: &'a Bundle, path: &str) -> &'a str {
    let file = bundle.files.iter().find(|file| file.path == path);
    &file.unwrap_or_else(|| panic!("no {path} in {:?}", bundle.manifest.files)).content
}

fn linked(bundle: &Bundle) -> Vec<u64> {
    bundle.manifest.linked_items.iter().map(|item| item.number).collect()
}
