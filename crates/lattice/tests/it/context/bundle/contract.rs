//! The contract of bundles: what is asked of the host, what is in the manifest, what is refused.

use std::collections::BTreeSet;

use lattice_testkit::github::Fault;
use lattice_testkit::http::{Reply, Response};
use serde_json::{Value, json};

use super::{bundle, content, gathered, github, hub, whole};
use crate::host::World;

// proves: CB-28, CB-33, CB-37, CB-38, CB-39, CB-40, CB-41, CB-42
#[test]
fn the_manifest_tells_what_the_bundle_is_about() {
    let world = github(&whole());
    for (words, kind, number) in [("pr 123", "pull_request", 123), ("issue 42", "issue", 42)] {
        let out = world.repo.sandbox().root().join(kind);
        let output = world.lattice().args(["context", "bundle"]).args(words.split(' ')).arg("--out").arg(&out).ok();
        let text = std::fs::read_to_string(out.join("manifest.json")).expect("a manifest");
        assert_eq!(output.stdout, text, "the manifest is printed");
        let manifest: Value = serde_json::from_str(&text).expect("a document");
        let keys: BTreeSet<&str> = manifest.as_object().expect("an object").keys().map(String::as_str).collect();
        let expected =
            "version trigger_type trigger_number repo title gathered_at files linked_items expansion_budget warnings";
        assert_eq!(keys, expected.split(' ').collect());
        assert_eq!(manifest["version"], json!("v1"));
        assert_eq!((&manifest["trigger_type"], &manifest["trigger_number"]), (&json!(kind), &json!(number)));
        assert_eq!(manifest["repo"], json!("acme/tools"));
        let title = if number == 123 { "Add context gathering" } else { "Original bug report" };
        assert_eq!(manifest["title"], json!(title));
        let mut listed: Vec<String> = manifest["files"]
            .as_array()
            .expect("files")
            .iter()
            .map(|file| file["path"].as_str().expect("a path").to_owned())
            .collect();
        if number == 123 {
            assert_eq!(listed[4..], ["linked/issue_42.md", "linked/issue_108.md"]);
        }
        listed.push("manifest.json".to_owned());
        listed.sort();
        assert_eq!(files(&out), listed, "and there is nothing else");
    }
}

/// Paths of all files below a folder.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push(path.strip_prefix(folder).expect("it is below").display().to_string());
            }
        }
    }
    found.sort();
    found
}

// proves: CB-43, CB-44, CB-45, CB-47, CB-48, CB-49, CB-50
#[test]
fn files_and_linked_items_are_listed_as_they_are() {
    let world = github(&whole());
    let clock = "2026-02-23T12:00:00Z";
    let output = world.lattice().args(["context", "bundle", "pr", "123"]).env("LATTICE_NOW", clock).ok();
    let bundle: Value = serde_json::from_str(&output.stdout).expect("a document");
    let manifest = &bundle["manifest"];
    assert_eq!(manifest["gathered_at"], json!(clock));
    assert_eq!(
        manifest["files"],
        json!([
            { "path": "trigger.md", "kind": "trigger" },
            { "path": "thread.md", "kind": "thread" },
            { "path": "diff_stats.md", "kind": "diff_stats" },
            { "path": "reviews.md", "kind": "reviews" },
            { "path": "linked/issue_42.md", "kind": "linked_issue" },
            { "path": "linked/issue_108.md", "kind": "linked_issue" },
        ])
    );
    assert_eq!(
        manifest["linked_items"],
        json!([
            { "type": "issue", "number": 42, "title": "Original bug report" },
            { "type": "pull_request", "number": 108, "title": "Another change" },
        ])
    );
    assert_eq!(manifest["expansion_budget"], json!({ "used": 2, "max": 5 }));
    assert_eq!(manifest["warnings"], json!([]));
    let real = gathered(&world, "issue 42");
    let at = real["manifest"]["gathered_at"].as_str().expect("a time");
    assert!(at.len() == 20 && at.ends_with('Z'), "{at}");
}

