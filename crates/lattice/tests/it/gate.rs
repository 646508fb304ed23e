//! Tests of gating: a command that lacks something it requires refuses, says why, and changes nothing.

use std::collections::BTreeSet;

use lattice_model::capability::Capability;
use lattice_model::command::REGISTRY;
use lattice_model::issue::IssueKind;
use lattice_testkit::{TestRepo, assert_same};
use serde_json::Value;

use crate::doctor::states::{self, State};
use crate::doctor::{issue, list, report, text};
use crate::lattice;

/// What to type for a command of the registry, in a repository with `main <- a <- b`.
fn typed(command: &str) -> Vec<&'static [&'static str]> {
    match command {
        "init" => vec![&["init", "--trunk", "main"]],
        "init --reset" => vec![&["init", "--reset", "--force"]],
        "track" => vec![&["track", "a", "--parent", "main", "--force"]],
        "untrack" => vec![&["untrack", "a", "--force"]],
        "create" => vec![&["create", "new", "-m", "new"]],
        "modify" => vec![&["modify", "-m", "again"]],
        "restack" => vec![&["restack"], &["restack", "a", "--only"]],
        "move" => vec![&["move", "--source", "b", "--onto", "main"]],
        "absorb" => vec![&["absorb"]],
        "reorder" => vec![&["reorder", "--order", "b,a"]],
        "split" => vec![&["split", "--by-commit"], &["split", "--by-file", "README"]],
        "squash" => vec![&["squash"]],
        "fold" => vec![&["fold"], &["fold", "--keep"]],
        "pop" => vec![&["pop"]],
        "delete" => vec![&["delete", "a"], &["delete", "--upstack"]],
        "rename" => vec![&["rename", "other"]],
        "revert" => vec![&["revert", "main"]],
        "freeze" => vec![&["freeze", "a"]],
        "unfreeze" => vec![&["unfreeze", "a"]],
        "checkout" => vec![&["checkout", "a"], &["up"], &["down"], &["top"], &["bottom"]],
        "trunk set" => vec![&["trunk", "set", "main"]],
        "config set" => vec![&["config", "set", "undo.keep_days", "3"]],
        "undo" => vec![&["undo"]],
        "submit" => vec![&["submit", "--no-restack"]],
        "sync" => vec![&["sync"]],
        "get" => vec![&["get", "a"]],
        "merge" => vec![&["merge", "--confirm"]],
        "unlink" => vec![&["unlink", "a"]],
        other => panic!("say how `{other}` is typed, so that its gate is tested"),
    }
}

fn kind(name: &str) -> IssueKind {
    *IssueKind::ALL.iter().find(|kind| kind.as_str() == name).unwrap_or_else(|| panic!("no kind {name}"))
}

/// One state for each kind of issue that takes a capability away.
fn gating_states() -> Vec<(&'static State, Capability)> {
    let mut seen = BTreeSet::new();
    let gates = |state: &'static State| Some((state, kind(state.kind).removes()?));
    states::ALL.iter().filter_map(gates).filter(|(state, _)| seen.insert(state.kind)).collect()
}

fn refused(repo: &TestRepo, args: &[&str], expected: &Value, lost: Capability) {
    let output = lattice(repo).arg("--json").args(args).run();
    let answer = output.json();
    let code = if lost == Capability::NoLatticeOpInProgress { 3 } else { 1 };
    assert_eq!(output.code, Some(code), "{args:?} without {lost}:\n{}", output.snapshot());
    let printed = list(&answer["issues"]).iter().find(|issue| issue["id"] == expected["id"]);
    let printed = printed.unwrap_or_else(|| panic!("{args:?} names {}: {answer:#}", expected["id"]));
    assert_eq!(printed["severity"], "blocking", "what stops a command is blocking for it");
    assert_eq!(printed["fixes"], expected["fixes"], "{args:?} offers what doctor offers");
}

// proves: ST-0-2, ST-0-3, ST-1.1-1, ST-4.1-10, ST-4.1-12, ST-5.1-1, ST-5.3-1, ST-5.3-6
#[test]
fn every_command_refuses_in_every_state_that_lacks_what_it_requires() {
    let mut cells = 0;
    for (state, lost) in gating_states() {
        let repo = (state.make)();
        let before = repo.state();
        let found = report(&repo);
        let expected = issue(&found, state.kind);
        for (command, requires) in REGISTRY.iter().filter(|(_, requires)| requires.contains(&lost)) {
            // Only commands that look at the files see conflicts beforehand; the others fail when they begin.
            if state.kind == "unmerged-files" && !requires.contains(&Capability::WorkingCopyStateKnown) {
                continue;
            }
            // There is nothing to undo here, which is said first.
            if *command == "undo" && repo.ledger().iter().all(|event| event["event"] != "Committed") {
                continue;
            }
            for args in typed(command) {
                refused(&repo, args, expected, lost);
                cells += 1;
            }
        }
        assert_same(&before, &repo.state());
    }
    assert!(cells > 150, "only {cells} cells of the matrix were tried");
}

