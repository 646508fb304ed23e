//! The killer: `kill -9` before a system call that changes a file, waits for the disk or starts a process.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lattice_testkit::asked::{number, seed};
use lattice_testkit::tracer::{Fault, Point, Victim};
use lattice_testkit::{TestRepo, shape};

use crate::action::Random;
use crate::lattice;

/// How many points are drawn in every test run; `cargo xtask kill` takes all of them.
const POINTS: u64 = 40;

/// A command and the repository to run it in.
pub(crate) type Case = (&'static str, &'static str, fn(&TestRepo), &'static [&'static str]);

/// Every command that changes something, with a drawing, what comes before, and its arguments.
const CASES: &[Case] = &[
    ("init", "", nothing, &["init", "--trunk", "main"]),
    ("create", "main <- api*", dirty, &["create", "ui", "-a", "-m", "the ui"]),
    ("insert", "main <- api* <- top", dirty, &["create", "ui", "-a", "-m", "the ui", "--insert"]),
    ("modify", "main <- api* <- ui", dirty, &["modify", "-a"]),
    ("restack", "main <- api <- ui* <- top; main <- other", trunk_goes_on, &["restack"]),
    ("restack with a worktree", "main* <- api <- ui <- top", worktree, &["restack"]),
    ("move", "main <- api <- ui* <- top; main <- db", nothing, &["move", "--onto", "db"]),
    ("reorder", "main <- a <- b(2)* <- c", nothing, &["reorder", "--order", "c,a,b"]),
    ("split by commit", "main <- a <- b(3)* <- c", nothing, &["split", "--by-commit"]),
    ("split by file", "main <- a* <- b", two_files, &["split", "--by-file", "second.txt"]),
    ("split by hunk", "main <- a* <- b", two_files, &["split", "--by-hunk", "2"]),
    ("squash", "main <- a(3)* <- b", nothing, &["squash"]),
    ("fold", "main <- a <- b* <- c; a <- d", nothing, &["fold"]),
    ("fold --keep", "main <- a <- b* <- c; a <- d", nothing, &["fold", "--keep"]),
    ("pop", "main <- a <- b* <- c", nothing, &["pop"]),
    ("delete", "main <- a <- b* <- c", nothing, &["delete", "a"]),
    ("delete --upstack", "main <- a <- b* <- c", nothing, &["delete", "b", "--upstack"]),
    ("rename", "main <- a* <- b", nothing, &["rename", "z"]),
    ("revert", "main(2) <- a*", nothing, &["revert", "main"]),
    ("absorb", "main <- a* <- b", staged_hunk, &["absorb"]),
    ("freeze", "main <- a <- b*", nothing, &["freeze"]),
    ("unfreeze", "main <- a!*", nothing, &["unfreeze"]),
    ("track", "main <- a*", loose, &["track", "loose", "--parent", "a"]),
    ("untrack", "main <- a*", nothing, &["untrack", "a"]),
    ("checkout", "main <- a <- b*", nothing, &["checkout", "a"]),
    ("undo", "main <- api*", created, &["undo"]),
    ("redo", "main <- api*", undone, &["redo"]),
    ("config", "main <- a*", nothing, &["config", "set", "lock.timeout_ms", "900"]),
    ("trunk", "main*", loose, &["trunk", "set", "loose"]),
];

fn nothing(_: &TestRepo) {}

/// Something staged, something edited, something new.
fn dirty(repo: &TestRepo) {
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("README", "edited\n");
    repo.write("new/file.txt", "untracked\n");
}

fn trunk_goes_on(repo: &TestRepo) {
    let here = repo.git(&["symbolic-ref", "--short", "HEAD"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "newer\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", &here]);
    repo.write("untracked", "mine\n");
}

/// A worktree that has to follow, with an edit that applies.
fn worktree(repo: &TestRepo) {
    let other = repo.worktree("other", "ui");
    repo.commit_file("README", "newer\n", "trunk goes on");
    other.write("ui.txt", "edited\n");
}

