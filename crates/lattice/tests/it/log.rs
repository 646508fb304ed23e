//! Tests of log: the drawing, the document, and that looking changes nothing.

use expect_test::expect;
use lattice_testkit::{GitWrapper, TestRepo, assert_same};
use serde_json::{Value, json};

use crate::lattice;

/// A stack with a fork, a frozen branch, one that needs a restack, and an untracked one.
#[track_caller]
fn sample() -> TestRepo {
    let repo = TestRepo::draw("main <- api(2) <- ui* <- docs; api <- cli!; main <- fix");
    repo.git(&["branch", "loose"]);
    repo.git(&["checkout", "--quiet", "fix"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("more.txt", "more\n", "trunk moves");
    repo.git(&["checkout", "--quiet", "ui"]);
    repo
}

#[test]
fn the_drawing_shows_shape_counts_and_states() {
    let repo = sample();
    expect![[r#"
        o cli     1 commit  frozen
        | o docs  1 commit
        | * ui    1 commit  (current)
        o-' api   2 commits  needs restack
        | o fix   1 commit  needs restack
        o-' main  trunk
    "#]]
    .assert_eq(&lattice(&repo).arg("log").ok().stdout);
    assert_eq!(lattice(&repo).args(["log", "--all"]).ok().stdout, lattice(&repo).arg("log").ok().stdout);
}

#[test]
fn the_flags_choose_branches_and_detail() {
    let repo = sample();
    expect![[r#"
        o docs
        * ui
        o api
        o main
          loose  (untracked)
    "#]]
    .assert_eq(&lattice(&repo).args(["log", "--stack", "--short", "--show-untracked"]).ok().stdout);
    assert_eq!(lattice(&repo).arg("ls").ok().stdout, lattice(&repo).args(["log", "--short"]).ok().stdout);
    let long = lattice(&repo).args(["log", "--long", "--stack"]).ok().stdout;
    for subject in ["docs 1", "ui 1", "api 1", "api 2"] {
        assert!(long.contains(subject), "--long lists the commits of each branch:\n{long}");
    }
    assert!(!long.contains("cli 1"), "--stack leaves out what is in another line of work:\n{long}");
    lattice(&repo).args(["log", "--all", "--stack"]).fails(2);
    lattice(&repo).args(["log", "--short", "--long"]).fails(2);
}

#[test]
fn a_narrow_terminal_shows_everything_and_one_long_name_moves_only_itself() {
    let repo = TestRepo::draw("main <- a <- feature/a-rather-long-name* <- c");
    let shown = |columns: u16, args: &[&str]| {
        let shown = lattice(&repo).args(args).terminal().columns(columns).run().stdout;
        let wide = shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(wide <= usize::from(columns), "{wide} of {columns} columns:\n{shown}");
        shown
    };
    expect![[r#"
        o c     1 commit
        * feature/a-rather-long-name
        |   1 commit  (current)
        o a     1 commit
        o main  trunk
    "#]]
    .assert_eq(&shown(36, &["log", "--color", "never"]).replace("\r\n", "\n"));
    expect![[r#"
        o c                           1 commit
        * feature/a-rather-long-name  1 commit  (current)
        o a                           1 commit
        o main                        trunk
    "#]]
    .assert_eq(&shown(120, &["log", "--color", "never"]).replace("\r\n", "\n"));
    lattice(&repo).arg("up").ok();
    assert!(shown(50, &["ops"]).contains("..."), "what has no room is cut and said to be");
    let whole = lattice(&repo).arg("ops").ok().stdout;
    assert!(whole.contains("committed") && !whole.contains("..."), "in a pipe nothing is cut: {whole}");
}

#[test]
fn a_branch_that_is_gone_or_renamed_is_told() {
    let repo = TestRepo::draw("main <- a <- b*");
    repo.git(&["branch", "--move", "b", "renamed"]);
    let said = lattice(&repo).arg("log").ok().stderr;
    assert!(said.contains("b was deleted or renamed outside of Lattice: lattice doctor"), "{said}");
}

#[test]
fn a_head_on_no_branch_is_told() {
    let repo = TestRepo::draw("main <- a*");
    repo.git(&["checkout", "--quiet", "--detach"]);
    let said = lattice(&repo).arg("log").ok().stderr;
    assert!(said.contains("HEAD is on no branch") && said.contains("lattice checkout"), "{said}");
    let up = lattice(&repo).arg("up").fails(1).stderr;
    assert!(up.contains("`up` cannot run"), "the command is called what the user called it: {up}");
}

#[test]
fn long_takes_as_many_processes_for_30_branches_as_for_3() {
    let count = |branches: usize| {
        let chain: String = (1..=branches).map(|n| format!(" <- b{n}")).collect();
        let repo = TestRepo::draw(&format!("main*{chain}"));
        let wrapper = GitWrapper::new(&repo);
        let out = lattice(&repo).wrapper(&wrapper).args(["log", "--long"]).ok();
        assert!(out.stdout.contains(&format!("b{branches} 1")), "{}", out.snapshot());
        wrapper.count()
    };
    assert_eq!(count(3), count(30), "the number of git processes does not depend on the number of branches");
}

// proves: ST-2-3
#[test]
fn the_document_says_for_each_branch_what_its_metadata_says() {
    let repo = sample();
    let log = lattice(&repo).arg("log").json();
    assert_eq!([&log["trunk"], &log["current"], &log["untracked"]], [&json!("main"), &json!("ui"), &json!(["loose"])]);
    let list = log["branches"].as_array().expect("a list");
    assert_eq!(list.len(), 5);
    for branch in list {
        let name = branch["name"].as_str().expect("text");
        let metadata = repo.metadata(name);
        assert_eq!(branch["parent"], metadata["parent"]["name"], "the edge of {name} is its pointer");
        assert_eq!(branch["base"], metadata["base"]["oid"]);
        assert_eq!(branch["tip"], json!(repo.rev(name)));
    }
    let by_name = |name: &str| list.iter().find(|branch| branch["name"] == json!(name)).expect("listed");
    assert_eq!(by_name("api")["children"], json!(["cli", "ui"]));
    assert_eq!([&by_name("api")["commits"], &by_name("api")["needs_restack"]], [&json!(2), &json!(true)]);
    assert_eq!([&by_name("cli")["frozen"], &by_name("cli")["pr"]], [&json!(true), &Value::Null]);
    let here = repo.dir().to_str().expect("text");
    assert_eq!([&by_name("ui")["checked_out"], &by_name("docs")["checked_out"]], [&json!(here), &Value::Null]);
}

#[test]
fn looking_writes_nothing_at_all() {
    let repo = sample();
    lattice(&repo).args(["freeze", "fix"]).ok();
    // A change by plain git is noted once, and what was read is kept once; after that there is nothing new to write.
    repo.git(&["branch", "--force", "docs", "ui"]);
    lattice(&repo).arg("log").ok();
    lattice(&repo).arg("log").ok();
    let everything = || {
        let listing = walk(&repo.common_dir());
        (repo.refs(), listing, repo.state())
    };
    let before = everything();
    let commands: [&[&str]; 9] =
        [&[], &["log"], &["ls"], &["info"], &["parent"], &["children"], &["trunk"], &["verify"], &["config", "list"]];
    for args in commands {
        lattice(&repo).args(args).ok();
        let after = everything();
        assert_eq!(before.0, after.0, "refs after `lattice {}`", args.join(" "));
        assert_eq!(before.1, after.1, "files of the git directory after `lattice {}`", args.join(" "));
        assert_same(&before.2, &after.2);
    }
}

/// Every file below a directory with its size and time of change.
fn walk(dir: &std::path::Path) -> Vec<(String, u64, std::time::SystemTime)> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).expect("it is a folder") {
            let entry = entry.expect("it can be listed");
            let facts = entry.metadata().expect("it was just listed");
            if facts.is_dir() {
                waiting.push(entry.path());
            }
            found.push((entry.path().display().to_string(), facts.len(), facts.modified().expect("a time")));
        }
    }
    found.sort();
    found
}

#[test]
fn no_command_at_all_shows_the_stacks_and_where_to_read_on() {
    let repo = TestRepo::draw("main <- a*");
    let out = lattice(&repo).ok();
    assert!(out.stdout.contains("* a"), "{}", out.snapshot());
    assert!(out.stderr.contains("lattice --help"), "{}", out.snapshot());
    let bare = TestRepo::new();
    let out = lattice(&bare).arg("log").ok();
    assert_eq!(out.stdout, "");
    assert!(out.stderr.contains("lattice init"), "{}", out.snapshot());
}

#[test]
fn branches_that_lead_nowhere_are_shown_and_counted() {
    let repo = TestRepo::draw("main* <- a <- b; main <- c");
    repo.git(&["update-ref", "-d", "refs/heads/a"]);
    repo.set_metadata_raw("c", b"{");
    let out = lattice(&repo).arg("log").ok();
    assert!(out.stdout.contains("? b"), "{}", out.snapshot());
    assert!(out.stderr.contains("1 branch does not lead to the trunk"), "{}", out.snapshot());
    assert!(out.stderr.contains("c is left out"), "{}", out.snapshot());
    let log = lattice(&repo).arg("log").json();
    assert!(log["unreadable"]["c"].is_string(), "{log:#}");
}

/// How many git processes a command needs, and what it says.
fn counted(repo: &TestRepo, args: &[&str]) -> (usize, String) {
    let wrapper = GitWrapper::new(repo);
    let output = lattice(repo).args(args).wrapper(&wrapper).ok();
    (wrapper.count(), output.stdout + &output.stderr)
}

#[test]
fn a_second_look_reads_nothing_but_refs_and_shows_the_same() {
    let repo = TestRepo::draw("main <- a(2) <- b* <- c; main <- d");
    lattice(&repo).args(["freeze", "a"]).ok();
    for args in [&["log"][..], &["log", "--json"], &["info", "b"]] {
        std::fs::remove_dir_all(repo.lattice_dir().join("cache")).ok();
        let (first, shown) = counted(&repo, args);
        let (second, again) = counted(&repo, args);
        assert_eq!((again, first - second), (shown, 2), "{args:?}");
    }
    assert_eq!(counted(&repo, &["log"]).0, 1);
}

#[test]
fn whatever_changed_since_the_last_look_is_seen() {
    let repo = TestRepo::draw("main <- a <- b*");
    let look = || {
        let output = lattice(&repo).arg("log").ok();
        output.stdout + &output.stderr
    };
    let calm = look();
    assert_eq!(look(), calm);
    repo.commit_file("more.txt", "more\n", "one more");
    let more = look();
    assert_ne!(more, calm, "a commit by plain git");
    repo.git(&["update-ref", "-d", "refs/branch-metadata/b"]);
    assert!(!look().contains(" b "), "metadata that is gone");
    lattice(&repo).args(["track", "b", "--parent", "a"]).ok();
    assert_eq!(look(), more);
    let blob = repo.rev("refs/branch-metadata/b");
    let file = repo.common_dir().join("objects").join(&blob[..2]).join(&blob[2..]);
    std::fs::remove_file(&file).expect("metadata is a loose object here");
    assert!(look().contains("b is left out"), "an object that vanished: {}", look());
}

#[test]
fn what_was_kept_of_a_look_and_is_damaged_or_foreign_is_not_used() {
    let repo = TestRepo::draw("main <- a <- b*");
    let kept = repo.lattice_dir().join("cache/scan-1");
    let shown = lattice(&repo).arg("log").ok().stdout;
    let whole = std::fs::read(&kept).expect("the look is kept");
    for content in [&b""[..], &whole[..whole.len() / 2], &[0; 4096], b"\xff\xff\n", &whole] {
        std::fs::write(&kept, content).expect("a file of the cache");
        assert_eq!(lattice(&repo).arg("log").ok().stdout, shown);
    }
    repo.git(&["branch", "-m", "b", "renamed"]);
    assert!(!lattice(&repo).arg("log").ok().stdout.contains(" b "), "the refs are others");
}

#[test]
fn a_branch_that_left_its_base_behind_lattices_back_is_named() {
    let repo = TestRepo::draw("main <- a <- b* <- c");
    assert!(!lattice(&repo).arg("log").ok().stderr.contains("lattice doctor"));
    repo.git(&["rebase", "--quiet", "--onto", "main", "a"]);
    let notes = lattice(&repo).arg("log").ok().stderr;
    assert!(notes.contains("b does not stand on its base any more: lattice doctor"), "{notes}");
}
