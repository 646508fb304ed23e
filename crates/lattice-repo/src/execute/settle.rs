//! Second half of an execution: refs, files, HEAD and configuration move to prepared values.

use std::path::PathBuf;
use std::thread;

use lattice_model::event::{Category, Event, HeadValue};
use lattice_model::id::{ContentDigest, Oid};
use lattice_model::plan::{Expected, OldFile, Step};

use crate::defect::Defect;
use crate::durable;
use crate::format::journal::{FileMove, IndexAfter, Prepared};
use crate::git::remains;
use crate::git::transaction::{RefEdit, RefSession, Target};
use crate::git::worktree::index_path;
use crate::git::{Git, GitError};
use crate::ledger::{NewEvent, last_event, ledger_ref};

use super::error::io_error;
use super::keep::keep_ref;
use super::recover::Way;
use super::{ExecuteError, Executor};

/// How often a reader's evidence may come between before we give up.
const LEDGER_ATTEMPTS: usize = 5;

/// A move of files that is only tried.
pub(super) struct FileAttempt {
    pub(super) git: Git,
    pub(super) index: PathBuf,
    pub(super) files: FileMove,
}

impl FileAttempt {
    pub(super) fn run(self) -> Result<(), ExecuteError> {
        let tried = self.git.try_move_files(&self.index, self.files.from, self.files.to);
        tried.map_err(|error| match error {
            GitError::Failed { stderr, .. } => ExecuteError::FilesInTheWay { detail: stderr.trim().to_owned() },
            other => other.into(),
        })
    }
}

