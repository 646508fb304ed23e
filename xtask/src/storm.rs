//! Runs the storm tests with more than the share that every test run has.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::bench::{Section, write_report};
use crate::memory;
use crate::openapi;
use crate::process::Call;

/// A kind of storm: its name, its test in one of the suites of the program, its variables in the order of the arguments, and what is meant without them.
struct Storm {
    name: &'static str,
    suite: &'static str,
    test: &'static str,
    variables: &'static [&'static str],
    otherwise: &'static str,
    /// What the whole storm is, with `{}` for its size.
    amount: &'static str,
    about: &'static str,
    task: &'static str,
}

const STORMS: [Storm; 8] = [
    Storm {
        name: "fuzz",
        suite: "storm",
        test: "fuzz::no_mixture_of_commands_and_plain_git_breaks_a_promise",
        variables: &["LATTICE_FUZZ_STEPS", "LATTICE_FUZZ_SEED"],
        otherwise: "100000",
        amount: "{} steps",
        about: "Random commands of Lattice and plain git, checked against an oracle after each.",
        task: "fuzz stack",
    },
    Storm {
        name: "kill",
        suite: "storm",
        test: "kill::a_kill_at_any_call_leaves_the_old_state_the_new_one_or_both_ways_out",
        variables: &["LATTICE_KILL_POINTS", "LATTICE_KILL_SEED"],
        otherwise: "0",
        amount: "every point of every command",
        about: "Commands killed at every call that changes a file or starts a process.",
        task: "kill",
    },
    Storm {
        name: "faults",
        suite: "storm",
        test: "faults::a_call_that_fails_leaves_the_old_state_the_new_one_or_both_ways_out",
        variables: &["LATTICE_FAULT_POINTS", "LATTICE_FAULT_SEED"],
        otherwise: "0",
        amount: "every call of every command",
        about: "Commands in which a call fails: no permission, no space, a broken disk, no memory.",
        task: "faults",
    },
    Storm {
        name: "crowd",
        suite: "storm",
        test: "crowd::thirty_two_processes_at_once_lose_no_update",
        variables: &["LATTICE_CROWD_ROUNDS"],
        otherwise: "40",
        amount: "32 processes, {} rounds",
        about: "Processes that write to one repository at once.",
        task: "crowd",
    },
    Storm {
        name: "others",
        suite: "storm",
        test: "others::whatever_others_push_or_click_nothing_is_lost_and_no_success_is_false",
        variables: &["LATTICE_OTHERS_STEPS", "LATTICE_OTHERS_SEED"],
        otherwise: "5000",
        amount: "{} steps",
        about: "Others push, rewrite, land and delete with plain git, and click on GitHub, while we submit, sync, get and merge.",
        task: "others",
    },
    Storm {
        name: "cycles",
        suite: "sprites",
        test: "cycles::whatever_a_sprite_did_is_restored_as_it_was_also_after_kills",
        variables: &["LATTICE_CYCLES", "LATTICE_CYCLES_SEED"],
        otherwise: "1000",
        amount: "{} cycles",
        about: "Checkpoints and restores of a sprite, with kills: trees are compared in every respect.",
        task: "cycles",
    },
    Storm {
        name: "sprites",
        suite: "sprites",
        test: "scale::sprites_that_run_at_once_lose_no_event_and_all_land",
        variables: &["LATTICE_SPRITES"],
        otherwise: "50",
        amount: "{} sprites",
        about: "Sprites at once: each event is stored once, and all of them land.",
        task: "sprites",
    },
    Storm {
        name: "resumes",
        suite: "sprites",
        test: "scale::the_same_answer_given_many_times_at_once_starts_the_agent_once",
        variables: &["LATTICE_RESUMES"],
        otherwise: "100",
        amount: "{} answers",
        about: "The same answer to a waiting sprite, many times at once: one effect.",
        task: "resumes",
    },
];

/// A seed that no run had before.
#[expect(clippy::disallowed_methods, reason = "a storm that repeats itself finds nothing new")]
pub(crate) fn drawn() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() << 20)
}

/// Runs one kind of storm; `arguments` are numbers. Without any it is the whole storm, and its result is kept.
pub fn run(root: &Path, name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let problem = |what: String| Err(Failure::Problems(vec![what]));
    let Some(storm) = STORMS.iter().find(|storm| storm.name == name) else {
        return problem(format!("there is no storm `{name}`"));
    };
    if arguments.len() > storm.variables.len() || arguments.iter().any(|number| number.parse::<u64>().is_err()) {
        return problem(format!("`{name}` takes numbers, at most {}", storm.variables.len()));
    }
    if storm.name == "others" {
        openapi::ensure()?;
    }
    let whole = arguments.is_empty();
    let mut environment: Vec<_> = storm.variables.iter().copied().zip(arguments.iter().copied()).collect();
    if whole {
        environment.push((storm.variables[0], storm.otherwise));
    }
    let drawn = drawn().to_string();
    if let (Some(seed), 1) = (storm.variables.get(1), environment.len()) {
        environment.push((seed, &drawn));
    }
    let folder = memory::folder();
    let place = folder.as_ref().map(|folder| folder.path().display().to_string());
    environment.extend(place.as_ref().map(|place| ("TMPDIR", place.as_str())));
    let release: &[&str] = if whole { &["--release"] } else { &[] };
    let test = ["--exact", "--nocapture", storm.test];
    let words = [&["test", "-p", "lattice", "--test", storm.suite], release, &["--"], &test].concat();
    let start = Instant::now();
    Call { program: "cargo", arguments: &words, environment: &environment }.run(root)?;
    if whole { keep(root, storm, &environment, start.elapsed()) } else { Ok(()) }
}

/// Only what passed gets here: a storm that finds something ends with an error.
fn keep(root: &Path, storm: &Storm, environment: &[(&str, &str)], time: Duration) -> Result<(), Failure> {
    let mut section = Section::new(
        "passed",
        &format!("{} Nothing was found.", storm.about),
        &["how much", "seed", "minutes, build included"],
    );
    let is_seed = |(name, _): &&(&str, &str)| storm.variables.get(1) == Some(name);
    let seed = environment.iter().find(is_seed).map_or("none", |(_, seed)| seed);
    let amount = storm.amount.replace("{}", storm.otherwise);
    section.row(vec![amount, seed.to_owned(), format!("{:.0}", time.as_secs_f64() / 60.0)]);
    write_report(root, (&format!("storm: {}", storm.name), storm.task), &[section])
}