/// What is uncommitted in all other worktrees.
fn elsewhere(repo: &TestRepo) -> String {
    let list = repo.git(&["worktree", "list", "--porcelain"]);
    let others = list.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1);
    others.map(|path| repo.git(&["-C", path, "status", "--porcelain"])).collect()
}

fn two_files(repo: &TestRepo) {
    repo.commit_file("second.txt", "second\n", "a second file");
    lattice(repo).arg("restack").ok();
}

fn staged_hunk(repo: &TestRepo) {
    repo.write("a.txt", "a one\n");
    repo.git(&["add", "a.txt"]);
}

fn loose(repo: &TestRepo) {
    repo.git(&["branch", "loose"]);
}

fn created(repo: &TestRepo) {
    dirty(repo);
    lattice(repo).args(["create", "ui", "-a", "-m", "the ui"]).ok();
    repo.write("later", "made since\n");
}

fn undone(repo: &TestRepo) {
    created(repo);
    lattice(repo).arg("undo").ok();
}

fn repository(case: &Case) -> TestRepo {
    let (_, drawing, prepare, _) = case;
    let repo = if drawing.is_empty() { TestRepo::new() } else { TestRepo::draw(drawing) };
    prepare(&repo);
    repo
}

/// What a command leaves when nobody interrupts it, and the calls that it makes.
pub(crate) struct Whole {
    shape: BTreeMap<String, String>,
    pub(crate) points: Vec<Point>,
}

/// Whether a command that met its fault may still succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// Yes, if nothing is missing: the call may have been one that can be done without.
    MaySucceed,
    NeverSucceeds,
}

/// The row of a command.
pub(crate) fn case(command: &str) -> &'static Case {
    CASES.iter().find(|case| case.0 == command).expect("the table has it")
}

pub(crate) fn whole(case: &Case) -> Whole {
    let repo = repository(case);
    let traced = lattice(&repo).args(case.3).traced(Fault::None);
    assert_eq!(traced.output.code, Some(0), "{}: {}", case.0, traced.output.snapshot());
    Whole { shape: shape(&repo), points: traced.points }
}

/// Lets one call go wrong and follows one way out. An error says what is wrong.
pub(crate) fn check(
    case: &Case,
    whole: &Whole,
    (fault, way, success): (Fault, &str, Interrupted),
    defect: Option<&str>,
) -> Result<(), String> {
    let repo = repository(case);
    let (before, there) = (repo.state(), elsewhere(&repo));
    let mut program = lattice(&repo).args(case.3);
    if let Some(defect) = defect {
        program = program.env("LATTICE_DEFECT", defect);
    }
    let traced = program.traced(fault);
    if !traced.struck {
        return Ok(());
    }
    let at = match fault {
        Fault::Kill(at, _) => traced.points.get(at),
        Fault::Fail(name, at, _) => traced.points.iter().filter(|point| point.name == name).nth(at),
        Fault::None => None,
    };
    let context = format!("{}: {fault:?} at {at:?}, then {way}", case.0);
    let told = |what: &str| Err(format!("{context}: {what}\n{}", traced.output.snapshot()));
    let is_new = || {
        let now = shape(&repo);
        let names = whole.shape.keys().chain(now.keys());
        let differ: BTreeMap<_, _> =
            names.filter(|name| whole.shape.get(*name) != now.get(*name)).map(|name| (name, now.get(name))).collect();
        if elsewhere(&repo) != there {
            return told(&format!("another worktree changed: {there} -> {}", elsewhere(&repo)));
        }
        if differ.is_empty() { Ok(()) } else { told(&format!("not as without the kill: {differ:#?}")) }
    };
    if success == Interrupted::NeverSucceeds && traced.output.code == Some(0) {
        return told("a success");
    }
    if traced.output.stderr.contains("panicked") {
        return told("a panic");
    }
    if !repo.op_state_path().exists() {
        let old = before.differences(&repo.state());
        if old.is_empty() {
            return if traced.output.code == Some(0) { told("a false success") } else { Ok(()) };
        }
        return is_new();
    }
    if traced.output.code == Some(0) {
        return told("a success with an operation in progress");
    }
    let other = lattice(&repo).args(["untrack", "nothing"]).run();
    if other.code != Some(3) {
        return told(&format!("another change is let in\n{}", other.snapshot()));
    }
    let result = lattice(&repo).arg(way).run();
    if result.code != Some(0) {
        return told(&result.snapshot());
    }
    if repo.op_state_path().exists() {
        return told("the marker is still there");
    }
    if way == "continue" {
        is_new()?;
    } else {
        let differences = before.differences(&repo.state());
        if !differences.is_empty() || elsewhere(&repo) != there {
            return told(&format!("not as before:\n{}", differences.join("\n")));
        }
    }
    repo.try_git(&["fsck", "--no-dangling"]).map(drop).or_else(|failure| told(&failure.stderr))
}

