//! Tests of plan and apply, and of plans as such: deterministic, phased, agreed to by digest.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use lattice_testkit::{TestRepo, assert_same};
use serde_json::{Value, json};

use crate::lattice;

#[track_caller]
fn file(repo: &TestRepo, name: &str) -> String {
    std::fs::read_to_string(repo.dir().parent().expect("a parent").join(name)).expect("the plan was written")
}

#[test]
fn a_plan_is_written_first_and_carried_out_later() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let before = repo.state();
    let out = lattice(&repo).args(["plan", "restack", "--out", "../p.json"]).ok();
    assert!(out.stdout.contains("rebase b (1 commit) onto the new a"), "{}", out.snapshot());
    assert_same(&before, &repo.state());
    let text = file(&repo, "p.json");
    let keys: Value = serde_json::from_str(&text).expect("JSON");
    let keys: BTreeSet<_> = keys.as_object().expect("an object").keys().cloned().collect();
    assert_eq!(keys, ["arguments", "digest", "kind", "schema_version"].map(str::to_owned).into(), "no steps to run");
    lattice(&repo).args(["apply", "../p.json"]).ok();
    assert_eq!(repo.rev("b~2"), repo.rev("main"), "it was carried out");
    let again = lattice(&repo).args(["apply", "../p.json", "--json"]).fails(1).json();
    assert_eq!(again["error"]["code"], json!("plan-differs"), "{again:#}");
}

#[test]
fn the_file_may_be_named_before_or_behind_the_command() {
    let repo = TestRepo::draw("main <- a*");
    let cases: [&[&str]; 4] = [
        &["plan", "--out", "../p.json", "freeze", "a"],
        &["plan", "freeze", "a", "--out=../p.json"],
        &["plan", "freeze", "--out", "../p.json", "a"],
        &["--json", "plan", "freeze", "a", "--out", "../p.json"],
    ];
    let mut written = BTreeSet::new();
    for args in cases {
        lattice(&repo).args(args).ok();
        written.insert(file(&repo, "p.json"));
    }
    assert_eq!(written.len(), 1, "the same request, the same file: {written:#?}");
    let document = lattice(&repo).args(["plan", "freeze", "a", "--out", "../p.json", "--json"]).ok().json();
    assert_eq!(document["schema"], json!("lattice.plan/v1"), "options for every command count wherever they stand");
    lattice(&repo).args(["plan", "freeze", "a"]).fails(2);
    lattice(&repo).args(["plan", "freeze", "a", "--out"]).fails(2);
}

#[test]
fn nothing_is_executed_if_anything_the_plan_rests_on_has_changed() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    lattice(&repo).args(["plan", "restack", "--out", "../p.json"]).ok();
    repo.commit_file("again.txt", "more\n", "trunk moves again");
    let before = repo.state();
    let document = lattice(&repo).args(["apply", "../p.json", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("plan-differs"), "{document:#}");
    let message = document["error"]["message"].as_str().expect("text");
    assert!(message.contains("rebase a (1 commit) onto"), "what would happen instead is shown: {message}");
    assert_same(&before, &repo.state());
}

#[test]
fn files_that_are_no_plans_are_refused() {
    let repo = TestRepo::draw("main <- a*");
    lattice(&repo).args(["plan", "freeze", "a", "--out", "../p.json"]).ok();
    let good: Value = serde_json::from_str(&file(&repo, "p.json")).expect("JSON");
    let changed = |key: &str, value: Value| {
        let mut document = good.clone();
        document[key] = value;
        document.to_string()
    };
    let before = repo.state();
    let texts = [
        ("{".to_owned(), 1, "plan-file"),
        (changed("kind", json!("other")), 1, "plan-file"),
        (changed("schema_version", json!(2)), 1, "plan-file"),
        (changed("extra", json!(1)), 1, "plan-file"),
        (changed("digest", json!("0".repeat(64))), 1, "plan-differs"),
        (changed("arguments", json!(["freeze", "--no-such-flag"])), 2, "usage"),
        (changed("arguments", json!(["apply", "p.json"])), 2, "usage"),
        (changed("arguments", json!(["abort"])), 2, "usage"),
        (changed("arguments", json!(["unfreeze", "a"])), 1, "plan-differs"),
    ];
    for (text, code, error) in texts {
        repo.write("../bad.json", &text);
        let document = lattice(&repo).args(["apply", "../bad.json", "--json"]).fails(code).json();
        assert_eq!(document["error"]["code"], json!(error), "{text}: {document:#}");
        assert_same(&before, &repo.state());
    }
    lattice(&repo).args(["apply", "../missing.json"]).fails(1);
}

