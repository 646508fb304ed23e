//! What could be known before is said before, and what was done before is said after.

use lattice_testkit::TestRepo;

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

#[test]
fn nothing_lands_while_another_worktree_holds_the_trunk() {
    let world = submitted();
    world.repo.git(&["switch", "--quiet", "main"]);
    let dir = world.repo.sandbox().root().join("wt");
    world.repo.git(&["worktree", "add", "--quiet", dir.to_str().expect("paths of tests are text"), "c"]);
    refuses_to_land(&world, &world.repo.beside(&dir), "`main` is checked out in the worktree");
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
