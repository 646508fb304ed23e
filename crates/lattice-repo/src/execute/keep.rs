//! Keeps what an operation replaces alive, so that it can be undone even after `git gc --prune=now`.

use lattice_model::id::OpId;
use lattice_model::name::RefName;

use crate::format::journal::Edit;
use crate::git::import::{Entry, Import, Mark, NewCommit, NewTree, Source};

use super::{ExecuteError, Executor};

/// Below this, one ref per operation that can still be undone.
pub(crate) const KEEP: &str = "refs/lattice/keep/";

pub(crate) fn keep_ref(op: &OpId) -> RefName {
    RefName::new(format!("{KEEP}{op}")).expect("ids are valid in names")
}

impl Executor<'_> {
    /// A commit whose parents are the tips that are replaced, and whose tree holds the index
    /// that was found and the metadata documents that are replaced.
    pub(super) fn keep_commit(&self, import: &mut Import, edits: &[Edit]) -> Result<Mark, ExecuteError> {
        let olds: Vec<_> = edits.iter().filter_map(|edit| edit.old).collect();
        let names: Vec<_> = olds.iter().map(|oid| oid.to_string()).collect();
        let infos = self.repo.with_objects(|objects| objects.info(&names))?;
        let mut parents = std::collections::BTreeSet::new();
        let mut entries = Vec::new();
        for (oid, info) in olds.into_iter().zip(infos) {
            // A damaged ref may point to anything, or to nothing; only what exists can be kept.
            match info.as_ref().map(|info| info.kind.as_str()) {
                Some("commit") => {
                    parents.insert(oid);
                }
                Some("blob") => entries.push((format!("replaced/{oid}"), Entry::Blob(Source::Existing(oid)))),
                Some("tree") => entries.push((format!("replaced/{oid}"), Entry::Tree(oid))),
                Some(_) | None => {}
            }
        }
        if let Some(worktree) = &self.journal.worktree {
            parents.insert(worktree.commit);
            entries.push(("index".to_owned(), Entry::Tree(worktree.index)));
            entries.push(("files".to_owned(), Entry::Tree(worktree.files)));
        }
        Ok(import.commit(NewCommit {
            message: &format!("what `{}` ({}) replaced\n", self.journal.plan.command, self.journal.op_id),
            seconds: self.now.unix_seconds(),
            parents: parents.into_iter().map(Source::Existing).collect(),
            tree: NewTree::Entries(entries),
        }))
    }
}
