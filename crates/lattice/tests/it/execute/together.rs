//! Many programs at once, and one that holds the lock.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use lattice_testkit::{Lattice, Running, TestRepo};

use crate::lattice;

// proves: ST-3-3, ST-3.4-3
#[test]
fn twenty_programs_at_once_leave_one_chain_and_lose_nothing() {
    let branches: Vec<_> = (0..10).map(|number| format!("b{number}")).collect();
    let drawing: Vec<_> = branches.iter().map(|branch| format!("main <- {branch}")).collect();
    let repo = TestRepo::draw(&drawing.join("; "));
    repo.commit_file("README", "newer\n", "trunk goes on");
    for branch in &branches {
        repo.git(&["branch", &format!("loose-{branch}"), branch]);
    }
    let mut running = Vec::new();
    for (number, branch) in branches.iter().enumerate() {
        let loose = format!("loose-{branch}");
        running.push(lattice(&repo).args(["--json", "track", &loose, "--parent", branch]).spawn());
        let second = if number % 2 == 0 { vec!["freeze", branch] } else { vec!["restack", branch, "--only"] };
        running.push(lattice(&repo).args(["--json"]).args(second).spawn());
    }
    let outputs: Vec<_> = running.into_iter().map(lattice_testkit::cli::Running::wait).collect();
    for output in &outputs {
        let document = output.json();
        let code = document["error"]["code"].as_str().unwrap_or("none").to_owned();
        let told = output.code == Some(0) || ["locked", "ref-moved"].contains(&code.as_str());
        assert!(told, "each succeeds or says who was faster: {}", output.snapshot());
    }
    let done = outputs.iter().filter(|output| output.code == Some(0)).count();
    assert!(!repo.op_state_path().exists());
    lattice(&repo).args(["verify", "--full"]).ok();
    let ledger = repo.ledger();
    let committed = ledger.iter().filter(|event| event["event"] == "Committed");
    let ops: BTreeSet<_> = committed.map(|event| event["op_id"].to_string()).collect();
    assert_eq!(ops.len(), done, "every success is in the ledger, and nothing else");
    let parents = repo.git(&["rev-list", "--parents", "refs/lattice/event-log"]);
    assert!(parents.lines().all(|line| line.split(' ').count() <= 2), "no record has two parents");
    let chain = ledger.iter().map(|event| event["seq"].as_u64().expect("a number"));
    let expected = (1..=ledger.len() as u64).rev();
    assert!(chain.eq(expected), "the numbers have no gap");
}

// proves: ST-6.2-2
#[test]
fn a_writer_waits_for_the_lock_no_longer_than_told_and_says_who_holds_it() {
    let repo = TestRepo::draw("main <- api*");
    lattice(&repo).args(["config", "set", "lock.timeout_ms", "60"]).ok();
    let (holder, gate) = waiting_in_a_hook(&repo);
    let output = lattice(&repo).args(["--json", "freeze", "api"]).run();
    let (code, document) = (output.code, output.json());
    let pid = holder.pid().to_string();
    let readers = lattice(&repo).arg("log").run().code;
    std::fs::write(&gate, "go on\n").expect("the hook reads");
    let held = holder.wait();
    assert_eq!(code, Some(1), "{}", output.snapshot());
    assert_eq!(document["error"]["code"], "locked", "{document}");
    assert!(document["error"]["message"].to_string().contains(&pid), "the holder is named: {document}");
    assert_eq!(readers, Some(0), "readers never wait");
    assert_eq!(held.code, Some(0), "{}", held.snapshot());
    lattice(&repo).args(["freeze", "api"]).ok();
}

/// A `create` that stands in its hook until `gate` is written to.
fn waiting_in_a_hook(repo: &TestRepo) -> (Running, std::path::PathBuf) {
    let (gate, ready) = (repo.sandbox().root().join("gate"), repo.sandbox().root().join("ready"));
    Lattice::new("mkfifo", repo).args([&gate, &ready]).ok();
    let text = format!("#!/bin/sh\necho >{}\ncat {} >/dev/null\n", ready.display(), gate.display());
    repo.write(".git/hooks/pre-commit", text);
    let hook = repo.common_dir().join("hooks/pre-commit");
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
    repo.write("new", "new\n");
    let holder = lattice(repo).args(["create", "ui", "-a", "-m", "ui"]).spawn();
    std::fs::read(&ready).expect("the hook runs");
    (holder, gate)
}

#[test]
fn f12_a_stopped_holder_keeps_its_lock_and_a_dead_one_or_a_reused_number_blocks_nobody() {
    let repo = TestRepo::draw("main <- api*");
    lattice(&repo).args(["config", "set", "lock.timeout_ms", "60"]).ok();
    let (holder, gate) = waiting_in_a_hook(&repo);
    let pid = holder.pid().to_string();
    Lattice::new("kill", &repo).args(["-STOP", &pid]).ok();
    let refused = lattice(&repo).args(["--json", "freeze", "api"]).run();
    std::fs::write(&gate, "go on\n").expect("the hook reads");
    Lattice::new("kill", &repo).args(["-CONT", &pid]).ok();
    let held = holder.wait();
    assert_eq!(refused.json()["error"]["code"], "locked", "a stopped holder is alive: {}", refused.snapshot());
    assert!(refused.stdout.contains(&pid), "the holder is named: {}", refused.snapshot());
    assert_eq!(held.code, Some(0), "it goes on as if nothing had been: {}", held.snapshot());

    // The number of a dead holder may belong to someone else by now, as this one does to the test itself.
    let lock = repo.lattice_dir().join("lock");
    let text = std::fs::read_to_string(&lock).expect("the last holder stands in it");
    std::fs::write(&lock, text.replace(&pid, &std::process::id().to_string())).expect("it is ours");
    lattice(&repo).args(["freeze", "api"]).ok();
}
