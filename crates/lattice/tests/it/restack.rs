//! Tests of restack: every level in one run, frozen branches kept, nothing lost.

use expect_test::expect;
use lattice_testkit::{GitWrapper, TestRepo, assert_same};
use proptest::prelude::{Strategy, prop};
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use proptest::{prop_assert, prop_assert_eq};
use serde_json::{Value, json};

use crate::lattice;

/// Subjects of the commits in a range, oldest first.
#[track_caller]
fn subjects(repo: &TestRepo, range: &str) -> Vec<String> {
    repo.git(&["log", "--reverse", "--format=%s", range]).lines().map(str::to_owned).collect()
}

/// Moves a branch that is not checked out to an amended version of its newest commit.
#[track_caller]
fn amend(repo: &TestRepo, branch: &str) {
    let tree = repo.rev(&format!("{branch}^{{tree}}"));
    let (parent, subject) = (repo.rev(&format!("{branch}^")), subjects(repo, &format!("{branch}~1..{branch}")));
    let new = repo.git(&["commit-tree", &tree, "-p", &parent, "-m", &subject[0]]);
    repo.git(&["update-ref", &format!("refs/heads/{branch}"), &new]);
}

/// The branch objects of `log --json`, by name.
#[track_caller]
fn branches(repo: &TestRepo) -> Value {
    let log = lattice(repo).arg("log").json();
    let list = log["branches"].as_array().expect("log lists branches");
    list.iter().map(|branch| (branch["name"].as_str().expect("named").to_owned(), branch.clone())).collect()
}

