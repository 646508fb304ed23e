//! Repositories are as drawn, and the same every time.

use std::collections::BTreeMap;

use lattice_testkit::git_versions::{gits, version_of};
use lattice_testkit::{Setup, TestRepo};
use serde_json::json;

const DRAWING: &str = "main(2) <- team/api(2) <- ui!*; main <- docs; docs <- empty(0)";

/// The branches of a repository as `name: file, file`, with the number of commits on the trunk's first one.
#[track_caller]
fn check_branches(repo: &TestRepo, expected: &[(&str, u32, &[&str])]) {
    let found: Vec<String> = repo.branch_refs().into_keys().collect();
    let expected_names: Vec<&str> = expected.iter().map(|(name, ..)| *name).collect();
    assert_eq!(found, expected_names, "the branches of the drawing and no others");
    for (name, commits, files) in expected {
        let count = repo.git(&["rev-list", "--count", name]);
        assert_eq!(count, commits.to_string(), "commits of {name}");
        let tree = repo.git(&["ls-tree", "--name-only", name]);
        assert_eq!(tree.lines().collect::<Vec<_>>(), *files, "files of {name}");
    }
}

#[track_caller]
fn check_drawn(repo: &TestRepo) {
    check_branches(
        repo,
        &[
            ("docs", 3, &["README", "docs.txt", "main.txt"]),
            ("empty", 3, &["README", "docs.txt", "main.txt"]),
            ("main", 2, &["README", "main.txt"]),
            ("team/api", 4, &["README", "main.txt", "team-api.txt"]),
            ("ui", 5, &["README", "main.txt", "team-api.txt", "ui.txt"]),
        ],
    );
    let tracked: Vec<String> = repo.metadata_refs().into_keys().collect();
    assert_eq!(tracked, ["docs", "empty", "team/api", "ui"], "every branch but the trunk is tracked");
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/ui", "the marked branch is checked out");
    assert_eq!(repo.ledger(), Vec::<serde_json::Value>::new(), "nothing has happened yet");
}

#[test]
fn a_drawing_makes_the_branches_commits_and_metadata_it_shows() {
    let repo = TestRepo::draw(DRAWING);
    check_drawn(&repo);
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "index and working tree are those of the branch");
    assert_eq!(repo.read("team-api.txt"), "team/api 1\nteam/api 2\n");
    let config = std::fs::read_to_string(repo.lattice_dir().join("config.toml")).unwrap();
    assert_eq!(config, "[trunk]\nbranch = \"main\"\n");
    assert_eq!(
        repo.metadata("ui"),
        json!({
            "kind": "lattice.branch-metadata",
            "schema_version": 1,
            "branch": { "name": "ui" },
            "parent": { "kind": "branch", "name": "team/api" },
            "base": { "oid": repo.rev("team/api") },
            "freeze": {
                "state": "frozen",
                "scope": "downstack_inclusive",
                "reason": null,
                "frozen_at": "2026-01-01T00:00:00Z",
            },
            "pr": { "state": "none" },
            "timestamps": { "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z" },
        })
    );
    let api = repo.metadata("team/api");
    assert_eq!(api["parent"], json!({ "kind": "trunk", "name": "main" }));
    assert_eq!(api["base"]["oid"], json!(repo.rev("main")));
    assert_eq!(api["freeze"], json!({ "state": "unfrozen" }));
}

#[test]
fn drawings_work_in_every_kind_of_repository_and_with_every_git() {
    for git in gits() {
        let setup = Setup::default().git(&git);
        check_drawn(&setup.draw(DRAWING));
        check_drawn(&setup.clone().bare().draw(DRAWING));
        let sha256 = setup.clone().object_format("sha256").draw(DRAWING);
        check_drawn(&sha256);
        assert_eq!(sha256.rev("ui").len(), 64);
        if version_of(&git) >= (2, 45) {
            let reftable = setup.ref_format("reftable").draw(DRAWING);
            check_drawn(&reftable);
            assert!(reftable.common_dir().join("reftable").is_dir(), "{}", git.display());
        }
    }
}

#[test]
fn the_same_steps_make_the_same_object_ids() {
    let steps = || -> BTreeMap<String, String> {
        let repo = TestRepo::draw(DRAWING);
        repo.commit_file("dir/more", "more\n", "more");
        repo.refs()
    };
    assert_eq!(steps(), steps(), "dates, names and configuration are fixed");
    let dates = TestRepo::draw("main <- api*").git(&["log", "--format=%at %ct"]);
    assert_eq!(dates, "1767225660 1767225660\n1767225600 1767225600", "a minute apart");
}

#[test]
fn looking_does_not_move_the_clock() {
    let commit = |look: bool| {
        let repo = TestRepo::new();
        if look {
            repo.state();
            repo.refs();
        }
        repo.commit_file("file", "text\n", "commit")
    };
    assert_eq!(commit(true), commit(false), "an assertion more must not change ids");
}

#[test]
fn a_large_drawing_costs_no_more_processes() {
    let chains: Vec<String> = (0..400).map(|n| format!("main <- a{n} <- b{n}")).collect();
    let repo = TestRepo::draw(&chains.join("\n"));
    assert_eq!(repo.metadata_refs().len(), 800);
    assert_eq!(repo.metadata("b399")["base"]["oid"], json!(repo.rev("a399")));
}

#[test]
fn worktrees_share_everything_but_their_files() {
    let repo = TestRepo::draw("main* <- api");
    let other = repo.worktree("other", "api");
    assert_eq!(other.lattice_dir(), repo.lattice_dir());
    assert_ne!(other.git_dir(), repo.git_dir());
    let commit = other.commit_file("api.txt", "changed\n", "change");
    assert_eq!(repo.rev("api"), commit);
    assert!(!repo.dir().join("api.txt").exists(), "main has no such file");
}

#[test]
fn records_of_the_ledger_are_read_newest_first() {
    let repo = TestRepo::new();
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let first = repo.git(&["commit-tree", &tree, "-m", "{\"number\": 1}"]);
    let second = repo.git(&["commit-tree", &tree, "-p", &first, "-m", "{\n  \"number\": 2\n}"]);
    repo.git(&["update-ref", "refs/lattice/event-log", &second]);
    assert_eq!(repo.ledger(), [json!({ "number": 2 }), json!({ "number": 1 })]);
}

#[test]
fn damaged_metadata_is_kept_to_the_byte() {
    let repo = TestRepo::draw("main <- api");
    let bytes = b"{\"kind\":\0\xff";
    repo.set_metadata_raw("api", bytes);
    let kept = repo.git_with_input(&["cat-file", "blob", "refs/branch-metadata/api"], b"");
    assert_eq!(kept, bytes);
}
