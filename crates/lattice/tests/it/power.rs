//! Power cuts: what was reported as done is there, and what was under way can be ended.

use lattice_testkit::power::PowerDisk;
use lattice_testkit::{Action, GitWrapper, Lattice, Setup, TestRepo, assert_same};

use crate::lattice;

/// A stack behind its trunk with uncommitted changes, all of it on the disk.
#[track_caller]
fn stack_on(disk: &PowerDisk) -> TestRepo {
    let repo = Setup::default().at(disk.path()).draw("main <- api* <- ui <- top");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("trunk.txt", "newer\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", "api"]);
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("new.txt", "untracked\n");
    Lattice::new("sync", &repo).args(["-f", "."]).ok();
    repo
}

const COMMANDS: [&[&str]; 5] = [
    &["create", "new", "-a", "-m", "new"],
    &["modify", "-a"],
    &["restack"],
    &["freeze", "ui"],
    &["init", "--reset", "--force"],
];

#[test]
fn what_was_reported_as_done_survives_a_power_cut_right_after() {
    for args in COMMANDS {
        let Some(mut disk) = PowerDisk::new() else { return };
        let repo = stack_on(&disk);
        let before = repo.state();
        lattice(&repo).args(args).ok();
        let (after, ledger) = (repo.state(), repo.ledger());
        disk.restart();
        assert_same(&after, &repo.state());
        assert_eq!(repo.ledger(), ledger, "{args:?}: the record is there too");
        repo.git(&["fsck", "--strict", "--no-dangling"]);
        assert!(!repo.op_state_path().exists(), "{args:?} is not in progress any more");
        lattice(&repo).arg("undo").ok();
        assert_same(&before, &repo.state());
        disk.restart();
        assert_same(&before, &repo.state());
    }
}

/// Reads everything that any ref leads to.
#[track_caller]
fn assert_refs_are_whole(repo: &TestRepo, context: &str) {
    let copy = repo.sandbox().root().join("whole.bundle");
    let packed = repo.try_git(&["bundle", "create", "--quiet", copy.to_str().expect("text"), "--all"]);
    assert!(packed.is_ok(), "{context}: {packed:?}");
}

/// Kills the program and the power together at every call of git.
#[track_caller]
fn check_drawn_calls(args: &[&str]) {
    for call in 1..60 {
        let Some(mut disk) = PowerDisk::new() else { return };
        let repo = stack_on(&disk);
        let before = repo.state();
        let mut wrapper = GitWrapper::new(&repo);
        wrapper.on("", call, Action::KillParent);
        let output = lattice(&repo).args(args).wrapper(&wrapper).run();
        // The names of files reach the disk before their contents.
        disk.commit_journal();
        disk.restart();
        let context = format!("{args:?} with the power cut at call {call}");
        assert_refs_are_whole(&repo, &context);
        if output.code == Some(0) {
            return;
        }
        if repo.op_state_path().exists() {
            let way = if call % 2 == 0 { "abort" } else { "continue" };
            let ended = lattice(&repo).arg(way).run();
            assert_eq!(ended.code, Some(0), "{context}: {way} {}", ended.snapshot());
            if way == "abort" {
                let left = before.differences(&repo.state());
                assert!(left.is_empty(), "{context}: {}", left.join("\n"));
            }
        }
        // Objects that were cut off must not be mistaken for whole ones, now or by the next command.
        lattice(&repo).args(args).run();
        assert_refs_are_whole(&repo, &context);
        let verified = lattice(&repo).args(["verify", "--full"]).run();
        assert_eq!(verified.code, Some(0), "{context}: {}", verified.snapshot());
    }
    panic!("so many calls of git are a defect of their own");
}

#[test]
fn a_restack_that_loses_its_power_half_way_can_be_ended() {
    check_drawn_calls(&["restack"]);
}

#[test]
fn a_commit_that_loses_its_power_half_way_can_be_ended() {
    check_drawn_calls(&["create", "new", "-a", "-m", "new"]);
}
