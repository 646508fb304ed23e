//! Makes commits of changes that other commits hold.

use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::{Derivation, LineChange, Place};

use crate::git::commits::{NewCommit, RawCommit};

use super::error::DeriveError;
use super::{ExecuteError, Executor};

/// A commit in the making.
struct Draft {
    tree: Oid,
    parent: Oid,
    message: Vec<u8>,
    /// Whose authorship is kept; that of the user if absent.
    author: Option<RawCommit>,
}

impl Executor<'_> {
    pub(super) fn derive(
        &mut self,
        branch: &BranchName,
        how: &Derivation,
        message: Option<&str>,
    ) -> Result<Oid, ExecuteError> {
        self.made_by_git = true;
        let mut draft = match how {
            Derivation::Squash { commits, onto } => self.together(commits, *onto)?,
            Derivation::Rest { commits, below } => {
                let onto = self.place(&Place::TipOf(below.clone()))?;
                self.together(commits, onto)?
            }
            Derivation::Files { from, onto, paths } => self.files_of(*from, *onto, paths)?,
            Derivation::Hunks { from, onto, lines, paths } => self.hunks_of((*from, *onto), lines, paths)?,
            Derivation::Revert { commit, onto } => self.opposite(*commit, *onto)?,
        };
        if let Some(message) = message {
            draft.message = format!("{}\n", message.trim()).into_bytes();
        }
        let below = self.repo.with_objects(|objects| objects.tree_of(draft.parent))?;
        if below == draft.tree {
            return Err(match how {
                Derivation::Revert { commit, .. } => DeriveError::NothingToRevert { commit: *commit },
                Derivation::Squash { .. }
                | Derivation::Rest { .. }
                | Derivation::Files { .. }
                | Derivation::Hunks { .. } => DeriveError::NothingLeft { branch: branch.clone() },
            }
            .into());
        }
        let sign = self.git.signing()?;
        let (parents, authored_by) = (vec![draft.parent], draft.author.as_ref());
        Ok(self.git.commit_tree(NewCommit { tree: draft.tree, parents, message: draft.message, authored_by, sign })?)
    }

    /// The files of the newest commit, with the messages of all and the author of the first.
    fn together(&self, commits: &[Oid], parent: Oid) -> Result<Draft, ExecuteError> {
        let mut read = Vec::new();
        for commit in commits {
            read.push(self.readable(*commit)?);
        }
        let (Some(first), Some(last)) = (read.first(), read.last()) else {
            return Err(ExecuteError::JournalUnusable { reason: "a derivation of no commits".to_owned() });
        };
        let messages: Vec<_> = read.iter().map(|commit| commit.message.trim_ascii().to_vec()).collect();
        let mut message = messages.join(&b"\n\n"[..]);
        message.push(b'\n');
        Ok(Draft { tree: last.tree, parent, message, author: Some(first.clone()) })
    }

    fn files_of(&self, from: Oid, onto: Oid, paths: &[String]) -> Result<Draft, ExecuteError> {
        let commit = self.readable(from)?;
        let tree = self.with_files(onto, commit.tree, paths)?;
        self.part_of(commit, onto, tree, paths)
    }

    fn hunks_of(
        &mut self,
        (from, onto): (Oid, Oid),
        lines: &[LineChange],
        paths: &[String],
    ) -> Result<Draft, ExecuteError> {
        let commit = self.readable(from)?;
        let mut tree = self.with_files(onto, commit.tree, paths)?;
        let mut named = paths.to_vec();
        for changes in lines.chunk_by(|one, other| one.path == other.path) {
            let path = &changes[0].path;
            tree = self.with_lines(tree, path, changes)?;
            named.push(path.clone());
        }
        self.picker.flush(&self.git)?;
        self.part_of(commit, onto, tree, &named)
    }

    /// The tree of a commit, with these files as another tree has them.
    fn with_files(&self, onto: Oid, from: Oid, paths: &[String]) -> Result<Oid, ExecuteError> {
        let below = self.repo.with_objects(|objects| objects.tree_of(onto))?;
        if paths.is_empty() {
            return Ok(below);
        }
        let index = self.own_index().with_extension("part");
        let tree = self.git.tree_with(&index, below, from, paths);
        let _ = std::fs::remove_file(&index);
        Ok(tree?)
    }

    /// A tree with some lines of one file changed, each of which has to be what it is expected to be.
    fn with_lines(&mut self, tree: Oid, path: &str, changes: &[LineChange]) -> Result<Oid, ExecuteError> {
        let missing = || ExecuteError::from(DeriveError::LinesMoved { path: path.to_owned() });
        let picker = &mut self.picker;
        let content = self.repo.with_objects(|objects| match picker.file(objects, tree, path)? {
            Some(blob) => Ok(objects.contents(&[blob.to_string()])?.pop().flatten()),
            None => Ok(None),
        })?;
        let content = content.ok_or_else(missing)?;
        let mut lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        // From the end, so that the places of the others stay what they are.
        for change in changes.iter().rev() {
            let range = change.at..change.at + change.removed.len();
            let found = lines.get(range.clone()).ok_or_else(missing)?;
            if !found.iter().copied().eq(change.removed.iter().map(String::as_bytes)) {
                return Err(missing());
            }
            lines.splice(range, change.added.iter().map(String::as_bytes));
        }
        let content = lines.concat();
        let replaced = self.repo.with_objects(|objects| picker.replace(objects, tree, path, &content))?;
        replaced.ok_or_else(missing)
    }

    /// A commit of a part of what another one changed.
    fn part_of(&self, commit: RawCommit, onto: Oid, tree: Oid, paths: &[String]) -> Result<Draft, ExecuteError> {
        if tree == commit.tree {
            return Err(DeriveError::NothingLeft { branch: self.current_name()? }.into());
        }
        let subject = commit.message.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut message = subject.to_vec();
        message.extend_from_slice(format!(": {}\n", paths.join(", ")).as_bytes());
        Ok(Draft { tree, parent: onto, message, author: Some(commit) })
    }

    fn opposite(&self, commit: Oid, onto: Oid) -> Result<Draft, ExecuteError> {
        let original = self.readable(commit)?;
        let [parent] = original.parents[..] else {
            return Err(DeriveError::NotLinear { commit }.into());
        };
        let before = self.repo.with_objects(|objects| objects.tree_of(parent))?;
        let now = self.repo.with_objects(|objects| objects.tree_of(onto))?;
        let tree = self.git.merge_trees(original.tree, now, before)?;
        let tree = tree.ok_or(DeriveError::RevertConflicts { commit })?;
        let subject = original.message.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let subject = String::from_utf8_lossy(subject);
        let message = format!("Revert \"{subject}\"\n\nThis takes commit {commit} back.\n").into_bytes();
        Ok(Draft { tree, parent: onto, message, author: None })
    }

    fn current_name(&self) -> Result<BranchName, ExecuteError> {
        match self.head_commit()?.0 {
            lattice_model::event::HeadValue::Branch(branch) => Ok(branch),
            lattice_model::event::HeadValue::Detached(_) => Err(ExecuteError::NoHead),
        }
    }
}
