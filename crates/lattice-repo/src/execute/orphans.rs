//! Waits for processes of git that outlived their operation, and clears away what others left in its way.

use std::thread;
use std::time::Duration;

use lattice_model::event::HeadValue;
use lattice_model::plan::Step;

use crate::durable;
use crate::git::remains::{draft_beside, head_lock, is_abandoned, is_left_behind, locks_of, writer_of};
use crate::git::worktree::index_path;

use super::error::io_error;
use super::keep::keep_ref;
use super::{ExecuteError, Executor};

/// Git ends by itself when nobody talks to it any more.
const PATIENCE: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);

impl Executor<'_> {
    pub(super) fn settle_remains(&self) -> Result<(), ExecuteError> {
        let mut waited = 0;
        while let Some(pid) = writer_of(&self.journal.op_id) {
            if waited == PATIENCE {
                return Err(ExecuteError::StillRunning { pid });
            }
            waited += 1;
            thread::sleep(PAUSE);
        }
        let steps = &self.journal.plan.steps;
        let guards =
            steps.iter().filter_map(|step| if let Step::Guard { name, .. } = step { Some(name) } else { None });
        let touched: Vec<_> = self.journal.plan.touched_refs().into_iter().map(|touched| touched.name).collect();
        let own = [self.pending_ref(), keep_ref(&self.journal.op_id), crate::ledger::ledger_ref()];
        let prepared = self.journal.prepared.as_ref();
        let mut values: Vec<_> = prepared.iter().flat_map(|p| p.edits.iter().filter_map(|edit| edit.new)).collect();
        values.extend(prepared.iter().flat_map(|p| [p.keep, p.intent, p.committed]));
        let heads = prepared.and_then(|p| p.head_after.as_ref()).into_iter();
        let heads = heads.chain(self.journal.worktree.as_ref().map(|worktree| &worktree.head));
        let written: Vec<_> = values.iter().map(|value| format!("{value}\n")).chain(heads.map(head_text)).collect();
        for lock in locks_of(&self.repo.paths, touched.iter().chain(guards).chain(&own)) {
            if is_left_behind(&lock, &written) {
                let removed = durable::remove(&draft_beside(&lock)).and_then(|()| durable::remove(&lock));
                removed.map_err(io_error("remove a lock file of the operation"))?;
            }
        }
        self.settle_head()?;
        self.settle_followers()?;
        self.settle_index()
    }

    /// Git's own rebase moves HEAD to commits that only it knows.
    fn settle_head(&self) -> Result<(), ExecuteError> {
        let lock = head_lock(&self.repo.paths.git_dir);
        let work_dir = self.repo.paths.work_dir.as_deref().filter(|_| self.journal.pause.is_some());
        if work_dir.is_some_and(|work_dir| is_abandoned(&lock, work_dir)) {
            durable::remove(&lock).map_err(io_error("remove a lock file of the operation"))?;
        }
        Ok(())
    }

    /// Clears the locks of indices away that this operation was about to write.
    fn settle_index(&self) -> Result<(), ExecuteError> {
        self.remove_own_files(&["index.lock", "part", "part.lock"]);
        let lock = index_path(&self.repo.paths.git_dir).with_extension("lock");
        let Some(work_dir) = self.repo.paths.work_dir.as_deref().filter(|_| self.journal.worktree.is_some()) else {
            return Ok(());
        };
        if is_abandoned(&lock, work_dir) {
            durable::remove(&lock).map_err(io_error("remove a lock file of the operation"))?;
        }
        Ok(())
    }
}

/// What git writes into the file of HEAD.
fn head_text(head: &HeadValue) -> String {
    match head {
        HeadValue::Branch(branch) => format!("ref: {}\n", branch.branch_ref()),
        HeadValue::Detached(commit) => format!("{commit}\n"),
    }
}
