//! Tests of the commands that edit the branches of a stack.

mod hunks;

use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

/// The subjects from the trunk up to a branch, oldest first.
fn subjects(repo: &TestRepo, branch: &str) -> Vec<String> {
    let range = format!("main..{branch}");
    repo.git(&["log", "--reverse", "--format=%s", &range]).lines().map(str::to_owned).collect()
}

fn tree(repo: &TestRepo, branch: &str) -> String {
    repo.rev(&format!("{branch}^{{tree}}"))
}

fn parent(repo: &TestRepo, branch: &str) -> String {
    repo.metadata(branch)["parent"]["name"].as_str().expect("a name").to_owned()
}

#[track_caller]
fn holds(repo: &TestRepo) {
    lattice(repo).args(["verify", "--full"]).ok();
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "nothing is left over in the working tree");
}

/// Refused with this code and these words, and nothing changed.
#[track_caller]
fn refused(repo: &TestRepo, args: &[&str], code: &str, words: &str) {
    let before = repo.state();
    let document = lattice(repo).arg("--json").args(args).fails(1).json();
    assert_eq!(document["error"]["code"], json!(code), "{args:?}: {document:#}");
    assert!(document.to_string().contains(words), "{args:?} says `{words}`: {document:#}");
    assert_same(&before, &repo.state());
}

#[test]
fn reorder_puts_the_branches_into_the_order_that_was_given_and_carries_the_rest_along() {
    let repo = TestRepo::draw("main <- a <- b(2)* <- c; a <- side; c <- left; c <- right");
    let content = tree(&repo, "c");
    lattice(&repo).args(["reorder", "--order", "c,a,b"]).ok();
    assert_eq!(subjects(&repo, "b"), ["c 1", "a 1", "b 1", "b 2"]);
    assert_eq!([parent(&repo, "c"), parent(&repo, "a"), parent(&repo, "b")], ["main", "c", "a"]);
    assert_eq!(tree(&repo, "b"), content, "the top of the line has the same files");
    assert_eq!(repo.rev("side^"), repo.rev("a"), "what stood on a stands on a");
    assert_eq!([repo.rev("left^"), repo.rev("right^")], [repo.rev("c"), repo.rev("c")]);
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "b");
    holds(&repo);
}

#[test]
fn a_list_that_is_no_order_of_the_line_is_refused_by_name() {
    let repo = TestRepo::draw("main <- a <- b* <- c; main <- other");
    refused(&repo, &["reorder", "--order", "a,b"], "bad-order", "leaves out c");
    refused(&repo, &["reorder", "--order", "a,b,c,a"], "bad-order", "a more than once");
    refused(&repo, &["reorder", "--order", "a,b,c,other"], "bad-order", "other is not part");
    refused(&repo, &["reorder", "--order", "a,b,c,main"], "bad-order", "main is not part");
    assert_eq!(lattice(&repo).args(["reorder", "--order", "a,b,c"]).json()["changed"], json!(false));
    lattice(&repo).args(["freeze", "a"]).ok();
    refused(&repo, &["reorder", "--order", "b,a,c"], "gated", "`a` is frozen");
}