// proves: ST-5.3-2, ST-5.1-2
#[test]
fn log_works_in_every_state() {
    for state in states::ALL {
        let repo = (state.make)();
        let before = repo.state();
        let output = lattice(&repo).arg("log").run();
        assert_eq!(output.code, Some(0), "log with {}:\n{}", state.name, output.snapshot());
        let document = lattice(&repo).arg("log").json();
        assert_eq!(document["ok"], true, "log --json with {}: {document:#}", state.name);
        assert_same(&before, &repo.state());
    }
}

// proves: ST-5.3-3
#[test]
fn log_shows_the_rest_and_names_what_it_cannot_read() {
    let repo = TestRepo::draw("main* <- a <- b; main <- c");
    repo.set_metadata_raw("c", b"garbage");
    let output = lattice(&repo).arg("log").ok();
    for shown in ["a", "b"] {
        assert!(output.stdout.lines().any(|line| line.contains(shown)), "{shown} is shown:\n{}", output.snapshot());
    }
    assert!(output.stderr.contains("c is left out"), "c is named:\n{}", output.snapshot());
    let gated = lattice(&repo).arg("restack").json();
    assert_eq!(gated["error"]["code"], "gated", "what log can do without, restack cannot: {gated:#}");
}

// proves: ST-5.3-4
#[test]
fn restack_names_exactly_the_capability_that_is_missing() {
    let seven = [
        ("no configuration", "TrunkKnown"),
        ("a paused operation", "NoLatticeOpInProgress"),
        ("a rebase by git", "NoExternalGitOpInProgress"),
        ("garbage as metadata", "MetadataReadable"),
        ("two branches on each other", "GraphValid"),
        ("a bare repository", "WorkingDirectoryAvailable"),
        ("a shallow clone", "HistoryComplete"),
        ("a lock on a branch", "RefsWritable"),
    ];
    for (name, capability) in seven {
        let state = states::ALL.iter().find(|state| state.name == name).expect("the state is in the table");
        let repo = (state.make)();
        let found = report(&repo);
        let held: Vec<_> = list(&found["capabilities"]).iter().map(text).collect();
        let missing: Vec<_> =
            Capability::ALL.iter().map(ToString::to_string).filter(|c| !held.contains(&&**c)).collect();
        assert_eq!(missing, [capability], "{name} takes one capability away");
        let output = lattice(&repo).args(["--debug", "restack"]).run();
        let said = format!("debug: gate: repair: {capability} missing");
        assert!(output.stderr.contains(&said), "{name}:\n{}", output.snapshot());
    }
    let repo = states::stack();
    let outside = repo.sandbox().root().join("outside");
    std::fs::create_dir(&outside).expect("the sandbox can be written");
    let output = lattice(&repo).cwd(&outside).args(["--json", "restack"]).fails(1);
    assert_eq!(output.json()["error"]["code"], "not-a-repository", "no repository is open: {}", output.snapshot());
}

// proves: ST-5.2-1, ST-5.2-3, ST-5.2-4, ST-5.2-5, ST-5.2-6, ST-5.2-7, ST-5.2-11, ST-5.2-17
#[test]
fn a_capability_is_absent_exactly_where_an_issue_takes_it_away() {
    for state in states::ALL {
        let repo = (state.make)();
        let found = report(&repo);
        let mut held: BTreeSet<_> = list(&found["capabilities"]).iter().map(|held| text(held).to_owned()).collect();
        // Whether there is a host is no matter of the stack.
        held.retain(|held| Capability::HOST.iter().all(|of_host| of_host.to_string() != *held));
        let kinds = list(&found["issues"]).iter().map(|issue| kind(text(&issue["kind"])));
        let removed: BTreeSet<_> = kinds.filter_map(IssueKind::removes).map(|lost| lost.to_string()).collect();
        let all: BTreeSet<_> = Capability::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(held, all.difference(&removed).cloned().collect(), "{}", state.name);
        if let Some(lost) = kind(state.kind).removes() {
            assert!(!held.contains(&lost.to_string()), "{} takes {lost} away", state.name);
        }
    }
    let healthy = report(&states::stack());
    assert_eq!(list(&healthy["capabilities"]).len(), Capability::ALL.len(), "a healthy repository lacks nothing");
}

