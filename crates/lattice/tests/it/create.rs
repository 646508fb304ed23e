//! Tests of create: a branch on the current one, empty or with a commit, between others, with hooks.

use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;
use lattice_testkit::{Lattice, TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

/// Installs a hook that runs this shell text.
#[track_caller]
fn hook(repo: &TestRepo, name: &str, text: &str) {
    let path = repo.git_dir().join("hooks").join(name);
    repo.write(path.to_str().expect("text"), format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
}

#[test]
fn a_message_for_nothing_is_not_passed_over_in_silence() {
    let repo = TestRepo::draw("main <- a*");
    for (arguments, told) in [(&["b"][..], false), (&["c", "-m", "text"], true), (&["d", "-a"], true)] {
        let output = lattice(&repo).arg("create").args(arguments).ok();
        assert_eq!(output.stderr.contains("no commit yet"), told, "{arguments:?}: {}", output.snapshot());
    }
}

// proves: ST-3.2-1, ST-3.2-2, ST-3.2.2-12
#[test]
fn without_anything_staged_the_branch_is_empty_tracked_and_checked_out() {
    let repo = TestRepo::draw("main <- a*");
    repo.write("README", "edited, not staged\n");
    let out = lattice(&repo).args(["create", "feature/b"]).ok();
    expect![[r#"
        tracking feature/b on a
        on feature/b
    "#]]
    .assert_eq(&out.stdout);
    assert_eq!(repo.rev("feature/b"), repo.rev("a"), "no commit was asked for");
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "feature/b");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M README", "uncommitted work comes along");
    assert_eq!(repo.git(&["cat-file", "-t", "refs/branch-metadata/feature/b"]), "blob");
    let metadata = repo.metadata("feature/b");
    assert_eq!(metadata["parent"], json!({ "kind": "branch", "name": "a" }));
    assert_eq!(metadata["base"], json!({ "oid": repo.rev("a") }), "the base is a commit id, not a name");
}

#[test]
fn what_is_staged_becomes_the_first_commit_and_nothing_else() {
    let repo = TestRepo::draw("main*");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("README", "edited\n");
    repo.write("new.txt", "untracked\n");
    lattice(&repo).args(["create", "a", "-m", "Add a file\n\nWith a body."]).ok();
    assert_eq!(repo.git(&["log", "-1", "--format=%B", "a"]), "Add a file\n\nWith a body.\n");
    assert_eq!(repo.git(&["show", "--format=", "--name-only", "a"]), "staged.txt");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M README\n?? new.txt");
    assert_eq!(repo.rev("a^"), repo.rev("main"));
}

#[test]
fn all_and_update_choose_what_is_staged_also_from_a_subdirectory() {
    for (flag, expected) in
        [("-a", "README\nnew.txt"), ("-u", "README"), ("--all", "README\nnew.txt"), ("--update", "README")]
    {
        let repo = TestRepo::draw("main*");
        repo.write("README", "edited\n");
        repo.write("new.txt", "untracked\n");
        std::fs::create_dir(repo.dir().join("sub")).expect("a new folder");
        lattice(&repo).cwd("sub").args(["create", "a", flag, "-m", "take"]).ok();
        assert_eq!(repo.git(&["show", "--format=", "--name-only", "a"]), expected, "create {flag}");
    }
    let repo = TestRepo::draw("main*");
    lattice(&repo).args(["create", "a", "-a", "-u", "-m", "both"]).fails(2);
    let patch = lattice(&repo).args(["create", "a", "-p", "-m", "m"]).fails(2).stderr;
    assert!(patch.contains("--patch needs a terminal"), "{patch}");
}

#[test]
fn a_change_of_the_same_size_in_the_moment_of_the_last_commit_is_seen() {
    let repo = TestRepo::draw("main*");
    let moment = |path: &str| drop(Lattice::new("touch", &repo).args(["-d", "@1600000000", path]).ok());
    // A file system whose clock is too coarse to tell the two apart.
    repo.git(&["config", "core.trustctime", "false"]);
    repo.write("same.txt", "old\n");
    moment("same.txt");
    repo.git(&["add", "same.txt"]);
    repo.git(&["commit", "--quiet", "-m", "old"]);
    repo.write("same.txt", "new\n");
    moment("same.txt");
    moment(".git/index");
    lattice(&repo).args(["create", "a", "-a", "-m", "take"]).ok();
    assert_eq!(repo.git(&["show", "a:same.txt"]), "new");
}

#[test]
fn the_name_comes_from_the_message_as_the_template_says() {
    let repo = TestRepo::draw("main*");
    lattice(&repo).args(["create", "-m", "Fix: the Crash, (again)!"]).ok();
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "fix-the-crash-again");
    lattice(&repo).args(["config", "set", "branch.template", "me/{date}/{slug}"]).ok();
    lattice(&repo).args(["create", "-m", "Überprüfung"]).ok();
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "me/2026-01-02/überprüfung");
    let unnamed = lattice(&repo).args(["create", "-m", "!!!", "--json"]).fails(1).json();
    assert_eq!(unnamed["error"]["code"], json!("name-required"));
    lattice(&repo).arg("create").fails(2);
    lattice(&repo).args(["create", "x", "-m", "  "]).fails(2);
}

#[test]
fn names_that_cannot_be_are_refused_before_anything_is_done() {
    let repo = TestRepo::draw("main* <- a; main <- dir/leaf");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.set_metadata_raw("gone", repo.git(&["cat-file", "blob", "refs/branch-metadata/a"]).as_bytes());
    let before = repo.state();
    let clash = |name: &str, code: i32, error: &str| {
        let document = lattice(&repo).args(["create", "--json", "-m", "m", "--", name]).fails(code).json();
        assert_eq!(document["error"]["code"], json!(error), "create {name}: {document:#}");
        assert_same(&before, &repo.state());
    };
    for name in ["-x", "HEAD", "@", "a..b", "a b", "x.lock", "/x", "x/", "", "a\u{7}b", "x~1", "@{u}"] {
        clash(name, 2, "usage");
    }
    repo.git(&["update-ref", "-d", "refs/branch-metadata/gone"]);
    let before = repo.state();
    for (name, error) in [
        ("a", "branch-exists"),
        ("main", "branch-exists"),
        ("a/b", "branch-name-clash"),
        ("dir", "branch-name-clash"),
        ("main/x/y", "branch-name-clash"),
    ] {
        let document = lattice(&repo).args(["create", "--json", "-m", "m", name]).fails(1).json();
        assert_eq!(document["error"]["code"], json!(error), "create {name}: {document:#}");
        assert!(document["error"]["hints"][0].is_string(), "a refusal says what to do");
        assert_same(&before, &repo.state());
    }
    assert!(repo.ledger().is_empty(), "a name clash is found in planning, not by an aborted operation");
}

#[test]
fn there_must_be_a_branch_to_stand_on() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["checkout", "--quiet", "-b", "loose"]);
    let untracked = lattice(&repo).args(["create", "x"]).fails(1).stderr;
    assert!(untracked.contains("`loose` is not tracked"), "{untracked}");
    repo.git(&["checkout", "--quiet", "--detach"]);
    let detached = lattice(&repo).args(["create", "x"]).fails(1).stderr;
    assert!(detached.contains("HEAD is detached"), "{detached}");
    repo.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    let unborn = lattice(&repo).args(["create", "x"]).fails(1).stderr;
    assert!(unborn.contains("has no commit yet"), "{unborn}");
    assert!(repo.try_git(&["rev-parse", "--verify", "refs/heads/x"]).is_err(), "no branch was made");
}

