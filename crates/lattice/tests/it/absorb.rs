//! Tests of absorb: each staged hunk goes to the commit that last touched its lines.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

/// A file with one line per word.
fn lines(words: &str) -> String {
    words.split(' ').map(|word| format!("{word}\n")).collect()
}

/// Lines of the trunk, with lines of `a`, then of `b`, then of `c` below them, far from each other.
fn stack() -> TestRepo {
    let repo = TestRepo::draw("main* <- a <- b <- c");
    let mut text = "t1 t2 t3 t4".to_owned();
    repo.commit_file("dir/file", lines(&text), "the trunk's lines");
    lattice(&repo).arg("restack").ok();
    for branch in ["a", "b", "c"] {
        repo.git(&["checkout", "--quiet", branch]);
        text = format!("{text} {branch}1 {branch}2 {branch}3 {branch}4");
        repo.commit_file("dir/file", lines(&text), &format!("lines of {branch}"));
        lattice(&repo).arg("restack").ok();
    }
    repo
}

fn shown(repo: &TestRepo, branch: &str) -> String {
    repo.git(&["show", &format!("{branch}:dir/file")]).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn edit(repo: &TestRepo, from: &str, to: &str) {
    let text = repo.read("dir/file");
    assert!(text.contains(from), "{from} is in the file");
    repo.write("dir/file", text.replace(from, to));
}

#[test]
fn each_hunk_goes_home_and_the_branches_above_follow() {
    let repo = stack();
    edit(&repo, "a2\n", "a2-fixed\n");
    edit(&repo, "b3\n", "");
    edit(&repo, "c4\n", "c4\nc5\n");
    repo.git(&["add", "--all"]);
    let author = repo.git(&["log", "-1", "--format=%an %ae %ad", "a"]);
    let before = repo.state();
    lattice(&repo).arg("absorb").ok();
    assert_eq!(shown(&repo, "a"), "t1 t2 t3 t4 a1 a2-fixed a3 a4");
    assert_eq!(shown(&repo, "b"), "t1 t2 t3 t4 a1 a2-fixed a3 a4 b1 b2 b4");
    assert_eq!(shown(&repo, "c"), "t1 t2 t3 t4 a1 a2-fixed a3 a4 b1 b2 b4 c1 c2 c3 c4 c5");
    assert_eq!(repo.git(&["log", "-1", "--format=%an %ae %ad", "a"]), author, "authorship is preserved");
    assert_eq!(repo.git(&["log", "--format=%s", "main..c"]).lines().count(), 6, "no commit is added");
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "nothing is left");
    lattice(&repo).args(["verify", "--full"]).ok();
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn what_has_no_home_stays_staged_and_is_listed() {
    let repo = stack();
    edit(&repo, "t2\n", "t2-changed\n");
    edit(&repo, "a4\nb1\n", "both\n");
    edit(&repo, "c2\n", "c2-fixed\n");
    repo.write("new", "new\n");
    repo.git(&["add", "--all"]);
    edit(&repo, "c3\n", "not staged\n");
    let output = lattice(&repo).arg("absorb").ok();
    for told in [
        "dir/file:2 stays staged: its lines come from below",
        "several commits",
        "new:1 stays staged: it is a new file",
    ] {
        assert!(output.stderr.contains(told), "{told}:\n{}", output.snapshot());
    }
    assert!(shown(&repo, "c").ends_with("a4 b1 b2 b3 b4 c1 c2-fixed c3 c4"), "{}", shown(&repo, "c"));
    let staged = repo.git(&["diff", "--cached", "-U0"]);
    assert!(staged.contains("+t2-changed") && staged.contains("+both") && staged.contains("+new"), "{staged}");
    assert!(!staged.contains("c2-fixed"), "{staged}");
    assert!(repo.git(&["diff", "-U0"]).contains("+not staged"), "what was not staged stays as it was");
    lattice(&repo).arg("verify").ok();
}

#[test]
fn nothing_is_changed_where_nothing_can_be_absorbed() {
    let refused = |repo: &TestRepo, code: &str, words: &str| {
        let before = repo.state();
        let document = lattice(repo).args(["--json", "absorb"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!(code), "{document:#}");
        assert!(document.to_string().contains(words), "{words}: {document:#}");
        assert_same(&before, &repo.state());
    };
    let repo = stack();
    refused(&repo, "nothing-staged", "git add");
    edit(&repo, "t2\n", "t2-changed\n");
    repo.git(&["add", "--all"]);
    refused(&repo, "nothing-to-absorb", "dir/file:2: its lines come from below the stack");
    let repo = stack();
    lattice(&repo).args(["freeze", "a"]).ok();
    edit(&repo, "a2\n", "a2-fixed\n");
    repo.git(&["add", "--all"]);
    refused(&repo, "nothing-to-absorb", "is frozen");
    let repo = stack();
    // The line of a is directly above that of b: git cannot tell the two changes apart.
    edit(&repo, "a4\n", "a4-fixed\n");
    repo.git(&["add", "--all"]);
    refused(&repo, "absorb-conflicts", "b");
}

#[test]
fn whatever_is_no_change_of_lines_is_listed_by_its_path_and_stops_nothing() {
    let repo = TestRepo::draw("main <- a*");
    let inner = repo.dir().join("inner");
    repo.git(&["init", "--quiet", inner.to_str().expect("paths of tests are text")]);
    let inner = repo.beside(&inner);
    inner.git(&["commit", "--quiet", "--allow-empty", "--message", "one"]);
    repo.write("binary", b"\0one");
    repo.write("script", "echo\n");
    repo.write("text", "text\n");
    lattice(&repo).args(["modify", "-a"]).ok();
    inner.git(&["commit", "--quiet", "--allow-empty", "--message", "two"]);
    repo.write("binary", b"\0two");
    repo.write("text", "absorbed\n");
    repo.git(&["add", "binary", "inner", "text"]);
    repo.git(&["update-index", "--chmod=+x", "script"]);
    let said = lattice(&repo).arg("absorb").ok().stderr;
    for line in ["binary:1 stays staged: it is not text", "inner:1 stays staged: it is a submodule", "script:1 stays"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(repo.git(&["show", "a:text"]), "absorbed");
    let left = lattice(&repo).args(["absorb", "--json"]).fails(1).json();
    assert_eq!(left["error"]["code"], json!("nothing-to-absorb"), "{left:#}");
}
