//! Tests of the one law: scan, gate, plan, execute, verify, record, seen in the trace of every command.

use lattice_model::capability::Capability;
use lattice_model::command::REGISTRY;
use lattice_testkit::{Action, GitWrapper, Occurrence, Output, TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

/// The stages that `--debug` tells, in order, each repetition once.
#[track_caller]
fn stages(out: &Output) -> Vec<String> {
    let lines = out.stderr.lines().filter_map(|line| line.strip_prefix("debug: "));
    let mut stages: Vec<_> = lines.map(|line| line.split(": ").next().unwrap_or_default().to_owned()).collect();
    stages.dedup();
    stages
}

#[track_caller]
fn sample() -> TestRepo {
    let repo = TestRepo::draw("main <- a <- b(2)* <- c; main <- d");
    repo.git(&["branch", "loose"]);
    repo.write("new.txt", "new\n");
    repo
}

// proves: ST-12-1, ST-12-3, ST-12-5, ST-4.1-5, ST-13.4-1, ST-4.1-3
#[test]
fn every_command_that_changes_something_goes_the_same_way() {
    let lines = [
        "track loose --parent main",
        "untrack loose",
        "create x -a -m m",
        "modify -m words",
        "create y --insert",
        "freeze d",
        "unfreeze d",
        "move --source d --onto a",
        "checkout main",
        "up --to a",
        "top --to y",
        "bottom",
        "down",
        "config set undo.keep_days 5",
        "undo",
        "redo",
        "restack",
        "init --reset --force",
        "init --trunk main",
        "trunk set loose",
    ];
    let repo = sample();
    for line in lines {
        if line == "restack" {
            repo.git(&["checkout", "--quiet", "--force", "main"]);
            repo.commit_file("more.txt", "more\n", "trunk moves");
            lattice(&repo).arg("log").ok();
        }
        let dry = lattice(&repo).args(line.split(' ')).args(["--dry-run", "--debug"]).ok();
        let before = repo.ledger().len();
        let out = lattice(&repo).args(line.split(' ')).arg("--debug").ok();
        let law: Vec<_> = stages(&out).into_iter().filter(|stage| stage != "divergence").collect();
        assert_eq!(law, ["scan", "gate", "plan", "execute", "verify", "record"], "lattice {line}:\n{}", out.snapshot());
        assert!(out.stderr.contains("debug: gate: ready"), "lattice {line}");
        let planned: Vec<_> = stages(&dry).into_iter().filter(|stage| stage != "divergence").collect();
        assert_eq!(planned, ["scan", "gate", "plan"], "a dry run of {line} ends with the plan");
        let digest =
            |out: &Output| out.stderr.lines().find(|line| line.starts_with("debug: plan: ")).map(str::to_owned);
        assert_eq!(digest(&out), digest(&dry), "{line}: what is executed is what was previewed");
        assert_eq!(repo.ledger()[0]["event"], json!("Committed"), "{line}: {:#}", repo.ledger()[0]);
        assert_eq!(repo.ledger().len(), before + 2, "{line}: one intent, one record of success");
    }
}

// proves: ST-14.1-1, ST-4.1-3
#[test]
fn every_command_that_changes_something_is_registered_with_what_it_requires() {
    let repo = sample();
    lattice(&repo).args(["freeze", "d"]).ok();
    let lines = [
        "init --reset",
        "track loose --parent main",
        "untrack d",
        "create x",
        "modify -a",
        "restack",
        "move --onto main",
        "reorder --order b,a,c",
        "split --by-file b.txt",
        "squash",
        "fold",
        "pop",
        "delete c",
        "rename e",
        "revert main",
        "freeze c",
        "unfreeze d",
        "checkout main",
        "up",
        "down",
        "top",
        "bottom",
        "config set undo.keep_days 5",
        "undo",
    ];
    crate::host::with_remote(&repo);
    lattice(&repo).args(["submit", "--no-restack"]).ok();
    let hosted = ["submit --draft --no-restack", "sync", "get c", "merge", "unlink"];
    repo.git(&["push", "--quiet", "origin", "c"]);
    let lines = lines.into_iter().chain(hosted);
    let planned = |line: &str| lattice(&repo).args(line.split(' ')).arg("--dry-run").json()["plan"]["command"].clone();
    let mut planned: Vec<_> = lines.map(|line| (planned(line), line)).collect();
    let staged = sample();
    staged.write("b.txt", "another first line\nb 2\n");
    staged.git(&["add", "b.txt"]);
    planned.push((lattice(&staged).args(["absorb", "--dry-run"]).json()["plan"]["command"].clone(), "absorb"));
    let bare = TestRepo::new();
    bare.git(&["branch", "other"]);
    planned.push((
        lattice(&bare).args(["init", "--trunk", "main", "--dry-run"]).json()["plan"]["command"].clone(),
        "init",
    ));
    lattice(&bare).args(["init", "--trunk", "main"]).ok();
    planned.push((
        lattice(&bare).args(["trunk", "set", "other", "--dry-run"]).json()["plan"]["command"].clone(),
        "trunk set",
    ));
    for (name, line) in &planned {
        let entries = REGISTRY.iter().filter(|(known, _)| json!(known) == *name).count();
        assert_eq!(entries, 1, "`lattice {line}` plans as {name}, which has one entry in the registry");
    }
    for (name, requires) in REGISTRY {
        assert!(planned.iter().any(|(planned, _)| *planned == json!(name)), "{name} is reached by a command line");
        assert!(requires.contains(&Capability::RepoOpen), "{name} requires a repository");
        assert!(requires.contains(&Capability::NoLatticeOpInProgress), "{name} waits for what is in progress");
    }
}

// proves: ST-2-6
#[test]
fn a_repair_is_previewed_and_resolves_its_issue_when_it_is_named() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.set_metadata_raw("b", b"{");
    let before = repo.state();
    let report = lattice(&repo).arg("doctor").json();
    let issue = &report["issues"][0];
    let plans = issue["fixes"].as_array().expect("a list").iter().filter(|fix| fix["user_action"].is_null());
    let plans: Vec<_> = plans.collect();
    assert!(!plans.is_empty(), "{report:#}");
    assert!(
        plans.iter().all(|fix| fix["plan"]["steps"].as_array().is_some_and(|steps| !steps.is_empty())),
        "{report:#}"
    );
    lattice(&repo).arg("doctor").run();
    assert_same(&before, &repo.state());
    for fix in plans {
        let repo = TestRepo::draw("main* <- a <- b");
        repo.set_metadata_raw("b", b"{");
        lattice(&repo).args(["doctor", "--fix", fix["id"].as_str().expect("an id")]).ok();
        let left = lattice(&repo).arg("doctor").json();
        let ids: Vec<_> = left["issues"].as_array().expect("a list").iter().map(|issue| issue["id"].clone()).collect();
        assert!(!ids.contains(&issue["id"]), "{}: the issue is gone: {ids:?}", fix["id"]);
    }
}

