//! `continue` and `abort`: finish or reverse an operation from what its journal says.

use lattice_model::event::{Category, HeadValue};
use lattice_model::history::Ancestry;
use lattice_model::id::Oid;
use lattice_model::plan::{Expected, StageMode};
use lattice_model::settings::Settings;
use lattice_model::snapshot::{OpState, OpStateReading, WorkingCopy};
use lattice_model::time::Timestamp;

use crate::Repo;
use crate::defect::Defect;
use crate::durable;
use crate::format::{self, journal::Prepared};
use crate::git::manners::NotesMode;
use crate::git::transaction::{RefEdit, Target};
use crate::git::worktree::{HeadName, RebaseEnd, has_markers, index_path, rebasing};
use crate::lock::Lock;

use super::settle::edits;
use super::{ExecuteError, Executed, Executor, Paused};

/// What `abort` could not put back because someone changed it meanwhile.
#[derive(Debug, Clone)]
pub struct Aborted {
    pub command: String,
    pub left_alone: Vec<lattice_model::name::RefName>,
}

impl Repo {
    /// Finishes the operation in progress. `stage` adds resolved files first.
    pub fn resume(
        &self,
        _lock: &Lock,
        stage: Option<StageMode>,
        settings: &Settings,
        now: &Timestamp,
    ) -> Result<Executed, ExecuteError> {
        let mut executor = self.in_progress(settings, now)?;
        if executor.journal.prepared.is_some() {
            executor.roll_forward().map_err(ExecuteError::incomplete)?;
            // What came after the refs may have been done before.
            executor.notes = NotesMode::Keep;
            return executor.finish();
        }
        if executor.journal.pause.is_some()
            && let Some(paused) = executor.take_resolution(stage)?
        {
            return Ok(Executed::Paused(paused));
        }
        if executor.journal.paused {
            return executor.run();
        }
        // Nothing was visible yet: the operation begins again, from the same plan.
        executor.journal.worktree = None;
        executor.journal.tips.clear();
        executor.journal.signed.clear();
        executor.run_or_abort()
    }

    /// Goes back to where the operation in progress began.
    pub fn abort(&self, _lock: &Lock, settings: &Settings, now: &Timestamp) -> Result<Aborted, ExecuteError> {
        let mut executor = self.in_progress(settings, now)?;
        let left_alone = executor.reverse()?;
        let _ = executor.record_abort("given up by the user");
        executor.drop_kept()?;
        executor.clean_up()?;
        Ok(Aborted { command: executor.journal.plan.command.clone(), left_alone })
    }

    fn in_progress(&self, settings: &Settings, now: &Timestamp) -> Result<Executor<'_>, ExecuteError> {
        let state = match self.read_op_state() {
            OpStateReading::Absent => return Err(ExecuteError::NothingInProgress),
            OpStateReading::Damaged { reason } => return Err(ExecuteError::JournalUnusable { reason }),
            OpStateReading::Present(state) => state,
        };
        if state.origin_git_dir != self.paths.git_dir && !self.git.has(Defect::AnyWorktree) {
            let path = state.origin_work_dir.unwrap_or(state.origin_git_dir);
            return Err(ExecuteError::WrongWorktree { path });
        }
        let journal = self.read_journal(&state)?;
        durable::remove_empty_objects(&self.objects()).map_err(super::error::io_error("look through the objects"))?;
        let executor = Executor::new(self, journal, settings.clone(), now.clone());
        executor.settle_remains()?;
        Ok(executor)
    }

    pub(crate) fn read_journal(&self, state: &OpState) -> Result<format::journal::Journal, ExecuteError> {
        let unusable = |reason: String| ExecuteError::JournalUnusable { reason };
        let path = self.lattice_dir().join("ops").join(format!("{}.json", state.op));
        let bytes = durable::read(&path, format::journal::SIZE_LIMIT).map_err(|error| unusable(error.to_string()))?;
        let bytes = bytes.ok_or_else(|| unusable("it is missing".to_owned()))?;
        let journal = format::journal::parse(&bytes).map_err(|error| unusable(error.to_string()))?;
        if journal.op_id != state.op || journal.plan.digest() != state.plan {
            return Err(unusable("its plan is not the one that the marker names".to_owned()));
        }
        Ok(journal)
    }
}

