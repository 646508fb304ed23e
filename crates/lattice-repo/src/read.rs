//! Reads for display: commits, diffs, merge bases, kept operations.

use std::collections::BTreeSet;

use lattice_model::id::{Oid, OpId};
use lattice_model::name::BranchName;

use crate::Repo;
use crate::execute::KEEP;
use crate::git::GitError;
use crate::git::display::{CommitLine, DiffShape};

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

    /// The staged hunks, with their homes among the commits that `head` has and `floor` has not.
    pub fn staged_hunks(&self, head: Oid, floor: Oid) -> Result<Vec<lattice_model::command::absorb::Hunk>, GitError> {
        self.git.staged_hunks(head, floor)
    }

    /// What `to` changed since `from`, in the smallest parts that can go elsewhere by themselves.
    pub fn hunks_between(
        &self,
        from: Oid,
        to: Oid,
    ) -> Result<Vec<lattice_model::command::squash::BranchHunk>, GitError> {
        self.git.hunks_between(from, to)
    }

    /// The commit that a user's text names; `None` if it names none, or several.
    pub fn find_commit(&self, name: &str) -> Result<Option<Oid>, GitError> {
        if name.starts_with('-') || name.contains(char::is_whitespace) {
            return Ok(None);
        }
        let mut found = self.with_objects(|objects| objects.info(&[format!("{name}^{{commit}}")]))?;
        Ok(found.pop().flatten().map(|info| info.oid))
    }

    /// The branch that was checked out here before, as far as Git remembers one.
    pub fn branch_before(&self) -> Result<Option<BranchName>, GitError> {
        self.git.branch_before()
    }

    /// These commits, in this order.
    pub fn commits(&self, ids: &[Oid]) -> Result<Vec<CommitLine>, GitError> {
        self.git.commit_lines(ids)
    }

    /// What each commit after `from` changes up to `to`, as text.
    pub fn history_text(&self, from: Oid, to: Oid) -> Result<String, GitError> {
        self.git.history_text(from, to)
    }

    /// The difference between two commits, as Git prints it.
    pub fn diff(&self, from: Oid, to: Oid, shape: DiffShape) -> Result<String, GitError> {
        self.git.diff(from, to, shape)
    }

    /// The operations that can still be undone.
    pub fn kept_operations(&self) -> Result<Kept, GitError> {
        let listing = self.git.list_refs(&[KEEP])?;
        let op = |name: &[u8]| OpId::new(std::str::from_utf8(name).ok()?.strip_prefix(KEEP)?).ok();
        Ok(listing.refs.iter().filter_map(|listed| op(&listed.name)).collect())
    }

    /// What is wrong with connections between objects; empty if nothing.
    pub fn check_objects(&self) -> Result<Vec<String>, GitError> {
        self.git.broken_objects()
    }

    /// The text of the repository's configuration file, if it is text.
    pub fn config_text(&self) -> Option<String> {
        let bytes = crate::durable::read(&self.config_path(), crate::format::config::SIZE_LIMIT).ok()??;
        String::from_utf8(bytes).ok()
    }
}

impl Repo {
    /// The options in force: the user's, overridden by the repository's where those can be read.
    pub fn settings(&self, defaults: &lattice_model::settings::Settings) -> lattice_model::settings::Settings {
        let mut settings = defaults.clone();
        let _ = self.read_config(&mut settings);
        settings
    }
}