#[test]
fn commands_that_only_look_end_with_the_scan() {
    let repo = sample();
    for line in ["log", "ls", "info", "parent", "children", "trunk", "ops", "verify"] {
        let out = lattice(&repo).args([line, "--debug"]).ok();
        assert_eq!(stages(&out), ["scan"], "lattice {line}:\n{}", out.snapshot());
    }
    assert!(repo.ledger().is_empty(), "and leave no record");
}

// proves: ST-12-2
#[test]
fn the_scan_tells_operation_fingerprint_and_divergence_before_the_gate() {
    let repo = TestRepo::draw("main* <- a");
    lattice(&repo).args(["freeze", "a"]).ok();
    lattice(&repo).args(["unfreeze", "a"]).ok();
    repo.commit_file("a.txt", "in conflict\n", "trunk touches the same file");
    let paused = lattice(&repo).args(["restack", "--debug"]).fails(4);
    let scan = paused.stderr.split("debug: gate").next().expect("a beginning").to_owned();
    for part in [
        "1 tracked branches, 0 issues",
        "operation in progress: none",
        "fingerprint ",
        "1 refs changed outside of Lattice",
    ] {
        assert!(scan.contains(part), "`{part}` is told before the gate:\n{}", paused.snapshot());
    }
    assert_eq!(stages(&paused), ["scan", "divergence", "gate", "plan", "execute"], "a conflict stops there");
    let busy = lattice(&repo).args(["freeze", "a", "--debug"]).fails(3);
    assert!(busy.stderr.contains("operation in progress: restack"), "{}", busy.snapshot());
    assert!(busy.stderr.contains("1 tracked branches, 1 issues"), "{}", busy.snapshot());
    assert_eq!(stages(&busy), ["scan", "gate"], "a gated command ends at the gate");
    assert!(busy.stderr.contains("debug: gate: repair: NoLatticeOpInProgress missing"), "{}", busy.snapshot());
}

