//! A repair is an operation like any other: planned, executed, verified and recorded by the same code.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use lattice_testkit::metadata::metadata_ref;
use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};

use super::states::{self, recorded};
use super::{copy_of, fix_named, list, records, report, text};
use crate::lattice;

// proves: ST-1.3-1
#[test]
fn plans_and_fixes_depend_on_the_repository_alone() {
    let repo = recorded(|repo| {
        repo.commit_file("new", "x\n", "advance");
        repo.set_metadata_raw("b", b"{}");
    });
    let copy = copy_of(&repo, "copy");
    let elsewhere = [
        ("LATTICE_NOW", "2041-05-06T07:08:09Z"),
        ("LATTICE_SEED", "another"),
        ("USER", "eve"),
        ("HOME", "/nonexistent"),
        ("GIT_AUTHOR_NAME", "Eve"),
        ("GIT_COMMITTER_EMAIL", "eve@example.invalid"),
        ("TZ", "Asia/Tokyo"),
        ("LANG", "de_DE.UTF-8"),
        ("COLUMNS", "20"),
    ];
    let answers = |args: &[&str]| {
        let here = lattice(&repo).args(args).json();
        let there = elsewhere.iter().fold(lattice(&copy), |run, (name, value)| run.env(name, value)).args(args).json();
        (here, there)
    };
    let (here, there) = answers(&["doctor"]);
    assert_eq!(here["issues"], there["issues"], "issues, fixes and their plans are equal");
    assert_eq!(here["fingerprint"], there["fingerprint"]);
    let id = fix_named(&here, "restore-metadata");
    for repo in [&repo, &copy] {
        lattice(repo).args(["doctor", "--fix", &id]).ok();
    }
    for args in
        [&["restack", "--dry-run"][..], &["create", "x", "-m", "x", "--dry-run"], &["init", "--reset", "--dry-run"]]
    {
        let (here, there) = answers(args);
        assert!(here["plan"]["digest"].is_string(), "{args:?} has a plan: {here:#}");
        assert_eq!(here["plan"], there["plan"], "{args:?}");
    }
}

// proves: ST-4.1-7, ST-4.1-8
#[test]
fn the_report_covers_refs_configuration_metadata_and_operations() {
    let repo = recorded(|repo| {
        repo.set_metadata_raw("b", b"{}");
        repo.write_config("[trunk]\nbranch = \"gone\"\n");
        repo.git(&["bisect", "start"]);
        repo.git(&["update-ref", "refs/heads/a", "refs/heads/main"]);
    });
    let found = report(&repo);
    let kinds: Vec<_> = list(&found["issues"]).iter().map(|issue| text(&issue["kind"])).collect();
    for kind in ["trunk-missing", "metadata-unreadable", "git-operation-in-progress"] {
        assert!(kinds.contains(&kind), "{kind}: {found:#}");
    }
    assert!(!list(&found["capabilities"]).is_empty() && found["fingerprint"].is_string(), "{found:#}");
    let changed: Vec<_> = list(&found["divergence"]["changes"]).iter().map(|change| text(&change["name"])).collect();
    assert!(changed.contains(&"refs/heads/a"), "what git did to a branch is told: {found:#}");
}

// proves partly: ST-8.1-3, ST-8.1-4 — that there is no other code is a matter of the crates' edges
#[test]
fn a_repair_has_marker_intent_and_record_like_any_operation() {
    let repo = states::raw(b"garbage");
    let id = fix_named(&report(&repo), "remove-metadata");
    let mut wrapper = GitWrapper::new(&repo);
    // Text that fails makes the call fail, and with it the repair.
    wrapper.on(
        "unpack-objects",
        1,
        Action::Run("test -f .git/lattice/op-state.json && ls .git/lattice/ops/*.json".to_owned()),
    );
    lattice(&repo).wrapper(&wrapper).args(["doctor", "--fix", &id]).ok();
    assert!(wrapper.calls().iter().any(|call| call.contains("unpack-objects")), "the marker was looked at");
    let ledger = records(&repo);
    let events: Vec<_> = ledger.iter().map(|event| text(&event["event"])).collect();
    assert_eq!(events, ["DoctorApplied", "Committed", "IntentRecorded", "DoctorProposed"], "newest first");
    for event in &ledger[..3] {
        assert_eq!(event["origin"], "doctor", "{event:#}");
        assert_eq!(event["op_id"], ledger[0]["op_id"], "one operation");
    }
    let operations = lattice(&repo).arg("ops").json();
    assert_eq!(operations["operations"][0]["origin"], "doctor", "{operations:#}");
    assert_eq!(operations["operations"][0]["undoable"], true, "{operations:#}");
}

