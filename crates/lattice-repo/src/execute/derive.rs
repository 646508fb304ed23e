//! Makes commits of changes that other commits hold.

use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::{Derivation, Place};

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
            Derivation::Revert { commit, onto } => self.opposite(*commit, *onto)?,
        };
        if let Some(message) = message {
            draft.message = format!("{}\n", message.trim()).into_bytes();
        }
        let below = self.repo.with_objects(|objects| objects.tree_of(draft.parent))?;
        if below == draft.tree {
            return Err(match how {
                Derivation::Revert { commit, .. } => DeriveError::NothingToRevert { commit: *commit },
                Derivation::Squash { .. } | Derivation::Rest { .. } | Derivation::Files { .. } => {
                    DeriveError::NothingLeft { branch: branch.clone() }
                }
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
            read.push(self.repo.with_objects(|objects| objects.commit(*commit))?);
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
        let commit = self.repo.with_objects(|objects| objects.commit(from))?;
        let below = self.repo.with_objects(|objects| objects.tree_of(onto))?;
        let index = self.own_index().with_extension("part");
        let tree = self.git.tree_with(&index, below, commit.tree, paths);
        let _ = std::fs::remove_file(&index);
        let tree = tree?;
        if tree == commit.tree {
            return Err(DeriveError::NothingLeft { branch: self.current_name()? }.into());
        }
        let subject = commit.message.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut message = subject.to_vec();
        message.extend_from_slice(format!(": {}\n", paths.join(", ")).as_bytes());
        Ok(Draft { tree, parent: onto, message, author: Some(commit) })
    }

    fn opposite(&self, commit: Oid, onto: Oid) -> Result<Draft, ExecuteError> {
        let original = self.repo.with_objects(|objects| objects.commit(commit))?;
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