#[test]
fn something_to_commit_needs_a_message_without_a_terminal() {
    let repo = TestRepo::draw("main*");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    let before = repo.state();
    let document = lattice(&repo).args(["create", "a", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("message-required"), "{document:#}");
    assert_same(&before, &repo.state());
}

#[test]
fn insert_puts_the_branch_between_the_current_one_and_all_of_its_children() {
    let repo = TestRepo::draw("main <- a* <- b <- c <- f!; a <- d(2); main <- other");
    let (f, other) = (repo.rev("f"), repo.rev("other"));
    repo.write("between.txt", "between\n");
    let document = lattice(&repo).args(["create", "mid", "-a", "--insert", "-m", "between"]).json();
    assert_eq!(document["ok"], json!(true), "{document:#}");
    assert_eq!(document["current"], json!("mid"));
    let kept = json!([{ "branch": "f", "reason": "frozen" }]);
    assert_eq!(document["kept"], kept, "what is frozen is not rewritten, and says that it waits");
    assert_eq!(repo.rev("mid^"), repo.rev("a"));
    assert_eq!([repo.rev("b^"), repo.rev("d~2")], [repo.rev("mid"), repo.rev("mid")], "both children stand on it");
    assert_eq!(repo.rev("c^"), repo.rev("b"), "and what is above them came along");
    assert_eq!([repo.rev("f"), repo.rev("other")], [f, other]);
    for child in ["b", "d"] {
        assert_eq!(repo.metadata(child)["parent"], json!({ "kind": "branch", "name": "mid" }));
    }
    assert_eq!(lattice(&repo).arg("verify").json()["holds"], json!(true));
}

#[test]
fn nothing_is_inserted_below_a_frozen_child() {
    let repo = TestRepo::draw("main <- a* <- b; a <- f!");
    repo.write("between.txt", "between\n");
    let before = repo.state();
    let document = lattice(&repo).args(["--json", "create", "mid", "-a", "--insert", "-m", "between"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("frozen"), "{document:#}");
    assert!(document.to_string().contains("lattice unfreeze f"), "it says what to do: {document:#}");
    assert_same(&before, &repo.state());
    lattice(&repo).args(["unfreeze", "f"]).ok();
    lattice(&repo).args(["create", "mid", "-a", "--insert", "-m", "between"]).ok();
    assert_eq!(repo.metadata("f")["parent"]["name"], json!("mid"));
}

#[test]
fn inserting_an_empty_branch_rewrites_no_commit() {
    let repo = TestRepo::draw("main <- a* <- b <- c");
    let tips = repo.branch_refs();
    lattice(&repo).args(["create", "mid", "--insert"]).ok();
    assert_eq!(repo.metadata("b")["parent"]["name"], json!("mid"));
    let mut now = repo.branch_refs();
    assert_eq!(now.remove("mid"), Some(repo.rev("a")), "the new branch has no commit of its own");
    assert_eq!(now, tips, "nothing below any commit changed, so no commit may change");
}

// proves: ST-10.2-1, ST-10.2-2
#[test]
fn hooks_decide_unless_they_are_skipped() {
    for name in ["pre-commit", "commit-msg", "prepare-commit-msg"] {
        let repo = TestRepo::draw("main*");
        hook(&repo, name, "echo the hook says no >&2; exit 1");
        repo.write("new.txt", "new\n");
        let before = repo.state();
        let refused = lattice(&repo).args(["create", "a", "-a", "-m", "m"]).fails(1).stderr;
        assert!(refused.contains(name) && refused.contains("the hook says no"), "{refused}");
        assert!(refused.contains("--no-verify"), "the way out is named: {refused}");
        assert_same(&before, &repo.state());
        lattice(&repo).args(["create", "a", "-a", "-m", "m", "--no-verify"]).ok();
        assert_eq!(repo.git(&["show", "--format=%s", "--name-only", "a"]), "m\n\nnew.txt");
    }
}

#[test]
fn a_hook_that_leaves_nothing_of_a_message_refuses_it() {
    let repo = TestRepo::draw("main*");
    hook(&repo, "commit-msg", ": > \"$1\"");
    repo.write("new.txt", "new\n");
    let before = repo.state();
    let refused = lattice(&repo).args(["--json", "create", "a", "-a", "-m", "m"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("message-emptied"), "{refused:#}");
    assert_same(&before, &repo.state());
}

#[test]
fn hooks_may_change_message_and_content_and_cannot_change_the_stack() {
    let repo = TestRepo::draw("main*");
    hook(&repo, "commit-msg", "echo 'Trailer: yes' >> \"$1\"");
    let program = env!("CARGO_BIN_EXE_lattice");
    hook(&repo, "pre-commit", &format!("echo made > made.txt; git add made.txt; {program} freeze main 2>nested; true"));
    repo.write("new.txt", "new\n");
    repo.git(&["add", "new.txt"]);
    lattice(&repo).args(["create", "a", "-m", "m"]).ok();
    assert!(repo.git(&["log", "-1", "--format=%B", "a"]).contains("Trailer: yes"), "commit-msg edits the message");
    assert_eq!(repo.git(&["show", "--format=", "--name-only", "a"]), "made.txt\nnew.txt", "pre-commit may stage");
    assert!(
        repo.read("nested").contains("has not ended"),
        "a nested writer is refused at once: {}",
        repo.read("nested")
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? nested");
}

#[test]
fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let repo = TestRepo::draw("main*");
    repo.write("new.txt", "new\n");
    let before = repo.state();
    let out = lattice(&repo).args(["create", "a", "-a", "-m", "m", "--dry-run"]).ok();
    for line in ["stage all changes", "commit to a on", "track a: parent main", "check out a"] {
        assert!(out.stdout.contains(line), "`{line}` is missing:\n{}", out.snapshot());
    }
    assert_same(&before, &repo.state());
    assert!(repo.ledger().is_empty(), "a dry run is no operation");
}
