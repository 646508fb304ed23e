//! Tests of info, parent, children and trunk.

use expect_test::expect;
use lattice_testkit::{Setup, TestRepo, assert_same};
use serde_json::{Value, json};

use crate::lattice;

#[test]
fn info_tells_where_a_branch_stands_and_what_it_holds() {
    let repo = TestRepo::draw("main <- api(2) <- ui*");
    expect![[r#"
        api
          parent    main
          base      cdc1be7ef4da412427024ffd3dbeff9bc75d71dd
          tip       eb45a24161c421a0613da70a132ccfe34d01c14d
          children  ui
          eb45a241 api 2 (Ada Tester)
          224fc098 api 1 (Ada Tester)
    "#]]
    .assert_eq(&lattice(&repo).args(["info", "api"]).ok().stdout);
    let document = lattice(&repo).args(["info", "api"]).json();
    let subjects: Vec<_> =
        document["commits"].as_array().expect("a list").iter().map(|c| c["subject"].clone()).collect();
    assert_eq!(subjects, [json!("api 2"), json!("api 1")]);
    assert_eq!(document["branch"]["name"], json!("api"));
    assert_eq!(lattice(&repo).arg("info").json()["branch"]["name"], json!("ui"), "the current branch is the default");
}

#[test]
fn diff_patch_and_stat_show_what_the_branch_changes_and_no_more() {
    let repo = TestRepo::draw("main <- api <- ui(2)*");
    for flag in ["--diff", "--patch"] {
        let out = lattice(&repo).args(["info", flag]).ok().stdout;
        assert!(out.contains("+ui 1\n+ui 2\n") && !out.contains("api.txt"), "{flag}:\n{out}");
    }
    let stat = lattice(&repo).args(["info", "--stat"]).ok().stdout;
    assert!(stat.contains("ui.txt | 2 ++"), "{stat}");
    assert!(lattice(&repo).args(["info", "--diff"]).json()["diff"].as_str().is_some_and(|diff| diff.contains("+ui 2")));
    assert_eq!(lattice(&repo).arg("info").json()["diff"], Value::Null);
    lattice(&repo).args(["info", "--diff", "--stat"]).fails(2);
}

#[test]
fn the_trunk_untracked_branches_and_a_detached_head_have_no_branch_facts() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "loose"]);
    for branch in ["main", "loose"] {
        assert_eq!(lattice(&repo).args(["info", branch]).json()["branch"], Value::Null, "{branch}");
    }
    assert!(lattice(&repo).args(["info", "main"]).ok().stdout.contains("the trunk"));
    let loose = lattice(&repo).args(["info", "loose"]).ok();
    assert!(
        loose.stdout.contains("not tracked") && loose.stderr.contains("lattice track loose"),
        "{}",
        loose.snapshot()
    );
    let missing = lattice(&repo).args(["info", "missing", "--json"]).fails(1).json();
    assert_eq!(missing["error"]["code"], json!("no-such-branch"));
    repo.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(lattice(&repo).arg("info").json()["branch"], Value::Null);
    for command in ["parent", "children"] {
        let document = lattice(&repo).args([command, "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!("no-current-branch"), "{command}");
        lattice(&repo).args([command, "missing"]).fails(1);
    }
}

// proves: ST-3.1-4
#[test]
fn the_kind_of_repository_is_told_apart_from_any_directory_inside() {
    let repo = TestRepo::draw("main* <- a");
    repo.write("deep/down/file", "x\n");
    let linked = repo.worktree("linked", "a");
    let bare = Setup::default().bare().init();
    let text = |path: &std::path::Path| json!(path.to_str().expect("text"));
    let check = |at: &TestRepo, cwd: &str, context: &str, work_dir: Value| {
        let document = lattice(at).cwd(cwd).arg("info").json();
        let expected = json!({
            "context": context,
            "git_dir": text(&at.git_dir()),
            "common_dir": text(&at.common_dir()),
            "work_dir": work_dir,
        });
        assert_eq!(document["repository"], expected, "from {cwd} of a {context} repository");
    };
    check(&repo, ".", "normal", text(repo.dir()));
    check(&repo, "deep/down", "normal", text(repo.dir()));
    check(&repo, ".git", "normal", text(repo.dir()));
    check(&linked, ".", "worktree", text(linked.dir()));
    check(&bare, ".", "bare", Value::Null);
    check(&bare, "refs/heads", "bare", Value::Null);
}

#[test]
fn parent_and_children_are_one_step_away() {
    let repo = TestRepo::draw("main <- a* <- b; a <- c");
    assert_eq!(lattice(&repo).arg("parent").ok().stdout, "main\n");
    assert_eq!(lattice(&repo).args(["parent", "b"]).ok().stdout, "a\n");
    assert_eq!(lattice(&repo).arg("children").ok().stdout, "b\nc\n");
    assert_eq!(lattice(&repo).args(["children", "main"]).json()["children"], json!(["a"]));
    let trunk = lattice(&repo).args(["parent", "main"]).ok();
    assert_eq!(trunk.stdout, "");
    assert!(trunk.stderr.contains("stands on nothing"), "{}", trunk.snapshot());
}

#[test]
fn the_trunk_is_changed_only_where_no_stack_would_lose_its_ground() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "develop"]);
    let before = repo.state();
    for (branch, code) in [("develop", "stacks-stand-on-trunk"), ("a", "trunk-tracked"), ("missing", "no-such-branch")]
    {
        let document = lattice(&repo).args(["trunk", "set", branch, "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!(code), "trunk set {branch}: {document:#}");
    }
    assert_same(&before, &repo.state());
    lattice(&repo).args(["untrack", "a"]).ok();
    assert_eq!(
        lattice(&repo).args(["trunk", "set", "develop", "--dry-run"]).ok().stdout,
        "write lattice/config.toml\n"
    );
    assert_eq!(lattice(&repo).arg("trunk").ok().stdout, "main\n", "a dry run changes nothing");
    lattice(&repo).args(["trunk", "set", "develop"]).ok();
    assert_eq!(lattice(&repo).arg("trunk").ok().stdout, "develop\n");
    assert_eq!(lattice(&repo).args(["trunk", "set", "develop"]).json()["changed"], json!(false));
}

#[test]
fn changing_the_trunk_keeps_the_file_whatever_way_it_was_written() {
    let files = [
        ("trunk.branch = \"main\" # dotted\n\n[alias]\nx = \"log\"\n", "dotted"),
        ("trunk = { branch = \"main\" }\n[alias]\nx = \"log\"\n", "inline"),
        ("[alias]\nx = \"log\"\n\n[ trunk ] # spaced\n\"branch\" = 'main'\n", "spaced"),
    ];
    for (text, kind) in files {
        let repo = TestRepo::draw("main*");
        repo.git(&["branch", "develop"]);
        repo.write_config(text);
        assert_eq!(lattice(&repo).arg("trunk").ok().stdout, "main\n", "{kind}: the file is valid to begin with");
        lattice(&repo).args(["trunk", "set", "develop"]).ok();
        assert_eq!(lattice(&repo).arg("trunk").ok().stdout, "develop\n", "{kind}: the trunk is the new one");
        let options = lattice(&repo).args(["config", "list"]).json()["options"].clone();
        assert_eq!(options, json!({ "trunk.branch": "develop", "alias.x": "log" }), "{kind}: nothing else changed");
    }
}
