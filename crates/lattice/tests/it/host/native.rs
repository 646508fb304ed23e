//! A GitHub that keeps stacks itself: made, grown, changed and landed, and never asked for where it keeps none.

use serde_json::json;

use super::World;

fn keeping(drawing: &str) -> World {
    let world = World::github(drawing);
    world.github.as_ref().expect("a GitHub").keep_stacks("acme/tools");
    world
}

#[test]
fn a_stack_of_the_host_is_made_once_grows_at_its_top_and_replaces_the_list() {
    let world = keeping("main <- a <- b*");
    let github = world.github.as_ref().expect("a GitHub");
    world.run("submit --stack");
    assert_eq!(github.stacks("acme/tools"), [[1, 2]]);
    assert_eq!(github.pull("acme/tools", 1)["body"], json!(""), "the host shows the stack, so no text has to");
    world.repo.write("c.txt", "c\n");
    world.run("create c -a -m third");
    world.run("submit --stack");
    assert_eq!(github.stacks("acme/tools"), [[1, 2, 3]]);
    github.forget();
    assert_eq!(world.run("submit --stack")["changed"], json!(false));
    let asked = github.requests();
    assert_eq!(asked.iter().filter(|line| line.contains("/stacks")).count(), 1, "{asked:?}");
    assert!(asked.len() <= 2, "unchanged: {asked:?}");
}

#[test]
fn a_stack_whose_order_changes_is_taken_apart_before_and_made_again_after() {
    let world = keeping("main <- a <- b <- c*");
    let github = world.github.as_ref().expect("a GitHub");
    world.run("submit --stack");
    world.run("reorder --order b,a,c");
    world.run("submit --stack");
    assert_eq!(github.stacks("acme/tools"), [[2, 1, 3]]);
    assert_eq!(github.pull("acme/tools", 2)["base"]["ref"], json!("main"));
    assert_eq!(github.pull("acme/tools", 1)["base"]["ref"], json!("b"));
}

#[test]
fn of_a_tree_the_line_at_its_bottom_is_kept_and_the_rest_is_linked_as_everywhere() {
    let world = keeping("main <- a <- b*; b <- c; b <- d");
    let github = world.github.as_ref().expect("a GitHub");
    world.run("submit --stack");
    assert_eq!(github.stacks("acme/tools"), [[1, 2]]);
    let listed = github.pull("acme/tools", 4)["body"].as_str().is_some_and(|body| body.contains("- #4 (this one)"));
    assert!(listed, "what the host does not show is listed");
    assert_eq!(world.run("submit --stack")["changed"], json!(false));
}

#[test]
fn a_hundred_branches_on_such_a_host_need_no_more_requests() {
    let names: Vec<_> = (1..=100).map(|number| format!("b{number:03}")).collect();
    let world = keeping(&format!("main <- {}*", names.join(" <- ")));
    let github = world.github.as_ref().expect("a GitHub");
    github.forget();
    world.run("submit --stack --no-restack");
    assert!(github.requests().len() <= 103, "{} requests", github.requests().len());
    assert_eq!(github.stacks("acme/tools")[0].len(), 100);
}

#[test]
fn what_does_not_land_through_a_stack_says_why_and_stays() {
    let world = keeping("main <- a <- b*");
    let github = world.github.as_ref().expect("a GitHub");
    world.run("submit --stack");
    let bob = world.colleague("bob");
    bob.commit_file("a.txt", "in conflict\n", "the trunk touches the same file");
    world.repo.git(&["push", "--quiet", bob.dir().to_str().expect("text"), "a:refs/heads/unused"]);
    bob.git(&["push", "--quiet", "origin", "main"]);
    let trunk = world.remote_tip("main");
    let document = world.lattice().args(["merge", "--confirm", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("not-mergeable"), "{document:#}");
    assert!(document["error"]["message"].as_str().is_some_and(|said| said.contains("Merge conflict")), "{document:#}");
    assert_eq!(world.remote_tip("main"), trunk);
    assert_eq!(github.pull("acme/tools", 1)["state"], json!("open"));
}