// proves: ST-5.4-3
#[test]
fn a_gated_command_lists_only_what_blocks_it() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.set_metadata_raw("b", b"garbage");
    states::leave_lock(&repo.common_dir().join("index.lock"));
    repo.write_config("[trunk]\nbranch = \"main\"\n[lock]\ntimeuot_ms = 1\n");
    let kinds = |answer: &Value| -> BTreeSet<String> {
        list(&answer["issues"]).iter().map(|issue| text(&issue["kind"]).to_owned()).collect()
    };
    let found = report(&repo);
    assert_eq!(kinds(&found).len(), 3, "three things are wrong: {found:#}");
    let checkout = lattice(&repo).args(["checkout", "a"]).json();
    assert_eq!(kinds(&checkout), ["stale-lock".to_owned()].into(), "checkout needs no metadata");
    let freeze = lattice(&repo).args(["freeze", "a"]).json();
    let both = ["metadata-unreadable", "stale-lock"].map(str::to_owned);
    assert_eq!(kinds(&freeze), both.into(), "freeze needs both, and no warning is among them");
}

#[test]
fn an_index_that_cannot_be_read_is_never_taken_for_a_clean_one() {
    let repo = TestRepo::draw("main <- a*");
    let index = repo.git_dir().join("index");
    std::fs::write(&index, b"DIRC\0\0\0\x02garbage").expect("it can be written");
    let before = (repo.branch_refs(), repo.metadata_refs());
    issue(&report(&repo), "working-copy-unknown");
    for args in [&["create", "x", "-m", "x"][..], &["modify", "-m", "x"], &["create", "x", "-a", "-m", "x"]] {
        let answer = lattice(&repo).args(args).json();
        assert_eq!(answer["issues"][0]["kind"], "working-copy-unknown", "{args:?}: {answer:#}");
    }
    for args in [&["restack"][..], &["checkout", "main"], &["move", "--source", "a", "--onto", "main"]] {
        let output = lattice(&repo).args(args).run();
        assert!(matches!(output.code, Some(0 | 1)), "{args:?}:\n{}", output.snapshot());
    }
    assert_eq!((repo.branch_refs(), repo.metadata_refs()), before, "no ref moves");
    assert_eq!(std::fs::read(&index).expect("it is there"), b"DIRC\0\0\0\x02garbage", "the file is left alone");
}

// proves: ST-5.2-8
#[test]
fn a_command_on_a_branch_it_cannot_resolve_is_gated() {
    let repo = TestRepo::draw("main <- a*");
    repo.git(&["branch", "stray"]);
    let before = repo.state();
    for args in [
        &["restack", "stray"][..],
        &["restack", "nowhere"],
        &["freeze", "stray"],
        &["untrack", "main"],
        &["move", "--source", "stray", "--onto", "main"],
        &["checkout", "nowhere"],
        &["track", "nowhere", "--parent", "main"],
        &["track", "stray", "--parent", "nowhere"],
    ] {
        let answer = lattice(&repo).args(args).json();
        assert_eq!(answer["error"]["code"], "gated", "{args:?}: {answer:#}");
        assert_eq!(answer["issues"][0]["kind"], "scope-unresolved", "{args:?}: {answer:#}");
        assert!(!list(&answer["issues"][0]["fixes"]).is_empty(), "{args:?} says what to do");
        assert_same(&before, &repo.state());
    }
}

// proves: ST-5.2-9
#[test]
fn a_command_that_would_rewrite_a_frozen_branch_names_it() {
    let repo = TestRepo::draw("main <- a! <- b*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("new", "x\n", "advance");
    repo.git(&["checkout", "--quiet", "a"]);
    let before = repo.state();
    for args in [&["restack", "a"][..], &["modify", "-m", "x"], &["move", "--source", "a", "--onto", "main"]] {
        let answer = lattice(&repo).args(args).json();
        assert_eq!(answer["issues"][0]["kind"], "frozen", "{args:?}: {answer:#}");
        assert_eq!(answer["issues"][0]["evidence"]["branch"][0], "a", "{args:?} names the branch");
        assert_same(&before, &repo.state());
    }
}
