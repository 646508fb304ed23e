//! The crowd: many processes at once on one repository; no update is lost, nobody waits for ever.

use std::collections::BTreeSet;

use lattice_testkit::TestRepo;
use lattice_testkit::asked::number;

use crate::lattice;

const PROCESSES: usize = 32;

/// What one process does again and again in every test run; `cargo xtask crowd` asks for more.
const ROUNDS: u64 = 3;

/// What a worker found in the end.
#[derive(Default)]
struct Told {
    done: usize,
    problems: Vec<String>,
}

/// Runs a crowd and says what is wrong with what it leaves.
pub(crate) fn crowd(rounds: u64, defect: Option<&'static str>) -> Vec<String> {
    let names: Vec<_> = (0..PROCESSES).map(|number| format!("b{number}")).collect();
    let drawing: Vec<_> = names.iter().map(|name| format!("main <- {name}")).collect();
    let repo = TestRepo::draw(&drawing.join("; "));
    repo.commit_file("README", "newer\n", "trunk goes on");
    // A machine that does something else, too, is slow and not wrong.
    repo.write_config("[trunk]\nbranch = \"main\"\n\n[lock]\ntimeout_ms = 300000\n");
    // Every fourth process works in a worktree of its own, as agents do.
    let places: Vec<_> =
        (0..PROCESSES).map(|at| (at % 4 == 0).then(|| repo.worktree(&format!("w{at}"), &names[at]))).collect();
    let workers: Vec<_> = names.iter().zip(&places).collect();
    let told: Vec<Told> = std::thread::scope(|scope| {
        let start = |(name, place): &(&String, &Option<TestRepo>)| {
            let (name, place, repo) = ((*name).clone(), (*place).clone(), repo.clone());
            scope.spawn(move || match place {
                Some(place) => writer(&place, &name, rounds, defect),
                None => keeper(&repo, &name, rounds, defect),
            })
        };
        let running: Vec<_> = workers.iter().map(start).collect();
        running.into_iter().map(|worker| worker.join().expect("a worker reports what is wrong")).collect()
    });
    let done: usize = told.iter().map(|told| told.done).sum();
    let mut problems: Vec<_> = told.into_iter().flat_map(|told| told.problems).collect();
    problems.extend(checked(&repo, &names, (rounds, done)));
    problems
}

/// What must hold when everyone is done.
fn checked(repo: &TestRepo, names: &[String], (rounds, done): (u64, usize)) -> Vec<String> {
    let mut problems = Vec::new();
    let ledger = repo.ledger();
    let committed: Vec<_> = ledger.iter().filter(|event| event["event"] == "Committed").collect();
    let ops: BTreeSet<_> = committed.iter().map(|event| event["op_id"].to_string()).collect();
    if committed.len() != done || ops.len() != done {
        problems.push(format!("{done} successes, {} records of {} operations", committed.len(), ops.len()));
    }
    let numbers = ledger.iter().map(|event| event["seq"].as_u64().unwrap_or_default());
    if !numbers.eq((1..=ledger.len() as u64).rev()) {
        problems.push("the records are no chain".to_owned());
    }
    for (at, name) in names.iter().enumerate() {
        let frozen = repo.metadata(name)["freeze"]["state"] == "frozen";
        if at % 4 != 0 && frozen != (rounds % 2 == 1) {
            problems.push(format!("the last change of {name} is lost"));
        }
        let subjects = repo.git(&["log", "--format=%s", &format!("refs/heads/{name}")]);
        let written = subjects.lines().filter(|subject| subject.starts_with("work ")).count() as u64;
        if at % 4 == 0 && written != rounds {
            problems.push(format!("{name} has {written} of {rounds} commits"));
        }
    }
    if repo.op_state_path().exists() {
        problems.push("an operation is in progress".to_owned());
    }
    let verify = lattice(repo).args(["verify", "--full"]).run();
    if verify.code != Some(0) {
        problems.push(verify.snapshot());
    }
    problems
}

/// Commits in its own worktree, on and on, and restacks.
fn writer(place: &TestRepo, name: &str, rounds: u64, defect: Option<&str>) -> Told {
    let mut told = Told::default();
    for round in 0..rounds {
        place.write(&format!("{name}-{round}"), format!("{name} {round}\n"));
        told.run(place, &["modify", "-c", "-a", "-m", &format!("work {round}")], defect);
        if round == 0 {
            told.run(place, &["restack", name, "--only"], defect);
        }
    }
    told
}

/// Freezes and unfreezes its own branch, and looks around.
fn keeper(repo: &TestRepo, name: &str, rounds: u64, defect: Option<&str>) -> Told {
    let mut told = Told::default();
    for round in 0..rounds {
        told.run(repo, &[if round % 2 == 0 { "freeze" } else { "unfreeze" }, name], defect);
        let look = lattice(repo).args(["log", "--all"]).run();
        if look.code != Some(0) {
            told.problems.push(format!("a reader was refused: {}", look.snapshot()));
        }
    }
    told
}

impl Told {
    fn run(&mut self, repo: &TestRepo, args: &[&str], defect: Option<&str>) {
        let mut program = lattice(repo).args(args);
        if let Some(defect) = defect {
            program = program.env("LATTICE_DEFECT", defect);
        }
        let output = program.run();
        match output.code {
            Some(0) => self.done += 1,
            _ => self.problems.push(format!("`{}`: {}", args.join(" "), output.snapshot())),
        }
    }
}

#[test]
fn thirty_two_processes_at_once_lose_no_update() {
    let problems = crowd(number("LATTICE_CROWD_ROUNDS").unwrap_or(ROUNDS), None);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
