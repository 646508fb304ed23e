//! A kill at any call of git leaves the old state, the new one, or an operation that both
//! `continue` and `abort` bring to an end.

mod files;
mod remains;
mod transaction;

use std::collections::BTreeMap;

use lattice_testkit::asked::seed;
use lattice_testkit::{Action, GitWrapper, Output, TestRepo, shape};

use crate::lattice;

/// A command and the repository to run it in.
struct Case {
    repo: TestRepo,
    args: Vec<String>,
}

/// What a command leaves when nobody interrupts it.
struct Whole {
    shape: BTreeMap<String, String>,
    verify: Option<i32>,
}

impl Case {
    /// Runs to the end.
    #[track_caller]
    fn whole(self) -> Whole {
        lattice(&self.repo).args(&self.args).ok();
        Whole { shape: shape(&self.repo), verify: lattice(&self.repo).args(["verify", "--full"]).run().code }
    }

    fn new(repo: TestRepo, args: &[&str]) -> Self {
        Self { repo, args: args.iter().map(ToString::to_string).collect() }
    }
}

/// The program says that an operation is in progress, and lets nobody else write.
#[track_caller]
fn is_in_progress(repo: &TestRepo) -> bool {
    if !repo.op_state_path().exists() {
        return false;
    }
    lattice(repo).args(["untrack", "nothing"]).fails(3);
    true
}

/// The new state, and nothing that is wrong with it.
#[track_caller]
fn assert_new(repo: &TestRepo, whole: &Whole, context: &str) {
    let now = shape(repo);
    let names = whole.shape.keys().chain(now.keys());
    let differ: std::collections::BTreeSet<_> =
        names.filter(|name| whole.shape.get(*name) != now.get(*name)).map(|name| (name, now.get(name))).collect();
    assert!(differ.is_empty(), "{context}: not as without the interruption: {differ:#?}");
    assert!(!repo.op_state_path().exists(), "{context}: the marker is gone");
    let output = lattice(repo).args(["verify", "--full"]).run();
    assert_eq!(output.code, whole.verify, "{context}: {}", output.snapshot());
}

/// Interrupts a command as `interrupt` does and follows both ways out. `false` if nothing was interrupted.
#[track_caller]
fn check(
    (case, whole): (&dyn Fn() -> Case, &Whole),
    context: &str,
    interrupt: &dyn Fn(&Case) -> Option<Output>,
) -> bool {
    for way in ["continue", "abort"] {
        let case = case();
        let repo = &case.repo;
        let before = repo.state();
        let Some(output) = interrupt(&case) else { return false };
        let context = format!("{way} after {context} of `{}`", case.args.join(" "));
        if !is_in_progress(repo) {
            let old = repo.state() == before;
            assert!(!old || output.code != Some(0), "{context}: a false success\n{}", output.snapshot());
            if !old {
                assert_new(repo, whole, &context);
            }
            return true;
        }
        assert_ne!(output.code, Some(0), "{context}: a success with an operation in progress");
        let result = lattice(repo).arg(way).run();
        assert_eq!(result.code, Some(0), "{context}: {}", result.snapshot());
        if way == "continue" {
            assert_new(repo, whole, &context);
        } else {
            let differences = before.differences(&repo.state());
            assert!(differences.is_empty(), "{context}: not as before:\n{}", differences.join("\n"));
            assert!(!repo.op_state_path().exists(), "{context}: the marker is gone");
        }
        repo.git(&["fsck", "--no-dangling"]);
    }
    true
}

/// Of how many calls one is taken.
const STRIDE: u64 = 3;

/// Every third call of git from one on that is drawn for the run: kills at all of them in every command would take most of
/// a test run.
pub(crate) fn drawn_calls() -> impl Iterator<Item = u32> {
    let first = seed("LATTICE_KILL_SEED") % STRIDE + 1;
    (first..).step_by(STRIDE as usize).map(|call| u32::try_from(call).expect("a command calls git a few times"))
}

