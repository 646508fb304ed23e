//! A conflict becomes Git's own rebase in the working tree, with no branch moved.

use lattice_model::event::HeadValue;
use lattice_model::id::Oid;
use lattice_model::name::RefName;
use lattice_model::plan::{Expected, Step};
use lattice_model::snapshot::{OpPhase, WorkingCopy};

use crate::format::journal::{DropReason, Dropped, FileMove, Pause};
use crate::git::GitError;
use crate::git::files::wait_for_index;
use crate::git::pack::{NewCommit, Pack};
use crate::git::transaction::{RefEdit, Target};
use crate::git::worktree::{RebaseEnd, index_path};

use super::error::io_error;
use super::keep::keep_ref;
use super::rewriting::Rewrite;
use super::settle::FileAttempt;
use super::{ExecuteError, Executor, Paused};

impl Executor<'_> {
    /// Starts the rebase. `None` if it went through after all, as it may when git remembers a resolution.
    pub(super) fn pause(&mut self, rewrite: &Rewrite, onto: Oid) -> Result<Option<Paused>, ExecuteError> {
        let branch = rewrite.branch.clone();
        if self.is_dirty() {
            return Err(ExecuteError::NeedsCleanTree { branch });
        }
        self.picker.flush(&self.git)?;
        let start = self.start()?;
        if !self.journal.paused {
            self.try_start(start, onto)?;
        }
        if !self.journal.intent_recorded {
            self.record_intent_alone()?;
            self.journal.intent_recorded = true;
        }
        self.keep_pending()?;
        self.journal.pause = Some(Pause { branch, tip: rewrite.tip, fork: rewrite.fork, onto, start });
        self.journal.paused = true;
        self.write_journal()?;
        // From here on HEAD and files differ from before, and only the journal knows the way back.
        self.write_marker(OpPhase::AwaitingUser)?;
        self.begin_rebase()
    }

    /// Starts the rebase that the journal names. `None` if it went through.
    pub(super) fn begin_rebase(&mut self) -> Result<Option<Paused>, ExecuteError> {
        let pause = self.journal.pause.clone().expect("bug: only a pause has a rebase");
        self.leave_branch(pause.start).map_err(ExecuteError::incomplete)?;
        let end = self.git.rebase(pause.onto, pause.fork, pause.tip, &self.repo.paths.git_dir);
        match end.map_err(|error| ExecuteError::from(error).incomplete())? {
            RebaseEnd::Done => {
                self.resolved()?;
                Ok(None)
            }
            RebaseEnd::Paused => Ok(Some(self.paused())),
        }
    }

    /// Takes the commit that the rebase ended on as the branch's new tip.
    pub(super) fn resolved(&mut self) -> Result<(), ExecuteError> {
        let pause = self.journal.pause.take().expect("bug: only a pause is resolved");
        let (_, commit) = self.head_commit().map_err(ExecuteError::incomplete)?;
        self.git.forget_rebase_head(&self.repo.paths.git_dir)?;
        self.journal.dropped.retain(|dropped| dropped.branch != pause.branch);
        self.note_dropped(&pause, commit)?;
        self.journal.tips.insert(pause.branch.clone(), commit);
        self.journal.resolved.insert(pause.branch);
        self.write_journal().map_err(ExecuteError::incomplete)
    }

    /// Names commits that the rebase left out: because of how a conflict was resolved, or as the user told git.
    fn note_dropped(&mut self, pause: &Pause, tip: Oid) -> Result<(), ExecuteError> {
        let (old, new) = (self.git.between(pause.fork, pause.tip)?, self.git.between(pause.onto, tip)?);
        if new.len() >= old.len() {
            return Ok(());
        }
        let read = |ids: Vec<Oid>| -> Result<Vec<_>, GitError> {
            let one = |id| self.repo.with_objects(|objects| objects.commit(id)).map(|commit| (id, commit));
            ids.into_iter().map(one).collect()
        };
        // A rebase keeps who wrote a commit, and when.
        let mut made: Vec<_> = read(new)?.into_iter().map(|(_, commit)| commit.author).collect();
        for (commit, old) in read(old)? {
            match made.iter().position(|author| *author == old.author) {
                Some(at) => drop(made.remove(at)),
                None => {
                    let (branch, subject) = (pause.branch.clone(), old.subject());
                    self.journal.dropped.push(Dropped { branch, commit, subject, because: DropReason::Resolution });
                }
            }
        }
        Ok(())
    }

    pub(super) fn paused(&self) -> Paused {
        let files = match self.git.status() {
            WorkingCopy::Known { unmerged, .. } => unmerged,
            WorkingCopy::None | WorkingCopy::NotRead | WorkingCopy::Unknown { .. } => Vec::new(),
        };
        let branch = self.journal.pause.as_ref().map(|pause| pause.branch.clone());
        Paused {
            op: self.journal.op_id.clone(),
            command: self.journal.plan.command.clone(),
            branch: branch.expect("bug: only a pause is reported"),
            remembered: self.git.remembered(&files, &self.repo.paths.git_dir),
            files,
        }
    }

    /// Whether a rebase would mix with changes of the user. What the plan commits is none.
    fn is_dirty(&self) -> bool {
        let commits = self.journal.plan.steps.iter().any(|step| matches!(step, Step::Commit { .. }));
        match self.git.status() {
            WorkingCopy::Known { staged, unstaged, .. } => {
                let staged_matters = !commits && !staged.is_empty();
                let index_taken = commits && self.stages_all();
                staged_matters || (!unstaged.is_empty() && !index_taken)
            }
            WorkingCopy::None | WorkingCopy::NotRead | WorkingCopy::Unknown { .. } => true,
        }
    }

    fn stages_all(&self) -> bool {
        use lattice_model::plan::StageMode;
        let all = |step: &Step| matches!(step, Step::Stage { what: StageMode::All | StageMode::Tracked });
        self.journal.plan.steps.iter().any(all)
    }

    /// A commit for what the files stand for, so that the rebase begins from a clean tree.
    fn start(&self) -> Result<Oid, ExecuteError> {
        if self.journal.paused {
            // The files are where an earlier rebase of this operation left them.
            return Ok(self.head_commit()?.1);
        }
        let worktree = self.journal.worktree.as_ref().expect("bug: a rebase has a worktree");
        let head_tree = self.repo.with_objects(|objects| objects.tree_of(worktree.commit))?;
        if worktree.files == head_tree {
            return Ok(worktree.commit);
        }
        Ok(self.git.scaffold(worktree.files, Some(worktree.commit))?)
    }

    /// Whether a file of the user is where the rebase begins. Touches nothing.
    fn try_start(&self, start: Oid, onto: Oid) -> Result<(), ExecuteError> {
        let worktree = self.journal.worktree.as_ref().expect("bug: a rebase has a worktree");
        let tree_of = |commit: Oid| self.repo.with_objects(|objects| objects.tree_of(commit));
        let files = FileMove { from: tree_of(start)?, to: tree_of(onto)? };
        let index = match start == worktree.commit {
            true => index_path(&self.repo.paths.git_dir),
            false => self.own_index(),
        };
        FileAttempt { git: self.git.clone(), index, files }.run()
    }

    /// Detaches HEAD, unless that happened before.
    fn leave_branch(&self, start: Oid) -> Result<(), ExecuteError> {
        let worktree = self.journal.worktree.as_ref().expect("bug: a rebase has a worktree");
        if self.head_commit()?.0 != worktree.head {
            return Ok(());
        }
        if start != worktree.commit {
            self.install_index()?;
        }
        Ok(self.git.set_head(&HeadValue::Detached(start), &self.reason())?)
    }

    /// Keeps the commits that were made so far alive while the user works on the conflict.
    fn keep_pending(&self) -> Result<(), ExecuteError> {
        if self.journal.tips.is_empty() {
            return Ok(());
        }
        let mut pack = Pack::new(self.hex_len());
        let tree = pack.tree(Vec::new());
        let commit = pack.commit(&NewCommit {
            message: "commits of an operation that waits for its user\n",
            seconds: self.now.unix_seconds(),
            parents: self.journal.tips.values().copied().collect(),
            tree,
        });
        pack.write(&self.git, &self.repo.paths.common_dir)?;
        let to = Target::Set(commit);
        let old = self.pending()?;
        let edit = RefEdit { name: self.pending_ref(), expected: Expected::from_option(old), to };
        Ok(self.transact(&[edit])?)
    }

    pub(super) fn drop_pending(&self) -> Result<(), ExecuteError> {
        let Some(old) = self.pending()? else { return Ok(()) };
        let edit = RefEdit { name: self.pending_ref(), expected: Expected::At(old), to: Target::Delete };
        Ok(self.transact(&[edit])?)
    }

    /// Lets go of everything that was kept for an operation that came to nothing.
    pub(super) fn drop_kept(&self) -> Result<(), ExecuteError> {
        let names = [self.pending_ref(), keep_ref(&self.journal.op_id)];
        let mut edits = Vec::new();
        for name in names {
            if let Some(old) = self.value_of(&name)? {
                edits.push(RefEdit { name, expected: Expected::At(old), to: Target::Delete });
            }
        }
        if edits.is_empty() { Ok(()) } else { Ok(self.transact(&edits)?) }
    }

    pub(super) fn pending(&self) -> Result<Option<Oid>, ExecuteError> {
        self.value_of(&self.pending_ref())
    }

    /// One of Lattice's own refs as it is now.
    pub(super) fn value_of(&self, name: &RefName) -> Result<Option<Oid>, ExecuteError> {
        let listing = self.git.list_refs(&[name.as_str()])?;
        Ok(listing.refs.first().map(|listed| listed.oid))
    }

    pub(super) fn pending_ref(&self) -> RefName {
        RefName::new(format!("refs/lattice/pending/{}", self.journal.op_id)).expect("ids are valid in names")
    }

    /// Makes the operation's index that of the worktree.
    pub(super) fn install_index(&self) -> Result<(), ExecuteError> {
        let own = self.own_index();
        if !own.exists() {
            return Ok(());
        }
        let bytes = std::fs::read(&own).map_err(io_error("read the new index"))?;
        let index = index_path(&self.repo.paths.git_dir);
        wait_for_index(&index)?;
        crate::durable::write_locked(&index, &bytes).map_err(io_error("install the new index"))
    }
}
