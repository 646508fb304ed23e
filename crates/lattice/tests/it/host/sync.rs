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

#[test]
fn what_was_done_before_a_conflict_is_told() {
    let world = World::path("main <- a*");
    world.repo.write("README", "ours\n");
    world.run("modify -a");
    let bob = world.colleague("bob");
    bob.commit_file("README", "theirs\n", "theirs");
    bob.git(&["push", "--quiet", "origin", "main"]);
    let paused = world.lattice().arg("sync").fails(4).stderr;
    assert!(paused.contains("before that: moved main to"), "{paused}");
    assert!(paused.contains("lattice undo"), "and how to take it back: {paused}");
}

#[test]
fn a_branch_that_moved_on_the_remote_is_named_and_an_untouched_copy_follows_it() {
    let world = World::path("main <- a*");
    world.run("submit --no-edit");
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "1"]).ok();
    world.repo.write("a.txt", "amended\n");
    world.run("modify -a");
    world.run("submit --no-edit");
    let synced = world.lattice_in(&bob).arg("sync").ok();
    assert!(synced.stderr.contains("lattice get a"), "{}", synced.snapshot());
    assert!(!synced.stdout.contains("up to date"), "{}", synced.snapshot());
    world.lattice_in(&bob).args(["get", "1"]).ok();
    assert_eq!(bob.rev("a"), world.repo.rev("a"), "a copy that nobody touched is replaced");
    world.lattice_in(&bob).args(["unfreeze", "a"]).ok();
    bob.commit_file("own.txt", "own\n", "bob's own");
    world.repo.write("a.txt", "amended again\n");
    world.run("modify -a");
    world.run("submit --no-edit");
    world.lattice_in(&bob).args(["freeze", "a"]).ok();
    let own = bob.rev("a");
    let refused = world.lattice_in(&bob).args(["get", "1", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("diverged"), "{refused:#}");
    assert_eq!(bob.rev("a"), own, "what is one's own is not");
}

#[test]
fn a_branch_of_ones_own_that_is_frozen_is_not_replaced_by_what_others_made_of_it() {
    let world = World::path("main <- a*");
    world.run("submit --no-edit");
    world.run("freeze a");
    let own = world.repo.rev("a");
    let bob = world.colleague("bob");
    bob.git(&["checkout", "--quiet", "a"]);
    bob.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    bob.git(&["push", "--quiet", "--force", "origin", "a"]);
    assert_eq!(world.run("sync")["theirs"], json!(["a"]));
    let refused = world.lattice().args(["get", "a", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("diverged"), "{refused:#}");
    assert_eq!(world.repo.rev("a"), own);
}

#[test]
fn a_squash_names_everybody_whose_work_it_is() {
    let world = World::path("main <- a*");
    let message =
        "more\n\nCo-authored-by: Eve <eve@example.com>\n\nlast words\n\nSigned-off-by: Carl <carl@example.com>";
    world.repo.write("b.txt", "b\n");
    world.repo.git(&["add", "b.txt"]);
    world.repo.git(&["-c", "user.name=Carl", "-c", "user.email=carl@example.com", "commit", "--quiet", "-m", message]);
    world.run("submit --no-edit");
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "1", "--unfrozen"]).ok();
    world.lattice_in(&bob).args(["merge", "--confirm"]).ok();
    let shown = |format: &str| world.remote.git(&["log", "-1", &format!("--format={format}"), "main"]);
    let author = world.repo.git(&["log", "-1", "--format=%an", "a~1"]);
    assert_eq!([shown("%an"), shown("%cn")], [author, "Bob Colleague".to_owned()]);
    let trailers = shown("%(trailers:key=Co-authored-by,valueonly)");
    for name in ["Carl <carl@example.com>", "Eve <eve@example.com>"] {
        assert!(trailers.contains(name), "{name} in {}", shown("%B"));
    }
    assert!(
        shown("%(trailers:key=Signed-off-by)").contains("Carl"),
        "others stay where git finds them: {}",
        shown("%B")
    );
}

#[test]
fn a_landed_branch_that_stays_does_not_stand_on_one_that_was_deleted() {
    let world = World::path("main <- a <- b <- c*");
    world.run("submit --stack");
    let bob = world.colleague("bob");
    bob.git(&["merge", "--quiet", "--squash", "origin/c"]);
    bob.git(&["commit", "--quiet", "--message", "all of it"]);
    bob.git(&["push", "--quiet", "origin", "main"]);
    let questions = ["a has landed. Delete it?", "b has landed. Delete it?", "c has landed. Delete it?"];
    let terminal = world.lattice().arg("sync").terminal();
    let asked =
        questions.iter().zip(["y\r", "n\r", "n\r"]).fold(terminal, |on, (question, key)| on.answer(question, key));
    let output = asked.run();
    assert_eq!(output.code, Some(0), "{}", output.snapshot());
    assert_eq!(world.repo.metadata("b")["parent"]["name"], json!("main"), "{}", output.snapshot());
    assert_eq!(world.repo.metadata("c")["parent"]["name"], json!("b"));
    world.lattice().arg("doctor").ok();
}

