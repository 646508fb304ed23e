//! What may stand in few places only: process starts, Git's own files, ref writes, the operation marker.

use xtask::source::{Line, Source};

use super::imports::imports;
use super::{assert_kept, has_word, offenders, product};

const GIT: &str = "crates/lattice-repo/src/git/";
const GIT_PROCESS: &str = "crates/lattice-repo/src/git/process.rs";

/// Agents, `gh auth token`, and editor, browser and explainer.
const OTHER_PROCESSES: [&str; 3] =
    ["crates/lattice-sprites/src/process.rs", "crates/lattice-forge/src/token.rs", "crates/lattice/src/prompt.rs"];

/// Files in which Git keeps the state of its operations and its refs.
const GIT_FILES: [&str; 8] = [
    "rebase-merge",
    "rebase-apply",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "packed-refs",
];

/// Subcommands of git that write refs or the objects that refs are moved to.
const GIT_WRITERS: [&str; 8] =
    ["update-ref", "symbolic-ref", "fast-import", "send-pack", "receive-pack", "commit-tree", "hash-object", "mktree"];

// proves: ST-4.1-21, ST-10.1-1
#[test]
fn only_the_git_interface_starts_git() {
    let mut sources = product();
    let found: Vec<String> = sources
        .iter()
        .filter(|source| source.path != GIT_PROCESS && !is_other_process(source))
        .flat_map(process_starts)
        .collect();
    assert_kept("processes start in their own modules", &found);
    sources.retain(is_other_process);
    let git = offenders(&sources, &[], |line| line.text.contains("\"git\""));
    assert_kept("other modules start other programs", &git);
}

// proves: ST-10.1-5, ST-4.1-22
#[test]
fn only_the_git_interface_knows_the_files_of_git() {
    let found = offenders(&product(), &[GIT], |line| holds(line, &GIT_FILES));
    assert_kept("Git's files are known to the Git interface alone", &found);
    let elsewhere = |line: &Line| {
        let joined = ["git_dir.join(", "common_dir.join("].iter().filter_map(|call| line.text.split_once(call));
        joined.into_iter().any(|(_, rest)| !rest.starts_with("\"lattice\""))
    };
    assert_kept("below Git's directory, others have a folder of their own", &offenders(&product(), &[GIT], elsewhere));
}

// proves partly: ST-1.1-2 — counting the writes of the whole integration suite
#[test]
fn only_the_git_interface_names_what_writes_refs() {
    // The demo has a person break a repository by hand, with what they would type.
    let allowed = [GIT, "crates/lattice/src/commands/demo.rs"];
    let found = offenders(&product(), &allowed, |line| holds(line, &GIT_WRITERS));
    assert_kept("refs are written by the Git interface alone", &found);
}

/// The functions that move refs, HEAD or files are called by the executor, and by the ledger for its own ref.
// proves: ST-4.1-6, ST-4.1-16, ST-4.1-17, ST-4.1-18, ST-6.2-1
#[test]
fn only_the_executor_changes_a_repository() {
    let writers =
        [".update_refs(", ".ref_session(", ".set_head(", ".move_files(", ".read_index(", ".stage(", ".rebase("];
    let allowed = [GIT, "crates/lattice-repo/src/execute/", "crates/lattice-repo/src/ledger.rs"];
    let calls = |line: &Line| writers.iter().any(|writer| line.code.contains(writer));
    assert_kept("there is one write path", &offenders(&product(), &allowed, calls));
    let mut ledger = product();
    ledger.retain(|source| source.path == "crates/lattice-repo/src/ledger.rs");
    let moves: Vec<_> = ledger.iter().flat_map(|source| source.production().filter(|line| calls(line))).collect();
    assert_eq!(moves.len(), 1, "the ledger appends in one place");
}

