//! What surrounds the program: variables, clocks, languages, signals and closed pipes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};
use serde_json::Value;

use crate::doctor::list;
use crate::doctor::states::{recorded, stack};
use crate::lattice;

/// A program that leaves a trace when it is started.
fn trap(repo: &TestRepo) -> (PathBuf, PathBuf) {
    let (program, trace) = (repo.sandbox().root().join("trap"), repo.sandbox().root().join("sprung"));
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", trace.display())).expect("the sandbox can be written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    (program, trace)
}

#[test]
fn row_14_inherited_variables_reach_neither_git_nor_a_program_of_theirs() {
    let repo = TestRepo::draw("main* <- a");
    let (program, trace) = trap(&repo);
    let seen = repo.sandbox().root().join("seen");
    let git = repo.sandbox().root().join("spy");
    fs::write(&git, format!("#!/bin/sh\nenv >>'{}'\nexec git \"$@\"\n", seen.display())).expect("it can be written");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let program = program.to_str().expect("a text");
    let variables = [
        ("GIT_EXTERNAL_DIFF", program),
        ("GIT_PAGER", program),
        ("PAGER", program),
        ("GIT_SSH_COMMAND", program),
        ("GIT_EDITOR", program),
        ("GIT_ASKPASS", program),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", program),
        ("GIT_CONFIG_PARAMETERS", "'core.pager'='false'"),
        ("GIT_TRACE", "1"),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/nowhere"),
        ("GIT_CEILING_DIRECTORIES", "/"),
        ("LD_LIBRARY_PATH", "/nowhere"),
    ];
    repo.commit_file("new", "x\n", "advance");
    for args in [&["info", "a", "--diff"][..], &["restack"], &["log"], &["create", "b", "-m", "x"], &["undo"]] {
        let run = variables.iter().fold(lattice(&repo), |run, (name, value)| run.env(name, value));
        run.env("LATTICE_GIT", &git).args(args).ok();
        assert!(!trace.exists(), "{args:?} started a program of the environment");
    }
    let seen = fs::read_to_string(seen).expect("git was started");
    // These are set for git on purpose, to harmless values.
    let harmless = ["GIT_PAGER=cat", "GIT_EDITOR=true"];
    for (name, value) in variables {
        let given = format!("{name}={value}");
        let got = seen.lines().any(|line| line == given && !harmless.contains(&line));
        assert!(!got || name == "PAGER", "git got {given}");
    }
}

#[test]
fn row_15_a_bare_repository_inside_a_work_tree_is_what_git_takes_it_for() {
    let repo = stack();
    let inner = repo.dir().join("inner.git");
    repo.git(&["init", "--quiet", "--bare", "inner.git"]);
    let told = lattice(&repo).cwd("inner.git").arg("doctor").json();
    assert_eq!(told["repository"]["context"], "bare", "{told:#}");
    assert_eq!(told["repository"]["git_dir"], inner.to_str().expect("a text"), "{told:#}");
    assert!(!inner.join("lattice/config.toml").exists(), "looking sets nothing up");
}

