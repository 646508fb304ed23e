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

/// How applying one commit ended.
pub(crate) enum Picked {
    Done(Oid),
    /// The files that do not fit.
    Conflict(Vec<String>),
}

/// How a merge of trees ended.
enum Merged {
    Tree(Oid),
    Conflict(Vec<String>),
}

impl Merged {
    fn tree(self) -> Option<Oid> {
        match self {
            Self::Tree(tree) => Some(tree),
            Self::Conflict(_) => None,
        }
    }
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

    /// Applies one commit onto another, without a working tree; the other one itself if it has the change already.
    pub(crate) fn pick(
        &self,
        objects: &mut ObjectReader,
        picker: &mut Picker,
        pick: Pick<'_>,
    ) -> Result<Picked, GitError> {
        if let Some(made) = picker.pick(objects, pick)? {
            return Ok(Picked::Done(made));
        }
        picker.flush(self)?;
        let merge = picker.merge_of(objects, pick)?;
        match self.merge_files(merge.base, merge.ours, merge.theirs)? {
            Merged::Tree(tree) => picker.commit_onto(objects, pick, merge, tree).map(Picked::Done),
            Merged::Conflict(files) => Ok(Picked::Conflict(files)),
        }
    }

    /// The three-way merge of trees, `None` on a conflict.
    pub(crate) fn merge_trees(&self, base: Oid, ours: Oid, theirs: Oid) -> Result<Option<Oid>, GitError> {
        self.merge_files(base, ours, theirs).map(Merged::tree)
    }

    /// The three-way merge of trees, or the files that it does not come to an end with.
    fn merge_files(&self, base: Oid, ours: Oid, theirs: Oid) -> Result<Merged, GitError> {
        if ours == base {
            return Ok(Merged::Tree(theirs));
        }
        if theirs == base || theirs == ours {
            return Ok(Merged::Tree(ours));
        }
        // Git 2.39 finds the base itself, from history; so each tree becomes a commit of its own.
        let base = self.scaffold(base, None)?;
        let (ours, theirs) = (self.scaffold(ours, Some(base))?, self.scaffold(theirs, Some(base))?);
        self.merged_files(ours, theirs)
    }

    /// The tree that merging two commits gives, `None` on a conflict.
    pub(crate) fn merged_tree(&self, ours: Oid, theirs: Oid) -> Result<Option<Oid>, GitError> {
        self.merged_files(ours, theirs).map(Merged::tree)
    }

    fn merged_files(&self, ours: Oid, theirs: Oid) -> Result<Merged, GitError> {
        const COMMAND: &str = "merge-tree";
        let arguments = ["--write-tree", "-z", "--no-messages", "--name-only"];
        let finished = self.call(COMMAND).args(arguments).args([ours.to_string(), theirs.to_string()]).finish()?;
        let names = |stdout: &[u8]| -> Vec<String> {
            let fields = stdout.split(|byte| *byte == 0).skip(1).filter(|field| !field.is_empty());
            fields.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        };
        if finished.code == 1 {
            return Ok(Merged::Conflict(names(&finished.stdout)));
        }
        let stdout = finished.check(COMMAND)?;
        let tree = stdout.split(|byte| *byte == 0).next().unwrap_or_default();
        Oid::from_hex(tree).map(Merged::Tree).ok_or_else(|| GitError::unexpected(COMMAND, "no tree"))
    }

    /// A commit that no ref ever points to.
    pub(crate) fn scaffold(&self, tree: Oid, parent: Option<Oid>) -> Result<Oid, GitError> {
        let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        let who = "Lattice <lattice@localhost> 0 +0000";
        self.write_commit(format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\nscaffold\n").into_bytes())
    }
}
