//! Tests of the metadata documents that commands write, and of what stays out of them.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::{Value, json};

use crate::lattice;

/// The metadata of a branch with a change made to it.
#[track_caller]
fn rewrite(repo: &TestRepo, branch: &str, change: impl FnOnce(&mut Value)) {
    let mut document = repo.metadata(branch);
    change(&mut document);
    repo.set_metadata_raw(branch, document.to_string().as_bytes());
}

/// Whether the scan takes the metadata of `a` for valid.
#[track_caller]
fn accepted(repo: &TestRepo) -> bool {
    let log = lattice(repo).arg("log").json();
    log["unreadable"].get("a").is_none()
}

// proves: ST-3.2.2-11, ST-3.2.2-12, ST-3.2.2-15, ST-3.2.1-2
#[test]
fn the_whole_document_is_as_specified_and_times_tell_what_changed() {
    let repo = TestRepo::draw("main*");
    lattice(&repo).args(["create", "a"]).ok();
    let expected = json!({
        "kind": "lattice.branch-metadata",
        "schema_version": 1,
        "branch": { "name": "a" },
        "parent": { "kind": "trunk", "name": "main" },
        "base": { "oid": repo.rev("main") },
        "freeze": { "state": "unfrozen" },
        "pr": { "state": "none" },
        "timestamps": { "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z" },
    });
    assert_eq!(repo.metadata("a"), expected);
    lattice(&repo).arg("log").ok();
    assert_eq!(repo.metadata("a"), expected, "looking does not touch it");
    lattice(&repo).args(["freeze", "a"]).ok();
    let times = repo.metadata("a")["timestamps"].clone();
    assert_eq!(times, json!({ "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:07Z" }));
    lattice(&repo).args(["create", "b"]).ok();
    assert_eq!(repo.metadata("b")["parent"], json!({ "kind": "branch", "name": "a" }), "a branch as parent");
}

#[test]
fn a_base_is_always_a_commit_id_and_never_a_name() {
    let repo = TestRepo::draw("main*");
    repo.git(&["branch", "loose"]);
    lattice(&repo).args(["track", "loose", "--parent", "main"]).ok();
    lattice(&repo).args(["create", "a"]).ok();
    repo.write("a.txt", "a\n");
    lattice(&repo).args(["modify", "-a", "-m", "a 1"]).ok();
    lattice(&repo).args(["create", "b", "--insert"]).ok();
    lattice(&repo).args(["move", "--onto", "loose"]).ok();
    lattice(&repo).args(["track", "b", "--parent", "a", "--force"]).ok();
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("more.txt", "more\n", "trunk moves");
    lattice(&repo).arg("restack").ok();
    for branch in repo.metadata_refs().keys() {
        let base = repo.metadata(branch)["base"]["oid"].as_str().expect("text").to_owned();
        assert!(base.len() == 40 && base.bytes().all(|byte| byte.is_ascii_hexdigit()), "{branch}: {base}");
        assert_eq!(repo.git(&["cat-file", "-t", &base]), "commit", "{branch}");
        let parent = repo.metadata(branch)["parent"]["name"].as_str().expect("text").to_owned();
        assert_eq!(base, repo.rev(&parent), "{branch} was restacked onto the tip of {parent}");
    }
}

// proves: ST-3.2.1-1, ST-3.2.1-3, ST-3.2.2-12
#[test]
fn documents_without_a_structural_field_or_with_one_of_another_shape_are_rejected() {
    let repo = TestRepo::draw("main* <- a");
    let good = repo.metadata("a");
    for field in ["schema_version", "parent", "base", "freeze"] {
        rewrite(&repo, "a", |document| drop(document.as_object_mut().expect("an object").remove(field)));
        assert!(!accepted(&repo), "without `{field}`");
        repo.set_metadata_raw("a", good.to_string().as_bytes());
        assert!(accepted(&repo), "the document is valid with `{field}`");
    }
    let wrong = [
        ("freeze", json!(true)),
        ("freeze", json!("unfrozen")),
        ("freeze", json!({ "state": "frozen" })),
        ("freeze", json!({ "state": "unfrozen", "reason": null })),
        ("base", json!(repo.rev("main"))),
        ("base", json!({ "oid": "main" })),
        ("parent", json!("main")),
        ("parent", json!({ "kind": "remote", "name": "main" })),
        ("schema_version", json!("1")),
    ];
    for (field, value) in wrong {
        rewrite(&repo, "a", |document| document[field] = value.clone());
        assert!(!accepted(&repo), "`{field}` as {value}");
        repo.set_metadata_raw("a", good.to_string().as_bytes());
    }
    let frozen = json!({ "state": "frozen", "scope": "downstack_inclusive", "reason": "why", "frozen_at": "2026-01-01T00:00:00Z" });
    rewrite(&repo, "a", |document| document["freeze"] = frozen);
    assert!(accepted(&repo), "the frozen form is accepted");
}

