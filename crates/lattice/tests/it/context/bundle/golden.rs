//! Whole bundles of realistic items, byte for byte.

use std::path::Path;

use expect_test::expect_file;
use lattice_testkit::output::normalise;
use serde_json::{Value, json};

use super::{hub, whole};
use crate::host::World;

/// Gathers and delivers one case twice, and compares both with each other and with the expected text.
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/context/bundle/cases");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("a case");
    let case: Value = serde_json::from_str(&text).expect("a case is a document");
    let world = if case["forge"] == "git" { git(&case) } else { github(&case) };
    let out = world.repo.sandbox().root().join("context");
    let deliver = || {
        let mut program = world.lattice().env("LATTICE_NOW", "2026-07-01T12:00:00Z");
        program = program.args(["context", "bundle", case["kind"].as_str().expect("a kind")]);
        program = program.arg(case["number"].to_string()).arg("--out").arg(&out);
        let flags = case["flags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        program.args(flags).ok();
        written(&out)
    };
    let first = deliver();
    assert_eq!(deliver(), first, "{name}: the same again, byte for byte");
    let mut shown = normalise(&world.repo, &first);
    if let Some(github) = &world.github {
        shown = shown.replace(&github.web_url(), "https://github.invalid");
    }
    let mark = shown.split_once("text untrusted ").map(|(_, rest)| rest[..12].to_owned());
    let shown = mark.map_or(shown.clone(), |mark| shown.replace(&mark, "<mark>"));
    expect_file![folder.join(format!("{name}.txt"))].assert_eq(&shown);
}

/// All files of a folder as one text, the manifest first and the others in its order.
fn written(out: &Path) -> String {
    let manifest = std::fs::read_to_string(out.join("manifest.json")).expect("a manifest");
    let document: Value = serde_json::from_str(&manifest).expect("a document");
    let mut text = format!("==> manifest.json\n{manifest}");
    for file in document["files"].as_array().expect("a list") {
        let path = file["path"].as_str().expect("a path");
        let content = std::fs::read_to_string(out.join(path)).expect("every file that the manifest names");
        text.push_str(&format!("==> {path}\n{content}"));
    }
    text
}

fn github(case: &Value) -> World {
    let world = World::github("main*");
    case["items"].as_array().expect("items").iter().for_each(|item| hub(&world).seed("acme/tools", item));
    world
}

/// The items as blobs on a Git remote, and a branch for the one that has one.
fn git(case: &Value) -> World {
    let world = World::path("main*");
    world.repo.git(&["checkout", "--quiet", "-b", "rate"]);
    world.repo.commit_file("rate.txt", "2\n", "a rate");
    world.repo.git(&["push", "--quiet", "origin", "rate"]);
    for item in case["items"].as_array().expect("items") {
        let blob = world.remote.git_with_input(&["hash-object", "-w", "--stdin"], stored(item).to_string().as_bytes());
        let blob = String::from_utf8(blob).expect("an id");
        world.remote.git(&["update-ref", &format!("refs/lattice/forge/items/{}", item["number"]), blob.trim()]);
    }
    world
}

/// An item as the Git forge stores it.
fn stored(item: &Value) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let comment = |(id, said): (usize, &Value)| json!({ "id": id, "author": said["user"], "body": said["body"], "created_at": said["created_at"] });
    let mut document = json!({
        "kind": "lattice.forge-item", "schema_version": 1, "number": item["number"], "title": item["title"],
        "body": item["body"], "state": "open", "author": item["user"], "labels": list(&item["labels"]),
        "created_at": item["created_at"], "updated_at": item["created_at"],
        "comments": (1..).zip(&list(&item["comments"])).map(comment).collect::<Vec<_>>(),
    });
    if let Some(pull) = item.get("pull_request") {
        let review = |(id, said): (usize, &Value)| {
            json!({ "id": 10 * id, "author": said["user"], "verdict": "approve", "body": said["body"], "at": null,
                "remarks": said["remarks"], "created_at": said["created_at"] })
        };
        document["pull"] = json!({
            "head": pull["head"], "base": pull["base"], "draft": "ready", "reviewers": [], "merged": null,
            "reviews": (1..).zip(&list(&pull["reviews"])).map(review).collect::<Vec<_>>(),
        });
    }
    document
}

// proves: CB-1, CB-29, CB-30, CB-36, CB-54, CB-56, CB-57, CB-60
#[test]
fn issues_on_github_become_the_expected_bundles() {
    for name in ["01-bug-with-trace", "02-feature-request", "03-long-thread", "04-many-references", "05-hostile"] {
        check(name);
    }
}

// proves: CB-31, CB-32
#[test]
fn pull_requests_on_github_become_the_expected_bundles() {
    check("06-empty-pull-request");
    check("07-reviewed-pull-request");
}

#[test]
fn items_of_a_git_remote_become_the_expected_bundles() {
    for name in ["08-git-issue", "09-git-pull-request", "10-git-secrets"] {
        check(name);
    }
}

#[test]
fn a_bundle_of_a_pull_request_is_the_same_whether_it_is_printed_or_written() {
    let world = World::github("main*");
    whole().iter().for_each(|item| hub(&world).seed("acme/tools", item));
    let out = world.repo.sandbox().root().join("context");
    world.lattice().args(["context", "bundle", "pr", "123", "--out"]).arg(&out).ok();
    let printed = super::gathered(&world, "pr 123");
    for file in printed["files"].as_array().expect("files") {
        let written = std::fs::read_to_string(out.join(file["path"].as_str().expect("a path"))).expect("it is written");
        assert_eq!(Some(written.as_str()), file["content"].as_str());
    }
}