// proves: CB-63, CB-64, CB-65, CB-66
#[test]
fn github_is_asked_once_for_each_part_and_for_every_page() {
    let mut items = whole();
    let file =
        |n: usize| json!({ "filename": format!("src/f{n}.rs"), "status": "added", "additions": n, "deletions": 0 });
    items[0]["pull_request"]["files"] = (0..150).map(file).collect();
    let world = github(&items);
    let bundle = gathered(&world, "pr 123");
    let mut asked = hub(&world).requests();
    asked.sort();
    let repo = "GET /repos/acme/tools";
    let expected = [
        format!("{repo}/issues/108"),
        format!("{repo}/issues/123"),
        format!("{repo}/issues/123/comments"),
        format!("{repo}/issues/42"),
        format!("{repo}/pulls/123"),
        format!("{repo}/pulls/123/comments"),
        format!("{repo}/pulls/123/files"),
        format!("{repo}/pulls/123/files"),
        format!("{repo}/pulls/123/reviews"),
    ];
    assert_eq!(asked, expected);
    let rows = content(&bundle, "diff_stats.md").lines().filter(|line| line.starts_with("| `src/f")).count();
    assert_eq!(rows, 150);
    let reviews = content(&bundle, "reviews.md");
    for shown in
        ["changes requested by carol", "approved by dave", "A test, please.", "`src/cart.rs:12`", "Off by one."]
    {
        assert!(reviews.contains(shown), "{shown}:\n{reviews}");
    }
}

// proves: CB-15, CB-16, CB-17, CB-22
#[test]
fn a_trigger_that_is_wrong_is_refused_before_the_host_is_asked() {
    let world = github(&whole());
    let good = json!({ "type": "issue", "number": 42, "repo": "acme/tools", "labels": ["bug", "p1"] });
    let run = |trigger: &Value| {
        let program = world.lattice().args(["context", "bundle", "--trigger", "-"]);
        program.stdin(trigger.to_string()).run()
    };
    let output = run(&good);
    assert_eq!(output.code, Some(0), "{}", output.snapshot());
    hub(&world).forget();
    let wrong = [
        ("type", json!("discussion")),
        ("type", Value::Null),
        ("number", json!(0)),
        ("number", json!(-1)),
        ("number", json!("abc")),
        ("number", Value::Null),
        ("repo", json!("name")),
        ("repo", json!("a/b/c")),
        ("repo", json!("/name")),
        ("repo", Value::Null),
        ("labels", json!("bug")),
    ];
    for (field, value) in wrong {
        let mut trigger = good.clone();
        trigger[field] = value;
        let output = run(&trigger);
        assert_eq!(output.code, Some(1), "{trigger}: {}", output.snapshot());
        assert!(output.stderr.contains(&format!("`{field}`")), "{trigger}: {}", output.snapshot());
    }
    assert_eq!(hub(&world).requests(), Vec::<String>::new());
}

// proves: CB-72
#[test]
fn no_option_makes_references_go_deeper() {
    let world = github(&whole());
    let help = bundle(&world, "--help");
    assert!(help.stdout.contains("--max-expansions") && !help.stdout.contains("depth"), "{}", help.snapshot());
    let output = bundle(&world, "issue 42 --max-expansions 0 --depth 2");
    assert_eq!(output.code, Some(2), "{}", output.snapshot());
}

