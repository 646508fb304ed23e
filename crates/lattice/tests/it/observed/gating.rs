//! Tests of what divergence means for commands: only what they require decides whether they run.

use lattice_testkit::metadata::metadata_ref;
use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};

use super::{advance, recorded};
use crate::doctor::states::{self, edit};
use crate::doctor::{copy_of, fix_named, list, report, text};
use crate::lattice;
use crate::ledger::{LEDGER, count, newest};

/// Something that another program does to a repository.
type Change = fn(&TestRepo);

// proves: ST-1.2-4, ST-7.2-6, ST-7.3-3
#[test]
fn commits_and_amendments_by_plain_git_are_normal() {
    let repo = recorded(|repo| drop(advance(repo, "a")));
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.rev("b~1"), repo.rev("a"), "b stands on the commit that git made");

    repo.git(&["checkout", "--quiet", "a"]);
    repo.write("a.txt", "amended\n");
    repo.git(&["commit", "--quiet", "--all", "--amend", "-m", "amended elsewhere"]);
    let amended = repo.rev("a");
    assert!(repo.git(&["log", "--format=%s", "main..b"]).lines().all(|subject| subject != "amended elsewhere"));
    lattice(&repo).args(["restack", "--upstack"]).ok();
    assert_eq!(repo.rev("b~1"), amended, "b stands on what the amendment left");
    assert_eq!(repo.rev("a"), amended, "which itself stays as git made it");
}

// proves: ST-1.2-3, ST-7.2-7
#[test]
fn a_divergence_that_leaves_no_valid_model_stops_the_command_and_is_told() {
    let repo = recorded(|repo| drop(repo.git(&["branch", "-D", "a"])));
    let before = repo.state();
    let answer = lattice(&repo).arg("restack").json();
    assert_eq!(answer["error"]["code"], "gated", "{answer:#}");
    assert_eq!(answer["issues"][0]["kind"], "missing-parent", "{answer:#}");
    assert!(answer["error"].to_string().contains("refs/heads/a"), "the failure says what changed: {answer:#}");
    let refused = lattice(&repo).arg("restack").fails(1);
    assert!(refused.stderr.contains("refs/heads/a"), "for people too:\n{}", refused.snapshot());
    let found = report(&repo);
    assert_eq!(found["divergence"]["changes"][0]["name"], "refs/heads/a", "doctor says it: {found:#}");
    let told = lattice(&repo).arg("doctor").fails(1);
    assert!(told.stdout.contains("refs/heads/a"), "for people too:\n{}", told.snapshot());
    assert_same(&before, &repo.state());
}

// proves: ST-7.3-2
#[test]
fn corrupt_metadata_gates_what_needs_it_and_nothing_else() {
    let repo = recorded(|repo| repo.set_metadata_raw("a", b"{"));
    let held = report(&repo)["capabilities"].clone();
    assert!(!list(&held).iter().any(|held| held == "MetadataReadable"), "the capability is absent: {held}");
    let gated = lattice(&repo).arg("restack").json();
    assert_eq!(gated["error"]["code"], "gated", "{gated:#}");
    lattice(&repo).arg("log").ok();
    lattice(&repo).args(["checkout", "b"]).ok();
}

#[test]
fn gating_is_the_same_whether_a_divergence_is_known_or_not() {
    let changes: [(&str, Change); 6] = [
        ("a commit on a branch", |repo| drop(advance(repo, "a"))),
        ("a branch gone", |repo| drop(repo.git(&["branch", "-D", "a"]))),
        ("garbage as metadata", |repo| repo.set_metadata_raw("b", b"{")),
        ("metadata gone", |repo| drop(repo.git(&["update-ref", "-d", &metadata_ref("b")]))),
        ("a cycle", |repo| edit(repo, "a", |a| a["parent"] = serde_json::json!({"kind": "branch", "name": "b"}))),
        ("another trunk", |repo| repo.write_config("[trunk]\nbranch = \"gone\"\n")),
    ];
    let base = recorded(|_| {});
    for (at, (what, change)) in changes.into_iter().enumerate() {
        let known = copy_of(&base, &format!("known-{at}"));
        change(&known);
        let unknown = copy_of(&known, &format!("unknown-{at}"));
        unknown.git(&["update-ref", "-d", LEDGER]);
        for args in [&["restack", "a"][..], &["checkout", "b"]] {
            let gate = |repo: &TestRepo| {
                let output = lattice(repo).arg("--debug").args(args).arg("--dry-run").run();
                let told = output.stderr.lines().filter(|line| line.starts_with("debug: gate:"));
                (output.code, told.map(str::to_owned).collect::<Vec<_>>())
            };
            let decided = gate(&known);
            assert!(!decided.1.is_empty(), "{what}: {args:?} comes to its gate");
            assert_eq!(decided, gate(&unknown), "{what}: {args:?} with and without evidence");
        }
        assert_eq!(count(&known, "DivergenceObserved"), 1, "{what} is a divergence for the one");
        assert_eq!(unknown.ledger().len(), 0, "{what}: and none for the other");
    }
}

