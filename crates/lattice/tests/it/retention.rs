//! How long operations stay undoable.

use lattice_testkit::TestRepo;

use crate::lattice;

#[test]
fn old_operations_are_let_go_and_the_newest_stay_undoable() {
    let repo = TestRepo::draw("main <- api*");
    repo.write_config("[trunk]\nbranch = \"main\"\n\n[undo]\nkeep_operations = 3\nkeep_days = 0\n");
    for round in 0..40 {
        let command = if round % 2 == 0 { "freeze" } else { "unfreeze" };
        lattice(&repo).arg(command).ok();
    }
    let kept = repo.refs_below("refs/lattice/keep/").len();
    assert!(kept < 40, "{kept} of 40 operations are kept although 3 suffice");
    assert!(kept >= 3, "the newest operations stay");
    let operations = lattice(&repo).args(["ops", "--limit", "100"]).json()["operations"].clone();
    let undoable: Vec<_> = operations.as_array().expect("a list").iter().map(|op| op["undoable"] == true).collect();
    assert_eq!(undoable.iter().filter(|undoable| **undoable).count(), kept, "`ops` says which can still be undone");
    assert!(undoable[..3].iter().all(|undoable| *undoable), "the newest three among them");
    let oldest = operations.as_array().expect("a list").last().expect("forty")["id"].as_str().expect("text").to_owned();
    let refused = lattice(&repo).args(["undo", &oldest]).fails(1);
    assert!(refused.stderr.contains("no longer kept"), "the refusal says why: {}", refused.stderr);
    lattice(&repo).arg("undo").ok();
}