// proves: ST-3.2.1-2
#[test]
fn one_restack_moves_every_level() {
    let repo = TestRepo::draw("main* <- a <- b <- c <- d; a <- side");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let before: Vec<_> = ["a", "b", "c", "d", "side"].map(|name| repo.rev(name)).into();
    let out = lattice(&repo).arg("restack").ok();
    expect![[r#"
        rebased a (1 commit) onto main
        rebased b (1 commit) onto a
        rebased c (1 commit) onto b
        rebased d (1 commit) onto c
        rebased side (1 commit) onto a
    "#]]
    .assert_eq(&out.stdout);
    assert_eq!(subjects(&repo, "main..d"), ["a 1", "b 1", "c 1", "d 1"], "each branch keeps its own commit");
    for (name, parent) in [("a", "main"), ("b", "a"), ("c", "b"), ("d", "c"), ("side", "a")] {
        assert_eq!(repo.rev(&format!("{name}^")), repo.rev(parent), "{name} has to stand on the tip of {parent}");
        assert_eq!(repo.metadata(name)["base"]["oid"], json!(repo.rev(parent)), "the base of {name} is that tip");
    }
    let after: Vec<_> = ["a", "b", "c", "d", "side"].map(|name| repo.rev(name)).into();
    assert!(before.iter().zip(&after).all(|(old, new)| old != new), "all five branches were rewritten");
    assert_eq!(lattice(&repo).arg("restack").json()["changed"], json!(false), "a second restack has nothing to do");
}

#[test]
fn the_reach_flags_choose_the_branches() {
    let cases: [(&[&str], &[&str]); 5] = [
        (&["restack", "b", "--only"], &["b"]),
        (&["restack", "b", "--upstack"], &["b", "c"]),
        (&["restack", "b", "--downstack"], &["a", "b"]),
        (&["restack", "b"], &["a", "b", "c"]),
        (&["restack", "main"], &["a", "b", "c", "other"]),
    ];
    for (args, expected) in cases {
        let repo = TestRepo::draw("main* <- a(2) <- b(2) <- c; main <- other");
        repo.commit_file("more.txt", "more\n", "trunk moves");
        amend(&repo, "a");
        amend(&repo, "b");
        let tips = repo.branch_refs();
        lattice(&repo).args(args).ok();
        let now = repo.branch_refs();
        let moved: Vec<_> = now.iter().filter(|(name, tip)| tips[*name] != **tip).map(|(name, _)| name).collect();
        assert_eq!(moved, expected, "lattice {}", args.join(" "));
    }
}

#[test]
fn a_frozen_branch_is_kept_and_shields_what_is_above_it() {
    let repo = TestRepo::draw("main* <- a <- b! <- c; b <- d");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    amend(&repo, "b");
    let (b, metadata) = (repo.rev("b"), repo.metadata("b"));
    let out = lattice(&repo).arg("restack").ok();
    assert!(out.stdout.contains("kept b (frozen)"), "the kept branch is named:\n{}", out.snapshot());
    assert_eq!(repo.rev("b"), b, "a frozen branch is not rewritten");
    assert_eq!(repo.metadata("b"), metadata, "nor is its metadata");
    assert_eq!(repo.rev("a^"), repo.rev("main"), "what is below it moves");
    assert_eq!([repo.rev("c^"), repo.rev("d^")], [b.clone(), b], "what is above follows the frozen branch, no further");
    assert_eq!(branches(&repo)["b"]["needs_restack"], json!(true), "log does not call it done");
}

#[test]
fn a_frozen_branch_that_is_asked_for_by_name_is_refused_with_the_fix() {
    let repo = TestRepo::draw("main* <- a!");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let before = repo.state();
    let document = lattice(&repo).args(["restack", "a"]).json();
    assert_eq!(document["issues"][0]["fixes"][0]["summary"], json!("unfreeze a"), "{document:#}");
    assert_same(&before, &repo.state());
}

#[test]
fn merge_commits_are_refused_by_name_and_nothing_moves() {
    let repo = TestRepo::draw("main* <- a <- b; main <- other");
    repo.git(&["checkout", "--quiet", "a"]);
    repo.git(&["merge", "--quiet", "--no-ff", "-m", "a merge", "other"]);
    let merge = repo.rev("a");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let before = repo.state();
    let document = lattice(&repo).arg("restack").json();
    assert_eq!(document["error"]["code"], json!("merge-commit"), "{document:#}");
    let message = document["error"]["message"].as_str().expect("text");
    assert!(message.contains(&merge[..8]) && message.contains("`a`"), "commit and branch are named: {message}");
    assert_same(&before, &repo.state());
}

#[test]
fn empty_branches_follow_their_parents() {
    let repo = TestRepo::draw("main* <- a <- empty(0) <- b; main <- alone(0)");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.rev("empty"), repo.rev("a"), "a branch without commits is where its parent is");
    assert_eq!(repo.rev("b^"), repo.rev("a"), "and what stands on it goes along");
    assert_eq!(repo.rev("alone"), repo.rev("main"), "also on the trunk");
    assert_eq!(lattice(&repo).arg("verify").json()["holds"], json!(true), "and every invariant holds");
}

#[test]
fn the_files_of_the_current_branch_follow_and_uncommitted_work_stays() {
    let repo = TestRepo::draw("main <- a*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("more.txt", "more\n", "trunk moves");
    repo.git(&["checkout", "--quiet", "a"]);
    repo.write("README", "edited, not staged\n");
    repo.write("new.txt", "untracked\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.read("more.txt"), "more\n", "the file of the new base is there");
    assert_eq!(
        repo.git(&["status", "--porcelain"]),
        " M README\nA  staged.txt\n?? new.txt",
        "nothing of the user is lost"
    );
}

#[test]
fn a_branch_rebased_by_hand_gets_its_base_and_keeps_its_commits() {
    let repo = TestRepo::draw("main* <- a(2) <- b");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    repo.git(&["rebase", "--quiet", "main", "a"]);
    let a = repo.rev("a");
    lattice(&repo).args(["restack", "main"]).ok();
    assert_eq!(repo.rev("a"), a, "it stands where it belongs and is not rewritten again");
    assert_eq!(repo.metadata("a")["base"]["oid"], json!(repo.rev("main")), "only its base was out of date");
    assert_eq!(subjects(&repo, "a..b"), ["b 1"], "what is above follows without doubled commits");
}

#[test]
fn commits_that_the_parent_lost_do_not_become_the_childs_own() {
    let repo = TestRepo::draw("main* <- a(2) <- b");
    repo.git(&["branch", "--force", "a", "a~1"]);
    lattice(&repo).arg("restack").ok();
    assert_eq!(subjects(&repo, "a..b"), ["b 1"], "b owns what it owned before, not what a dropped");
    assert_eq!(repo.rev("b^"), repo.rev("a"));
}

#[test]
fn a_branch_that_merged_its_parent_stands_on_it() {
    let repo = TestRepo::draw("main* <- a");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    repo.git(&["checkout", "--quiet", "a"]);
    repo.git(&["merge", "--quiet", "--no-ff", "-m", "a merge", "main"]);
    let a = repo.rev("a");
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.rev("a"), a, "there is nothing to rewrite");
    assert_eq!(repo.metadata("a")["base"]["oid"], json!(repo.rev("main")), "its base is what it contains");
}

#[test]
fn detached_unborn_and_unknown_branches_are_named_in_the_refusal() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "loose"]);
    let unknown = lattice(&repo).args(["restack", "nothing"]).fails(1).stderr;
    assert!(unknown.contains("there is no branch `nothing`"), "{unknown}");
    let loose = lattice(&repo).args(["restack", "loose"]).fails(1).stderr;
    assert!(loose.contains("`loose` is not tracked") && loose.contains("lattice track loose"), "{loose}");
    repo.git(&["checkout", "--quiet", "--detach"]);
    let detached = lattice(&repo).arg("restack").fails(1).stderr;
    assert!(detached.contains("HEAD is detached"), "{detached}");
    repo.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    let unborn = lattice(&repo).arg("restack").fails(1).stderr;
    assert!(unborn.contains("has no commit yet"), "{unborn}");
}

