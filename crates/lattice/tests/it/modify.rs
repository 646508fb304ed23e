//! Tests of modify: amend or commit, here or further down, and what is above follows.

use std::os::unix::fs::PermissionsExt as _;

use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

#[track_caller]
fn subjects(repo: &TestRepo, range: &str) -> String {
    repo.git(&["log", "--reverse", "--format=%s", range])
}

#[test]
fn staged_changes_amend_the_newest_commit_and_everything_above_follows() {
    let repo = TestRepo::draw("main <- a(2)* <- b <- c; a <- d");
    repo.write("a.txt", "rewritten\n");
    repo.git(&["add", "a.txt"]);
    repo.write("README", "edited, not staged\n");
    lattice(&repo).arg("modify").ok();
    assert_eq!(subjects(&repo, "main..c"), "a 1\na 2\nb 1\nc 1", "no commit more, no commit less");
    assert_eq!(repo.git(&["show", "a:a.txt"]), "rewritten");
    assert_eq!([repo.rev("b^"), repo.rev("d^"), repo.rev("c^^")], [repo.rev("a"), repo.rev("a"), repo.rev("a")]);
    assert_eq!(repo.metadata("b")["base"]["oid"], json!(repo.rev("a")));
    assert_eq!(repo.git(&["status", "--porcelain"]), " M README", "what was not staged stays as it was");
    assert_eq!(lattice(&repo).arg("verify").json()["holds"], json!(true));
}

#[test]
fn a_message_alone_rewords_and_keeps_author_and_content() {
    let repo = TestRepo::draw("main <- a*");
    repo.git(&["commit", "--quiet", "--amend", "--no-edit", "--author=Else One <else@example.invalid>"]);
    let tree = repo.rev("a^{tree}");
    lattice(&repo).args(["modify", "-m", "Better words"]).ok();
    assert_eq!(repo.git(&["log", "-1", "--format=%s, %an", "a"]), "Better words, Else One");
    assert_eq!(repo.rev("a^{tree}"), tree);
    assert_eq!(subjects(&repo, "main..a"), "Better words");
}

#[test]
fn commit_adds_instead_of_amending() {
    let repo = TestRepo::draw("main <- a* <- b");
    repo.write("more.txt", "more\n");
    lattice(&repo).args(["modify", "-c", "-a", "-m", "a 2"]).ok();
    assert_eq!(subjects(&repo, "main..b"), "a 1\na 2\nb 1");
    let unsaid = lattice(&repo).args(["modify", "--commit", "--json"]).fails(1).json();
    assert_eq!(unsaid["error"]["code"], json!("nothing-to-modify"));
    repo.write("more.txt", "even more\n");
    let unsaid = lattice(&repo).args(["modify", "--commit", "-u", "--json"]).fails(1).json();
    assert_eq!(unsaid["error"]["code"], json!("message-required"));
}

#[test]
fn an_empty_branch_gets_its_first_commit_and_its_parent_is_not_amended() {
    let repo = TestRepo::draw("main <- a <- empty(0)* <- b");
    let a = repo.rev("a");
    repo.write("new.txt", "new\n");
    let unsaid = lattice(&repo).args(["modify", "-a", "--json"]).fails(1).json();
    assert_eq!(unsaid["error"]["code"], json!("message-required"), "there is nothing to amend: {unsaid:#}");
    lattice(&repo).args(["modify", "-a", "-m", "first"]).ok();
    assert_eq!(repo.rev("a"), a, "the commit of the parent is not touched");
    assert_eq!(subjects(&repo, "a..b"), "first\nb 1");
    let reword = lattice(&repo).args(["modify", "-m", "x", "--into", "a", "--json"]).ok().json();
    assert_eq!(reword["ok"], json!(true));
    assert_eq!(subjects(&repo, "main..b"), "x\nfirst\nb 1", "--into with -m alone rewords the branch below");
}

#[test]
fn into_gives_what_is_staged_to_a_branch_further_down() {
    let repo = TestRepo::draw("main <- a <- b <- c* <- d; a <- side");
    repo.write("a.txt", "changed from above\n");
    repo.git(&["add", "a.txt"]);
    repo.write("README", "edited, not staged\n");
    lattice(&repo).args(["modify", "--into", "a"]).ok();
    assert_eq!(repo.git(&["show", "a:a.txt"]), "changed from above");
    assert_eq!(subjects(&repo, "main..d"), "a 1\nb 1\nc 1\nd 1");
    assert_eq!(repo.rev("side^"), repo.rev("a"));
    assert_eq!(repo.git(&["status", "--porcelain"]), " M README", "it left the index and stays in the files");
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "c", "nobody was moved");
    repo.write("b.txt", "second\n");
    lattice(&repo).args(["modify", "-u", "-c", "--into", "b", "-m", "b 2"]).ok();
    assert_eq!(subjects(&repo, "a..c"), "b 1\nb 2\nc 1", "-c adds a commit there");
}