// proves: ST-12-7
#[test]
fn the_result_is_scanned_again_before_success_is_recorded() {
    let repo = TestRepo::draw("main* <- a");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let mut wrapper = GitWrapper::new(&repo);
    // Each time refs are listed: whether `a` has moved, and what the ledger says of it.
    let note = "\"$REAL_GIT\" rev-parse refs/heads/a >>../seen\n\
        \"$REAL_GIT\" log -1 --format=%B refs/lattice/event-log >>../seen 2>/dev/null || echo none >>../seen";
    wrapper.on("for-each-ref", Occurrence::Every, Action::Run(note.to_owned()));
    lattice(&repo).wrapper(&wrapper).arg("restack").ok();
    let seen = repo.read("../seen");
    let moved = seen.find(&repo.rev("a")).unwrap_or_else(|| panic!("refs are listed after they moved:\n{seen}"));
    let record = seen[moved..].lines().nth(1).unwrap_or_default();
    assert!(record.contains("\"IntentRecorded\""), "and at that time no success is recorded:\n{record}");
    assert_eq!(repo.ledger()[0]["event"], json!("Committed"));
}

#[test]
fn a_result_that_is_not_what_was_planned_is_never_called_done() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let mut wrapper = GitWrapper::new(&repo);
    // Someone moves `b` away between the transaction and the check of it, which lists the refs again.
    let check = {
        let probe = TestRepo::draw("main* <- a <- b");
        probe.commit_file("more.txt", "more\n", "trunk moves");
        let mut noting = GitWrapper::new(&probe);
        let note = "\"$REAL_GIT\" rev-parse refs/heads/b >>../seen".to_owned();
        noting.on("for-each-ref", Occurrence::Every, Action::Run(note));
        lattice(&probe).wrapper(&noting).arg("restack").ok();
        let at = probe.read("../seen").lines().position(|tip| tip == probe.rev("b")).expect("refs are listed again");
        u32::try_from(at + 1).expect("few")
    };
    wrapper.on("for-each-ref", check, Action::Run("\"$REAL_GIT\" update-ref refs/heads/b refs/heads/main".to_owned()));
    let document = lattice(&repo).wrapper(&wrapper).args(["restack", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("not-verified"), "{document:#}");
    assert!(repo.ledger().iter().all(|event| event["event"] != json!("Committed")), "no success is recorded");
    assert!(repo.op_state_path().exists(), "the operation is still there to be finished or given up");
    lattice(&repo).arg("abort").run();
    assert_eq!(repo.rev("b"), repo.rev("main"), "what somebody else did stays");
}

// proves: ST-2-7
#[test]
fn changes_by_lattice_are_no_divergence_and_changes_by_git_are() {
    let repo = sample();
    for line in
        ["create x -a -m m", "freeze x", "unfreeze x", "up", "down", "undo", "redo", "config set undo.keep_days 5"]
    {
        lattice(&repo).args(line.split(' ')).run();
        let log = lattice(&repo).arg("log").json();
        assert_eq!(log["divergence"], json!(null), "scan and executor agree after {line}: {log:#}");
    }
    let changes: [&[&str]; 4] = [
        &["branch", "--force", "d", "main~0"],
        &["update-ref", "-d", "refs/branch-metadata/d"],
        &["branch", "--delete", "--force", "c"],
        &["commit", "--quiet", "--allow-empty", "--message", "plain git"],
    ];
    for args in changes {
        let before = lattice(&repo).arg("log").json()["divergence"].clone();
        repo.git(args);
        let after = lattice(&repo).arg("log").json()["divergence"].clone();
        assert!(after.is_object() && after != before, "git {} is seen: {after:#}", args.join(" "));
    }
}

// proves: ST-2-8
#[test]
fn a_ref_that_moved_since_the_plan_stays_where_it_is_and_nothing_else_moves() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let before = repo.state();
    for call in ["write-tree", "unpack-objects"] {
        let foreign = repo.rev("main~1");
        let mut wrapper = GitWrapper::new(&repo);
        wrapper.on(call, 1, Action::Run(format!("\"$REAL_GIT\" update-ref refs/heads/b {foreign}")));
        let old = repo.rev("b");
        let document = lattice(&repo).wrapper(&wrapper).args(["restack", "--json"]).fails(1).json();
        assert_eq!(document["ok"], json!(false), "{document:#}");
        assert_eq!(repo.rev("b"), foreign, "the foreign value stays");
        repo.git(&["update-ref", "refs/heads/b", &old]);
        assert_same(&before, &repo.state());
        assert!(!repo.op_state_path().exists(), "no operation is left in progress");
    }
}
