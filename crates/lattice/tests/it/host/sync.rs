//! `sync`: what landed is found by its content, however it was merged.

use lattice_testkit::TestRepo;
use serde_json::json;

use super::World;

/// Lands `a` on the remote's trunk in some way, and lets somebody change the trunk after that.
#[track_caller]
fn landed(land: impl Fn(&TestRepo)) -> World {
    let world = World::path("main <- a(2) <- b*");
    world.run("submit --stack");
    let bob = world.colleague("bob");
    land(&bob);
    bob.commit_file("later.txt", "later\n", "later");
    bob.git(&["push", "--quiet", "origin", "main"]);
    world
}

#[test]
fn branches_land_by_merge_squash_and_rebase() {
    let ways: [(&str, &[&[&str]]); 3] = [
        ("merge", &[&["merge", "--quiet", "--no-ff", "-m", "merged", "origin/a"]]),
        ("squash", &[&["merge", "--quiet", "--squash", "origin/a"], &["commit", "--quiet", "-m", "squashed"]]),
        ("rebase", &[&["commit", "--quiet", "--allow-empty", "-m", "between"], &["cherry-pick", "main..origin/a"]]),
    ];
    for (way, commands) in ways {
        let world = landed(|bob| {
            for command in commands {
                bob.git(command);
            }
        });
        let own = world.repo.git(&["log", "--format=%s", "a..b"]);
        let kept = world.run("sync");
        assert_eq!(kept["landed"], json!(["a"]), "{way}: found, and kept without --force: {kept:#}");
        assert!(world.repo.branch_refs().contains_key("a"), "{way}");
        assert_eq!(world.repo.metadata("b")["parent"], json!({ "kind": "trunk", "name": "main" }), "{way}");
        assert_eq!(world.repo.git(&["log", "--format=%s", "main..b"]), own, "{way}: b has its own commits and no more");
        world.run("sync --force");
        assert!(!world.repo.branch_refs().contains_key("a"), "{way}: deleted when the user says so");
        world.run("undo");
        assert!(world.repo.branch_refs().contains_key("a"), "{way}: and undo brings it back");
    }
}

#[test]
fn of_a_branch_that_landed_in_part_the_rest_stays() {
    let world = landed(|bob| drop(bob.git(&["cherry-pick", "origin/a~1"])));
    let synced = world.run("sync --force");
    assert_eq!(synced["landed"], json!([]), "{synced:#}");
    assert!(world.repo.branch_refs().contains_key("a"));
    let subjects = world.repo.git(&["log", "--format=%s", "main..a"]);
    assert_eq!(subjects.lines().count(), 1, "one commit is left: {subjects}");
    assert_eq!(world.repo.metadata("b")["parent"]["name"], json!("a"), "b still stands on it");
    assert_eq!(world.repo.rev("b~1"), world.repo.rev("a"));
}

#[test]
fn a_branch_that_was_deleted_upstream_keeps_its_local_commits() {
    let world = World::path("main <- a*");
    world.run("submit");
    let unpushed = world.repo.commit_file("more.txt", "more\n", "not pushed");
    world.remote.git(&["update-ref", "-d", "refs/heads/a"]);
    let synced = world.run("sync --force");
    assert_eq!(synced["landed"], json!([]), "{synced:#}");
    assert_eq!(world.repo.rev("a"), unpushed);
    assert_eq!(world.repo.metadata("a")["pr"]["last_known"]["state"], json!("closed"), "its pull request is closed");
}

#[test]
fn an_empty_branch_or_one_like_the_trunk_has_not_landed() {
    let world = World::path("main <- a*");
    world.run("create empty");
    let synced = world.run("sync --force");
    assert_eq!(synced["landed"], json!([]), "{synced:#}");
    assert!(world.repo.branch_refs().contains_key("empty"));
}