// proves: ST-6.1-3, ST-6.1-5
#[test]
fn a_dry_run_prints_typed_steps_and_execution_changes_exactly_their_refs() {
    let repo = TestRepo::draw("main* <- a <- b; main <- idle(0)");
    lattice(&repo).args(["freeze", "idle"]).ok();
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let (before, refs) = (repo.state(), repo.refs());
    let document = lattice(&repo).args(["restack", "--dry-run"]).json();
    assert_same(&before, &repo.state());
    let plan = &document["plan"];
    let steps = plan["steps"].as_array().expect("a list");
    assert!(steps.iter().all(|step| step["type"].is_string() && step["refs"].is_array()), "{plan:#}");
    let listed = |list: &Value| -> Vec<String> {
        let mut names: Vec<_> =
            list.as_array().expect("a list").iter().map(|n| n.as_str().expect("text").to_owned()).collect();
        names.sort();
        names
    };
    let mut of_steps: Vec<String> = steps.iter().flat_map(|step| listed(&step["refs"])).collect();
    of_steps.sort();
    let touched: Value = plan["touched_refs"].as_array().expect("a list").iter().map(|t| t["name"].clone()).collect();
    assert_eq!(of_steps, listed(&touched), "the touched refs are the union of those of the steps");
    lattice(&repo).arg("restack").ok();
    let now = repo.refs();
    let changed = now.iter().filter(|(name, oid)| refs.get(*name) != Some(oid)).map(|(name, _)| name.clone());
    let changed: Vec<_> = changed.filter(|name| !name.starts_with("refs/lattice/")).collect();
    assert_eq!(changed, of_steps, "exactly the announced refs changed");
}

#[test]
fn the_number_of_git_processes_does_not_depend_on_the_number_of_branches() {
    let count = |depth: usize| {
        let chain: String = (1..=depth).map(|n| format!(" <- b{n}")).collect();
        let repo = TestRepo::draw(&format!("main*{chain}"));
        repo.commit_file("more.txt", "more\n", "trunk moves");
        let wrapper = GitWrapper::new(&repo);
        lattice(&repo).wrapper(&wrapper).arg("log").ok();
        let log = wrapper.calls();
        wrapper.clear_calls();
        lattice(&repo).wrapper(&wrapper).arg("restack").ok();
        assert_eq!(repo.rev(&format!("b{depth}~{depth}")), repo.rev("main"), "all {depth} branches moved");
        (log, wrapper.calls())
    };
    let ((log, restack), (long_log, long_restack)) = (count(20), count(60));
    assert_eq!(log.len(), long_log.len(), "log:\n{}\n---\n{}", log.join("\n"), long_log.join("\n"));
    assert!(log.len() <= 3, "a scan is at most three processes:\n{}", log.join("\n"));
    assert_eq!(restack.len(), long_restack.len(), "restack:\n{}\n---\n{}", restack.join("\n"), long_restack.join("\n"));
    assert!(restack.len() <= 12, "restack needs at most twelve processes:\n{}", restack.join("\n"));
}