#[test]
fn a_conflict_of_a_new_order_can_be_aborted() {
    let repo = TestRepo::draw("main <- a* <- b");
    repo.commit_file("shared", "of a\n", "a adds a file");
    lattice(&repo).arg("restack").ok();
    repo.git(&["checkout", "--quiet", "b"]);
    repo.commit_file("shared", "of b\n", "b changes it");
    let before = repo.state();
    lattice(&repo).args(["reorder", "--order", "b,a"]).fails(4);
    lattice(&repo).arg("abort").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn split_by_commit_gives_every_commit_a_branch_and_changes_none() {
    let repo = TestRepo::draw("main <- a <- b(3)* <- c");
    let tips = [repo.rev("b~2"), repo.rev("b~1"), repo.rev("b"), repo.rev("c")];
    lattice(&repo).args(["split", "--by-commit"]).ok();
    assert_eq!([repo.rev("b-1"), repo.rev("b-2"), repo.rev("b"), repo.rev("c")], tips, "no commit was made anew");
    let parents = ["b-1", "b-2", "b", "c"].map(|branch| parent(&repo, branch));
    assert_eq!(parents, ["a", "b-1", "b-2", "b"]);
    holds(&repo);
    refused(&repo, &["split", "--by-commit"], "nothing-to-split", "1 commit");
}

#[test]
fn split_by_file_loses_nothing_and_needs_something_on_both_sides() {
    let repo = TestRepo::draw("main <- a* <- top");
    repo.write("docs/guide", "guide\n");
    repo.write("docs/deep/more", "more\n");
    repo.commit_file("code", "code\n", "code and docs");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    lattice(&repo).arg("restack").ok();
    let (files, above) = (tree(&repo, "a"), tree(&repo, "top"));
    refused(&repo, &["split", "--by-file", "docs", "nowhere"], "nothing-left", "changes nothing at `nowhere`");
    refused(&repo, &["split", "--by-file", "docs", "code", "a.txt"], "nothing-left", "commit of a");
    lattice(&repo).args(["split", "--by-file", "docs"]).ok();
    assert_eq!([tree(&repo, "a"), tree(&repo, "top")], [files, above], "the sum of the changes is the same");
    assert_eq!(repo.git(&["diff", "--name-only", "main", "a-1"]), "docs/deep/more\ndocs/guide");
    assert_eq!(repo.git(&["diff", "--name-only", "a-1", "a"]), "a.txt\ncode");
    assert_eq!([parent(&repo, "a-1"), parent(&repo, "a"), parent(&repo, "top")], ["main", "a-1", "a"]);
    lattice(&repo).args(["split", "--by-file", "code"]).ok();
    assert_eq!([parent(&repo, "a-2"), parent(&repo, "a")], ["a-1", "a-2"], "the next name that is free");
    holds(&repo);
}

#[test]
fn squash_keeps_the_files_the_first_author_and_every_message() {
    let repo = TestRepo::draw("main <- a(3)* <- b");
    let who = "--author=Grace Author <grace@example.invalid>";
    repo.git(&["commit", "--quiet", "--allow-empty", "--message", "by another", who]);
    let (files, first) = (tree(&repo, "a"), repo.git(&["log", "-1", "--format=%an %ad", "a~3"]));
    lattice(&repo).arg("squash").ok();
    assert_eq!(subjects(&repo, "a").len(), 1);
    assert_eq!(tree(&repo, "a"), files);
    assert_eq!(repo.git(&["log", "-1", "--format=%an %ad", "a"]), first, "author and date of the first commit");
    let message = repo.git(&["log", "-1", "--format=%B", "a"]);
    assert_eq!(message.trim_end(), "a 1\n\na 2\n\na 3\n\nby another");
    assert_eq!(repo.rev("b^"), repo.rev("a"), "b came along");
    holds(&repo);
    refused(&repo, &["squash"], "nothing-to-squash", "1 commit");
}

#[test]
fn fold_makes_one_branch_of_two_under_either_name() {
    for keep in [false, true] {
        let repo = TestRepo::draw("main <- a <- b* <- c; a <- side");
        let (tip, top) = (repo.rev("b"), repo.rev("c"));
        let args: &[&str] = if keep { &["fold", "--keep"] } else { &["fold"] };
        lattice(&repo).args(args).ok();
        let (kept, gone) = if keep { ("b", "a") } else { ("a", "b") };
        assert_eq!(repo.rev(kept), tip, "the commits are the same");
        assert!(repo.try_git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{gone}")]).is_err());
        assert!(!repo.metadata_refs().contains_key(gone), "{gone} is not tracked");
        assert_eq!([parent(&repo, kept), parent(&repo, "c"), parent(&repo, "side")], ["main", kept, kept]);
        assert_eq!(repo.rev("c"), top, "what stood on it need not move");
        assert_eq!(subjects(&repo, "side"), ["a 1", "b 1", "side 1"], "the other child follows");
        assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), kept);
        holds(&repo);
    }
    let repo = TestRepo::draw("main <- a*");
    refused(&repo, &["fold"], "on-trunk", "stands on the trunk");
}