// proves: ST-2-2, ST-3.2.2-11
#[test]
fn a_parent_is_a_branch_or_the_trunk_and_says_which() {
    let repo = TestRepo::draw("main* <- a <- b");
    let gated = |why: &str| {
        let document = lattice(&repo).args(["restack", "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!("gated"), "{why}: {document:#}");
        let issues = document["issues"].as_array().expect("a list").clone();
        assert!(issues.iter().any(|issue| issue["evidence"]["branch"] == json!(["b"])), "{why}: {document:#}");
    };
    assert_eq!(lattice(&repo).arg("restack").json()["ok"], json!(true), "both kinds are fine");
    let good = repo.metadata("b");
    rewrite(&repo, "b", |document| document["parent"] = json!({ "kind": "branch", "name": "nowhere" }));
    gated("a parent that does not exist");
    repo.set_metadata_raw("b", good.to_string().as_bytes());
    rewrite(&repo, "b", |document| document["parent"] = json!({ "kind": "trunk", "name": "a" }));
    gated("the kind `trunk` with another name");
}

/// A cached link that contradicts everything structural.
fn stale_link() -> Value {
    json!({
        "state": "linked",
        "forge": "github",
        "number": 7,
        "url": "https://example.invalid/wrong/repo/pull/7",
        "last_known": { "state": "merged", "is_draft": true },
    })
}

// proves: ST-3.2.1-4, ST-3.2.1-5, ST-3.2.1-6
#[test]
fn cached_fields_neither_block_nor_decide_anything() {
    let repo = TestRepo::draw("main <- a* <- b <- c; main <- other; main <- f!");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("more.txt", "more\n", "trunk moves");
    repo.git(&["checkout", "--quiet", "a"]);
    let commands: [&[&str]; 7] = [
        &["restack"],
        &["move", "--source", "b", "--onto", "other"],
        &["modify", "-m", "other words"],
        &["create", "x", "--insert"],
        &["freeze", "c"],
        &["unfreeze", "f"],
        &["up"],
    ];
    let graph = || {
        let log = lattice(&repo).arg("log").json();
        let edges = log["branches"].as_array().expect("a list").iter().map(|branch| {
            json!([branch["name"], branch["parent"], branch["base"], branch["children"], branch["needs_restack"]])
        });
        edges.collect::<Vec<_>>()
    };
    // Expected values of metadata refs differ, since the documents do; everything else must not.
    let plans = || {
        commands.map(|args| {
            let plan = lattice(&repo).args(args).arg("--dry-run").json()["plan"]["preview"].clone();
            assert!(plan.as_array().is_some_and(|lines| !lines.is_empty()), "lattice {} has a plan", args.join(" "));
            plan
        })
    };
    let (edges, without) = (graph(), plans());
    for branch in ["a", "b", "c", "f", "other"] {
        rewrite(&repo, branch, |document| document["pr"] = stale_link());
    }
    assert_eq!(graph(), edges, "the graph is made of structural fields alone");
    assert_eq!(plans(), without, "no plan depends on a cached field");
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.rev("a^"), repo.rev("main"), "restack works as before");
    assert_eq!(repo.metadata("b")["pr"], stale_link(), "and what was cached is carried along");
}

// proves: ST-3-2
#[test]
fn everything_can_be_read_with_plain_git() {
    let repo = TestRepo::draw("main*");
    lattice(&repo).args(["create", "a"]).ok();
    lattice(&repo).args(["freeze", "--reason", "in review"]).ok();
    let refs = repo.git(&["for-each-ref", "--format=%(refname) %(objecttype)", "refs/branch-metadata"]);
    assert_eq!(refs, "refs/branch-metadata/a blob");
    let text = repo.git(&["cat-file", "-p", "refs/branch-metadata/a"]);
    assert!(
        text.contains("\"reason\": \"in review\"") && text.lines().count() > 10,
        "readable, one field a line: {text}"
    );
    let log = repo.git(&["log", "--format=%B", "refs/lattice/event-log"]);
    assert!(log.contains("freeze") && log.contains("refs/branch-metadata/a"), "{log}");
}

// proves partly: ST-3-1 — that nothing outside is written by commands of later parts
#[test]
fn all_state_is_inside_the_repository_and_a_copy_has_the_same_stack() {
    let repo = TestRepo::draw("main* <- a <- b");
    let home = repo.sandbox().root().join("home");
    let before = repo.beside(&home);
    let listing = || {
        let mut names: Vec<_> = std::fs::read_dir(before.dir())
            .expect("a folder")
            .chain(std::fs::read_dir(before.dir().join(".config")).expect("a folder"))
            .map(|entry| entry.expect("listed").path())
            .collect();
        names.sort();
        names
    };
    let at_first = listing();
    repo.commit_file("more.txt", "more\n", "trunk moves");
    for args in
        [&["restack"][..], &["freeze", "a"], &["create", "c"], &["up"], &["undo"], &["log"], &["doctor"], &["ops"]]
    {
        lattice(&repo).args(args).run();
    }
    assert_eq!(listing(), at_first, "nothing appears in the home directory");
    repo.git_with_input(&["clone", "--quiet", "--mirror", ".", "../copy.git"], b"");
    let copy = repo.beside(&repo.sandbox().root().join("copy.git"));
    let config = std::fs::read_to_string(repo.lattice_dir().join("config.toml")).expect("it exists");
    copy.write_config(&config);
    let stack = |repo: &TestRepo| {
        let mut branches = lattice(repo).arg("log").json()["branches"].clone();
        let list = branches.as_array_mut().expect("a list");
        list.iter_mut().for_each(|branch| branch["checked_out"] = Value::Null);
        branches
    };
    assert_eq!(stack(&copy), stack(&repo), "refs and one file are all there is");
}

// proves: ST-14.3-1
#[test]
fn the_schema_of_metadata_is_pinned_to_its_version() {
    let repo = TestRepo::draw("main*");
    lattice(&repo).args(["create", "a"]).ok();
    lattice(&repo).args(["freeze", "--reason", "why"]).ok();
    let formats = lattice(&repo).arg("--version").json()["formats"].clone();
    let pinned = json!({ "branch-metadata": 1, "event": 1, "journal": 1, "op-state": 1, "plan": 1 });
    assert_eq!(formats, pinned, "a changed format needs a new version here, and a migration");
    let mut paths = Vec::new();
    let mut waiting = vec![(String::new(), repo.metadata("a"))];
    while let Some((path, value)) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                waiting.extend(fields.into_iter().map(|(key, value)| (format!("{path}.{key}"), value)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => paths.push(path),
        }
    }
    paths.sort();
    let expected = [
        ".base.oid",
        ".branch.name",
        ".freeze.frozen_at",
        ".freeze.reason",
        ".freeze.scope",
        ".freeze.state",
        ".kind",
        ".parent.kind",
        ".parent.name",
        ".pr.state",
        ".schema_version",
        ".timestamps.created_at",
        ".timestamps.updated_at",
    ];
    assert_eq!(paths, expected, "fields of version 1; other fields are another version");
}

// There is no version above 1 yet, so there is nothing to migrate from.
// proves: ST-14.3-2
#[test]
fn an_unknown_version_is_refused_with_guidance() {
    let repo = TestRepo::draw("main* <- a");
    rewrite(&repo, "a", |document| document["schema_version"] = json!(2));
    let before = repo.state();
    let document = lattice(&repo).args(["restack", "--json"]).fails(1).json();
    let issue = &document["issues"][0];
    assert!(issue["summary"].as_str().is_some_and(|text| text.contains("version 2")), "{document:#}");
    assert!(issue["fixes"].as_array().is_some_and(|fixes| !fixes.is_empty()), "a way out is named: {document:#}");
    assert_same(&before, &repo.state());
}