/// One branch of a random stack: which earlier branch it stands on, its commits, whether plain git amends it.
type Shape = (prop::sample::Index, u32, bool);

fn stack() -> impl Strategy<Value = (Vec<Shape>, prop::sample::Index)> {
    let branch = (proptest::arbitrary::any::<prop::sample::Index>(), 0..=2u32, proptest::arbitrary::any::<bool>());
    (prop::collection::vec(branch, 1..=8), proptest::arbitrary::any::<prop::sample::Index>())
}

#[test]
fn restack_from_trunk_brings_any_stack_onto_its_parents_with_its_own_commits() {
    let config = Config { cases: 20, failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
    TestRunner::new(config).run(&stack(), |(shapes, current)| check_shape(&shapes, current)).unwrap();
}

fn check_shape(shapes: &[Shape], current: prop::sample::Index) -> TestCaseResult {
    let name = |at: usize| if at == 0 { "main".to_owned() } else { format!("b{at}") };
    let parents: Vec<String> = shapes.iter().enumerate().map(|(at, shape)| name(shape.0.index(at + 1))).collect();
    let lines: Vec<_> =
        (1..=shapes.len()).map(|at| format!("{} <- b{at}({})", parents[at - 1], shapes[at - 1].1)).collect();
    let repo = TestRepo::draw(&lines.join("; "));
    repo.commit_file("more.txt", "more\n", "trunk moves");
    let amended = (1..=shapes.len()).filter(|at| shapes[at - 1].2 && shapes[at - 1].1 > 0);
    amended.for_each(|at| amend(&repo, &name(at)));
    let own = |at: usize| {
        let base = repo.metadata(&name(at))["base"]["oid"].as_str().expect("an id").to_owned();
        subjects(&repo, &format!("{base}..{}", name(at)))
    };
    let before: Vec<_> = (1..=shapes.len()).map(own).collect();
    let here = name(current.index(shapes.len() + 1));
    repo.git(&["checkout", "--quiet", &here]);
    lattice(&repo).args(["restack", "main"]).ok();
    for at in 1..=shapes.len() {
        let (branch, parent) = (name(at), &parents[at - 1]);
        prop_assert_eq!(own(at), before[at - 1].clone(), "own commits of {} in {:?}", branch, lines);
        let base = repo.metadata(&branch)["base"]["oid"].clone();
        prop_assert_eq!(base, json!(repo.rev(parent)), "{} stands on {} in {:?}", branch, parent, lines);
        let standing = repo.try_git(&["merge-base", "--is-ancestor", parent, &branch]);
        prop_assert!(standing.is_ok(), "{branch} contains the tip of {parent} in {lines:?}");
    }
    prop_assert_eq!(repo.git(&["status", "--porcelain"]), "", "the files of {} follow in {:?}", here, lines);
    prop_assert_eq!(&lattice(&repo).arg("verify").json()["holds"], &json!(true), "{:?}", lines);
    Ok(())
}

#[test]
fn a_copy_of_a_repository_is_as_clean_as_the_original() {
    let repo = TestRepo::draw("main <- a <- b*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("a.txt", "a 1\n", "the trunk has it already");
    repo.git(&["checkout", "--quiet", "b"]);
    // Every file of a copy has another number, and Git remembers numbers.
    let copy = crate::doctor::copy_of(&repo, "copy");
    lattice(&copy).arg("restack").ok();
    assert_eq!(copy.git(&["status", "--porcelain"]), "");
}
