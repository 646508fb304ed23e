//! Tasks for developers, run as `cargo xtask <task>`.

#![expect(clippy::print_stderr, reason = "a task tells its user on stderr how to call it and why it failed")]

use std::error::Error;
use std::process::ExitCode;

use xtask::{Failure, agents, bench, conformance, eval, fuzz, openapi, samples, storm, suite};

const USAGE: &str = "\
usage: cargo xtask <task>

  test                   install what the tests need and run every check
  bench                  measure everything and write docs/benchmarks.md
  bench PART [TREE]      one part of it: stack, forge, context, large, protocol or sprites; context packs TREE
  bench all TREE         measure everything, packing TREE
  eval make|recall ...   requests with known answers: make them, and see how many a pack holds
  agents                 real agents from npm in the sandbox, with a scripted model, for docs/benchmarks.md; needs node and npm
  fuzz [SECONDS]         libFuzzer on what reads foreign bytes, so long for each target; unless told 120, for docs/benchmarks.md
  fuzz stack [N [SEED]]  random commands and plain git against an oracle; unless told 100,000 steps, for docs/benchmarks.md
  kill [POINTS [SEED]]   kill commands at system calls; unless told at every call of every command, for docs/benchmarks.md
  faults [POINTS [SEED]] let system calls of commands fail; unless told every call once, for docs/benchmarks.md
  crowd [ROUNDS]         32 processes at once
  others [N [SEED]]      others push to the remote meanwhile; unless told 5,000 steps, for docs/benchmarks.md
  cycles [CYCLES [SEED]] checkpoints and restores of a sprite, with kills
  sprites [N]            so many sprites at once
  resumes [N]            the same answer so many times at once
  openapi                fetch the shapes that the fake GitHub is held to, from npm
  samples                fetch the projects whose outlines are judged, from npm, PyPI and Debian
  conformance            write docs/conformance.md from the comments beside the tests
  conformance --check    fail if docs/conformance.md is not up to date";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = xtask::root();
    let result = match words.as_slice() {
        ["test"] => suite::run(root),
        ["bench"] => bench::run(root, None, None),
        ["bench", name] => bench::run(root, Some(name), None),
        ["bench", "context", tree] => bench::run(root, Some("context"), Some(tree)),
        ["bench", "all", tree] => bench::run(root, None, Some(tree)),
        ["eval", ..] => eval::run(root, &words[1..]),
        ["agents"] => agents::run(root),
        ["fuzz", "stack", ..] => storm::run(root, "fuzz", &words[2..]),
        ["fuzz"] => fuzz::run(root, None),
        ["fuzz", seconds] => fuzz::run(root, Some(seconds)),
        ["kill" | "faults" | "crowd" | "others" | "cycles" | "sprites" | "resumes", ..] => {
            storm::run(root, words[0], &words[1..])
        }
        ["openapi"] => openapi::write(),
        ["samples"] => samples::fetch(),
        ["conformance"] => conformance::write(root),
        ["conformance", "--check"] => conformance::check(root),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}

fn report(failure: &Failure) -> ExitCode {
    eprintln!("error: {failure}");
    let mut cause = failure.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
    ExitCode::from(failure.code())
}
