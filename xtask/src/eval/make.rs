//! Makes instances: from patches with their problem statements, or from the commits of a repository.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::instances::{Instance, Span, repository};
use super::problem;
use crate::Failure;
use crate::process::Call;

/// Functions are found by Python's own parser: the judge is not the one who is judged.
const FUNCTIONS: &str = include_str!("functions.py");

/// Commits of a repository that are looked at, and files that a useful one touches.
const MOST_COMMITS: &str = "--max-count=2000";
const MOST_FILES: usize = 3;

/// A patch and what asked for it.
struct Change {
    repo: String,
    base_commit: String,
    request: String,
    patch: String,
}

pub(super) fn run(source: &Path, out: &Path, repos: &Path) -> Result<(), Failure> {
    let changes = if source.is_dir() { from_commits(source, repos)? } else { from_patches(source)? };
    let mut judge = Judge::start()?;
    let mut text = String::new();
    for change in &changes {
        let at = repository(repos, &change.repo)?;
        let touched = touched_lines(&change.patch);
        let mut gold_spans = Vec::new();
        for (file, lines) in touched.iter().filter(|(file, _)| file.ends_with(".py")) {
            let name = format!("{}:{file}", change.base_commit);
            if let Some(content) = git(&at, &["show", &name]) {
                let spans = judge.functions(&content, lines)?;
                gold_spans.extend(spans.into_iter().map(|(first, last)| Span { file: file.clone(), first, last }));
            }
        }
        let instance = Instance {
            repo: change.repo.clone(),
            base_commit: change.base_commit.clone(),
            request: change.request.clone(),
            gold_files: touched.into_keys().collect(),
            gold_spans,
        };
        text.push_str(&format!("{}\n", instance.to_json()));
    }
    eprintln!("{} instances in {}", changes.len(), out.display());
    crate::bench::write_file(out, &text)
}

fn from_patches(source: &Path) -> Result<Vec<Change>, Failure> {
    let broken = || problem(format!("{} is no list of instances with their patches", source.display()));
    let all: Value = serde_json::from_str(&crate::read(source)?).map_err(|_| broken())?;
    let change = |value: &Value| {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let (request, patch) = (text("problem_statement")?, text("golden_patch")?);
        Some(Change { repo: text("repo")?, base_commit: text("base_commit")?, request, patch })
    };
    all.as_array().and_then(|all| all.iter().map(change).collect()).ok_or_else(broken)
}

/// Each commit that changes a few source files is the answer to its own message.
fn from_commits(source: &Path, repos: &Path) -> Result<Vec<Change>, Failure> {
    let name = source.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(".git").to_owned();
    repository(repos, &name)?;
    let list = git(source, &["log", "--no-merges", MOST_COMMITS, "--format=%H %P"]).unwrap_or_default();
    let mut changes = Vec::new();
    for (commit, parent) in list.lines().filter_map(|line| line.split_once(' ')) {
        let request = git(source, &["log", "-1", "--format=%B", commit]).unwrap_or_default();
        let patch = git(source, &["diff", "--no-renames", "--diff-filter=M", parent, commit]).unwrap_or_default();
        let touched = touched_lines(&patch);
        if (1..=MOST_FILES).contains(&touched.len()) && request.len() > 40 {
            changes.push(Change { repo: name.replace('+', "/"), base_commit: parent.to_owned(), request, patch });
        }
    }
    Ok(changes)
}

/// Lines of the old files that a patch changes, by file; an insertion counts for the line before it.
fn touched_lines(patch: &str) -> BTreeMap<String, Vec<usize>> {
    let mut touched: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let (mut file, mut line) = (None, None);
    for text in patch.lines() {
        if let Some(path) = text.strip_prefix("--- a/") {
            (file, line) = (Some(path.to_owned()), None);
            touched.entry(path.to_owned()).or_default();
        } else if let Some(rest) = text.strip_prefix("@@ -") {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            line = rest[..digits].parse::<usize>().ok();
        } else if let (Some(file), Some(at)) = (&file, &mut line) {
            let lines = touched.entry(file.clone()).or_default();
            match text.as_bytes().first() {
                Some(b'-') => {
                    lines.push(*at);
                    *at += 1;
                }
                Some(b'+') => lines.push(at.saturating_sub(1).max(1)),
                Some(b' ') | None => *at += 1,
                Some(_) => {}
            }
        }
    }
    touched
}

fn git(at: &Path, arguments: &[&str]) -> Option<String> {
    let at = at.display().to_string();
    Call { program: "git", arguments: &[&["-C", &at], arguments].concat(), environment: &[] }.answer()
}

/// A Python that answers line by line.
struct Judge {
    process: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Judge {
    #[expect(clippy::disallowed_methods, reason = "a task starts programs for developers")]
    fn start() -> Result<Self, Failure> {
        let mut command = Command::new("python3");
        let spawned = command.args(["-c", FUNCTIONS]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|cause| Failure::Start { command: "python3".to_owned(), cause })?;
        let silent = || problem("python3 has no pipes".to_owned());
        let asked = process.stdin.take().ok_or_else(silent)?;
        let answers = BufReader::new(process.stdout.take().ok_or_else(silent)?);
        Ok(Self { process, asked, answers })
    }

    fn functions(&mut self, text: &str, lines: &[usize]) -> Result<Vec<(usize, usize)>, Failure> {
        let failed = |_| problem("python3 ended before it had answered".to_owned());
        writeln!(self.asked, "{}", json!({ "text": text, "lines": lines })).map_err(failed)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(failed)?;
        serde_json::from_str(&answer).map_err(|_| problem(format!("python3 answered `{}`", answer.trim())))
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