const VICTIMS: [Victim; 3] = [Victim::Program, Victim::Caller, Victim::All];
pub(crate) const WAYS: [&str; 2] = ["continue", "abort"];

/// Points to kill at: all, or some that are drawn from a seed.
fn points(wholes: &[Whole], seed: u64) -> Vec<(usize, usize, Victim, &'static str)> {
    let drawn = number("LATTICE_KILL_POINTS").unwrap_or(POINTS);
    let mut random = Random::new(seed);
    if drawn > 0 {
        let draw = |_| {
            let case = random.below(wholes.len());
            (case, random.below(wholes[case].points.len()), VICTIMS[random.below(3)], WAYS[random.below(2)])
        };
        return (0..drawn).map(draw).collect();
    }
    let mut all = Vec::new();
    // From this command on, for whoever goes on after a failure.
    let first = number("LATTICE_KILL_FROM").unwrap_or(0);
    for (case, whole) in wholes.iter().enumerate().filter(|(case, _)| *case as u64 >= first) {
        for point in 0..whole.points.len() {
            // Who dies goes round, so that each way out is tried at each call.
            all.extend(WAYS.map(|way| (case, point, VICTIMS[point % VICTIMS.len()], way)));
        }
    }
    all
}

/// Whether kills of a command find a defect.
pub(crate) fn find(command: &str, defect: &str) -> bool {
    let case = case(command);
    let whole = whole(case);
    // Refs and files move near the end.
    let calls = whole.points.len();
    let points = (calls * 3 / 5..calls).step_by(2);
    let kills =
        points.flat_map(|point| WAYS.map(|way| (Fault::Kill(point, Victim::All), way, Interrupted::MaySucceed)));
    kills.into_iter().any(|kill| check(case, &whole, kill, Some(defect)).is_err())
}

/// A command of the table, what goes wrong in it, and the way out.
pub(crate) type Strike = (usize, Fault, &'static str);

/// Tries all of them, several at once, and tells what was wrong afterwards. A long run tells what it finds while it goes on.
pub(crate) fn strike(wholes: &[Whole], strikes: &[Strike]) {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((case, fault, way)) = strikes.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let how = (*fault, *way, Interrupted::MaySucceed);
                    if let Err(failure) = check(&CASES[*case], &wholes[*case], how, None) {
                        println!("{failure}");
                        failures.lock().expect("nobody panics with it").push(failure);
                    }
                }
            });
        }
    });
    let calls: usize = wholes.iter().map(|whole| whole.points.len()).sum();
    println!("{} faults at {calls} calls of {} commands", strikes.len(), CASES.len());
    let failures = failures.into_inner().expect("nobody panics with it");
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), strikes.len(), failures.join("\n==========\n"));
}

/// Every command without a fault.
pub(crate) fn wholes() -> Vec<Whole> {
    CASES.iter().map(whole).collect()
}

// proves: ST-1.1-4, ST-13.2-4
#[test]
fn a_kill_at_any_call_leaves_the_old_state_the_new_one_or_both_ways_out() {
    let seed = seed("LATTICE_KILL_SEED");
    let wholes = wholes();
    let points = points(&wholes, seed);
    let kill = |(case, point, victim, way)| (case, Fault::Kill(point, victim), way);
    strike(&wholes, &points.into_iter().map(kill).collect::<Vec<_>>());
}