#[test]
fn pop_leaves_the_changes_staged_on_the_parent() {
    let repo = TestRepo::draw("main <- a <- b* <- c");
    let files = tree(&repo, "b");
    repo.write("untracked", "mine\n");
    let before = repo.state();
    lattice(&repo).arg("pop").ok();
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "a");
    assert_eq!(repo.git(&["status", "--porcelain"]), "A  b.txt\n?? untracked");
    assert_eq!(repo.git(&["write-tree"]), files, "the index is what the branch was");
    assert_eq!(subjects(&repo, "c"), ["a 1", "c 1"], "what stood on it stands on its parent");
    lattice(&repo).arg("verify").ok();
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn delete_takes_a_branch_out_and_with_flags_what_is_above_or_below() {
    let draw = || TestRepo::draw("main <- a <- b* <- c; b <- d");
    let left = |repo: &TestRepo| {
        let names: Vec<_> = repo.branch_refs().into_keys().collect();
        names.join(" ")
    };
    let repo = draw();
    lattice(&repo).arg("delete").ok();
    assert_eq!(left(&repo), "a c d main");
    assert_eq!([subjects(&repo, "c"), subjects(&repo, "d")], [["a 1", "c 1"], ["a 1", "d 1"]]);
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "a", "the parent is checked out");
    holds(&repo);
    let repo = draw();
    lattice(&repo).args(["delete", "--upstack"]).ok();
    assert_eq!(left(&repo), "a main");
    holds(&repo);
    let repo = draw();
    lattice(&repo).args(["delete", "--downstack"]).ok();
    assert_eq!(left(&repo), "c d main");
    assert_eq!([parent(&repo, "c"), parent(&repo, "d")], ["main", "main"]);
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    holds(&repo);
    let repo = TestRepo::draw("main* <- a <- f!");
    refused(&repo, &["delete", "f"], "gated", "`f` is frozen");
    refused(&repo, &["delete", "a"], "frozen", "`f` is frozen");
    refused(&repo, &["delete", "main"], "gated", "`main` is the trunk");
}

#[test]
fn rename_takes_metadata_children_and_head_along() {
    let repo = TestRepo::draw("main <- a <- b* <- c");
    let (tip, created) = (repo.rev("b"), repo.metadata("b")["timestamps"]["created_at"].clone());
    assert_eq!(lattice(&repo).args(["rename", "feature/b"]).ok().stdout, "renamed b to feature/b\n");
    assert_eq!(repo.rev("feature/b"), tip);
    assert_eq!(repo.metadata("feature/b")["timestamps"]["created_at"], created);
    assert_eq!([parent(&repo, "feature/b"), parent(&repo, "c")], ["a", "feature/b"]);
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "feature/b");
    assert!(!repo.branch_refs().contains_key("b"));
    holds(&repo);
    refused(&repo, &["rename", "a"], "branch-exists", "`a` exists");
    refused(&repo, &["rename", "a/b"], "branch-name-clash", "cannot exist beside");
    let invalid = lattice(&repo).args(["rename", "a b"]).fails(2);
    assert!(invalid.stderr.contains("Git does not allow"), "{}", invalid.snapshot());
}

#[test]
fn revert_makes_a_tracked_branch_on_the_trunk_or_refuses() {
    let repo = TestRepo::draw("main* <- a");
    repo.commit_file("one", "1\n", "add one");
    repo.commit_file("two", "2\n", "add two");
    let commit = repo.rev("main~1");
    lattice(&repo).args(["revert", &commit]).ok();
    let name = format!("revert-{}", &commit[..8]);
    assert_eq!(repo.git(&["diff", "--name-status", "main", &name]), "D\tone");
    assert_eq!(subjects(&repo, &name), ["Revert \"add one\""]);
    assert_eq!(parent(&repo, &name), "main");
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), name);
    holds(&repo);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("two", "changed\n", "change two");
    refused(&repo, &["revert", "main~1"], "revert-conflicts", "same lines");
    refused(&repo, &["revert", "nothing"], "no-such-commit", "`nothing` names no commit");
}

#[test]
fn what_git_knows_of_a_branch_follows_its_name_and_comes_back() {
    let repo = TestRepo::draw("main <- a* <- b");
    let options = [("remote", "origin"), ("merge", "refs/heads/a"), ("description", "the first one")];
    for (name, value) in options {
        repo.git(&["config", &format!("branch.a.{name}"), value]);
    }
    repo.git(&["config", "branch.a.b.remote", "elsewhere"]);
    let known =
        |branch: &str| options.map(|(name, _)| repo.try_git(&["config", &format!("branch.{branch}.{name}")]).ok());
    let all = options.map(|(_, value)| Some(value.to_owned()));
    lattice(&repo).args(["rename", "first"]).ok();
    assert_eq!(known("first"), all);
    assert_eq!(known("a"), [None, None, None]);
    assert_eq!(repo.git(&["config", "branch.a.b.remote"]), "elsewhere", "another branch keeps its own");
    lattice(&repo).arg("undo").ok();
    assert_eq!((known("a"), known("first")), (all.clone(), [None, None, None]));
    lattice(&repo).arg("redo").ok();
    assert_eq!(known("first"), all);
}