#[test]
fn f13_the_order_of_operations_does_not_depend_on_the_clock() {
    let repo = TestRepo::draw("main <- a <- b*");
    let clocks = ["2031-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "1999-12-31T23:59:59Z", "2031-01-01T00:00:00Z"];
    let before = repo.state();
    for (clock, args) in clocks.iter().zip([["freeze", "a"], ["freeze", "b"], ["unfreeze", "b"], ["unfreeze", "a"]]) {
        lattice(&repo).env("LATTICE_NOW", clock).args(args).ok();
    }
    let operations = lattice(&repo).env("LATTICE_NOW", "1980-01-01T00:00:00Z").arg("ops").json();
    let commands: Vec<_> =
        list(&operations["operations"]).iter().map(|operation| operation["command"].clone()).collect();
    assert_eq!(commands, ["unfreeze", "unfreeze", "freeze", "freeze"], "newest first, by the chain: {operations:#}");
    for clock in clocks {
        lattice(&repo).env("LATTICE_NOW", clock).arg("undo").ok();
    }
    assert_same(&before, &repo.state());
    let sequence: Vec<_> = repo.ledger().iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    let expected: Vec<_> = (1..=sequence.len() as u64).rev().collect();
    assert_eq!(sequence, expected, "the chain is unbroken");
    lattice(&repo).arg("verify").arg("--full").ok();
}

#[test]
fn f14_the_language_of_the_user_changes_no_decision() {
    type Case<'a> = (fn() -> TestRepo, &'a [&'a str]);
    let cases: [Case<'_>; 4] = [
        (stack, &["log"]),
        (crate::doctor::states::conflict, &["restack"]),
        (|| recorded(|repo| repo.set_metadata_raw("b", b"{}")), &["doctor"]),
        (|| crate::doctor::states::locked("refs/heads/a.lock"), &["freeze", "a"]),
    ];
    for (make, args) in cases {
        let answers = ["C", "de_DE.UTF-8", "ja_JP.UTF-8"].map(|language| {
            let repo = make();
            let run = lattice(&repo).env("LANG", language).env("LC_ALL", language).env("LANGUAGE", "de:ja");
            let output = run.arg("--json").args(args).run();
            let root = repo.sandbox().root().to_string_lossy().into_owned();
            (output.code, output.stdout.replace(&root, "<dir>"))
        });
        assert_eq!(answers[0], answers[1], "{args:?} in German");
        assert_eq!(answers[0], answers[2], "{args:?} in Japanese");
    }
}

/// A repository in which the trunk has moved on, so that a restack has something to do.
fn advanced() -> TestRepo {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("new", "x\n", "advance");
    repo
}

fn with_hook(name: &str, script: &str) -> TestRepo {
    let repo = advanced();
    let hook = repo.common_dir().join("hooks").join(name);
    fs::create_dir_all(hook.parent().expect("it has a directory")).expect("it can be made");
    fs::write(&hook, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it is ours");
    repo
}

// proves: ST-10.1-4
#[test]
fn f14_each_kind_of_failure_has_a_name_of_its_own_in_every_language() {
    let german = |repo: &TestRepo| lattice(repo).env("LANG", "de_DE.UTF-8").env("LANGUAGE", "de").arg("--json");
    let code = |output: lattice_testkit::Output| output.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
    let repo = advanced();
    assert_eq!(code(german(&repo).cwd("/").arg("log").run()), "not-a-repository");
    assert_eq!(code(german(&repo).args(["info", "nowhere"]).run()), "no-such-branch");
    assert_eq!(code(german(&repo).env("LATTICE_GIT", "/nowhere/git").arg("log").run()), "git-missing");
    let mut wrapper = GitWrapper::new(&repo);
    // After the plan is made and checked, someone else moves a branch.
    wrapper.on("unpack-objects", 1, Action::Run("\"$REAL_GIT\" update-ref refs/heads/a main".to_owned()));
    assert_eq!(code(german(&repo).wrapper(&wrapper).arg("restack").run()), "ref-moved");
    let conflicts = crate::doctor::states::conflict();
    assert_eq!(code(german(&conflicts).arg("restack").run()), "conflict");
    let refusing = with_hook("pre-commit", "exit 1");
    refusing.write("staged", "x\n");
    refusing.git(&["add", "staged"]);
    assert_eq!(code(german(&refusing).args(["create", "c", "-m", "x"]).run()), "hook-refused");
    let busy = advanced();
    busy.write_config("[trunk]\nbranch = \"main\"\n[lock]\ntimeout_ms = 1\n");
    let held = shell(&busy, "mkdir -p .git/lattice; flock .git/lattice/lock \"$LT\" --json restack");
    let answer: Value = serde_json::from_slice(&held.stdout).expect("one document");
    assert_eq!(answer["error"]["code"], "locked", "{answer:#}");
    let mut dying = GitWrapper::new(&busy);
    dying.on("for-each-ref", 1, Action::KillSelf);
    assert_eq!(code(german(&busy).wrapper(&dying).arg("log").run()), "git-killed");
}

fn shell(repo: &TestRepo, script: &str) -> std::process::Output {
    let mut command = Command::new("bash");
    repo.sandbox().apply(&mut command);
    command.env("LT", env!("CARGO_BIN_EXE_lattice")).arg("-c").arg(script).current_dir(repo.dir());
    command.stdin(Stdio::null()).output().expect("bash starts")
}

#[test]
fn f26_a_reader_that_has_seen_enough_is_no_error() {
    let names: Vec<_> = (0..1000).map(|n| format!("main <- branch-with-a-long-name-{n:04}(0)")).collect();
    let repo = TestRepo::draw(&names.join(";"));
    repo.git(&["pack-refs", "--all"]);
    for args in ["log", "log --json", "doctor --json", "completion bash", "man", "schema", "log --long"] {
        let output = shell(&repo, &format!("\"$LT\" {args} | head -n 1 >/dev/null; echo \"${{PIPESTATUS[0]}}\""));
        let (code, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(code.trim(), "0", "{args}: {said}");
        assert!(!said.contains("panicked") && !said.contains("bug"), "{args}: {said}");
    }
}

// proves partly: ST-13.4-3 — the commands here that may ask; the rest of the suite runs without a terminal
#[test]
fn f26_without_input_nothing_waits_and_nothing_is_assumed() {
    let repo = recorded(|repo| repo.set_metadata_raw("b", b"{}"));
    repo.git(&["branch", "stray"]);
    let before = repo.state();
    let asks = ["doctor", "restack", "checkout", "track stray", "init --reset", "create", "modify", "config edit"];
    for args in asks {
        for input in ["<&-", "</dev/null", "< <(yes apply)", "< <(printf '1\\napply\\n')"] {
            let output = shell(&repo, &format!("timeout 60 \"$LT\" {args} {input}; echo \"$?\""));
            let code = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
            assert!(["1", "2"].contains(&code.as_str()), "{args} {input} ends with {code}");
            assert_same(&before, &repo.state());
        }
    }
}

#[test]
fn f26_an_interrupt_while_looking_or_planning_leaves_no_trace() {
    for (args, call) in [(&["log"][..], "for-each-ref"), (&["restack"], "rev-list"), (&["doctor"], "status")] {
        let repo = TestRepo::draw("main* <- a <- b");
        repo.commit_file("new", "x\n", "advance");
        let before = repo.state();
        let mut wrapper = GitWrapper::new(&repo);
        wrapper.on(call, 1, Action::Run("kill -INT $PPID".to_owned()));
        let output = lattice(&repo).wrapper(&wrapper).args(args).run();
        let ended = output.signal == Some(2) || output.code == Some(130);
        assert!(ended, "{args:?} ends at {call}:\n{}", output.snapshot());
        assert_same(&before, &repo.state());
        assert!(!repo.op_state_path().exists(), "{args:?} leaves no marker");
        lattice(&repo).arg("restack").ok();
    }
}

#[test]
fn f26_an_interrupt_during_an_operation_can_be_continued_and_aborted() {
    for way in ["continue", "abort"] {
        for call in ["unpack-objects", "update-ref"] {
            let repo = TestRepo::draw("main* <- a <- b");
            repo.commit_file("new", "x\n", "advance");
            let before = repo.state();
            let mut wrapper = GitWrapper::new(&repo);
            wrapper.on(call, 1, Action::Run("kill -INT $PPID".to_owned()));
            let output = lattice(&repo).wrapper(&wrapper).arg("restack").run();
            assert_ne!(output.code, Some(0), "no success is claimed at {call}:\n{}", output.snapshot());
            assert!(repo.op_state_path().exists(), "the operation is marked at {call}:\n{}", output.snapshot());
            let gated: Value = lattice(&repo).args(["freeze", "a"]).json();
            assert_eq!(gated["error"]["code"], "operation-in-progress", "{gated:#}");
            lattice(&repo).arg(way).ok();
            if way == "abort" {
                assert_same(&before, &repo.state());
            } else {
                assert_eq!(repo.rev("a~1"), repo.rev("main"), "continued after {call}");
            }
            lattice(&repo).arg("verify").ok();
        }
    }
}
