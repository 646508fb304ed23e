//! How the executor writes: old values with every ref, markers that come and go, failures that leave nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};

use crate::lattice;

/// `main <- api <- ui`, where the trunk has moved on.
fn behind() -> TestRepo {
    let repo = TestRepo::draw("main <- api <- ui*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("trunk.txt", "moved\n", "trunk moves");
    repo.git(&["checkout", "--quiet", "ui"]);
    repo
}

/// Logs each transaction of refs as git is about to commit it: `<old> <new> <ref>`.
fn log_transactions(repo: &TestRepo) -> std::path::PathBuf {
    let log = repo.sandbox().root().join("transactions");
    let hooks = repo.common_dir().join("hooks");
    std::fs::create_dir_all(&hooks).expect("a folder for hooks");
    let hook = hooks.join("reference-transaction");
    let text = format!("#!/bin/sh\n[ \"$1\" = prepared ] || exit 0\ncat >> '{}'\n", log.display());
    std::fs::write(&hook, text).expect("a hook");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
    log
}

// proves: ST-3.2.3-1, ST-6.2-6, ST-6.3-2
#[test]
fn every_ref_is_changed_with_the_value_that_it_replaces() {
    let repo = crate::laws::behind();
    let mut values = repo.refs();
    let log = log_transactions(&repo);
    let nothing = "0".repeat(40);
    let mut metadata = 0;
    for command in crate::laws::CHANGING {
        std::fs::write(&log, "").expect("the sandbox can be written");
        lattice(&repo).args(command).ok();
        let after = repo.refs();
        for line in std::fs::read_to_string(&log).expect("the hook ran").lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [old, new, name] = words[..] else { panic!("a line of the hook: {line}") };
            if !name.starts_with("refs/") {
                continue;
            }
            let before = values.get(name).cloned().unwrap_or_else(|| nothing.clone());
            assert_eq!(old, before, "{command:?}: {name} is changed with its old value, never by force");
            metadata += usize::from(name.starts_with("refs/branch-metadata/") && old != nothing);
            if new != nothing {
                values.insert(name.to_owned(), new.to_owned());
            } else if !after.contains_key(name) {
                // Of a ref that is still there, the line says that its value was verified.
                values.remove(name);
            }
        }
        assert_eq!(values, after, "{command:?}: what the hook saw is all that happened");
    }
    assert!(metadata >= 6, "documents were replaced {metadata} times");
}

// proves: ST-3.2.2-6
#[test]
fn every_document_has_version_one() {
    let repo = behind();
    lattice(&repo).arg("restack").ok();
    lattice(&repo).args(["create", "top"]).ok();
    lattice(&repo).args(["freeze", "api"]).ok();
    for branch in ["api", "ui", "top"] {
        assert_eq!(repo.metadata(branch)["schema_version"], 1, "{branch}");
    }
}

// proves: ST-13.2-2, ST-12-6
#[test]
fn a_failure_of_git_at_any_step_leaves_the_refs_as_they_were() {
    let mut failures = 0;
    for nth in 1..40 {
        let repo = behind();
        let before = repo.state();
        let mut wrapper = GitWrapper::new(&repo);
        wrapper.on("", nth, Action::Fail(99));
        let output = lattice(&repo).wrapper(&wrapper).arg("restack").run();
        if wrapper.count() < nth as usize {
            break;
        }
        if output.code == Some(0) {
            continue;
        }
        failures += 1;
        assert!(!output.stdout.contains("rebased"), "no success is claimed at call {nth}: {}", output.stdout);
        if repo.op_state_path().exists() {
            lattice(&repo).arg("abort").ok();
        }
        assert_same(&before, &repo.state());
        lattice(&repo).arg("restack").ok();
        lattice(&repo).arg("verify").ok();
    }
    assert!(failures >= 5, "the failure was noticed at {failures} calls");
}

