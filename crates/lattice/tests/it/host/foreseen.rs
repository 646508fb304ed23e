//! What could be known before is said before, and what was done before is said after.

use lattice_testkit::TestRepo;
use serde_json::json;

use super::World;

#[track_caller]
fn submitted() -> World {
    let world = World::path("main <- a <- b <- c*");
    world.run("submit --stack");
    world
}

/// Refused by the dry run and by the real one, and the trunk of the remote is where it was.
#[track_caller]
fn refuses_to_land(world: &World, from: &TestRepo, said: &str) {
    let trunk = world.remote_tip("main");
    for line in [["merge", "--dry-run"], ["merge", "--confirm"]] {
        let output = world.lattice_in(from).args(line).fails(1);
        assert!(output.stderr.contains(said), "{}", output.snapshot());
        assert_eq!(world.remote_tip("main"), trunk, "nothing landed");
    }
}

/// A worktree at `c`, with the trunk checked out in the first one.
fn beside_the_trunk(world: &World) -> TestRepo {
    world.repo.git(&["switch", "--quiet", "main"]);
    world.repo.worktree("wt", "c")
}

#[test]
fn the_trunk_follows_in_the_worktree_that_has_it() {
    let world = submitted();
    let here = beside_the_trunk(&world);
    world.repo.write("untracked.txt", "mine\n");
    let output = world.lattice_in(&here).args(["merge", "--confirm"]).ok();
    let said = "kept c (landed, checked out here, and the trunk in another worktree)";
    assert!(output.stdout.contains(said), "{}", output.snapshot());
    assert_eq!(Some(world.repo.rev("main")), world.remote_tip("main"));
    let bob = world.colleague("bob");
    bob.commit_file("theirs.txt", "theirs\n", "theirs");
    bob.git(&["push", "--quiet", "origin", "main"]);
    world.lattice_in(&here).args(["sync"]).ok();
    assert_eq!(Some(world.repo.rev("main")), world.remote_tip("main"));
    assert_eq!(world.repo.read("theirs.txt"), "theirs\n");
    assert_eq!(world.repo.git(&["status", "--porcelain"]), "?? untracked.txt");
}

#[test]
fn edits_beside_that_are_in_the_way_of_the_trunk_are_named_and_stay() {
    let world = submitted();
    let here = beside_the_trunk(&world);
    let bob = world.colleague("bob");
    bob.commit_file("theirs.txt", "theirs\n", "theirs");
    bob.git(&["push", "--quiet", "origin", "main"]);
    world.repo.write("theirs.txt", "precious\n");
    let before = world.repo.rev("main");
    let output = world.lattice_in(&here).args(["sync"]).fails(1);
    let dir = world.repo.dir().to_str().expect("the kit chooses its paths");
    assert!(output.stderr.contains(dir), "{}", output.snapshot());
    assert_eq!((world.repo.rev("main"), world.repo.read("theirs.txt").as_str()), (before, "precious\n"));
    world.repo.git(&["clean", "--quiet", "--force"]);
    world.lattice_in(&here).args(["sync"]).ok();
    assert_eq!(Some(world.repo.rev("main")), world.remote_tip("main"));
}

#[test]
fn nothing_lands_while_the_worktree_of_the_trunk_is_gone() {
    let world = submitted();
    let other = world.repo.worktree("wt", "main");
    std::fs::remove_dir_all(other.dir()).expect("folders of tests can be removed");
    refuses_to_land(&world, &world.repo, "which is gone");
    world.repo.git(&["worktree", "prune"]);
    world.run("merge --confirm");
}

#[test]
fn nothing_lands_while_the_local_trunk_could_not_follow() {
    let world = submitted();
    let bob = world.colleague("bob");
    bob.commit_file("theirs.txt", "theirs\n", "theirs");
    bob.git(&["push", "--quiet", "origin", "main"]);
    world.repo.git(&["switch", "--quiet", "main"]);
    world.repo.commit_file("mine.txt", "mine\n", "mine");
    world.repo.git(&["switch", "--quiet", "c"]);
    refuses_to_land(&world, &world.repo, "`main` has commits that the remote does not have");
}

