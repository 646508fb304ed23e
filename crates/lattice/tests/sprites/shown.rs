//! What is shown of sprites: what they changed, how they ended, and what is left of them.

use lattice_testkit::TestRepo;
use serde_json::json;

use crate::{agent, lattice, look, validated};

/// A repository whose files are there to be changed.
fn repo() -> TestRepo {
    let repo = TestRepo::draw("main*");
    for path in ["f", "gone", "folder/a", "folder/b", "again/one", "again/two"] {
        repo.commit_file(path, "before\n", path);
    }
    repo
}

const CHANGES: &str =
    "set -e; echo after > f; echo x > new; rm gone; rm -r folder again; mkdir again; echo y > again/two";

#[test]
fn a_difference_tells_what_was_changed_from_what_is_new() {
    let repo = repo();
    let expected = json!({
        "f": "changed", "new": "added", "gone": "removed", "folder/a": "removed", "folder/b": "removed",
        "again/one": "removed", "again/two": "changed",
    });
    assert_eq!(agent(&repo, "left", CHANGES).code, Some(0));
    let left = look(&repo, &["diff", "left"]);
    assert_eq!((&left["files"], &left["checkpoint"]), (&expected, &json!(null)), "it has no checkpoint");
    let script = format!("lattice checkpoint; {CHANGES}");
    assert_eq!(agent(&repo, "kept", &script).code, Some(0));
    let kept = look(&repo, &["diff", "kept"]);
    assert_eq!((&kept["files"], &kept["since"]), (&expected, &json!(null)), "what is there counts, not the checkpoint");
    let script = format!("echo old > new; lattice checkpoint; rm new; {CHANGES}; lattice checkpoint");
    assert_eq!(agent(&repo, "since", &script).code, Some(0));
    let first = look(&repo, &["show", "since"])["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    let since = look(&repo, &["diff", "since", "--since", &first])["files"].clone();
    assert_eq!((&since["f"], &since["new"], &since["gone"]), (&json!("changed"), &json!("changed"), &json!("removed")));
    let none = lattice(&repo).args(["sprite", "diff", "left", "--since", &first]).fails(1);
    assert!(none.stderr.contains("lattice sprite diff left compares"), "{}", none.snapshot());
}

#[test]
fn a_sprite_that_said_nothing_is_shown_when_it_was_followed_to_its_end() {
    let repo = TestRepo::draw("main*");
    assert_eq!(agent(&repo, "quiet", "true").code, Some(0));
    assert_eq!(agent(&repo, "says", "lattice emit info hello").code, Some(0));
    let quiet = lattice(&repo).args(["sprite", "show", "quiet", "--follow"]).ok();
    assert!(quiet.stdout.contains("state      completed"), "{}", quiet.snapshot());
    let says = lattice(&repo).args(["sprite", "show", "says", "--follow"]).ok().stdout;
    let (event, state) = (says.find("hello"), says.find("state      completed"));
    assert!(event.is_some() && event < state, "{says}");
    let line = lattice(&repo).args(["sprite", "show", "says", "--follow", "--json"]).ok().stdout;
    assert_eq!(line.lines().count(), 1, "each line is an event: {line}");
}

#[test]
fn what_is_destroyed_is_not_destroyed_again_and_is_marked() {
    let repo = TestRepo::draw("main*");
    assert_eq!(agent(&repo, "d1", "echo x > x").code, Some(0));
    assert_eq!(agent(&repo, "idle", "true").code, Some(0));
    lattice(&repo).args(["sprite", "destroy", "d1"]).ok();
    let again = lattice(&repo).args(["sprite", "destroy", "d1"]).fails(1);
    assert!(again.stderr.contains("`d1` is destroyed already"), "{}", again.snapshot());
    let diff = lattice(&repo).args(["sprite", "diff", "d1"]).fails(1);
    assert!(diff.stderr.contains("`d1` is destroyed"), "{}", diff.snapshot());
    let listed = lattice(&repo).args(["sprite", "list"]).ok().stdout;
    assert!(listed.contains("sprite/d1 (destroyed)"), "{listed}");
    assert!(listed.contains("sprite/idle (not landed)"), "it made no commit: {listed}");
    repo.git(&["branch", "-D", "sprite/d1"]);
    let sprites = look(&repo, &["list"])["sprites"].clone();
    assert_eq!((&sprites[0]["destroyed"], &sprites[0]["branch_state"]), (&json!(true), &json!("gone")));
    assert_eq!((&sprites[1]["destroyed"], &sprites[1]["branch_state"]), (&json!(false), &json!("not-landed")));
}

#[test]
fn a_sprite_that_failed_or_was_interrupted_names_what_can_be_done() {
    let repo = TestRepo::draw("main*");
    let failed = agent(&repo, "f1", "exit 3");
    assert!(failed.stderr.contains("lattice sprite logs f1"), "{}", failed.snapshot());
    let script = "lattice emit info hello; while :; do sleep 0.1; done";
    let running = lattice(&repo).args(["run", "x", "--name", "cut", "--", "bash", "-c", script]).spawn();
    let events = || lattice(&repo).args(["sprite", "events", "cut"]).run();
    while !events().stdout.contains("hello") {
        std::thread::yield_now();
    }
    running.interrupt();
    running.wait();
    let followed = lattice(&repo).args(["sprite", "events", "cut", "--follow"]).ok();
    assert!(followed.stdout.contains("hello"), "nothing more comes: {}", followed.snapshot());
    for words in [&["sprite", "list"][..], &["sprite", "show", "cut"]] {
        let out = lattice(&repo).args(words).ok();
        assert!(out.stdout.contains("interrupted"), "{}", out.snapshot());
        for way in ["lattice resume cut goes on", "lattice sprite stop cut lands what is there"] {
            assert!(out.stderr.contains(way), "{}", out.snapshot());
        }
    }
    lattice(&repo).args(["sprite", "stop", "cut"]).ok();
}

#[test]
fn a_dry_run_of_gc_says_what_would_be_removed() {
    let repo = TestRepo::draw("main*");
    assert_eq!(agent(&repo, "l1", "echo x > x").code, Some(0));
    let planned = lattice(&repo).args(["sprite", "gc", "--dry-run"]).ok().stdout;
    assert!(planned.starts_with("would remove l1\nwould remove the checkout of "), "{planned}");
    validated(&repo, &lattice(&repo).args(["sprite", "gc", "--dry-run"]).json());
    assert!(lattice(&repo).args(["sprite", "gc"]).ok().stdout.starts_with("removed l1\n"));
}
