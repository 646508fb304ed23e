//! Requests with known answers, one JSON object per line.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::problem;
use crate::Failure;

/// A request, and what the change that answered it touched.
pub(super) struct Instance {
    /// `owner/name`.
    pub(super) repo: String,
    pub(super) base_commit: String,
    pub(super) request: String,
    pub(super) gold_files: Vec<String>,
    pub(super) gold_spans: Vec<Span>,
}

/// A function: its file and lines, counted from 1, both included.
pub(super) struct Span {
    pub(super) file: String,
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Instance {
    pub(super) fn to_json(&self) -> Value {
        let span = |span: &Span| json!({ "file": span.file, "first": span.first, "last": span.last });
        let spans: Vec<Value> = self.gold_spans.iter().map(span).collect();
        json!({ "repo": self.repo, "base_commit": self.base_commit, "request": self.request,
            "gold_files": self.gold_files, "gold_spans": spans })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let files = value.get("gold_files")?.as_array()?.iter();
        let span = |span: &Value| {
            let number = |name: &str| usize::try_from(span.get(name)?.as_u64()?).ok();
            Some(Span { file: span.get("file")?.as_str()?.to_owned(), first: number("first")?, last: number("last")? })
        };
        Some(Self {
            repo: text("repo")?,
            base_commit: text("base_commit")?,
            request: text("request")?,
            gold_files: files.map(|file| file.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            gold_spans: value.get("gold_spans")?.as_array()?.iter().map(span).collect::<Option<_>>()?,
        })
    }

    /// All instances of a file.
    pub(super) fn read(path: &Path) -> Result<Vec<Self>, Failure> {
        let text = crate::read(path)?;
        let one = |(number, line): (usize, &str)| {
            let parsed = serde_json::from_str(line).ok().as_ref().and_then(Self::from_json);
            parsed.ok_or_else(|| problem(format!("line {} of {} is no instance", number + 1, path.display())))
        };
        text.lines().enumerate().map(one).collect()
    }
}

/// The repository of `owner/name` below `repos`.
pub(super) fn repository(repos: &Path, name: &str) -> Result<PathBuf, Failure> {
    let joined = name.replace('/', "+");
    let places = [repos.join(&joined), repos.join(format!("{joined}.git")), repos.join(&joined).join("repo")];
    let is_repository = |path: &&PathBuf| path.join("HEAD").exists() || path.join(".git").exists();
    let found = places.iter().find(is_repository).cloned();
    found.ok_or_else(|| problem(format!("{} has no repository for {name}: it would be {joined}", repos.display())))
}
