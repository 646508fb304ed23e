//! Tests of init: which trunk, where the configuration goes, and the way back.

use lattice_testkit::{Setup, TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

// proves: ST-3.1-1, ST-3.1-2, ST-3.1-5, ST-2-4
#[test]
fn the_trunk_is_configured_per_repository_in_its_git_directory() {
    let one = TestRepo::new();
    let other = TestRepo::new();
    other.git(&["branch", "develop"]);
    for (repo, trunk) in [(&one, "main"), (&other, "develop")] {
        let out = lattice(repo).args(["init", "--trunk", trunk]).ok();
        assert_eq!(out.stdout, format!("the trunk is {trunk}\n"));
        let text = std::fs::read_to_string(repo.dir().join(".git/lattice/config.toml")).expect("the file is there");
        assert_eq!(text, format!("[trunk]\nbranch = \"{trunk}\"\n"), "plain TOML that a person can read");
        assert_eq!(lattice(repo).arg("trunk").ok().stdout, format!("{trunk}\n"));
    }
    repo_without_a_trunk_is_gated();
}

#[track_caller]
fn repo_without_a_trunk_is_gated() {
    let repo = TestRepo::draw("main* <- a");
    repo.write_config("[branch]\ntemplate = \"{slug}\"\n");
    let document = lattice(&repo).args(["restack", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("gated"), "{document:#}");
    let issues = document["issues"].as_array().expect("a list");
    let trunk = |issue: &&serde_json::Value| issue["summary"].as_str().is_some_and(|text| text.contains("trunk"));
    assert!(issues.iter().any(|issue| trunk(&issue)), "an issue says that no trunk is configured: {document:#}");
    let doctor = lattice(&repo).arg("doctor").json();
    let capabilities = doctor["capabilities"].as_array().expect("a list");
    assert!(!capabilities.contains(&json!("TrunkKnown")), "{capabilities:?}");
}

// proves: ST-3.1-3
#[test]
fn in_a_linked_worktree_the_configuration_goes_to_the_shared_directory() {
    let repo = TestRepo::new();
    repo.git(&["branch", "side"]);
    let worktree = repo.worktree("linked", "side");
    lattice(&worktree).args(["init", "--trunk", "main"]).ok();
    assert!(repo.dir().join(".git/lattice/config.toml").is_file(), "the main repository's git directory has it");
    assert!(!worktree.git_dir().join("lattice").exists(), "the worktree's own directory has nothing");
    for place in [&repo, &worktree] {
        assert_eq!(lattice(place).arg("trunk").ok().stdout, "main\n", "every worktree reads it");
    }
}

#[test]
fn without_a_name_the_trunk_is_taken_only_where_there_is_no_doubt() {
    let cases: [(&str, &[&str], Option<&str>); 5] = [
        ("main", &[], Some("main")),
        ("work", &[], Some("work")),
        ("work", &["master", "other"], Some("master")),
        ("main", &["master"], None),
        ("work", &["other"], None),
    ];
    for (first, others, expected) in cases {
        let repo = TestRepo::new();
        repo.git(&["branch", "-m", first]);
        others.iter().for_each(|name| drop(repo.git(&["branch", name])));
        match expected {
            Some(trunk) => {
                assert_eq!(lattice(&repo).arg("init").ok().stdout, format!("the trunk is {trunk}\n"));
            }
            None => {
                let out = lattice(&repo).arg("init").fails(1);
                assert!(out.stderr.contains("lattice init --trunk <branch>"), "{}", out.snapshot());
                assert!(!repo.lattice_dir().join("config.toml").exists(), "nothing was guessed");
            }
        }
    }
}

#[test]
fn what_the_remote_calls_its_main_branch_is_the_trunk() {
    let origin = TestRepo::new();
    origin.git(&["branch", "feature"]);
    let dir = origin.sandbox().root().join("clone");
    let (url, to) = (origin.dir().display().to_string(), dir.display().to_string());
    origin.git(&["clone", "--quiet", "-b", "feature", &url, &to]);
    let clone = origin.beside(&dir);
    for args in [&["init"][..], &["init", "--trunk", "main"]] {
        let out = lattice(&clone).args(args).fails(1);
        assert!(out.stderr.contains("git branch main origin/main"), "{args:?}: {}", out.snapshot());
        assert!(!clone.lattice_dir().join("config.toml").exists(), "{args:?}");
    }
    clone.git(&["branch", "main", "origin/main"]);
    assert_eq!(lattice(&clone).arg("init").ok().stdout, "the trunk is main\n");
}

#[test]
fn a_repeated_init_changes_nothing_and_another_trunk_is_refused() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "develop"]);
    repo.write_config("# mine\n[trunk]\nbranch = \"main\" # here\n\n[alias]\nx = \"log\"\n");
    let before = repo.state();
    assert_eq!(lattice(&repo).args(["init", "--trunk", "main"]).json()["changed"], json!(false));
    assert_eq!(lattice(&repo).arg("init").json()["changed"], json!(false), "the configured trunk is the default");
    let errors = [("develop", "already-initialised"), ("a", "trunk-tracked"), ("missing", "no-such-branch")];
    for (trunk, code) in errors {
        let document = lattice(&repo).args(["init", "--json", "--trunk", trunk]).fails(1).json();
        assert_eq!(document["error"]["code"], json!(code), "init --trunk {trunk}: {document:#}");
    }
    lattice(&repo).args(["init", "--trunk=-x"]).fails(2);
    lattice(&repo).args(["init", "--force"]).fails(2);
    assert_same(&before, &repo.state());
}

