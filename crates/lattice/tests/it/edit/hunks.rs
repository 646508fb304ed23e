//! `split --by-hunk`: some lines of a branch go below, and nothing is lost.

use lattice_testkit::{TestRepo, assert_same};
use serde_json::json;

use crate::lattice;

use super::{holds, parent, refused, subjects, tree};

const BEFORE: &str = "one\ntwo\nthree\nfour\nfive\nsix";

/// A branch `work` that changes two places of one file, makes another, removes a third, and has a branch on it.
fn mixed() -> TestRepo {
    let repo = TestRepo::draw("main* <- empty");
    repo.commit_file("text", BEFORE, "a text");
    repo.commit_file("old", "old\n", "something old");
    lattice(&repo).args(["create", "work"]).ok();
    repo.write("text", "one\nTWO\nthree\nfour\nFIVE\nsix\nseven");
    repo.write("new", "new\n");
    repo.git(&["rm", "--quiet", "old"]);
    lattice(&repo).args(["modify", "-c", "-a", "-m", "all at once"]).ok();
    lattice(&repo).args(["create", "above"]).ok();
    repo.write("above", "above\n");
    lattice(&repo).args(["modify", "-c", "-a", "-m", "above"]).ok();
    repo.git(&["checkout", "--quiet", "work"]);
    repo
}

#[test]
fn hunks_go_below_by_their_numbers_and_the_sum_of_both_branches_is_what_it_was() {
    let repo = mixed();
    let (before, whole) = (repo.state(), tree(&repo, "work"));
    let listed = lattice(&repo).args(["split", "--by-hunk"]).fails(2);
    for line in ["1  new (new file)", "2  old (removed file)", "3  text:2 (+1 -1)", "4  text:5 (+3 -2)"] {
        assert!(listed.stderr.contains(line), "`{line}` in\n{}", listed.stderr);
    }
    lattice(&repo).args(["split", "--by-hunk", "4,2"]).ok();
    assert_eq!(repo.git(&["show", "work-1:text"]), "one\ntwo\nthree\nfour\nFIVE\nsix\nseven");
    assert!(repo.try_git(&["show", "work-1:old"]).is_err(), "the removal went below");
    assert!(repo.try_git(&["show", "work-1:new"]).is_err(), "the new file did not");
    assert_eq!(tree(&repo, "work"), whole, "both together are what one was");
    assert_eq!([parent(&repo, "work"), parent(&repo, "work-1"), parent(&repo, "above")], ["work-1", "main", "work"]);
    assert_eq!(subjects(&repo, "work").len(), 2);
    holds(&repo);
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn on_a_terminal_each_hunk_is_shown_and_asked_for() {
    let repo = mixed();
    let asked = "To the branch below? [y, n, q: no more] ";
    let terminal = lattice(&repo).args(["split", "--by-hunk"]).terminal();
    let output = terminal.answer(asked, "n\n").answer(asked, "n\n").answer(asked, "y\n").answer(asked, "q\n").run();
    assert_eq!(output.code, Some(0), "{}", output.snapshot());
    assert_eq!(repo.git(&["show", "work-1:text"]), "one\nTWO\nthree\nfour\nfive\nsix");
    assert_eq!(repo.git(&["show", "work:text"]), "one\nTWO\nthree\nfour\nFIVE\nsix\nseven");
    holds(&repo);
}

#[test]
fn numbers_that_name_nothing_or_everything_are_refused() {
    let repo = mixed();
    refused(&repo, &["split", "--by-hunk", "5"], "no-such-hunk", "no hunk 5");
    refused(&repo, &["split", "--by-hunk", "0"], "no-such-hunk", "no hunk 0");
    refused(&repo, &["split", "--by-hunk", "1,2,3,4"], "nothing-left", "nothing would be left");
    let plan = lattice(&repo).args(["split", "--by-hunk", "1", "--dry-run"]).json();
    assert_eq!(plan["changed"], json!(false));
}
