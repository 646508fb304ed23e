//! The whole life of a stack, the same on every kind of host.

use expect_test::expect;
use serde_json::json;

use super::World;

/// Create, submit, review, amend, resubmit, land the bottom by squash, sync, merge the rest.
#[track_caller]
fn whole_life(world: &World) {
    let repo = &world.repo;
    for name in ["a", "b", "c"] {
        repo.write(&format!("{name}.txt"), format!("{name}\n"));
        world.lattice().args(["create", name, "-a", "-m", &format!("add {name}\n\nwhy {name}")]).ok();
    }
    let trunk = world.remote_tip("main");
    let submitted = world.run("submit --stack");
    assert_eq!(submitted["pulls"].as_array().map(Vec::len), Some(3), "{submitted:#}");
    assert_eq!([world.pull("a")["base"].clone(), world.pull("b")["base"].clone()], [json!("main"), json!("a")]);
    assert_eq!(world.pull("a")["title"], json!("add a"));
    assert_eq!(repo.metadata("b")["pr"]["number"], world.pull("b")["number"], "the link is cached");
    let before = (world.remote.refs(), repo.refs());
    let again = world.run("submit --stack");
    assert_eq!(again["changed"], json!(false), "{again:#}");
    assert_eq!((world.remote.refs(), repo.refs()), before, "submitting twice changes nothing");
    world.run("pr review --branch a --verdict approve --body fine");
    assert_eq!(world.run("pr show --branch a")["reviews"][0]["verdict"], json!("approved"));

    world.run("checkout a");
    repo.write("a.txt", "a, but better\n");
    world.run("modify -a");
    let resubmitted = world.run("submit --stack");
    assert_eq!(resubmitted["changed"], json!(true));
    for name in ["a", "b", "c"] {
        assert_eq!(world.remote_tip(name), Some(repo.rev(name)), "{name} is pushed");
    }
    assert_eq!(world.remote_tip("main"), trunk, "submit does not touch the trunk of the remote");

    let bob = world.colleague("bob");
    let number = world.pull("a")["number"].to_string();
    world.lattice_in(&bob).args(["get", &number, "--unfrozen"]).ok();
    world.lattice_in(&bob).args(["merge", "--method", "squash", "--confirm"]).ok();
    assert_ne!(world.remote_tip("main"), trunk, "merge lands");
    assert_eq!(world.pull("a")["state"], json!("merged"));

    let synced = world.run("sync --force");
    assert_eq!(synced["ok"], json!(true), "{synced:#}");
    assert!(!repo.branch_refs().contains_key("a"), "what landed is gone");
    assert_eq!(Some(repo.rev("main")), world.remote_tip("main"), "the trunk moved forward");
    assert_eq!(repo.metadata("b")["parent"]["name"], json!("main"), "what stood on it stands on the trunk");
    assert_eq!(repo.rev("b~1"), repo.rev("main"), "and was restacked");
    assert_eq!(world.pull("b")["state"], json!("open"), "the upper pull request survives");

    world.run("submit --stack --branch c");
    assert_eq!(world.pull("b")["base"], json!("main"));
    world.run("checkout c");
    let merged = world.run("merge --confirm");
    assert_eq!(merged["landed"], json!(["b", "c"]), "{merged:#}");
    assert_eq!(repo.branch_refs().keys().map(String::as_str).collect::<Vec<_>>(), ["main"], "nothing is left");
    assert_eq!(Some(repo.rev("main")), world.remote_tip("main"));
    for name in ["a", "b", "c"] {
        let text = world.remote.git(&["show", &format!("main:{name}.txt")]);
        assert!(text.starts_with(name), "{name} is in the trunk: {text}");
    }
    assert_eq!(world.lattice().arg("doctor").run().code, Some(0), "and nothing is wrong");
}

// proves: ST-11.1-1
#[test]
fn a_stack_lives_on_a_remote_by_path() {
    whole_life(&World::path("main*"));
}

#[test]
fn a_stack_lives_on_a_remote_behind_a_daemon() {
    whole_life(&World::daemon("main*"));
}

#[test]
fn a_stack_lives_on_a_remote_over_http() {
    whole_life(&World::http("main*"));
}

// proves: ST-11.1-1, ST-4.1-23, ST-4.1-24
#[test]
fn a_stack_lives_on_github() {
    let world = World::github("main*");
    whole_life(&world);
    let asked = world.github.as_ref().expect("a GitHub").requests();
    assert!(!asked.iter().any(|line| line.starts_with("POST") && line.contains("/stacks")), "it keeps none: {asked:?}");
    assert!(asked.iter().filter(|line| line.contains("/stacks")).count() <= 1, "and is asked once: {asked:?}");
}

#[test]
fn a_stack_lives_on_a_github_that_keeps_stacks_itself() {
    let world = World::github("main*");
    let github = world.github.as_ref().expect("a GitHub");
    github.keep_stacks("acme/tools");
    whole_life(&world);
    assert_eq!(github.stacks("acme/tools"), [[1, 2, 3]], "one stack from the first to the last");
    let asked = github.requests();
    assert!(!asked.iter().any(|line| line.ends_with("/merge")), "each landed through it: {asked:?}");
}

#[test]
fn pull_requests_are_told_from_the_bottom_and_a_merge_tells_what_became_of_the_branches() {
    let world = World::path("main <- z <- a*");
    let submitted = world.run("submit --stack");
    let pulls: Vec<_> = submitted["pulls"].as_array().expect("a list").iter().map(|pull| &pull["branch"]).collect();
    assert_eq!(pulls, ["z", "a"], "what is below comes first");
    let told = world.lattice().args(["merge", "--confirm"]).ok().stdout;
    expect![[r#"
        landed #1 (z)
          moved main to e1facb80
          deleted z
          rebased a (1 commit) onto main
          pushed a to origin
        landed #2 (a)
          moved main to 5cf0f9e6
          deleted a
          on main
    "#]]
    .assert_eq(&told);
    assert_eq!(world.repo.git(&["symbolic-ref", "--short", "HEAD"]), "main");
}

#[test]
fn what_a_submit_moves_here_first_is_told_before_and_after() {
    let world = World::path("main <- a*");
    world.repo.git(&["checkout", "--quiet", "main"]);
    world.repo.commit_file("more.txt", "more\n", "trunk moves");
    world.repo.git(&["push", "--quiet", "origin", "main"]);
    world.repo.git(&["checkout", "--quiet", "a"]);
    let planned = world.lattice().args(["submit", "--no-edit", "--dry-run"]).ok().stdout;
    assert!(planned.contains("rebase a") && planned.contains("push a"), "{planned}");
    let done = world.lattice().args(["submit", "--no-edit"]).ok().stdout;
    assert!(done.starts_with("rebased a (1 commit) onto main\n") && done.contains("pushed a"), "{done}");
    world.repo.git(&["checkout", "--quiet", "main"]);
    world.repo.commit_file("again.txt", "again\n", "trunk moves again");
    world.repo.git(&["push", "--quiet", "origin", "main"]);
    let bob = world.colleague("bob");
    bob.git(&["checkout", "--quiet", "a"]);
    bob.commit_file("b.txt", "b\n", "bob's");
    bob.git(&["push", "--quiet", "origin", "a"]);
    let refused = world.lattice().args(["submit", "--no-edit", "--branch", "a"]).fails(1).stderr;
    assert!(refused.contains("remote-has-more") || refused.contains("never had here"), "{refused}");
    assert!(refused.contains("before that: rebased a"), "and what was done is told: {refused}");
}