/// Checks one command with two kinds of kill at calls of git. Kills before a call are the storm's.
#[track_caller]
fn check_drawn_calls(case: impl Fn() -> Case) {
    let whole = case().whole();
    for action in [Action::KillParentAfter, Action::KillSelf] {
        let mut checked = 0;
        for call in drawn_calls() {
            let interrupt = |case: &Case| {
                let mut wrapper = GitWrapper::new(&case.repo);
                wrapper.on("", call, action.clone());
                let output = lattice(&case.repo).args(&case.args).wrapper(&wrapper).run();
                (wrapper.count() >= call as usize).then_some(output)
            };
            if !check((&case, &whole), &format!("{action:?} at call {call}"), &interrupt) {
                break;
            }
            checked += 1;
            assert!(call < 60, "so many calls of git are a defect of their own");
        }
        assert!(checked > 0, "the command calls git more than three times");
    }
}

/// Something staged, something edited, something new.
fn dirty(repo: &TestRepo) {
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("README", "edited\n");
    repo.write("new/file.txt", "untracked\n");
}

fn create() -> Case {
    let repo = TestRepo::draw("main <- api*");
    dirty(&repo);
    Case::new(repo, &["create", "ui", "-a", "-m", "the ui"])
}

fn modify() -> Case {
    let repo = TestRepo::draw("main <- api* <- ui");
    dirty(&repo);
    Case::new(repo, &["modify", "-a"])
}

fn restack() -> Case {
    let repo = TestRepo::draw("main <- api <- ui* <- top");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "newer\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", "ui"]);
    repo.write("untracked", "mine\n");
    Case::new(repo, &["restack"])
}

#[test]
fn a_kill_of_create_at_any_call() {
    check_drawn_calls(create);
}

#[test]
fn a_kill_of_modify_at_any_call() {
    check_drawn_calls(modify);
}

#[test]
fn a_kill_of_restack_at_any_call() {
    check_drawn_calls(restack);
}

#[test]
fn a_kill_of_move_at_any_call() {
    check_drawn_calls(|| {
        let repo = TestRepo::draw("main <- api <- ui* <- top; main <- db");
        Case::new(repo, &["move", "--onto", "db"])
    });
}

#[test]
fn a_kill_of_freeze_at_any_call() {
    check_drawn_calls(|| Case::new(TestRepo::draw("main <- api <- ui*"), &["freeze"]));
}

#[test]
fn a_kill_of_undo_at_any_call() {
    check_drawn_calls(|| {
        let created = create();
        lattice(&created.repo).args(&created.args).ok();
        created.repo.write("later", "made since\n");
        Case::new(created.repo, &["undo"])
    });
}

#[test]
fn a_kill_of_init_at_any_call() {
    check_drawn_calls(|| Case::new(TestRepo::new(), &["init", "--trunk", "main"]));
}

/// The id of the first fix that doctor can apply itself.
#[track_caller]
fn first_fix(repo: &TestRepo) -> String {
    let report = lattice(repo).arg("doctor").json();
    let issues = report["issues"].as_array().expect("a list");
    let fixes = issues.iter().flat_map(|issue| issue["fixes"].as_array().expect("a list"));
    let fix = fixes.into_iter().find(|fix| fix["user_action"].is_null()).expect("there is a fix");
    fix["id"].as_str().expect("ids are text").to_owned()
}

#[test]
fn a_kill_of_a_repair_at_any_call() {
    check_drawn_calls(|| {
        let repo = TestRepo::draw("main <- api <- ui*");
        lattice(&repo).args(["freeze"]).ok();
        repo.set_metadata_raw("ui", b"{");
        let fix = first_fix(&repo);
        Case::new(repo, &["doctor", "--fix", &fix])
    });
}

#[test]
fn a_kill_while_a_damaged_configuration_is_replaced() {
    check_drawn_calls(|| {
        let repo = TestRepo::draw("main <- api*");
        std::fs::write(repo.lattice_dir().join("config.toml"), b"\xff\xfe not text").expect("it can be written");
        let fix = first_fix(&repo);
        Case::new(repo, &["doctor", "--fix", &fix])
    });
}
