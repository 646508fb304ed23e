//! `context bundle` through the built program: on a GitHub, and on a Git remote.

mod contract;
mod golden;

use lattice_testkit::Output;
use lattice_testkit::github::GitHub;
use serde_json::{Value, json};

use crate::host::World;

/// A GitHub with these items.
fn github(items: &[Value]) -> World {
    let world = World::github("main*");
    items.iter().for_each(|item| hub(&world).seed("acme/tools", item));
    hub(&world).forget();
    world
}

fn hub(world: &World) -> &GitHub {
    world.github.as_ref().expect("this world has a GitHub")
}

/// Runs `context bundle` with these words.
fn bundle(world: &World, words: &str) -> Output {
    world.lattice().args(["context", "bundle"]).args(words.split_whitespace()).run()
}

/// The bundle that is printed: the manifest and the files.
fn gathered(world: &World, words: &str) -> Value {
    let output = bundle(world, words);
    assert_eq!(output.code, Some(0), "{words}:\n{}", output.snapshot());
    serde_json::from_str(&output.stdout).expect("the bundle is a document")
}

/// The content of one file of a printed bundle.
fn content<'a>(bundle: &'a Value, path: &str) -> &'a str {
    let file = bundle["files"].as_array().into_iter().flatten().find(|file| file["path"] == path);
    file.and_then(|file| file["content"].as_str()).unwrap_or_else(|| panic!("no {path} in {bundle:#}"))
}

/// A pull request with one of everything, and two items that it refers to.
fn whole() -> [Value; 3] {
    let pull = json!({
        "head": "fix-total", "base": "main",
        "files": [{ "filename": "src/cart.rs", "status": "modified", "additions": 4, "deletions": 1 }],
        "reviews": [
            { "user": "carol", "state": "CHANGES_REQUESTED", "body": "A test, please.", "created_at": "2026-01-02T00:00:00Z" },
            { "user": "dave", "state": "APPROVED", "body": "", "created_at": "2026-01-03T00:00:00Z" },
        ],
        "comments": [{ "user": "carol", "path": "src/cart.rs", "line": 12, "body": "Off by one." }],
    });
    [
        json!({ "number": 123, "title": "Add context gathering", "body": "Fixes #42.", "user": "alice", "labels": ["bug", "p1"],
            "comments": [{ "user": "bob", "body": "third", "created_at": "2026-01-03T00:00:00Z" },
                { "user": "bob", "body": "first, see #108", "created_at": "2026-01-01T00:00:00Z" },
                { "user": "bob", "body": "second", "created_at": "2026-01-02T00:00:00Z" }],
            "pull_request": pull }),
        json!({ "number": 42, "title": "Original bug report", "body": "It is wrong.", "user": "erin" }),
        json!({ "number": 108, "title": "Another change", "body": "Text", "user": "erin", "pull_request": { "head": "b", "base": "main" } }),
    ]
}
