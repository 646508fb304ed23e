//! Reads for display: commits, diffs, merge bases, kept operations.

use std::collections::BTreeSet;

use lattice_model::id::{Oid, OpId};

use crate::Repo;
use crate::execute::KEEP;
use crate::git::GitError;

/// A commit in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLine {
    pub commit: Oid,
    pub subject: String,
    pub author: String,
    /// The author's date with its zone, ISO 8601.
    pub date: String,
}

/// Operations whose replaced objects are still kept.
pub type Kept = BTreeSet<OpId>;

impl Repo {
    /// The best common ancestor of two commits.
    pub fn merge_base(&self, one: Oid, other: Oid) -> Result<Option<Oid>, GitError> {
        self.git.merge_base(one, other)
    }

    /// Those of `tips`, which branches have, that are `tip` or below it and above all others of them.
    pub fn nearest_below(&self, tip: Oid, tips: &[Oid]) -> Result<Vec<Oid>, GitError> {
        self.git.nearest_below(tip, tips)
    }

    /// These commits, in this order.
    pub fn commits(&self, ids: &[Oid]) -> Result<Vec<CommitLine>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let arguments = [
            "--no-walk=unsorted",
            "-z",
            "--no-show-signature",
            "--encoding=UTF-8",
            "--format=tformat:%H%n%s%n%an%n%aI",
            "--stdin",
        ];
        let stdout = self.git.call("log").args(arguments).stdin(input.into_bytes()).run()?;
        let text = String::from_utf8_lossy(&stdout);
        let line = |record: &str| {
            let mut fields = record.split('\n').map(str::to_owned);
            let commit = Oid::new(&fields.next()?).ok()?;
            Some(CommitLine { commit, subject: fields.next()?, author: fields.next()?, date: fields.next()? })
        };
        Ok(text.split('\0').filter_map(line).collect())
    }

    /// The difference between two commits, as Git prints it.
    pub fn diff(&self, from: Oid, to: Oid, shape: DiffShape) -> Result<Vec<u8>, GitError> {
        let option = match shape {
            DiffShape::Patch => "--patch",
            DiffShape::Stat => "--stat",
        };
        // Programs that the configuration names for diffs are for terminals, not for us.
        let arguments = ["--no-ext-diff", "--no-color", "--no-textconv", option];
        self.git.call("diff").args(arguments).args([from.to_string(), to.to_string()]).arg("--").run()
    }

    /// The operations that can still be undone.
    pub fn kept_operations(&self) -> Result<Kept, GitError> {
        let listing = self.git.list_refs(&[KEEP])?;
        let op = |name: &[u8]| OpId::new(std::str::from_utf8(name).ok()?.strip_prefix(KEEP)?).ok();
        Ok(listing.refs.iter().filter_map(|listed| op(&listed.name)).collect())
    }

    /// What `git fsck` has to say about connections between objects; empty if nothing.
    pub fn check_objects(&self) -> Result<Vec<String>, GitError> {
        let finished =
            self.git.call("fsck").args(["--connectivity-only", "--no-dangling", "--no-progress"]).finish()?;
        if finished.code == 0 {
            return Ok(Vec::new());
        }
        let text = String::from_utf8_lossy(&finished.stdout).into_owned() + &finished.stderr;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The text of the repository's configuration file, if it is text.
    pub fn config_text(&self) -> Option<String> {
        let bytes = crate::durable::read(&self.config_path(), crate::format::config::SIZE_LIMIT).ok()??;
        String::from_utf8(bytes).ok()
    }
}

/// How a difference is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffShape {
    Patch,
    Stat,
}

impl Repo {
    /// The options in force: the user's, overridden by the repository's where those can be read.
    pub fn settings(&self, defaults: &lattice_model::settings::Settings) -> lattice_model::settings::Settings {
        let mut settings = defaults.clone();
        let _ = self.read_config(&mut settings);
        settings
    }
}
