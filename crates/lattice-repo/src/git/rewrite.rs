//! Rewrites commits in memory: many at once where git can, one by one where it cannot.

use std::collections::BTreeMap;

use lattice_model::id::Oid;
use lattice_model::name::{BranchName, RefName};

use super::error::GitError;
use super::objects::ObjectReader;
use super::picker::{Pick, Picker};
use super::process::Git;

/// How a rewrite in memory ended.
#[derive(Debug)]
pub(crate) enum Replayed {
    /// The new tips.
    Done(BTreeMap<BranchName, Oid>),
    /// A commit does not apply; git does not say which.
    Conflict,
    /// This git cannot do it.
    Unsupported,
}

impl Git {
    /// Applies what is above `forks` up to the tips of `branches` onto `onto`, for all of them at once.
    pub(crate) fn replay(&self, onto: Oid, forks: &[Oid], branches: &[BranchName]) -> Result<Replayed, GitError> {
        const COMMAND: &str = "replay";
        let call = self.call(COMMAND).args(["--onto".to_owned(), onto.to_string()]);
        let call = call.args(branches.iter().map(|branch| branch.branch_ref().to_string()));
        let finished = call.args(forks.iter().map(|fork| format!("^{fork}"))).finish()?;
        if finished.code == 1 {
            // An unknown command has the same exit code as a conflict.
            let known = self.version()? >= (2, 44);
            return Ok(if known { Replayed::Conflict } else { Replayed::Unsupported });
        }
        let stdout = finished.check(COMMAND)?;
        let mut tips = BTreeMap::new();
        for line in String::from_utf8_lossy(&stdout).lines() {
            let words: Vec<_> = line.split(' ').collect();
            let ["update", name, new, _old] = words[..] else {
                return Err(GitError::unexpected(COMMAND, line));
            };
            let branch = RefName::new(name).ok().and_then(|name| name.as_branch());
            if let (Some(branch), Ok(new)) = (branch, Oid::new(new)) {
                tips.insert(branch, new);
            }
        }
        Ok(Replayed::Done(tips))
    }

    pub(crate) fn version(&self) -> Result<(u32, u32), GitError> {
        const COMMAND: &str = "version";
        let line = self.call(COMMAND).line()?;
        let number = line.split(' ').nth(2).unwrap_or_default();
        let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
        match (parts.next().flatten(), parts.next().flatten()) {
            (Some(major), Some(minor)) => Ok((major, minor)),
            _ => Err(GitError::unexpected(COMMAND, line)),
        }
    }

    /// Applies one commit onto another, without a working tree; `None` on a conflict.
    pub(crate) fn pick(
        &self,
        objects: &mut ObjectReader,
        picker: &mut Picker,
        pick: Pick<'_>,
    ) -> Result<Option<Oid>, GitError> {
        if let Some(made) = picker.pick(objects, pick)? {
            return Ok(Some(made));
        }
        picker.flush(self)?;
        let merge = picker.merge_of(objects, pick)?;
        match self.merge_trees(merge.base, merge.ours, merge.theirs)? {
            Some(tree) => picker.commit_onto(objects, pick, tree).map(Some),
            None => Ok(None),
        }
    }

    /// The three-way merge of trees, `None` on a conflict.
    pub(crate) fn merge_trees(&self, base: Oid, ours: Oid, theirs: Oid) -> Result<Option<Oid>, GitError> {
        if ours == base {
            return Ok(Some(theirs));
        }
        if theirs == base || theirs == ours {
            return Ok(Some(ours));
        }
        // Git 2.39 finds the base itself, from history; so each tree becomes a commit of its own.
        let base = self.scaffold(base, None)?;
        let (ours, theirs) = (self.scaffold(ours, Some(base))?, self.scaffold(theirs, Some(base))?);
        self.merged_tree(ours, theirs)
    }

    /// The tree that merging two commits gives, `None` on a conflict.
    pub(crate) fn merged_tree(&self, ours: Oid, theirs: Oid) -> Result<Option<Oid>, GitError> {
        const COMMAND: &str = "merge-tree";
        let arguments = ["--write-tree", "--no-messages", "--name-only"];
        let finished = self.call(COMMAND).args(arguments).args([ours.to_string(), theirs.to_string()]).finish()?;
        if finished.code == 1 {
            return Ok(None);
        }
        let stdout = finished.check(COMMAND)?;
        let line = stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Oid::from_hex(line).map(Some).ok_or_else(|| GitError::unexpected(COMMAND, "no tree"))
    }

    /// A commit that no ref ever points to.
    pub(crate) fn scaffold(&self, tree: Oid, parent: Option<Oid>) -> Result<Oid, GitError> {
        let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        let who = "Lattice <lattice@localhost> 0 +0000";
        self.write_commit(format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\nscaffold\n").into_bytes())
    }
}