#[test]
fn a_get_that_fails_says_what_it_took_in_before() {
    let world = submitted();
    let bob = world.colleague("bob");
    let file = world.repo.git(&["diff", "--name-only", "b", "c"]).trim().to_owned();
    bob.write(&file, "precious\n");
    let output = world.lattice_in(&bob).args(["get", "c"]).fails(1);
    assert!(bob.branch_refs().contains_key("b"), "{}", output.snapshot());
    assert!(
        output.stderr.contains("before that: ") && !output.stderr.contains("nothing was changed"),
        "{}",
        output.snapshot()
    );
    assert_eq!(bob.read(&file), "precious\n");
}

#[test]
fn a_forced_get_names_the_operation_that_brings_each_branch_back() {
    let world = submitted();
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "b", "--unfrozen"]).ok();
    let own = bob.commit_file("bob.txt", "bob\n", "bob's");
    world.lattice_in(&bob).args(["get", "c"]).run();
    bob.git(&["switch", "--quiet", "main"]);
    world.run("checkout b");
    world.repo.write("more.txt", "more\n");
    world.run("modify -a");
    world.run("submit --stack");
    let refused = world.lattice_in(&bob).args(["get", "b"]).fails(1);
    assert!(refused.stderr.contains("says what brings yours back"), "{}", refused.snapshot());
    let output = world.lattice_in(&bob).args(["get", "b", "--force"]).ok();
    let back = output
        .stderr
        .lines()
        .find_map(|line| line.split_once("your commits of `b` come back with: lattice ")?.1.into());
    let back: &str = back.unwrap_or_else(|| panic!("{}", output.snapshot()));
    world.lattice_in(&bob).args(back.split(' ')).ok();
    assert_eq!(bob.rev("b"), own);
}

#[test]
fn a_dry_run_of_get_knows_what_was_not_fetched_yet() {
    let world = submitted();
    let bob = world.colleague("bob");
    for branch in ["a", "b", "c"] {
        bob.git(&["update-ref", "-d", &format!("refs/remotes/origin/{branch}")]);
    }
    let before = bob.refs();
    let foreseen = world.lattice_in(&bob).args(["get", "b", "--dry-run"]).ok();
    assert_eq!(bob.refs(), before);
    assert!(foreseen.stdout.contains("a") && foreseen.stdout.contains("parent a"), "{}", foreseen.snapshot());
}

#[test]
fn getting_a_branch_unfrozen_that_is_here_unfreezes_it() {
    let world = submitted();
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "a"]).ok();
    world.lattice_in(&bob).args(["get", "a", "--unfrozen"]).ok();
    let info = world.lattice_in(&bob).args(["unfreeze", "a"]).ok();
    assert!(info.stderr.contains("nothing to do"), "{}", info.snapshot());
}

#[test]
fn the_way_out_after_somebody_landed_the_lowest_leads_to_the_end() {
    let world = submitted();
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "a", "--unfrozen"]).ok();
    world.lattice_in(&bob).args(["merge", "--confirm"]).ok();
    let output = world.lattice().args(["merge", "--confirm"]).fails(1);
    assert!(output.stderr.contains("lattice sync tidies up, lattice submit pushes the rest"), "{}", output.snapshot());
    for line in ["sync", "submit --stack", "merge --confirm"] {
        world.run(line);
    }
}

#[test]
fn a_pull_request_whose_head_is_gone_is_listed_among_the_closed() {
    let world = submitted();
    world.remote.git(&["update-ref", "-d", "refs/heads/b"]);
    let numbers = |state: &str| {
        let listed = world.run(&format!("pr list --state {state}"));
        let pulls = listed["pulls"].as_array().cloned().unwrap_or_default();
        pulls.iter().map(|pull| pull["branch"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((numbers("open"), numbers("closed")), (vec![json!("c"), json!("a")], vec![json!("b")]));
}

#[test]
fn a_comment_without_a_text_is_refused_with_a_way_that_there_is() {
    let world = World::path("main*");
    let output = world.lattice().args(["issue", "comment", "1", ""]).fails(2);
    assert!(!output.stderr.contains("--body"), "{}", output.snapshot());
}

#[test]
fn pull_requests_of_branches_that_are_removed_are_named() {
    let world = submitted();
    for (line, closes) in [("delete c", "lattice pr close 3"), ("fold", "lattice pr close 2")] {
        if line == "fold" {
            world.run("checkout b");
        }
        let output = world.lattice().args(line.split(' ')).ok();
        assert!(output.stderr.contains(closes), "{}", output.snapshot());
    }
}