#[test]
fn what_was_done_before_a_failure_is_told_and_not_called_unchanged() {
    let world = World::path("main <- a*");
    world.repo.write("README", "ours\n");
    world.run("modify -a");
    let bob = world.colleague("bob");
    bob.commit_file("README", "theirs\n", "theirs");
    bob.git(&["push", "--quiet", "origin", "main"]);
    world.repo.write("a.txt", "not committed\n");
    let failed = world.lattice().arg("sync").fails(1).stderr;
    assert!(failed.contains("before that: moved main to"), "{failed}");
    assert!(failed.contains("nothing else was changed") && !failed.contains("nothing was changed"), "{failed}");
}

#[test]
fn copies_of_a_stack_follow_together_from_the_topmost() {
    let world = World::path("main <- a <- b*");
    world.run("submit");
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "b"]).ok();
    world.run("checkout a");
    world.repo.write("a.txt", "amended\n");
    world.run("modify -a");
    world.run("submit --stack");
    world.lattice_in(&bob).args(["get", "b"]).ok();
    for branch in ["a", "b"] {
        assert_eq!(bob.rev(branch), world.repo.rev(branch), "{branch} follows");
    }
    assert_eq!(bob.metadata("b")["base"]["oid"], json!(bob.rev("a")), "and b has only its own commits");
}

#[test]
fn a_landed_branch_in_another_worktree_stays_as_it_is() {
    let world = World::path("main <- a*");
    world.repo.write("a.txt", "again\n");
    world.run("modify -c -a -m again");
    world.run("submit");
    world.run("checkout main");
    let before = world.repo.rev("a");
    let other = world.repo.worktree("other", "a");
    let bob = world.colleague("bob");
    bob.git(&["merge", "--quiet", "--squash", "origin/a"]);
    bob.git(&["commit", "--quiet", "--message", "all of it"]);
    bob.git(&["push", "--quiet", "origin", "main"]);
    let synced = world.run("sync --force");
    assert_eq!(synced["landed"], json!(["a"]), "{synced:#}");
    assert_eq!([world.repo.rev("a"), other.rev("HEAD")], [before.clone(), before], "nothing is brought onto itself");
}

#[test]
fn what_landed_in_another_form_below_a_copy_is_not_private() {
    let world = World::path("main <- a <- b*");
    world.run("submit");
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "b"]).ok();
    bob.write("c.txt", "c\n");
    world.lattice_in(&bob).args(["create", "c", "-a", "-m", "on a copy"]).ok();
    world.run("checkout a");
    world.run("merge --confirm");
    world.lattice_in(&bob).arg("sync").ok();
    assert_eq!(bob.metadata("b")["parent"]["name"], json!("main"));
    world.lattice_in(&bob).args(["submit", "--no-edit"]).ok();
    assert_eq!(world.remote_tip("c"), Some(bob.rev("c")));
}

#[test]
fn a_squash_names_others_below_any_text_and_has_an_author_whatever_the_first_one_is_called() {
    let world = World::path("main*");
    world.repo.write("a.txt", "a\n");
    world.lattice().args(["create", "a", "-a", "-m", "Title\n\n**Why**: because"]).ok();
    let nameless = world.repo.git(&["cat-file", "commit", "HEAD"]);
    let author = nameless.lines().find(|line| line.starts_with("author ")).expect("an author");
    let nobody = format!("author  {}", &author[author.find('<').expect("an address")..]);
    let nameless = nameless.replace(author, &nobody) + "\n";
    let made = world.repo.git_with_input(&["hash-object", "-t", "commit", "-w", "--stdin"], nameless.as_bytes());
    world.repo.git(&["reset", "--quiet", "--hard", String::from_utf8_lossy(&made).trim()]);
    world.repo.write("b.txt", "b\n");
    world.repo.git(&["add", "b.txt"]);
    world.repo.git(&["-c", "user.name=Carl", "-c", "user.email=carl@example.com", "commit", "--quiet", "-m", "more"]);
    world.run("submit --no-edit");
    world.run("merge --confirm");
    let shown = |format: &str| world.remote.git(&["log", "-1", &format!("--format={format}"), "main"]);
    assert!(shown("%B").contains("**Why**: because"), "{}", shown("%B"));
    assert!(shown("%(trailers:key=Co-authored-by)").contains("Carl <carl@example.com>"), "{}", shown("%B"));
}

#[test]
fn a_branch_that_changes_nothing_has_not_landed() {
    let world = World::path("main*");
    world.run("create marker");
    world.repo.git(&["commit", "--quiet", "--allow-empty", "--message", "marker"]);
    world.run("checkout main");
    world.repo.write("try.txt", "try\n");
    world.run("create experiment -a -m experiment");
    world.repo.git(&["revert", "--no-edit", "HEAD"]);
    let synced = world.run("sync --force");
    assert_eq!(synced["landed"], json!([]), "{synced:#}");
    assert!(["marker", "experiment"].iter().all(|branch| world.repo.branch_refs().contains_key(*branch)));
}

#[test]
fn what_landed_elsewhere_is_tidied_up_before_the_rest_lands() {
    let world = World::path("main <- a <- b*");
    world.run("submit");
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "a", "--unfrozen"]).ok();
    world.lattice_in(&bob).args(["merge", "--confirm"]).ok();
    let refused = world.lattice().args(["merge", "--confirm"]).fails(1).stderr;
    assert!(refused.contains("lattice sync"), "{refused}");
    world.run("sync --force");
    world.run("submit");
    world.run("merge --confirm");
}
