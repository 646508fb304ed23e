//! Keeps what an operation replaces alive, so that it can be undone even after `git gc --prune=now`.

use std::collections::{BTreeMap, BTreeSet};

use lattice_model::id::{Oid, OpId};
use lattice_model::name::RefName;
use lattice_model::plan::{Expected, Step};

use crate::defect::Defect;
use crate::format::journal::Edit;
use crate::git::pack::{Entry, NewCommit, Pack};
use crate::git::transaction::{RefEdit, Target};

use super::{ExecuteError, Executor};

/// Below this, one ref per operation that can still be undone.
pub(crate) const KEEP: &str = "refs/lattice/keep/";

pub(crate) fn keep_ref(op: &OpId) -> RefName {
    RefName::new(format!("{KEEP}{op}")).expect("ids are valid in names")
}

/// An operation leaves two events, or three if doctor asked for it.
const EVENTS_PER_OPERATION: u64 = 3;

/// How many events may pass between two looks for what is no longer kept.
const PRUNE_EVERY: u64 = 64;

impl Executor<'_> {
    /// Lets go of operations that are neither among the newest nor young enough, now and then.
    pub(super) fn prune_keeps(&self, seq: u64) -> Result<(), ExecuteError> {
        // A young ledger has too few operations to let go of any.
        if seq < PRUNE_EVERY || seq % PRUNE_EVERY >= EVENTS_PER_OPERATION {
            return Ok(());
        }
        let mut kept = self.git.dated_refs(KEEP)?;
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.seconds));
        let oldest =
            self.now.unix_seconds() - i64::try_from(self.settings.keep_days).unwrap_or(i64::MAX).saturating_mul(86_400);
        let newest = usize::try_from(self.settings.keep_operations).unwrap_or(usize::MAX);
        let edits: Vec<_> = kept
            .into_iter()
            .skip(newest)
            .filter(|kept| kept.seconds < oldest)
            .map(|kept| RefEdit { name: kept.name, expected: Expected::At(kept.oid), to: Target::Delete })
            .collect();
        if edits.is_empty() { Ok(()) } else { Ok(self.transact(&edits)?) }
    }

    /// A commit whose parents are the tips that are replaced and made and the record of it, and whose
    /// tree holds the index that was found and the metadata documents that are replaced and made.
    pub(super) fn keep_commit(&self, pack: &mut Pack, edits: &[Edit], record: Oid) -> Result<Oid, ExecuteError> {
        let kept = |_: &Oid| !self.git.has(Defect::NothingKept);
        let olds: Vec<_> = edits.iter().filter_map(|edit| edit.old).filter(kept).collect();
        let names: Vec<_> = olds.iter().map(|oid| oid.to_string()).collect();
        let infos = self.repo.with_objects(|objects| objects.info(&names))?;
        let mut parents = BTreeSet::new();
        let mut replaced = Vec::new();
        for (oid, info) in olds.into_iter().zip(infos) {
            // A damaged ref may point to anything, or to nothing; only what exists can be kept.
            match info.as_ref().map(|info| info.kind.as_str()) {
                Some("commit") => {
                    parents.insert(oid);
                }
                Some("blob") => replaced.push((oid.to_string(), Entry::Blob(oid))),
                Some("tree") => replaced.push((oid.to_string(), Entry::Tree(oid))),
                Some(_) | None => {}
            }
        }
        // What the operation makes hangs on nothing else before the refs move.
        parents.extend(self.journal.tips.values());
        parents.insert(record);
        let written: BTreeSet<_> = self.journal.plan.steps.iter().filter_map(written_document).collect();
        let made = edits.iter().filter(|edit| written.contains(&edit.name)).filter_map(|edit| edit.new);
        let made: BTreeMap<_, _> = made.map(|oid| (oid.to_string(), Entry::Blob(oid))).collect();
        let mut entries = vec![
            ("replaced".to_owned(), Entry::Tree(pack.tree(replaced))),
            ("made".to_owned(), Entry::Tree(pack.tree(made.into_iter().collect()))),
        ];
        if let Some(worktree) = &self.journal.worktree {
            parents.extend(Some(worktree.commit).filter(kept));
            entries.push(("index".to_owned(), Entry::Tree(worktree.index)));
            entries.push(("files".to_owned(), Entry::Tree(worktree.files)));
        }
        let tree = pack.tree(entries);
        Ok(pack.commit(&NewCommit {
            message: &format!("what `{}` ({}) replaced\n", self.journal.plan.command, self.journal.op_id),
            seconds: self.now.unix_seconds(),
            parents: parents.into_iter().collect(),
            tree,
        }))
    }
}

/// The ref whose document a step writes.
fn written_document(step: &Step) -> Option<RefName> {
    match step {
        Step::SetMetadata { branch, .. } => Some(branch.metadata_ref()),
        Step::WriteConfig { .. }
        | Step::Stage { .. }
        | Step::Commit { .. }
        | Step::Derive { .. }
        | Step::LeaveFiles { .. }
        | Step::Fixup { .. }
        | Step::Rewrite { .. }
        | Step::SetRef { .. }
        | Step::MoveOptions { .. }
        | Step::Guard { .. }
        | Step::Switch { .. }
        | Step::RestoreWorktree { .. }
        | Step::RemoveOpState
        | Step::RemoveLock { .. }
        | Step::Verify
        | Step::Fetch { .. }
        | Step::Push { .. }
        | Step::Host { .. } => None,
    }
}