impl Executor<'_> {
    /// Moves everything. An error that is not `Incomplete` means that nothing has moved.
    pub(super) fn apply(&mut self) -> Result<(), ExecuteError> {
        match self.try_apply() {
            Err(error) if error.leaves_nothing() && self.journal.paused => {
                // The rebase is still there to go back to; what was prepared is not.
                self.journal.prepared = None;
                self.write_journal().map_err(ExecuteError::incomplete)?;
                Err(error)
            }
            outcome => outcome,
        }
    }

    fn try_apply(&mut self) -> Result<(), ExecuteError> {
        if !self.git.has(Defect::JournalStale) {
            self.write_journal()?;
        }
        let attempt = self.file_attempt();
        // Whether something of the user's is in the way of files is seen while the intent is recorded.
        let (recorded, tried) = thread::scope(|scope| {
            let trying = scope.spawn(move || attempt.map_or(Ok(()), FileAttempt::run));
            (self.record_intent(), trying.join().expect("bug: trying does not panic"))
        });
        recorded?;
        tried?;
        let prepared = self.journal.prepared.clone().expect("bug: only what is prepared is applied");
        let edits = self.edits_and_guards(&prepared);
        self.begin_refs(&edits)?;
        // Files come first: git checks that nothing of the user's is in the way before it
        // touches any of them, and if it is, no ref has moved yet.
        if let Err(error) = self.move_files(&prepared) {
            self.let_go_of_refs();
            return Err(error);
        }
        if let Err(error) = self.move_refs(&edits) {
            self.move_files_back(&prepared).map_err(ExecuteError::incomplete)?;
            return Err(error);
        }
        self.settle_rest(&prepared).map_err(ExecuteError::incomplete)
    }

    /// What git is asked before any file moves.
    fn file_attempt(&self) -> Option<FileAttempt> {
        let prepared = self.journal.prepared.as_ref().expect("bug: only what is prepared is applied");
        let files = prepared.files.filter(|files| files.from != files.to)?;
        let index = match prepared.index {
            IndexAfter::Installed => self.own_index(),
            IndexAfter::Stays | IndexAfter::Restored(_) => index_path(&self.repo.paths.git_dir),
        };
        Some(FileAttempt { git: self.git.clone(), index, files })
    }

    /// Records the intent. Someone may have recorded evidence since the ledger was read; then the
    /// records are made again on top of it.
    fn record_intent(&mut self) -> Result<(), ExecuteError> {
        for _ in 0..LEDGER_ATTEMPTS {
            let prepared = self.journal.prepared.clone().expect("bug: only what is prepared is applied");
            let keep = keep_ref(&self.journal.op_id);
            // An operation that waited for the user may have come this far before.
            let kept = if self.journal.paused { self.value_of(&keep)? } else { None };
            let to = Target::Set(prepared.keep);
            let mut edits = vec![RefEdit { name: keep, expected: Expected::from_option(kept), to }];
            let expected = Expected::from_option(prepared.ledger_before);
            if !self.journal.intent_recorded {
                edits.push(RefEdit { name: ledger_ref(), expected, to: Target::Set(prepared.intent) });
            }
            match self.transact(&edits) {
                Ok(()) => {
                    self.journal.intent_recorded = true;
                    return Ok(());
                }
                Err(error) => {
                    let tip = self.repo.read_refs()?.ledger;
                    if tip == prepared.ledger_before {
                        return Err(error.into());
                    }
                    self.prepare()?;
                    self.write_journal()?;
                }
            }
        }
        Err(ExecuteError::LedgerBusy)
    }

    /// Moves the files, if nothing of the user's is in the way.
    fn move_files(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        if prepared.index == IndexAfter::Installed {
            self.install_index()?;
        }
        // A git that gives up now, or is killed, may have moved some files and not others.
        let files = prepared.files.filter(|files| files.from != files.to && !self.git.has(Defect::FilesStay));
        let moved = files.map_or(Ok(()), |files| self.git.move_files(files.from, files.to));
        moved.map_err(|error| ExecuteError::from(error).incomplete())?;
        self.move_followers(prepared).map_err(ExecuteError::incomplete)
    }

    fn move_files_back(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        if let Some(files) = prepared.files.filter(|files| files.from != files.to) {
            self.git.move_files(files.to, files.from)?;
            if let (IndexAfter::Stays, Some(before)) = (prepared.index, &self.journal.worktree) {
                // What was staged and is so in the other tree was no change there, and did not come back by itself.
                self.git.move_files(files.from, before.index)?;
            }
        }
        self.move_followers_back(prepared)?;
        self.restore_index_before(prepared)
    }

    /// Puts the index back that the operation found.
    pub(super) fn restore_index_before(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        match (prepared.index, &self.journal.worktree) {
            (IndexAfter::Installed | IndexAfter::Restored(_), Some(before)) => Ok(self.git.read_index(before.index)?),
            (IndexAfter::Stays, _) | (_, None) => Ok(()),
        }
    }

    /// All ref changes of the plan, and the refs that it depends on.
    fn edits_and_guards(&self, prepared: &Prepared) -> Vec<RefEdit> {
        let mut edits = edits(prepared);
        for step in &self.journal.plan.steps {
            if let Step::Guard { name, expected } = step
                && name.as_str() != crate::ledger::LEDGER
                // Git takes each ref once; an edit or an earlier guard has the same expectation.
                && edits.iter().all(|edit| edit.name != *name)
            {
                edits.push(RefEdit { name: name.clone(), expected: *expected, to: Target::Keep });
            }
        }
        edits
    }

    /// Lets git take the locks and write the new values beside the refs.
    fn begin_refs(&self, edits: &[RefEdit]) -> Result<(), ExecuteError> {
        if edits.is_empty() {
            return Ok(());
        }
        Ok(self.with_session(|session| session.begin(edits))?)
    }

    /// Moves all refs in one transaction, with everything on disk that they stand for.
    fn move_refs(&self, edits: &[RefEdit]) -> Result<(), ExecuteError> {
        if edits.is_empty() {
            return self.flush();
        }
        let blamed = |error| self.blame(error, edits);
        self.with_session(RefSession::prepared).map_err(blamed)?;
        if let Err(error) = self.flush() {
            self.let_go_of_refs();
            return Err(error);
        }
        self.with_session(RefSession::commit).map_err(blamed)
    }

    /// Ends the process that moves refs: it takes back what it prepared.
    pub(super) fn let_go_of_refs(&self) {
        if let Some(session) = self.session.take() {
            // Whatever it says, it is gone, and its locks with it.
            let _ = session.end();
        }
    }

    /// Git refuses a transaction with one sentence; which ref it was is found by looking.
    fn blame(&self, error: GitError, edits: &[RefEdit]) -> ExecuteError {
        let Ok(read) = self.repo.read_refs() else { return error.into() };
        let now = |edit: &RefEdit| read.refs.get(&edit.name).copied();
        // A git that refused has said why; one that died may have removed some refs and not others.
        let died = !matches!(error, GitError::Failed { .. });
        let moved_some = edits.iter().any(|edit| match edit.to {
            Target::Set(new) => now(edit) == Some(new),
            Target::Delete => died && now(edit).is_none(),
            Target::Keep => false,
        });
        if moved_some {
            // A process that died in the middle of its commit moved some refs and not others.
            return ExecuteError::from(error).incomplete();
        }
        match edits.iter().find(|edit| now(edit) != edit.expected.value()) {
            Some(edit) => {
                ExecuteError::RefMoved { name: edit.name.clone(), expected: edit.expected.value(), found: now(edit) }
            }
            None => error.into(),
        }
    }

    /// What follows once the refs have moved: configuration, HEAD, index.
    pub(super) fn settle_rest(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        self.write_config(prepared)?;
        self.move_options(Way::Forward);
        if let Some(head) = &prepared.head_after {
            let current = self.head_commit().map(|(head, _)| head).ok();
            if current.as_ref() != Some(head) {
                // A HEAD that is nowhere was on a branch that is gone, to which nobody can go back.
                let before = self.journal.worktree.as_ref().filter(|_| current.is_some());
                self.git.set_head(head, &self.head_reason(before.map(|before| &before.head), head))?;
            }
        }
        if let IndexAfter::Restored(tree) = prepared.index {
            self.git.read_index(tree)?;
            self.git.refresh_index(&crate::git::worktree::index_path(&self.repo.paths.git_dir))?;
        }
        Ok(())
    }

    /// Git finds `@{-1}` by these words. After a conflict HEAD is in the middle of a rebase, where nobody goes back to.
    fn head_reason(&self, before: Option<&HeadValue>, to: &HeadValue) -> String {
        let (Some(from), HeadValue::Branch(to)) = (before.filter(|before| *before != to), to) else {
            return self.reason();
        };
        let from = match from {
            HeadValue::Branch(branch) => branch.to_string(),
            HeadValue::Detached(commit) => commit.to_string(),
        };
        format!("checkout: moving from {from} to {to} ({})", self.reason())
    }

    /// Options of a branch follow its name. They are a convenience of git's, and nothing fails for want of them.
    pub(super) fn move_options(&self, way: Way) {
        for step in &self.journal.plan.steps {
            if let Step::MoveOptions { from, to } = step {
                let _ = match way {
                    Way::Forward => self.git.move_branch_options(from, to),
                    Way::Back => self.git.move_branch_options(to, from),
                };
            }
        }
    }

    fn write_config(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        let Some(change) = &prepared.config else { return Ok(()) };
        let path = self.repo.config_path();
        let keeps = self
            .journal
            .plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::WriteConfig { old: OldFile::KeptBeside, .. }));
        if keeps && path.symlink_metadata().is_ok() && !self.config_is(change.new.as_deref()) {
            durable::set_aside(&path, &self.config_aside()).map_err(io_error("set the configuration aside"))?;
        }
        match &change.new {
            Some(text) => durable::write(&path, text.as_bytes()).map_err(io_error("write the configuration")),
            None => durable::remove(&path).map_err(io_error("remove the configuration")),
        }
    }

    /// The name under which a configuration stays that is no text.
    pub(super) fn config_aside(&self) -> String {
        format!("config.toml.replaced-{}", self.journal.op_id)
    }

    pub(super) fn config_is(&self, text: Option<&str>) -> bool {
        let found = durable::read(&self.repo.config_path(), crate::format::config::SIZE_LIMIT).unwrap_or(None);
        found.as_deref().map(ContentDigest::of) == text.map(|text| ContentDigest::of(text.as_bytes()))
    }

    /// Removes the lock files of the plan, if they are still those that were reported. They come before everything else: one may be in the way of the very
    /// refs that record the operation.
    pub(super) fn remove_locks(&self) -> Result<(), ExecuteError> {
        for step in &self.journal.plan.steps {
            if let Step::RemoveLock { path, size } = step {
                let path = remains::lock_path(&self.repo.paths.common_dir, path);
                let same = path.symlink_metadata().is_ok_and(|found| found.len() == *size);
                if same {
                    durable::remove(&path).map_err(io_error("remove the lock file"))?;
                }
            }
        }
        Ok(())
    }

    /// Records success. If evidence came between, the record goes on top of it.
    pub(super) fn record_committed(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        let edit = RefEdit {
            name: ledger_ref(),
            expected: Expected::At(prepared.intent),
            to: Target::Set(prepared.committed),
        };
        match self.transact(&[edit]) {
            Ok(()) => {}
            Err(error) if error.is_of_the_disk() => return Err(ExecuteError::from(error).incomplete()),
            Err(_) => self.record_on_top(prepared).map_err(ExecuteError::incomplete)?,
        }
        if self.git.has(Defect::RecordedTwice) {
            self.record(self.event(Category::Committed))?;
        }
        if self.journal.paused {
            self.drop_pending().map_err(ExecuteError::incomplete)?;
        }
        Ok(())
    }

    /// Makes the closing records again, on top of what the ledger has now.
    fn record_on_top(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        let records = self.closing_records(prepared.committed)?;
        for attempt in 1..=LEDGER_ATTEMPTS {
            let tip = self.repo.ledger_tip()?;
            let last = last_event(&tip);
            if last.is_some_and(|last| last.op == self.journal.op_id && last.after.is_some()) {
                // A kill came after the record and before the marker was removed.
                return Ok(());
            }
            let first = records.first().expect("bug: every operation closes with an event");
            match self.repo.append_with_tree(&tip, Some(first.1), NewEvent::again(&first.0)) {
                Ok(()) => break,
                Err(error) if attempt == LEDGER_ATTEMPTS || error.is_of_the_disk() => return Err(error.into()),
                Err(_) => {}
            }
        }
        for (event, tree) in &records[1..] {
            self.repo.append_with_tree(&self.repo.ledger_tip()?, Some(*tree), NewEvent::again(event))?;
        }
        Ok(())
    }

    /// The records that end this operation, oldest first, as they were prepared.
    fn closing_records(&self, newest: Oid) -> Result<Vec<(Event, Oid)>, ExecuteError> {
        let mut records = Vec::new();
        let mut next = Some(newest);
        while let Some(commit) = next {
            let raw = self.repo.with_objects(|objects| objects.commit(commit))?;
            let Ok(event) = crate::format::event::parse(&raw.message) else { break };
            if event.op != self.journal.op_id || event.after.is_none() {
                break;
            }
            records.insert(0, (event, raw.tree));
            next = raw.parents.first().copied();
        }
        if records.is_empty() {
            return Err(ExecuteError::JournalUnusable { reason: "its record is missing".to_owned() });
        }
        Ok(records)
    }
}

pub(super) fn edits(prepared: &Prepared) -> Vec<RefEdit> {
    let edit = |edit: &crate::format::journal::Edit| RefEdit {
        name: edit.name.clone(),
        expected: Expected::from_option(edit.old),
        to: edit.new.map_or(Target::Delete, Target::Set),
    };
    prepared.edits.iter().map(edit).collect()
}