impl Executor<'_> {
    /// Takes what the user made of the conflict, or stops at the next one.
    fn take_resolution(&mut self, stage: Option<StageMode>) -> Result<Option<Paused>, ExecuteError> {
        let git_dir = self.repo.paths.git_dir.clone();
        if !rebasing(&git_dir) && self.is_before_rebase()? {
            self.check_merged()?;
            return self.begin_rebase();
        }
        // Git goes on from whatever is checked out; elsewhere it would put commits where they do not belong.
        self.check_resolution()?;
        if rebasing(&git_dir) {
            self.check_not_emptied()?;
            if let Some(what) = stage {
                self.check_touched()?;
                // What Git does not know belongs to no conflict, and would be gone with the commit after an abort.
                let what = if what == StageMode::All { StageMode::Tracked } else { what };
                self.git.stage(&index_path(&git_dir), what).map_err(|error| ExecuteError::from(error).incomplete())?;
            }
            if let WorkingCopy::Known { unmerged, .. } = self.git.status()
                && !unmerged.is_empty()
            {
                return Err(ExecuteError::Unresolved { files: unmerged });
            }
            let (_, before) = self.head_commit()?;
            let end = self.git.continue_rebase(&git_dir);
            if end.map_err(|error| ExecuteError::from(error).incomplete())? == RebaseEnd::Paused {
                self.check_staged(before)?;
                return Ok(Some(self.paused()));
            }
            self.check_resolution()?;
        } else {
            self.check_ended()?;
        }
        self.resolved()?;
        Ok(None)
    }

    /// A commit that has neither conflicts nor changes any more would be left out without a word: so it is after
    /// `git reset --hard`. Git knows of conflicts that were resolved, and a commit that the user made keeps its author.
    fn check_not_emptied(&self) -> Result<(), ExecuteError> {
        let WorkingCopy::Known { staged, unstaged, unmerged, .. } = self.git.status() else { return Ok(()) };
        let Some(stopped) = self.git.rebase_head()? else { return Ok(()) };
        let is_clean = staged.is_empty() && unstaged.is_empty() && unmerged.is_empty();
        if !is_clean || self.git.has_resolved()? {
            return Ok(());
        }
        let (_, head) = self.head_commit()?;
        let read = |commit| self.repo.with_objects(|objects| objects.commit(commit));
        let commit = read(stopped)?;
        if read(head)?.author == commit.author {
            return Ok(());
        }
        Err(ExecuteError::NothingResolved { commit: stopped, subject: commit.subject() })
    }

    /// Git does not go on over changes that are not staged, which are no conflict.
    fn check_staged(&self, before: Oid) -> Result<(), ExecuteError> {
        match self.git.status() {
            WorkingCopy::Known { unmerged, unstaged, .. }
                if unmerged.is_empty() && !unstaged.is_empty() && self.head_commit()?.1 == before =>
            {
                Err(ExecuteError::NotStaged { files: unstaged })
            }
            WorkingCopy::Known { .. } | WorkingCopy::None | WorkingCopy::NotRead | WorkingCopy::Unknown { .. } => {
                Ok(())
            }
        }
    }

    /// A rebase that was ended in the middle of a conflict cannot begin again where its files lie.
    fn check_merged(&self) -> Result<(), ExecuteError> {
        let pause = self.journal.pause.as_ref().expect("bug: only a pause is resolved");
        match self.git.status() {
            WorkingCopy::Known { unmerged, .. } if !unmerged.is_empty() => {
                Err(ExecuteError::RebaseGone { expected: pause.onto })
            }
            WorkingCopy::Known { .. } | WorkingCopy::None | WorkingCopy::NotRead | WorkingCopy::Unknown { .. } => {
                Ok(())
            }
        }
    }

    /// A rebase that the user ended with git has to be one that was done: what `git rebase --quit` leaves is not.
    fn check_ended(&self) -> Result<(), ExecuteError> {
        let pause = self.journal.pause.as_ref().expect("bug: only a pause is resolved");
        let (_, commit) = self.head_commit()?;
        let is_short = self.git.between(pause.onto, commit)?.len() < self.git.between(pause.fork, pause.tip)?.len();
        match self.git.status() {
            WorkingCopy::Known { unmerged, staged, .. } if unmerged.is_empty() && (staged.is_empty() || !is_short) => {
                Ok(())
            }
            WorkingCopy::Known { .. } | WorkingCopy::None | WorkingCopy::NotRead | WorkingCopy::Unknown { .. } => {
                Err(ExecuteError::RebaseGone { expected: pause.onto })
            }
        }
    }

    /// What is staged as a whole is not looked at by anybody: a file that nobody has touched since the conflict must
    /// not get into a commit that way.
    fn check_touched(&self) -> Result<(), ExecuteError> {
        let (WorkingCopy::Known { unmerged, .. }, Some(root)) = (self.git.status(), &self.repo.paths.work_dir) else {
            return Ok(());
        };
        let files: Vec<_> = unmerged.into_iter().filter(|file| has_markers(&root.join(file))).collect();
        if !files.is_empty() {
            return Err(ExecuteError::MarkersLeft { files });
        }
        let files = self.git.left_without_markers(self.hex_len())?;
        if files.is_empty() { Ok(()) } else { Err(ExecuteError::Untouched { files }) }
    }

    /// Whether HEAD is where it was before the rebase: a kill came first, or the user gave it up with git.
    fn is_before_rebase(&self) -> Result<bool, ExecuteError> {
        let pause = self.journal.pause.as_ref().expect("bug: only a pause has a rebase");
        let worktree = self.journal.worktree.as_ref().expect("bug: a rebase has a worktree");
        let (head, commit) = self.head_commit()?;
        Ok(match head {
            HeadValue::Branch(_) => head == worktree.head && commit == worktree.commit,
            HeadValue::Detached(_) => commit == pause.start || commit == pause.tip,
        })
    }

    /// The user may have ended the rebase with git itself; then HEAD must be where it would have led.
    fn check_resolution(&self) -> Result<(), ExecuteError> {
        let onto = self.journal.pause.as_ref().expect("bug: only a pause is resolved").onto;
        let gone = ExecuteError::RebaseGone { expected: onto };
        match self.git.head(&self.repo.paths.git_dir)? {
            HeadName::Commit(commit) => match self.git.ancestry(onto, commit) {
                Ok(Ancestry::Ancestor) => Ok(()),
                Ok(Ancestry::NotAncestor | Ancestry::Missing) | Err(_) => Err(gone),
            },
            HeadName::Ref(_) | HeadName::Unreadable(_) => Err(gone),
        }
    }

    /// Completes what a crash cut short. Every value is known; each ref is moved only from its old one.
    fn roll_forward(&mut self) -> Result<(), ExecuteError> {
        let prepared = self.journal.prepared.clone().expect("bug: only what is prepared is completed");
        self.complete_intent(&prepared)?;
        self.complete_files(&prepared, Way::Forward)?;
        let read = self.repo.read_refs()?;
        let mut left = Vec::new();
        for edit in edits(&prepared) {
            let now = read.refs.get(&edit.name).copied();
            let new = target_value(edit.to);
            if now == new {
                continue;
            }
            if now != edit.expected.value() {
                return Err(ExecuteError::RefMoved { name: edit.name, expected: edit.expected.value(), found: now });
            }
            left.push(edit);
        }
        if !left.is_empty() {
            self.transact(&left)?;
        }
        self.settle_rest(&prepared)
    }

    /// Records the intent, if the crash came before that.
    fn complete_intent(&mut self, prepared: &Prepared) -> Result<(), ExecuteError> {
        let keep = super::keep::keep_ref(&self.journal.op_id);
        if self.value_of(&keep)?.is_none() {
            let mut edits = vec![RefEdit { name: keep, expected: Expected::Absent, to: Target::Set(prepared.keep) }];
            let ledger = crate::ledger::ledger_ref();
            let rests = self.value_of(&ledger)? == prepared.ledger_before;
            if !self.journal.paused && rests {
                let expected = Expected::from_option(prepared.ledger_before);
                edits.push(RefEdit { name: ledger, expected, to: Target::Set(prepared.intent) });
            }
            self.transact(&edits)?;
            if !self.journal.paused && !rests {
                // Evidence was recorded since the crash; the intent goes on top of it.
                self.record(self.event(Category::IntentRecorded))?;
            }
        }
        self.journal.intent_recorded = true;
        Ok(())
    }

    /// Puts everything back. Refs that have neither the old nor the new value belong to someone else now.
    fn reverse(&mut self) -> Result<Vec<lattice_model::name::RefName>, ExecuteError> {
        let mut left_alone = Vec::new();
        let mut files_at = None;
        if let Some(prepared) = self.journal.prepared.clone() {
            let read = self.repo.read_refs()?;
            let mut back = Vec::new();
            for edit in edits(&prepared) {
                let (now, new) = (read.refs.get(&edit.name).copied(), target_value(edit.to));
                match edit.expected.value() {
                    old if now == old => {}
                    old if now == new => back.push(RefEdit {
                        name: edit.name,
                        expected: Expected::from_option(new),
                        to: old.map_or(Target::Delete, Target::Set),
                    }),
                    _ => left_alone.push(edit.name),
                }
            }
            if !back.is_empty() {
                self.transact(&back)?;
            }
            self.restore_config(&prepared)?;
            self.move_options(Way::Back);
            self.complete_files(&prepared, Way::Back)?;
            self.restore_index_before(&prepared)?;
            files_at = prepared.files.map(|files| files.from);
        }
        if self.journal.paused {
            self.leave_rebase(files_at)?;
        }
        if let Some(before) = &self.journal.worktree
            && self.git.head(&self.repo.paths.git_dir)? != HeadName::of(&before.head)
        {
            self.git.set_head(&before.head, &self.reason())?;
        }
        Ok(left_alone)
    }

    fn restore_config(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        let Some(change) = &prepared.config else { return Ok(()) };
        let path = self.repo.config_path();
        let aside = path.with_file_name(self.config_aside());
        if aside.symlink_metadata().is_ok() {
            let back = durable::set_aside(&aside, "config.toml");
            return back.map_err(super::error::io_error("put the configuration back"));
        }
        if !self.config_is(change.new.as_deref()) {
            // It was not replaced yet, or someone changed it since.
            return Ok(());
        }
        let written = match &change.old {
            Some(text) => durable::write(&path, text.as_bytes()),
            None => durable::remove(&path),
        };
        written.map_err(super::error::io_error("put the configuration back"))
    }

    /// Ends Git's rebase and brings files and index back to what the operation found.
    fn leave_rebase(&self, files_at: Option<Oid>) -> Result<(), ExecuteError> {
        if rebasing(&self.repo.paths.git_dir) {
            // Git resets whatever HEAD is; a branch that the user checked out meanwhile must not move.
            let (_, commit) = self.head_commit()?;
            self.git.set_head(&HeadValue::Detached(commit), &self.reason())?;
            self.git.abort_rebase(&self.repo.paths.git_dir)?;
        }
        self.git.forget_rebase_head(&self.repo.paths.git_dir)?;
        if let WorkingCopy::Known { unmerged, .. } = self.git.status()
            && !unmerged.is_empty()
        {
            // The user ended the rebase in the middle of a conflict.
            self.git.restore(self.head_commit()?.1, &unmerged)?;
        }
        let before = self.journal.worktree.clone().expect("bug: a rebase has a worktree");
        let now = match files_at {
            Some(tree) => tree,
            None => {
                let (_, commit) = self.head_commit()?;
                self.repo.with_objects(|objects| objects.tree_of(commit))?
            }
        };
        if now != before.files {
            // The index that was found comes back below; until then it says what the files stand for.
            self.git.read_index(now)?;
            self.git.complete_move(now, before.files, self.hex_len())?;
        }
        self.undo_picks(before.files)?;
        self.git.read_index(before.index)?;
        self.git.refresh_index(&index_path(&self.repo.paths.git_dir))?;
        Ok(self.git.set_head(&before.head, &self.reason())?)
    }

    /// Takes back what a rebase that the user ended with git left in files: of the commit that it was at, and of edits that
    /// were made to resolve it. Git does the same where it gives a rebase up.
    fn undo_picks(&self, files: Oid) -> Result<(), ExecuteError> {
        let Some(pause) = &self.journal.pause else { return Ok(()) };
        for commit in [pause.onto, pause.tip] {
            let picked = self.repo.with_objects(|objects| objects.tree_of(commit))?;
            if picked != files {
                self.git.read_index(picked)?;
                self.git.complete_return(picked, files, self.hex_len())?;
            }
        }
        Ok(())
    }

    /// Brings files and index to where they belong, also if git was killed half-way through them.
    fn complete_files(&self, prepared: &Prepared, way: Way) -> Result<(), ExecuteError> {
        match way {
            Way::Forward => self.complete_followers(prepared)?,
            Way::Back => self.move_followers_back(prepared)?,
        }
        let Some(files) = prepared.files else { return Ok(()) };
        if way == Way::Forward && prepared.index == crate::format::journal::IndexAfter::Installed {
            self.install_index()?;
        }
        if files.from == files.to {
            return Ok(());
        }
        let (from, to) = match way {
            Way::Forward => (files.from, files.to),
            Way::Back => (files.to, files.from),
        };
        self.git.complete_move(from, to, self.hex_len())?;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Back,
}

fn target_value(target: Target) -> Option<Oid> {
    match target {
        Target::Set(new) => Some(new),
        Target::Delete | Target::Keep => None,
    }
}
