//! Packs for every instance, and looks for the known answers in what came out.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::instances::{Instance, repository};
use super::problem;
use crate::Failure;
use crate::bench::{Section, program, write_report};
use crate::process::Call;

const BUDGETS: [usize; 3] = [13_000, 27_000, 50_000];

/// How well one request was answered.
struct Outcome {
    /// The rank of the gold file that ranks last.
    rank: Option<usize>,
    packs: Vec<Pack>,
}

struct Pack {
    /// Shares of the gold files and of the gold functions that are in the prompt; none without gold functions.
    files: f64,
    bodies: Option<f64>,
    used: f64,
    time: Duration,
}

pub(super) fn run(root: &Path, file: &Path, repos: &Path, most: usize) -> Result<(), Failure> {
    Call { program: "cargo", arguments: &["build", "--release"], environment: &[] }.run(root)?;
    let mut instances = Instance::read(file)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let set = format!("{} of the {} requests of `{name}`", instances.len().min(most), instances.len());
    // Neighbours in the file are often alike; a part of it should not be.
    instances.sort_by_key(|instance| scattered(&instance.base_commit));
    instances.truncate(most);
    instances.sort_by(|one, other| (&one.repo, &one.base_commit).cmp(&(&other.repo, &other.base_commit)));
    let scratch = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    let lattice = program(root);
    let mut clones: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut outcomes = Vec::new();
    for (number, instance) in instances.iter().enumerate() {
        if !clones.contains_key(&instance.repo) {
            let path = scratch.path().join(instance.repo.replace('/', "+"));
            let source = repository(repos, &instance.repo)?;
            git(&["clone", "-q", "--shared", "--no-checkout", &text_of(&source), &text_of(&path)])?;
            clones.insert(instance.repo.clone(), path);
        }
        let path = &clones[&instance.repo];
        check_out(path, &instance.base_commit)?;
        outcomes.push(outcome(&lattice, path, instance)?);
        eprint!("\r{} of {}", number + 1, instances.len());
    }
    eprintln!();
    let command = "eval recall --instances FILE.jsonl --repos DIR";
    write_report(root, ("recall", command), &[ranks(&set, &outcomes), packs(&outcomes)])
}

fn outcome(lattice: &Path, path: &Path, instance: &Instance) -> Result<Outcome, Failure> {
    let mut outcome = Outcome { rank: None, packs: Vec::new() };
    let bodies: Vec<String> = instance
        .gold_spans
        .iter()
        .filter_map(|span| {
            let text = std::fs::read_to_string(path.join(&span.file)).ok()?;
            Some(text.split_inclusive('\n').skip(span.first - 1).take(span.last + 1 - span.first).collect::<String>())
        })
        .collect();
    for budget in BUDGETS {
        let start = Instant::now();
        let packed = pack(lattice, path, &instance.request, budget)?;
        let time = start.elapsed();
        let prompt = packed["result"].as_str().unwrap_or_default();
        let ranked: Vec<&str> = packed["explain"]["files"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|file| file["path"].as_str())
            .collect();
        let rank = |gold: &String| ranked.iter().position(|path| path == gold).map(|at| at + 1);
        outcome.rank =
            instance.gold_files.iter().map(rank).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        let is_shown = |file: &&String| {
            let heading = format!("\n## {file}");
            prompt.match_indices(&heading).any(|(at, _)| prompt[at + heading.len()..].starts_with(['\n', ':']))
        };
        let shown = instance.gold_files.iter().filter(is_shown).count();
        let whole = bodies.iter().filter(|body| prompt.contains(body.trim_end())).count();
        outcome.packs.push(Pack {
            files: shown as f64 / instance.gold_files.len().max(1) as f64,
            bodies: (!bodies.is_empty()).then(|| whole as f64 / bodies.len() as f64),
            used: packed["utilization"].as_f64().unwrap_or(0.0),
            time,
        });
    }
    Ok(outcome)
}

/// A copy of a repository may lack its largest files, which git then leaves out.
fn check_out(path: &Path, commit: &str) -> Result<(), Failure> {
    let at = text_of(path);
    let done = git(&["-C", &at, "checkout", "-q", "-f", "--detach", commit]);
    let head = ["-C", &at, "rev-parse", "HEAD"];
    let is_there =
        Call { program: "git", arguments: &head, environment: &[] }.answer().is_some_and(|head| head == commit);
    if is_there { Ok(()) } else { done }
}

#[expect(clippy::disallowed_methods, reason = "a task starts what it measures")]
fn pack(lattice: &Path, path: &Path, request: &str, budget: usize) -> Result<Value, Failure> {
    let mut command = Command::new(lattice);
    command.arg("-C").arg(path).args(["--json", "context", "pack", "-", "--explain", "--budget", &budget.to_string()]);
    let failed = |cause| Failure::Start { command: "lattice context pack".to_owned(), cause };
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(request.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match document["ok"].as_bool() {
        Some(true) => Ok(document),
        Some(false) | None => Err(problem(format!("a pack in {} failed: {document}", path.display()))),
    }
}

fn ranks(set: &str, outcomes: &[Outcome]) -> Section {
    let mut section = Section::new(
        "ranks",
        &format!(
            "{set}, drawn by their commits. A request counts for k if all files that its answer changed are among the first k \
             that retrieval names. No model takes part."
        ),
        &["Acc@1", "Acc@5", "Acc@10"],
    );
    let share = |most: usize| {
        let within = outcomes.iter().filter(|outcome| outcome.rank.is_some_and(|rank| rank <= most)).count();
        format!("{:.1}", 100.0 * within as f64 / outcomes.len().max(1) as f64)
    };
    section.row([1, 5, 10].map(share).to_vec());
    section
}

fn packs(outcomes: &[Outcome]) -> Section {
    let with_bodies = outcomes.iter().filter(|outcome| outcome.packs.iter().all(|pack| pack.bodies.is_some())).count();
    let mut section = Section::new(
        "packs",
        &format!(
            "Of what the answers changed: the share of files that are in the prompt in any form, and of functions that are in it \
             whole ({with_bodies} requests whose answers change functions that were there before). Times are those of the whole \
             program, with what a checkout of another commit makes it read anew."
        ),
        &["budget", "files", "functions", "budget used", "median time"],
    );
    for (at, budget) in BUDGETS.iter().enumerate() {
        let of = |value: &dyn Fn(&Pack) -> Option<f64>| {
            let values: Vec<f64> = outcomes.iter().filter_map(|outcome| value(outcome.packs.get(at)?)).collect();
            format!("{:.1}%", 100.0 * values.iter().sum::<f64>() / values.len().max(1) as f64)
        };
        let mut times: Vec<Duration> =
            outcomes.iter().filter_map(|outcome| Some(outcome.packs.get(at)?.time)).collect();
        times.sort();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        section.row(vec![
            budget.to_string(),
            of(&|pack| Some(pack.files)),
            of(&|pack| pack.bodies),
            of(&|pack| Some(pack.used)),
            format!("{:.0} ms", median.as_secs_f64() * 1000.0),
        ]);
    }
    section
}

/// Another order, the same in every run.
fn scattered(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

fn git(arguments: &[&str]) -> Result<(), Failure> {
    let call = Call { program: "git", arguments, environment: &[] };
    let failed = || Failure::Step { command: format!("git {}", arguments.join(" ")), code: 1 };
    call.answer().map(|_| ()).ok_or_else(failed)
}