#[test]
fn planning_never_does_what_it_plans() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "develop"]);
    lattice(&repo).args(["untrack", "a"]).ok();
    let before = repo.state();
    for args in [
        &["trunk", "set", "develop"][..],
        &["config", "set", "undo.keep_days", "3"],
        &["create", "x"],
        &["up"],
        &["undo"],
    ] {
        let out = lattice(&repo).arg("plan").args(args).args(["--out", "../p.json"]).run();
        assert!(!out.stdout.contains("the trunk is"), "planning claims no success: {}", out.snapshot());
        assert_same(&before, &repo.state());
    }
    let refused: [&[&str]; 7] = [
        &["log"],
        &["trunk"],
        &["plan", "freeze", "--out", "x"],
        &["doctor", "--fix", "x"],
        &["demo"],
        &["config", "set", "--global", "undo.keep_days", "3"],
        &["config", "edit"],
    ];
    for args in refused {
        lattice(&repo).args(["plan", "--out", "../q.json"]).args(args).fails(2);
    }
    assert!(!repo.sandbox().root().join("home/.config/lattice").exists(), "nor is the user's file written");
    assert!(!repo.dir().join("../q.json").exists(), "no plan, no file");
}

#[test]
fn an_operation_in_progress_is_neither_continued_nor_aborted_by_planning() {
    let repo = TestRepo::draw("main* <- a");
    repo.commit_file("a.txt", "in conflict\n", "trunk touches the same file");
    lattice(&repo).arg("restack").fails(4);
    let before = repo.state();
    for command in ["abort", "continue"] {
        lattice(&repo).args(["plan", "--out", "../p.json", command]).fails(2);
    }
    assert_same(&before, &repo.state());
    assert!(repo.op_state_path().exists(), "it still waits for the user");
}

#[test]
fn the_policy_about_hooks_is_part_of_the_plan() {
    let repo = TestRepo::draw("main*");
    let path = repo.git_dir().join("hooks/pre-commit");
    repo.write(path.to_str().expect("text"), "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
    repo.write("new.txt", "new\n");
    let create = ["create", "x", "-a", "-m", "m", "--out", "../p.json"];
    lattice(&repo).arg("plan").args(create).ok();
    let hooks = lattice(&repo).args(["apply", "../p.json", "--json"]).fails(1).json();
    assert_eq!(hooks["error"]["code"], json!("hook-refused"), "hooks run by default: {hooks:#}");
    for args in [&["--no-verify", "plan"][..], &["plan", "--no-verify"]] {
        lattice(&repo).args(args).args(create).ok();
        assert!(file(&repo, "p.json").contains("--no-verify"), "{}", file(&repo, "p.json"));
    }
    lattice(&repo).args(["plan", "create", "x", "-a", "-m", "m", "--no-verify", "--out", "../p.json"]).ok();
    lattice(&repo).args(["apply", "../p.json"]).ok();
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "x"]), "m", "the plan skips hooks, and so does its execution");
}

/// Every command that changes something, on a repository where each has something to do.
fn requests() -> Vec<Vec<&'static str>> {
    vec![
        vec!["track", "loose", "--parent", "main"],
        vec!["untrack", "c"],
        vec!["create", "new", "-a", "-m", "m", "--insert"],
        vec!["modify", "-a"],
        vec!["restack"],
        vec!["move", "--source", "b", "--onto", "other"],
        vec!["freeze", "c"],
        vec!["unfreeze", "f"],
        vec!["checkout", "main"],
        vec!["up"],
        vec!["down"],
        vec!["top"],
        vec!["bottom"],
        vec!["undo"],
        vec!["init", "--reset"],
        vec!["config", "set", "undo.keep_days", "3"],
    ]
}

#[track_caller]
fn busy() -> TestRepo {
    let repo = TestRepo::draw("main <- a <- b* <- c; main <- f!; main <- other");
    repo.git(&["branch", "loose", "main"]);
    repo.git(&["branch", "--force", "other", "a"]);
    lattice(&repo).args(["freeze", "f"]).ok();
    lattice(&repo).args(["config", "set", "undo.keep_days", "9"]).ok();
    repo.write("new.txt", "new\n");
    repo
}

