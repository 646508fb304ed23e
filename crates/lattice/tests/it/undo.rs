//! `undo` and `redo`: every operation goes back byte for byte, and forth again.

use lattice_testkit::{TestRepo, assert_same};

use crate::lattice;

/// Throws away everything that no ref leads to.
fn collect_garbage(repo: &TestRepo) {
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "--prune=now", "--quiet"]);
}

/// Runs a command, undoes it, redoes it and undoes it again, with nothing kept alive but by Lattice.
#[track_caller]
fn check(repo: &TestRepo, args: &[&str]) {
    let before = repo.state();
    lattice(repo).args(args).ok();
    let after = repo.state();
    assert!(before != after, "{args:?} has to change something, else undoing it proves nothing");
    for round in ["first", "second"] {
        collect_garbage(repo);
        let undone = lattice(repo).arg("undo").run();
        assert_eq!(undone.code, Some(0), "{round} undo of {args:?}: {}", undone.snapshot());
        let left = before.differences(&repo.state());
        assert!(left.is_empty(), "{round} undo of {args:?} is not complete:\n{}", left.join("\n"));
        collect_garbage(repo);
        lattice(repo).arg("redo").ok();
        let left = after.differences(&repo.state());
        assert!(left.is_empty(), "{round} redo of {args:?} is not complete:\n{}", left.join("\n"));
    }
    repo.git(&["fsck", "--no-dangling"]);
    lattice(repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

/// One change staged, one not, one file new, one half staged, one removed, one link, one program.
fn dirty(repo: &TestRepo) {
    repo.write("staged.txt", "staged\n");
    repo.write("half.txt", "first half\n");
    repo.git(&["add", "staged.txt", "half.txt"]);
    repo.write("half.txt", "first half\nsecond half\n");
    repo.write("new/untracked", "untracked\n");
    repo.write("run", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(repo.dir().join("run"), mode).expect("the file is ours");
    std::os::unix::fs::symlink("nowhere", repo.dir().join("link \u{e4}\n")).expect("a link can be made");
    std::fs::remove_file(repo.dir().join("README")).expect("it is there");
}

fn stack() -> TestRepo {
    TestRepo::draw("main <- api* <- ui <- top; main <- db; ui <- docs!")
}

/// The trunk goes on without the stack.
fn behind(repo: &TestRepo) {
    let current = repo.git(&["symbolic-ref", "--short", "HEAD"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("trunk.txt", "newer\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", &current]);
}

#[test]
fn edits_of_branches_go_back_and_forth() {
    let cases: [&[&str]; 10] = [
        &["reorder", "--order", "b,a,c"],
        &["split", "--by-commit"],
        &["split", "--by-file", "b.txt"],
        &["squash", "-m", "one"],
        &["fold"],
        &["fold", "--keep"],
        &["pop"],
        &["delete", "--downstack"],
        &["rename", "other/name"],
        &["revert", "main"],
    ];
    for args in cases {
        let repo = TestRepo::draw("main <- a <- b(2)* <- c; a <- side");
        repo.commit_file("more.txt", "more\n", "a third commit");
        repo.git(&["checkout", "--quiet", "main"]);
        repo.commit_file("trunk.txt", "newer\n", "trunk goes on");
        repo.git(&["checkout", "--quiet", "b"]);
        repo.write("untracked", "mine\n");
        check(&repo, args);
    }
}

#[test]
fn what_changes_only_metadata_or_configuration_goes_back_and_forth() {
    check(&TestRepo::new(), &["init", "--trunk", "main"]);
    check(&stack(), &["init", "--reset", "--force"]);
    check(&stack(), &["freeze", "ui"]);
    check(&stack(), &["unfreeze", "docs"]);
    check(&stack(), &["untrack", "db"]);
    check(&stack(), &["config", "set", "undo.keep_days", "30"]);
    let repo = stack();
    repo.git(&["branch", "loose", "ui"]);
    check(&repo, &["track", "loose", "--parent", "api"]);
    let repo = TestRepo::new();
    repo.git(&["branch", "other"]);
    lattice(&repo).args(["init", "--trunk", "main"]).ok();
    check(&repo, &["trunk", "set", "other"]);
}

#[test]
fn moving_around_goes_back_and_forth_with_uncommitted_changes() {
    for args in [&["checkout", "ui"][..], &["up"], &["down"], &["checkout", "main"], &["checkout", "docs"]] {
        let repo = stack();
        dirty(&repo);
        check(&repo, args);
    }
    for args in [&["top"][..], &["bottom"]] {
        let repo = TestRepo::draw("main <- api <- ui* <- top");
        dirty(&repo);
        check(&repo, args);
    }
}

#[test]
fn commits_go_back_to_what_was_staged_edited_and_untracked() {
    let commands: [&[&str]; 9] = [
        &["create", "empty-handed", "-m", "what is staged"],
        &["create", "new", "-a", "-m", "everything"],
        &["create", "new", "-u", "-m", "what git knows"],
        &["create", "new", "-a", "-m", "between", "--insert"],
        &["modify", "-m", "another message"],
        &["modify", "-a"],
        &["modify", "-u"],
        &["modify", "-a", "-c", "-m", "one more"],
        &["modify", "-c", "-m", "what is staged"],
    ];
    for args in commands {
        let repo = stack();
        dirty(&repo);
        check(&repo, args);
    }
}

#[test]
fn a_change_to_a_branch_below_goes_back() {
    let repo = stack();
    repo.git(&["checkout", "--quiet", "ui"]);
    dirty(&repo);
    check(&repo, &["modify", "-a", "--into", "api"]);
}

// The public predecessor's undo brought metadata back and left the branches where they were.
#[test]
fn undo_of_a_restack_brings_back_branches_and_not_only_metadata() {
    let repo = stack();
    behind(&repo);
    lattice(&repo).args(["unfreeze", "docs"]).ok();
    let branches = repo.branch_refs();
    lattice(&repo).arg("restack").ok();
    assert_ne!(repo.branch_refs(), branches, "the restack moved branches");
    lattice(&repo).arg("undo").ok();
    assert_eq!(repo.branch_refs(), branches, "and undo moved them back");
}

#[test]
fn rewriting_goes_back_and_forth_with_uncommitted_changes_that_are_not_in_the_way() {
    for args in [&["restack"][..], &["restack", "--upstack"], &["move", "--onto", "db"]] {
        let repo = stack();
        behind(&repo);
        lattice(&repo).args(["unfreeze", "docs"]).ok();
        dirty(&repo);
        check(&repo, args);
    }
}

#[test]
fn a_repair_goes_back_and_forth() {
    let repo = stack();
    lattice(&repo).args(["freeze", "ui"]).ok();
    repo.git(&["update-ref", "-d", "refs/branch-metadata/ui"]);
    let report = lattice(&repo).arg("doctor").json();
    let issues = report["issues"].as_array().expect("a list").iter();
    let mut fixes = issues.flat_map(|issue| issue["fixes"].as_array().expect("a list"));
    let fix = fixes.find(|fix| fix["user_action"].is_null()).expect("doctor offers to bring the document back");
    let id = fix["id"].as_str().expect("ids are text").to_owned();
    check(&repo, &["doctor", "--fix", &id]);
}

#[test]
fn an_older_operation_is_refused_and_what_to_undo_first_is_named() {
    let repo = stack();
    let create = lattice(&repo).args(["create", "new"]).json()["operation"].as_str().expect("an id").to_owned();
    let freeze = lattice(&repo).args(["freeze", "new"]).json()["operation"].as_str().expect("an id").to_owned();
    let other = lattice(&repo).args(["freeze", "db"]).json()["operation"].as_str().expect("an id").to_owned();
    let before = repo.state();
    let output = lattice(&repo).args(["--json", "undo", &create]).fails(1).json();
    assert_eq!(output["error"]["code"], "changed-since");
    let hints = output["error"]["hints"].to_string();
    assert!(hints.contains(&freeze), "the later change of the same document is named: {hints}");
    assert!(!hints.contains(&other), "what has nothing to do with it is not: {hints}");
    assert_same(&before, &repo.state());
    // In any order in which nothing depends on what is left.
    lattice(&repo).args(["undo", &freeze]).ok();
    lattice(&repo).args(["undo", &create]).ok();
    assert!(!repo.branch_refs().contains_key("new"));
    lattice(&repo).args(["undo", &other]).ok();
    let output = lattice(&repo).args(["--json", "undo", &other]).fails(1).json();
    assert_eq!(output["error"]["code"], "already-undone");
}

#[test]
fn a_branch_that_was_moved_with_git_since_is_not_undone_over() {
    let repo = stack();
    lattice(&repo).args(["create", "new", "-m", "nothing staged"]).ok();
    let mine = repo.commit_file("mine", "committed with git\n", "mine");
    let before = repo.state();
    let output = lattice(&repo).args(["--json", "undo"]).fails(1).json();
    assert_eq!(output["error"]["code"], "changed-since", "{output}");
    assert_same(&before, &repo.state());
    assert_eq!(repo.rev("new"), mine);
}

#[test]
fn edits_made_since_are_carried_over_or_stop_the_undo() {
    let repo = stack();
    dirty(&repo);
    lattice(&repo).args(["create", "new", "-a", "-m", "everything"]).ok();
    repo.write("since.txt", "made since\n");
    repo.write("half.txt", "first half\nsecond half\nthird half\n");
    repo.write("since-staged.txt", "staged since\n");
    repo.git(&["add", "since-staged.txt"]);
    lattice(&repo).arg("undo").ok();
    assert_eq!(repo.read("half.txt"), "first half\nsecond half\nthird half\n", "an edit of a file stays");
    assert_eq!(repo.read("since.txt"), "made since\n");
    assert_eq!(repo.git(&["show", ":half.txt"]), "first half", "what was staged before is staged again");
    assert_eq!(repo.git(&["show", ":since-staged.txt"]), "staged since", "what was staged since stays staged");

    let repo = stack();
    behind(&repo);
    lattice(&repo).arg("restack").ok();
    repo.write("trunk.txt", "an edit of a file that undo would remove\n");
    let before = repo.state();
    let output = lattice(&repo).args(["--json", "undo"]).fails(1).json();
    assert_eq!(output["error"]["code"], "files-in-the-way", "{output}");
    assert_same(&before, &repo.state());
    assert!(!repo.op_state_path().exists(), "a refusal leaves no marker");
}

#[test]
fn undo_from_another_worktree_never_touches_files_it_cannot_see() {
    let repo = stack();
    let other = repo.worktree("other", "db");
    lattice(&repo).args(["freeze", "ui"]).ok();
    lattice(&other).arg("undo").ok();
    assert_eq!(repo.metadata("ui")["freeze"]["state"], "unfrozen", "metadata belongs to all worktrees");
    repo.write("a.txt", "new\n");
    lattice(&repo).args(["create", "new", "-a", "-m", "new"]).ok();
    let (here, there) = (repo.state(), other.state());
    let output = lattice(&other).args(["--json", "undo"]).fails(1).json();
    assert_eq!(output["error"]["code"], "other-worktree", "{output}");
    let there_it_works = format!("lattice -C {} undo", repo.dir().display());
    assert!(output["error"]["hints"].to_string().contains(&there_it_works), "{output}");
    assert_same(&here, &repo.state());
    assert_same(&there, &other.state());
}

#[test]
fn undo_carries_a_worktree_along_that_has_the_branch_checked_out() {
    let repo = stack();
    behind(&repo);
    lattice(&repo).arg("restack").ok();
    let other = repo.worktree("other", "ui");
    lattice(&repo).arg("undo").ok();
    assert_eq!(other.git(&["status", "--porcelain"]), "", "its files are those of the branch again");
    lattice(&repo).arg("redo").ok();
    assert_eq!(other.git(&["status", "--porcelain"]), "");
}

#[test]
fn head_does_not_go_back_to_a_branch_that_is_gone_or_away_from_one_that_moved() {
    let changes: [&[&str]; 3] =
        [&["branch", "-D", "b"], &["merge", "--quiet", "--ff-only", "b"], &["branch", "--force", "b", "a"]];
    for change in changes {
        let repo = TestRepo::draw("main <- a <- b*");
        lattice(&repo).args(["checkout", "main"]).ok();
        repo.git(change);
        let before = repo.state();
        let document = lattice(&repo).args(["undo", "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], "changed-since", "{change:?}: {document:#}");
        assert_same(&before, &repo.state());
    }
}