/// A hook of Git that acts once, when a transaction is through.
fn sabotage(repo: &TestRepo, script: &str) {
    let hook = repo.common_dir().join("hooks/reference-transaction");
    let once = repo.sandbox().root().join("once");
    fs::create_dir_all(hook.parent().expect("it has a directory")).expect("it can be made");
    let text = format!(
        "#!/bin/sh\ngrep -q refs/branch-metadata/b && [ \"$1\" = committed ] && mkdir '{}' || exit 0\n{script}\n",
        once.display()
    );
    fs::write(&hook, text).expect("it can be written");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

// proves: ST-8.4-1
#[test]
fn a_repair_that_does_not_hold_is_not_called_one() {
    let repo = states::raw(b"garbage");
    let id = fix_named(&report(&repo), "remove-metadata");
    let garbage = repo.rev(&metadata_ref("b"));
    sabotage(&repo, &format!("git update-ref {} {garbage}", metadata_ref("b")));
    let output = lattice(&repo).args(["doctor", "--fix", &id]).fails(1);
    assert!(!output.stdout.contains("applied"), "no success is claimed:\n{}", output.snapshot());
    assert!(output.stderr.contains("not what the plan says"), "and the reason is told:\n{}", output.snapshot());
    let applied = records(&repo).iter().any(|event| event["event"] == "DoctorApplied");
    assert!(!applied, "nothing is recorded as applied");
    lattice(&repo).arg("abort").ok();
    assert_eq!(repo.rev(&metadata_ref("b")), garbage, "going back leads to where it began");
    lattice(&repo).args(["doctor", "--fix", &fix_named(&report(&repo), "remove-metadata")]).ok();
}

#[test]
fn nothing_is_repaired_inside_a_paused_operation_but_its_marker() {
    let repo = states::paused();
    repo.set_metadata_raw("b", b"garbage");
    let id = fix_named(&report(&repo), "remove-metadata");
    let before = repo.refs();
    let answer = lattice(&repo).args(["doctor", "--fix", &id]).json();
    assert_eq!(answer["error"]["code"], "operation-in-progress", "{answer:#}");
    assert_eq!(repo.refs(), before, "nothing moves");
    fs::write(repo.op_state_path(), "torn").expect("it can be written");
    lattice(&repo).args(["doctor", "--fix", &fix_named(&report(&repo), "remove-marker")]).run();
    assert!(!repo.op_state_path().exists(), "the marker is set aside");
    let kept = fs::read_dir(repo.lattice_dir()).expect("it is there").flatten();
    let kept = kept.filter(|entry| entry.file_name().to_string_lossy().starts_with("op-state.damaged")).count();
    assert_eq!(kept, 1, "and kept");
}

// proves: ST-8.4-3
#[test]
fn a_repair_that_runs_into_a_conflict_waits_for_its_user() {
    let broken = || {
        let repo = TestRepo::draw("main <- a <- b <- c*");
        repo.git(&["checkout", "--quiet", "main"]);
        repo.commit_file("b.txt", "the trunk's own\n", "take over");
        lattice(&repo).args(["freeze", "c"]).ok();
        for branch in ["a", "b", "c"] {
            lattice(&repo).args(["unfreeze", branch]).ok();
        }
        repo.git(&["branch", "-D", "a"]);
        repo
    };
    for end in ["continue", "abort"] {
        let repo = broken();
        let fix = fix_named(&report(&repo), "move-to-trunk");
        let before = repo.state();
        let paused = lattice(&repo).args(["doctor", "--fix", &fix]).fails(4);
        for named in ["lattice continue", "lattice abort", "b.txt"] {
            assert!(paused.stderr.contains(named), "{named}:\n{}", paused.snapshot());
        }
        let marker = std::fs::read_to_string(repo.op_state_path()).expect("it waits");
        assert!(marker.contains("awaiting_user") && marker.contains("\"doctor\""), "{marker}");
        if end == "abort" {
            lattice(&repo).arg("abort").ok();
            assert_same(&before, &repo.state());
        } else {
            repo.write("b.txt", "both\n");
            lattice(&repo).args(["continue", "-a"]).ok();
            assert_eq!(repo.metadata("b")["parent"]["name"], "main");
            assert_eq!(repo.git(&["show", "c:b.txt"]), "both", "everything above came along");
            lattice(&repo).arg("verify").ok();
        }
    }
}