// proves: ST-6.1-2, ST-6.1-6, ST-6.1-7, ST-13.1-4, ST-14.1-3
// proves partly: ST-6.1-8 — that a broken invariant keeps remote steps from running, of which there are none yet
#[test]
fn every_command_plans_the_same_from_the_same_repository_in_ascending_phases() {
    let repo = busy();
    for request in requests() {
        let plan = |_: usize| lattice(&repo).args(&request).arg("--dry-run").json()["plan"].clone();
        let plans: Vec<Value> = (0..5).map(plan).collect();
        let first = &plans[0];
        assert!(first["digest"].is_string(), "{request:?}: {first:#}");
        assert!(plans.iter().all(|plan| plan == first), "{request:?}: clock and seed differ, the plan does not");
        let steps = first["steps"].as_array().expect("a list");
        let phases: Vec<_> = steps.iter().map(|step| step["phase"].as_str().expect("text")).collect();
        let order = ["local-structural", "local-verification", "remote"];
        let ranks: Vec<_> = phases.iter().map(|phase| order.iter().position(|o| o == phase).expect("known")).collect();
        assert!(ranks.is_sorted(), "{request:?}: {phases:?}");
        assert_eq!(phases.last(), Some(&"local-verification"), "{request:?} ends with a check of what was done");
        let structural = |step: &&Value| step["type"] != json!("verify");
        assert!(steps.iter().filter(structural).all(|step| step["phase"] == json!("local-structural")), "{request:?}");
    }
}

#[test]
fn a_hundred_plans_of_one_snapshot_have_one_digest() {
    let repo = busy();
    let digest = |_| lattice(&repo).args(["restack", "main", "--dry-run"]).json()["plan"]["digest"].clone();
    let digests: BTreeSet<String> = (0..100).map(digest).map(|digest| digest.to_string()).collect();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

/// Pauses a restack of `a` by a conflict and resolves it, with a hook that refuses what Git's rebase asks it about.
#[track_caller]
fn paused(args: &[&str]) -> TestRepo {
    let repo = TestRepo::draw("main* <- a");
    repo.commit_file("a.txt", "in conflict\n", "trunk touches the same file");
    let path = repo.git_dir().join("hooks/prepare-commit-msg");
    repo.write(path.to_str().expect("text"), "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
    lattice(&repo).arg("restack").args(args).fails(4);
    repo.write("a.txt", "resolved\n");
    repo
}

// proves: ST-10.2-3
#[test]
fn a_restack_that_skips_hooks_still_does_after_a_pause() {
    let repo = paused(&["--no-verify"]);
    let marker = std::fs::read_to_string(repo.op_state_path()).expect("an operation is in progress");
    let marker: Value = serde_json::from_str(&marker).expect("JSON");
    let journal = repo.lattice_dir().join("ops").join(format!("{}.json", marker["op_id"].as_str().expect("an id")));
    let journal: Value = serde_json::from_str(&std::fs::read_to_string(journal).expect("a journal")).expect("JSON");
    assert_eq!(journal["plan"]["hooks"], json!("skip"), "the policy is in the serialised plan");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!(repo.rev("a^"), repo.rev("main"));
    let repo = paused(&[]);
    let refused = lattice(&repo).args(["continue", "-a"]).run();
    assert_ne!(refused.code, Some(0), "without the flag the hook decides:\n{}", refused.snapshot());
    assert_ne!(repo.rev("a^"), repo.rev("main"), "and nothing has moved");
    lattice(&repo).arg("abort").ok();
}

// proves: ST-6.1-4
#[test]
fn a_plan_is_the_same_after_it_was_written_and_read() {
    let repo = TestRepo::draw("main* <- a <- b; a <- f!");
    repo.commit_file("a.txt", "in conflict\n", "trunk touches the same file");
    let digest = lattice(&repo).args(["restack", "--dry-run"]).json()["plan"]["digest"].clone();
    lattice(&repo).arg("restack").fails(4);
    let marker: Value =
        serde_json::from_str(&std::fs::read_to_string(repo.op_state_path()).expect("a marker")).expect("JSON");
    assert_eq!(marker["plan_digest"], digest, "the marker names the plan that was previewed");
    let path = repo.lattice_dir().join("ops").join(format!("{}.json", marker["op_id"].as_str().expect("an id")));
    let journal: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a journal")).expect("JSON");
    let plan: lattice_model::plan::Plan = serde_json::from_value(journal["plan"].clone()).expect("a plan");
    assert_eq!(json!(plan.digest().to_string()), digest, "reading keeps the digest");
    assert_eq!(serde_json::to_value(&plan).expect("JSON"), journal["plan"], "and writing it again gives the same");
}

#[test]
fn a_word_that_is_no_command_is_told_once_as_an_error() {
    let repo = TestRepo::draw("main*");
    let plan = lattice(&repo).args(["plan", "nosuch", "--out", "../plan"]).fails(2);
    assert!(plan.stderr.starts_with("error: unrecognized subcommand"), "{}", plan.snapshot());
}