#[test]
fn a_stop_between_two_operations_is_taken_up_by_the_next_run() {
    let world = World::path("main <- a <- b*");
    world.run("submit --stack");
    let bob = world.colleague("bob");
    bob.commit_file("a.txt", "in conflict\n", "the trunk touches the same file");
    bob.git(&["push", "--quiet", "origin", "main"]);
    let paused = world.lattice().args(["sync", "--json"]).fails(4).json();
    assert_eq!(paused["error"]["code"], json!("conflict"), "{paused:#}");
    assert_eq!(Some(world.repo.rev("main")), world.remote_tip("main"), "what came before is done");
    world.repo.write("a.txt", "resolved\n");
    world.lattice().args(["continue", "-a"]).ok();
    world.run("sync");
    assert_eq!(world.repo.rev("a~1"), world.repo.rev("main"));
    assert_eq!(world.repo.rev("b~1"), world.repo.rev("a"));
}

#[test]
fn a_stack_that_conflicts_stays_and_the_others_are_brought_up_to_date() {
    let world = World::path("main <- a <- b*; main <- c <- d; main <- e");
    world.run("submit --stack");
    let bob = world.colleague("bob");
    bob.commit_file("c.txt", "in conflict\n", "the trunk touches the same file");
    bob.git(&["push", "--quiet", "origin", "main"]);
    let left = [world.repo.rev("c"), world.repo.rev("d")];
    let output = world.lattice().arg("sync").ok();
    assert!(output.stdout.contains("kept c (c conflicts in c.txt"), "{}", output.snapshot());
    assert_eq!([world.repo.rev("c"), world.repo.rev("d")], left, "the whole stack is as it was");
    for (branch, parent) in [("a", "main"), ("b", "a"), ("e", "main")] {
        assert_eq!(world.repo.rev(&format!("{branch}~1")), world.repo.rev(parent), "{branch} stands on {parent}");
    }
    assert!(!world.repo.op_state_path().exists(), "nothing is in progress");
    let again = world.lattice().args(["sync", "--json"]).fails(4).json();
    assert_eq!(again["error"]["code"], json!("conflict"), "the one that is left pauses: {again:#}");
    world.lattice().arg("abort").ok();
}

#[test]
fn a_merge_stops_where_what_lands_next_conflicts_although_other_stacks_move_on() {
    let world = World::path("main <- a <- b*; main <- e");
    world.run("submit --stack");
    let bob = world.colleague("bob");
    bob.commit_file("b.txt", "in conflict\n", "the trunk touches the same file");
    bob.git(&["push", "--quiet", "origin", "main"]);
    let output = world.lattice().args(["merge", "--confirm", "--json"]).fails(4);
    assert_eq!(output.json()["error"]["code"], json!("conflict"), "{}", output.snapshot());
    assert_eq!(world.pull("a")["state"], json!("merged"));
    assert_eq!(world.pull("b")["state"], json!("open"));
    assert_eq!(world.repo.rev("e~1"), world.repo.rev("main"), "the other stack is up to date");
}

#[test]
fn get_takes_a_stack_in_from_the_bottom_frozen_and_never_over_own_commits() {
    let world = World::path("main <- a <- b*");
    world.run("submit --stack");
    let bob = world.colleague("bob");
    let got = world.lattice_in(&bob).args(["get", "b"]).ok();
    assert_eq!(bob.git(&["branch", "--show-current"]), "b", "{}", got.snapshot());
    assert_eq!(bob.metadata("b")["parent"]["name"], json!("a"), "what it stands on came along");
    assert_eq!(bob.metadata("a")["freeze"]["state"], json!("frozen"));
    let own = bob.commit_file("own.txt", "own\n", "own");
    world.repo.commit_file("theirs.txt", "theirs\n", "theirs");
    world.run("submit");
    let document = world.lattice_in(&bob).args(["get", "b", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("diverged"), "{document:#}");
    assert_eq!(bob.rev("b"), own);
    world.lattice_in(&bob).args(["get", "b", "--force"]).ok();
    assert_eq!(bob.rev("b"), world.repo.rev("b"));
    world.lattice_in(&bob).args(["undo"]).ok();
    assert_eq!(bob.rev("b"), own, "and undo brings the own commits back");
}