// proves: CB-87
#[test]
fn a_host_that_fails_gives_no_bundle_and_names_the_question() {
    let questions = [
        ("issues/123", "get_issue"),
        ("issues/123/comments", "list_comments"),
        ("pulls/123", "get_pull_request"),
        ("pulls/123/files", "list_pr_files"),
        ("pulls/123/reviews", "list_reviews"),
        ("pulls/123/comments", "list_review_comments"),
    ];
    std::thread::scope(|scope| {
        for (path, name) in questions {
            scope.spawn(move || {
                let world = github(&whole());
                let reply = Reply::Answer(Response::json(500, &json!({})));
                let on = format!("GET /repos/acme/tools/{path}");
                // The longer paths begin with the same and fail as well; the first question in order is named.
                hub(&world).fault(Fault { on, times: 100, carried_out: false, reply });
                let out = world.repo.sandbox().root().join("context");
                let output = world.lattice().args(["context", "bundle", "pr", "123", "--out"]).arg(&out).run();
                assert_eq!(output.code, Some(1), "{}", output.snapshot());
                let told = output.stderr.contains("failed");
                assert!(told && output.stderr.contains(name), "{name}: {}", output.snapshot());
                assert!(!out.exists(), "{name}: nothing is written");
            });
        }
    });
}

#[test]
fn a_repository_is_needed_for_nothing_if_another_one_is_named() {
    let world = github(&[]);
    hub(&world).create("other/project");
    hub(&world).seed("other/project", &json!({ "number": 9, "title": "Elsewhere", "body": "Text", "user": "zoe" }));
    let folder = world.repo.sandbox().root().join("nowhere");
    std::fs::create_dir(&folder).expect("the sandbox can be written");
    let outside =
        world.lattice().cwd(&folder).args(["context", "bundle", "issue", "9", "--repo", "other/project"]).ok();
    let bundle: Value = serde_json::from_str(&outside.stdout).expect("a document");
    assert_eq!(bundle["manifest"]["repo"], json!("other/project"));
    let unnamed = world.lattice().cwd(&folder).args(["context", "bundle", "issue", "9"]).fails(1);
    assert!(unnamed.stderr.contains("--repo <owner>/<name>"), "{}", unnamed.snapshot());
    let wrong_kind = world.lattice().args(["context", "bundle", "pr", "9", "--repo", "other/project"]).fails(1);
    assert!(wrong_kind.stderr.contains("lattice context bundle issue 9"), "{}", wrong_kind.snapshot());
}

#[test]
fn a_folder_with_other_files_is_not_replaced() {
    let world = World::path("main*");
    world.run("issue new --title one");
    world.repo.write("work/notes.txt", "mine");
    let output = bundle(&world, "issue 1 --out work");
    assert_eq!(output.code, Some(1), "{}", output.snapshot());
    assert_eq!(world.repo.read("work/notes.txt"), "mine");
    let dry = bundle(&world, "issue 1 --out new --dry-run");
    assert_eq!(dry.code, Some(0), "{}", dry.snapshot());
    assert!(!world.repo.dir().join("new").exists());
    let again = |words: &str| assert_eq!(bundle(&world, words).code, Some(0));
    again("issue 1 --out new");
    again("issue 1 --out new");
    let json = world.run("context bundle issue 1");
    assert_eq!(json["result"]["manifest"]["trigger_number"], json!(1));
    assert_eq!(json["schema"], json!("lattice.context-bundle/v1"));
}

#[test]
fn other_context_commands_take_an_issue_from_the_host_as_well() {
    let world = World::path("main*");
    world.repo.commit_file("src/cart.py", "def total(rate):\n    return rate\n", "a cart");
    let body = "See `src/cart.py`.";
    world.lattice().args(["issue", "new", "--title", "The total ignores the rate", "--body", body]).ok();
    let built = world.run("context issue 1");
    assert_eq!(built["result"]["issue"]["title"], json!("The total ignores the rate"));
    assert!(built["result"]["related_files"]["src/cart.py"].is_string(), "{built:#}");
    let packed = world.lattice().args(["context", "pack", "Fix it", "--issue", "1"]).ok();
    let request = "Fix it\n\nIssue #1: The total ignores the rate\n\nSee `src/cart.py`.";
    assert!(packed.stdout.contains(request), "{}", packed.snapshot());
    assert!(packed.stdout.contains("def total(rate)"), "{}", packed.snapshot());
    world.lattice().args(["context", "pack", "--issue", "7"]).fails(1);
}