/// What a plan is needed for cannot be had without one, and a plan not without a gated context.
// proves: ST-2-5, ST-5.4-2, ST-6.1-1, ST-14.1-2, ST-14.1-4
#[test]
fn contexts_come_from_the_gate_and_changes_from_plans() {
    let makes = |line: &Line| {
        line.code.contains("ReadyContext {") && !line.code.contains("struct") && !line.code.contains("impl")
    };
    assert_kept("only the gate makes a context", &offenders(&product(), &["crates/lattice-model/src/gate.rs"], makes));
    let gate =
        std::fs::read_to_string(xtask::root().join("crates/lattice-model/src/gate.rs")).expect("the gate is there");
    assert_eq!(gate.matches("```compile_fail").count(), 2, "two misuses are shown not to compile");
    assert!(
        gate.contains("fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal>;"),
        "a planner takes its own context"
    );
    let executes = |line: &Line| line.code.contains(".execute(");
    // The store of events executes SQL, and knows no repository.
    let engine = [
        "crates/lattice-engine/src/lifecycle.rs",
        "crates/lattice-engine/src/doctor.rs",
        "crates/lattice-sprites/src/store/",
    ];
    assert_kept("only the engine executes", &offenders(&product(), &engine, executes));
    let request = std::fs::read_to_string(xtask::root().join("crates/lattice-repo/src/execute/mod.rs"))
        .expect("the executor is there");
    let fields = request
        .split("pub struct OperationRequest {")
        .nth(1)
        .and_then(|rest| rest.split('}').next())
        .expect("a struct");
    let names: Vec<_> = fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next()).collect();
    assert_eq!(names, ["plan", "op", "now", "origin", "detail"], "nothing but the plan names refs");
}

// proves: ST-10.1-3
#[test]
fn only_the_git_interface_sees_what_git_prints() {
    let raw = |line: &Line| line.code.contains("git.call(") || has_word(&line.code, "Finished");
    assert_kept("others get values", &offenders(&product(), &[GIT], raw));
}

// proves partly: ST-4.1-19 — that the marker appears and vanishes with an operation
#[test]
fn only_the_repository_crate_names_the_operation_marker() {
    // The model may speak of the file: it has no way to write one.
    let allowed = ["crates/lattice-repo/", "crates/lattice-model/"];
    let found = offenders(&product(), &allowed, |line| holds(line, &["op-state.json"]));
    assert_kept("the marker is written in one crate", &found);
}

/// Planner, doctor and explanations live in the model, which has no way to the repository at all.
// proves: ST-4.1-2, ST-6.3-3, ST-12-9
#[test]
fn the_program_reaches_repositories_through_the_engine_alone() {
    let mut sources = product();
    sources.retain(|source| source.path.starts_with("crates/lattice/"));
    let found = offenders(&sources, &[], |line| line.code.contains("lattice_repo"));
    assert_kept("the program has no write path of its own", &found);
    let steps = ["gate::gate", "gate::Ready", "Gate::Ready", "plan::Step"];
    let found = offenders(&sources, &["crates/lattice/src/commands/change.rs"], |line| holds(line, &steps));
    assert_kept("the program neither gates nor plans", &found);
}

// proves: ST-9.1-8
#[test]
fn explainers_reach_neither_engine_nor_repository() {
    let mut sources = product();
    sources.retain(|source| {
        let is_program = source.path.starts_with("crates/lattice/");
        let is_model = source.path.starts_with("crates/lattice-model/");
        (is_program || is_model) && source.path.contains("/src/explain")
    });
    let found =
        offenders(&sources, &[], |line| line.code.contains("lattice_engine") || line.code.contains("lattice_repo"));
    assert_kept("explaining changes nothing", &found);
}

#[test]
fn process_starts_are_seen_in_imports_and_calls() {
    let content = "
use std::process::{ExitCode, Command};
use std::process;
fn a() { clap::Command::new(\"a\"); }
fn b() { process::Command::new(\"a\"); }
fn c() { Command::new(\"a\"); }
fn d() -> process::ExitCode {}
#[cfg(test)]
mod tests { fn e() { Command::new(\"a\"); } }
";
    let source = Source::new("crates/a/src/a.rs", content);
    assert_eq!(
        process_starts(&source),
        [
            "crates/a/src/a.rs:2: imports std::process::Command",
            "crates/a/src/a.rs:5: fn b() { process::Command::new(\"a\"); }",
            "crates/a/src/a.rs:6: fn c() { Command::new(\"a\"); }"
        ]
    );
}

fn is_other_process(source: &Source) -> bool {
    OTHER_PROCESSES.contains(&source.path.as_str())
}

fn process_starts(source: &Source) -> Vec<String> {
    let mut starts: Vec<String> = imports(source)
        .into_iter()
        .filter(|import| import.path.ends_with("process::Command"))
        .map(|import| format!("{}:{}: imports {}", source.path, import.line, import.path))
        .collect();
    let lines = source.production().filter(|line| {
        // The parser of arguments has a type of the same name.
        let code = line.code.replace("clap::Command", "");
        !code.trim().starts_with("use ") && (code.contains("process::Command") || code.contains("Command::new("))
    });
    starts.extend(lines.map(|line| super::place(source, line)));
    starts
}

fn holds(line: &Line, words: &[&str]) -> bool {
    words.iter().any(|word| line.text.contains(word))
}
