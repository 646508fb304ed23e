//! Conflicts among many stacks, conflicts that are foreseen, and conflicts that were resolved before.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::{Value, json};

use crate::lattice;

use super::{assert_at_rest, rebasing};

/// Three stacks behind a trunk that took over a file of the one in the middle.
fn three_stacks() -> TestRepo {
    let repo = TestRepo::draw("main* <- a <- a2; main <- b <- b2(2) <- b3; main <- c <- c2");
    repo.commit_file("b2.txt", "the trunk's own\n", "take over b2.txt");
    repo
}

#[track_caller]
fn stands(repo: &TestRepo, branch: &str, parent: &str) {
    assert_eq!(repo.rev(&format!("{branch}~1")), repo.rev(parent), "{branch} stands on {parent}");
    assert_eq!(repo.metadata(branch)["base"]["oid"], Value::from(repo.rev(parent)));
}

#[test]
fn a_stack_that_conflicts_is_skipped_by_name_and_the_others_move() {
    let repo = three_stacks();
    let before = ["b", "b2", "b3"].map(|branch| repo.rev(branch));
    let answer = lattice(&repo).arg("restack").json();
    for (branch, parent) in [("a", "main"), ("a2", "a"), ("c", "main"), ("c2", "c")] {
        stands(&repo, branch, parent);
    }
    assert_eq!(["b", "b2", "b3"].map(|branch| repo.rev(branch)), before, "the whole stack is as it was");
    assert_eq!(answer["kept"][0]["branch"], json!("b"), "{answer:#}");
    let reason = answer["kept"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("b2 conflicts in b2.txt") && reason.contains("lattice restack b2"), "{reason}");
    assert_at_rest(&repo);
    let again = lattice(&repo).arg("restack").fails(4);
    assert!(again.stderr.contains("b2.txt"), "the one stack that is left pauses:\n{}", again.stderr);
    lattice(&repo).arg("abort").ok();
    assert_at_rest(&repo);
}

#[test]
fn a_restack_where_every_stack_conflicts_changes_nothing_and_names_them_all() {
    let repo = TestRepo::draw("main* <- a; main <- b <- b2");
    repo.commit_file("a.txt", "the trunk's own\n", "take over a.txt");
    repo.commit_file("b.txt", "the trunk's own\n", "take over b.txt");
    let before = repo.state();
    let output = lattice(&repo).arg("restack").ok();
    for words in ["kept a (a conflicts in a.txt", "kept b (b conflicts in b.txt"] {
        assert!(output.stdout.contains(words) || output.stderr.contains(words), "{}", output.snapshot());
    }
    assert_same(&before, &repo.state());
    assert_at_rest(&repo);
}

#[test]
fn a_dry_run_foresees_conflicts_with_branch_commit_and_files_and_leaves_nothing() {
    let repo = three_stacks();
    let commit = repo.rev("b2~1");
    let objects = || repo.git(&["count-objects", "-v"]);
    let (before, stored) = (repo.state(), objects());
    let answer = lattice(&repo).args(["restack", "--dry-run"]).json();
    assert_eq!(answer["conflicts"], json!([{ "branch": "b2", "commit": commit, "files": ["b2.txt"] }]));
    let output = lattice(&repo).args(["restack", "--dry-run", "b3"]).ok();
    let line = format!("conflict in b2: {} changes b2.txt", &commit[..8]);
    assert!(output.stdout.contains(&line), "{}", output.snapshot());
    assert_same(&before, &repo.state());
    assert_eq!(objects(), stored, "no object was stored");
    assert!(!lattice(&repo).args(["restack", "--dry-run", "a"]).ok().stdout.contains("conflict"));
}

/// A stack that conflicts with its trunk, was brought there once, and is where it began.
fn resolved_once(options: &[(&str, &str)]) -> TestRepo {
    let repo = TestRepo::draw("main <- a <- b*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("a.txt", "the trunk's own\n", "take over a.txt");
    repo.git(&["checkout", "--quiet", "b"]);
    for (name, value) in options {
        repo.git(&["config", name, value]);
    }
    lattice(&repo).arg("restack").fails(4);
    repo.write("a.txt", "both\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    lattice(&repo).arg("undo").ok();
    repo
}

#[test]
fn a_conflict_that_git_remembers_is_not_resolved_twice() {
    let repo = resolved_once(&[("rerere.enabled", "true"), ("rerere.autoupdate", "true")]);
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.git(&["show", "b:a.txt"]), "both");
    assert_at_rest(&repo);
}

#[test]
fn what_git_resolved_as_before_is_shown_to_a_user_who_wants_to_look() {
    let repo = resolved_once(&[("rerere.enabled", "true")]);
    let output = lattice(&repo).args(["--json", "restack"]).fails(4).json();
    assert_eq!(output["paused"]["remembered"], json!(["a.txt"]), "{output:#}");
    assert!(rebasing(&repo));
    assert_eq!(repo.read("a.txt"), "both\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!(repo.git(&["show", "b:a.txt"]), "both");
    assert_at_rest(&repo);
}

#[test]
fn without_that_option_every_conflict_is_the_users() {
    let repo = resolved_once(&[("rerere.enabled", "false")]);
    let output = lattice(&repo).arg("restack").fails(4);
    assert!(output.stderr.contains("resolve the files"), "{}", output.stderr);
}

#[test]
fn what_is_kept_is_told_when_the_operation_comes_to_its_end() {
    let repo = TestRepo::draw("main <- a* <- f!");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("a.txt", "the trunk's own\n", "take over a.txt");
    repo.git(&["checkout", "--quiet", "a"]);
    lattice(&repo).arg("restack").fails(4);
    repo.write("a.txt", "both\n");
    let output = lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!(output.stdout, "done: a\nkept f (frozen)\n");
}