#[test]
fn a_dry_run_writes_no_file() {
    let repo = TestRepo::new();
    let out = lattice(&repo).args(["init", "--dry-run"]).ok();
    assert_eq!(out.stdout, "write lattice/config.toml\n");
    assert!(!repo.lattice_dir().join("config.toml").exists(), "a dry run changes nothing");
    assert!(repo.ledger().is_empty(), "and is no operation");
}

#[test]
fn a_repository_without_a_commit_or_none_at_all_is_refused_with_guidance() {
    let repo = TestRepo::new();
    repo.git(&["init", "--quiet", "../fresh"]);
    let fresh = repo.beside(&repo.dir().parent().expect("a parent").join("fresh"));
    let out = lattice(&fresh).arg("init").fails(1);
    assert!(out.stderr.contains("make a first commit"), "{}", out.snapshot());
    let nowhere = lattice(&repo).args(["-C", "..", "init", "--json"]).fails(1).json();
    assert_eq!(nowhere["error"]["code"], json!("not-a-repository"), "{nowhere:#}");
    let missing = lattice(&repo).args(["-C", "no/such/folder", "init", "--json"]).fails(1).json();
    assert_eq!(missing["ok"], json!(false), "{missing:#}");
    assert!(missing["error"]["message"].as_str().is_some_and(|text| text.contains("no/such/folder")), "{missing:#}");
}

#[test]
fn reset_needs_to_be_confirmed_removes_metadata_and_configuration_and_can_be_undone() {
    let repo = TestRepo::draw("main* <- a <- b");
    let before = repo.state();
    let unsure = lattice(&repo).args(["init", "--reset", "--json"]).fails(1).json();
    assert_eq!(unsure["error"]["code"], json!("confirmation-required"));
    let preview = lattice(&repo).args(["init", "--reset", "--dry-run"]).ok();
    assert!(preview.stdout.contains("delete refs/branch-metadata/a"), "{}", preview.snapshot());
    assert_same(&before, &repo.state());
    let tips = repo.branch_refs();
    lattice(&repo).args(["init", "--reset", "--force"]).ok();
    assert!(repo.metadata_refs().is_empty() && !repo.lattice_dir().join("config.toml").exists(), "all traces are gone");
    assert_eq!(repo.branch_refs(), tips, "branches stay");
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn bare_repositories_have_a_trunk_too() {
    let repo = Setup::default().bare().init();
    repo.git(&["branch", "a"]);
    lattice(&repo).args(["init", "--trunk", "main"]).ok();
    assert_eq!(lattice(&repo).arg("trunk").ok().stdout, "main\n");
    lattice(&repo).args(["track", "a", "--parent", "main"]).ok();
    let log = lattice(&repo).arg("log").json();
    assert_eq!([&log["trunk"], &log["branches"][0]["name"]], [&json!("main"), &json!("a")]);
    lattice(&repo).args(["freeze", "a"]).ok();
    let refused = lattice(&repo).args(["restack", "main"]).fails(1);
    assert!(refused.stderr.contains("worktree add"), "{}", refused.snapshot());
}