// proves: ST-7.3-4
#[test]
fn a_ref_that_moves_during_execution_aborts_and_a_new_plan_succeeds() {
    let repo = recorded(|repo| drop(advance(repo, "main")));
    let foreign = repo.git(&["commit-tree", "-m", "in between", "-p", "b", "b^{tree}"]);
    let mut wrapper = GitWrapper::new(&repo);
    let moves = format!("\"$REAL_GIT\" update-ref refs/heads/b {foreign}");
    wrapper.on("update-ref", 1, Action::Run(moves));
    let a = repo.rev("a");
    let failed = lattice(&repo).wrapper(&wrapper).arg("restack").json();
    assert_eq!(failed["ok"], false, "a plan for other values is not executed: {failed:#}");
    assert_eq!((repo.rev("a"), repo.rev("b")), (a, foreign), "nothing moved but what the other process moved");
    assert!(!repo.op_state_path().exists(), "the operation is over");
    let event = newest(&repo);
    assert_eq!(event["event"], "Aborted", "{event:#}");
    assert!(text(&event["detail"]["reason"]).contains("refs/heads/b"), "the record says why: {event:#}");
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "b"]), "in between", "the new plan is made for the new value");
    assert_eq!(repo.rev("a~1"), repo.rev("main"), "and carries everything over");
    assert_eq!(repo.rev("b~2"), repo.rev("a"));
}

#[test]
fn nothing_is_repaired_unasked_even_where_the_ledger_knows_how() {
    let known = ["removed metadata", "garbage over recorded metadata", "a deleted parent"];
    for state in states::ALL.iter().filter(|state| known.contains(&state.name)) {
        let repo = (state.make)();
        let before = repo.state();
        let first = text(&list(&crate::doctor::issue(&report(&repo), state.kind)["fixes"])[0]["id"]).to_owned();
        for args in [&["log"][..], &["verify"], &["doctor", "--events"], &["doctor", "--dry-run", "--fix", &first]] {
            lattice(&repo).args(args).run();
            assert_same(&before, &repo.state());
        }
        let damaged = [metadata_ref("b"), "refs/heads/a".to_owned()].map(|name| repo.refs().get(&name).cloned());
        lattice(&repo).args(["create", "other", "-m", "other"]).run();
        lattice(&repo).args(["restack"]).run();
        let after = [metadata_ref("b"), "refs/heads/a".to_owned()].map(|name| repo.refs().get(&name).cloned());
        assert_eq!(damaged, after, "{}: going on working does not touch it", state.name);
        lattice(&repo).args(["doctor", "--fix", &first]).run();
        assert_ne!(repo.state(), before, "{}: the fix by its name does", state.name);
    }
}

// proves: ST-1.3-1
#[test]
fn a_copy_under_another_clock_user_and_environment_gets_the_same_plans_and_fixes() {
    let repo = recorded(|repo| {
        advance(repo, "main");
        repo.git(&["update-ref", "-d", &metadata_ref("b")]);
    });
    let copy = copy_of(&repo, "elsewhere");
    copy.git(&["config", "user.name", "Someone Else"]);
    copy.git(&["config", "user.email", "else@example.invalid"]);
    let elsewhere = |args: &[&str]| {
        lattice(&copy)
            .args(args)
            .env("LATTICE_NOW", "2031-07-08T09:10:11Z")
            .env("LATTICE_SEED", "another seed")
            .env("HOME", copy.sandbox().root().join("nobody"))
            .env("USER", "else")
            .env("TZ", "Asia/Kathmandu")
            .env("LC_ALL", "tr_TR.UTF-8")
            .env("GIT_AUTHOR_NAME", "Another Name")
            .env("GIT_COMMITTER_DATE", "@1 +0000")
            .env("COLUMNS", "20")
            .json()
    };
    for args in
        [&["restack", "a", "--dry-run"][..], &["freeze", "a", "--dry-run"], &["create", "n", "-m", "n", "--dry-run"]]
    {
        let plan = lattice(&repo).args(args).json()["plan"].clone();
        assert!(plan["digest"].is_string(), "{args:?} is planned: {plan:#}");
        assert_eq!(elsewhere(args)["plan"], plan, "{args:?} is the same plan elsewhere");
    }
    let found = report(&repo);
    let fix = fix_named(&found, "restore-metadata");
    let there = elsewhere(&["doctor"]);
    for part in ["issues", "capabilities", "fingerprint", "divergence"] {
        assert_eq!(there[part], found[part], "{part} are the same elsewhere");
    }
    let dry = ["doctor", "--fix", &fix, "--dry-run"];
    let plan = lattice(&repo).args(dry).json()["plan"].clone();
    assert!(plan["digest"].is_string(), "the fix has a plan: {plan:#}");
    assert_eq!(elsewhere(&dry)["plan"], plan, "and the same one elsewhere");
}