// proves: ST-13.2-3
#[test]
fn the_marker_is_there_during_an_operation_and_gone_after_its_end() {
    let marker = |repo: &TestRepo| repo.op_state_path().exists();
    let repo = behind();
    let mut wrapper = GitWrapper::new(&repo);
    let seen = repo.sandbox().root().join("seen");
    let copy = format!("cp '{}' '{}'", repo.op_state_path().display(), seen.display());
    wrapper.on("unpack-objects", 1, Action::Run(copy));
    lattice(&repo).wrapper(&wrapper).arg("restack").ok();
    let text = std::fs::read_to_string(&seen).expect("the marker was there while objects were written");
    assert!(text.contains("\"phase\":\"executing\""), "{text}");
    assert!(!marker(&repo), "success removes it");

    let repo = behind();
    let mut wrapper = GitWrapper::new(&repo);
    wrapper.on("unpack-objects", 1, Action::Fail(99));
    lattice(&repo).wrapper(&wrapper).arg("restack").fails(1);
    assert!(!marker(&repo), "a failure before anything moved removes it");

    let repo = TestRepo::draw("main <- api*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("api.txt", "taken\n", "clash");
    repo.git(&["checkout", "--quiet", "api"]);
    lattice(&repo).arg("restack").fails(4);
    let text = std::fs::read_to_string(repo.op_state_path()).expect("a conflict keeps it");
    assert!(text.contains("\"phase\":\"awaiting_user\""), "{text}");
    lattice(&repo).arg("abort").ok();
    assert!(!marker(&repo), "giving up removes it");
}

// proves: ST-6.3-5
#[test]
fn configuration_is_written_by_the_executor_and_on_record() {
    let repo = TestRepo::new();
    lattice(&repo).args(["init", "--trunk", "main"]).ok();
    lattice(&repo).args(["config", "set", "branch.template", "me/{slug}"]).ok();
    let events: Vec<_> = repo
        .ledger()
        .iter()
        .map(|event| {
            (
                event["event"].as_str().unwrap_or_default().to_owned(),
                event["command"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    let expected: Vec<_> = [
        ("Committed", "config set"),
        ("IntentRecorded", "config set"),
        ("Committed", "init"),
        ("IntentRecorded", "init"),
    ]
    .map(|(event, command)| (event.to_owned(), command.to_owned()))
    .into();
    assert_eq!(events, expected, "newest first");
    let before: BTreeMap<_, _> = repo.refs_below("refs/lattice/keep/").into_iter().collect();
    assert_eq!(before.len(), 2, "each can be undone");
    lattice(&repo).arg("undo").ok();
    assert!(lattice(&repo).args(["config", "get", "branch.template"]).run().code == Some(1), "undone");
}

// proves: ST-9.3-3
#[test]
fn an_explainer_sees_a_diff_only_if_the_user_says_so() {
    let repo = TestRepo::draw("main <- api <- ui*");
    repo.git(&["branch", "--quiet", "-D", "api"]);
    let dump = repo.sandbox().root().join("dump");
    let script = repo.sandbox().root().join("explainer");
    std::fs::write(&script, format!("#!/bin/sh\ncat > '{}'\necho prose\n", dump.display())).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
    let report = lattice(&repo).arg("doctor").json();
    let issue = report["issues"].as_array().expect("issues").iter().find(|issue| issue["kind"] == "missing-parent");
    let id = issue.expect("api is missing")["id"].as_str().expect("text").to_owned();
    for (allowed, shown) in [("false", false), ("true", true)] {
        let config = format!(
            "[trunk]\nbranch = \"main\"\n[explain]\ncommand = [\"{}\"]\ninclude_diffs = {allowed}\n",
            script.display()
        );
        repo.write_config(&config);
        let output = lattice(&repo).args(["explain", &id]).ok();
        assert!(output.stdout.contains("prose"), "the explainer was asked: {}", output.stdout);
        let sent = std::fs::read_to_string(&dump).expect("its input");
        assert_eq!(sent.contains("+ui 1"), shown, "include_diffs = {allowed}: {sent}");
    }
}