#[test]
fn into_refuses_where_the_change_would_vanish_or_does_not_apply() {
    let repo = TestRepo::draw("main <- a <- b* <- c; main <- other; main <- f! <- g");
    repo.write("new.txt", "new\n");
    repo.git(&["add", "new.txt"]);
    let before = repo.state();
    let code =
        |into: &str| lattice(&repo).args(["modify", "--json", "--into", into]).fails(1).json()["error"]["code"].clone();
    assert_eq!(code("c"), json!("not-below"), "a branch above");
    assert_eq!(code("other"), json!("not-below"), "a branch beside");
    assert_eq!(code("f"), json!("gated"), "a frozen branch");
    assert_eq!(code("main"), json!("gated"), "the trunk");
    assert_eq!(code("missing"), json!("gated"), "no branch at all");
    assert_same(&before, &repo.state());
    repo.git(&["rm", "--quiet", "--cached", "new.txt"]);
    repo.write("b.txt", "b.txt does not exist in a\n");
    repo.git(&["add", "b.txt"]);
    let before = repo.state();
    assert_eq!(code("a"), json!("staged-does-not-apply"));
    assert_same(&before, &repo.state());
}

#[test]
fn nothing_to_modify_is_refused_and_says_how_to_stage() {
    let repo = TestRepo::draw("main <- a*");
    repo.write("README", "edited, not staged\n");
    let before = repo.state();
    let out = lattice(&repo).arg("modify").fails(1);
    assert!(out.stderr.contains("nothing is staged") && out.stderr.contains("-a"), "{}", out.snapshot());
    lattice(&repo).args(["modify", "-m", " "]).fails(2);
    assert_same(&before, &repo.state());
}

#[test]
fn a_commit_without_any_change_is_not_made() {
    // Staged, and then undone in the working tree: staging everything leaves nothing to commit.
    for args in [&["modify", "-c", "-a", "-m", "empty"][..], &["modify", "-a"], &["create", "x", "-a", "-m", "empty"]] {
        let repo = TestRepo::draw("main <- a* <- b");
        repo.write("README", "edited\n");
        repo.git(&["add", "README"]);
        let original = repo.git(&["show", "HEAD:README"]) + "\n";
        repo.write("README", original);
        let before = repo.state();
        let document = lattice(&repo).args(args).arg("--json").fails(1).json();
        assert_eq!(document["error"]["code"], json!("nothing-to-commit"), "{}: {document:#}", args.join(" "));
        assert_same(&before, &repo.state());
    }
}

#[test]
fn the_trunk_frozen_and_untracked_branches_and_detached_heads_are_refused() {
    let repo = TestRepo::draw("main* <- a!");
    repo.git(&["branch", "loose"]);
    for (branch, text) in
        [("main", "is the trunk"), ("a", "is frozen"), ("loose", "is not tracked"), ("--detach", "HEAD is detached")]
    {
        repo.git(&["checkout", "--quiet", branch]);
        repo.write("README", "edited\n");
        let before = repo.state();
        let out = lattice(&repo).args(["modify", "-a", "-m", "m"]).fails(1);
        assert!(out.stderr.contains(text), "on {branch}:\n{}", out.snapshot());
        assert_same(&before, &repo.state());
        repo.git(&["checkout", "--quiet", "."]);
    }
}

#[test]
fn a_frozen_branch_above_is_kept() {
    let repo = TestRepo::draw("main <- a* <- f! <- g");
    let (f, g) = (repo.rev("f"), repo.rev("g"));
    repo.write("new.txt", "new\n");
    let document = lattice(&repo).args(["modify", "-a"]).json();
    assert_eq!(document["kept"], json!([{ "branch": "f", "reason": "frozen" }]), "{document:#}");
    assert_eq!([repo.rev("f"), repo.rev("g")], [f, g]);
}

#[test]
fn a_refusing_hook_leaves_everything_and_skipping_it_works() {
    let repo = TestRepo::draw("main <- a* <- b");
    let path = repo.git_dir().join("hooks/pre-commit");
    repo.write(path.to_str().expect("text"), "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
    repo.write("new.txt", "new\n");
    let before = repo.state();
    let document = lattice(&repo).args(["modify", "-a", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("hook-refused"), "{document:#}");
    assert_same(&before, &repo.state());
    assert!(!repo.op_state_path().exists(), "no operation is left in progress");
    lattice(&repo).args(["modify", "-a", "--no-verify"]).ok();
    assert_eq!(repo.git(&["show", "b:new.txt"]), "new");
}
