//! First half of an execution: makes commits. Nothing that anyone can see changes.

use std::ffi::OsString;

use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::{CommitMode, OnConflict, Step};

use crate::git::commits::{NewCommit, RawCommit};
use crate::git::worktree::message_path;

use super::error::{DeriveError, io_error};
use super::rewriting::Outcome;
use super::{ExecuteError, Executor, Paused};

impl Executor<'_> {
    /// Makes every commit of the plan, or stops at a conflict.
    pub(super) fn produce(&mut self) -> Result<Option<Paused>, ExecuteError> {
        for step in self.journal.plan.steps.clone() {
            match step {
                Step::Stage { what } if !self.journal.paused => {
                    self.made_by_git = true;
                    self.git.stage(&self.own_index(), what)?;
                }
                Step::Commit { branch, how, message, .. } if !self.journal.tips.contains_key(&branch) => {
                    let tip = self.commit(&branch, how, message.as_deref())?;
                    self.journal.tips.insert(branch, tip);
                }
                Step::Derive { branch, how, message, .. } if !self.journal.tips.contains_key(&branch) => {
                    let tip = self.derive(&branch, &how, message.as_deref())?;
                    self.journal.tips.insert(branch, tip);
                }
                Step::Stage { .. }
                | Step::Commit { .. }
                | Step::Derive { .. }
                | Step::LeaveFiles { .. }
                | Step::Fixup { .. }
                | Step::Rewrite { .. }
                | Step::WriteConfig { .. }
                | Step::SetRef { .. }
                | Step::SetMetadata { .. }
                | Step::MoveOptions { .. }
                | Step::Guard { .. }
                | Step::Switch { .. }
                | Step::RestoreWorktree { .. }
                | Step::RemoveOpState
                | Step::RemoveLock { .. }
                | Step::Verify
                | Step::Fetch { .. }
                | Step::Push { .. }
                | Step::Host { .. } => {}
            }
        }
        self.amend_commits()?;
        loop {
            match self.rewrite_remaining()? {
                Outcome::Done if !self.conflicts.is_empty() => {
                    return Err(ExecuteError::HeldBack { held: self.held_back() });
                }
                Outcome::Done => {
                    self.check_absorbed()?;
                    self.sign()?;
                    return Ok(None);
                }
                // The rebase would go without what is absorbed.
                Outcome::Conflict { rewrite, .. } if self.picker.amends() => {
                    return Err(DeriveError::AbsorbConflicts { branch: rewrite.branch }.into());
                }
                Outcome::Conflict { rewrite, onto } if self.journal.plan.on_conflict == OnConflict::SkipStack => {
                    self.note_conflict(&rewrite, onto)?;
                }
                Outcome::Conflict { rewrite, .. } => {
                    self.sign()?;
                    let onto = self.place(&rewrite.onto)?;
                    if let Some(paused) = self.pause(&rewrite, onto)? {
                        return Ok(Some(paused));
                    }
                }
            }
        }
    }

    fn commit(&mut self, branch: &BranchName, how: CommitMode, message: Option<&str>) -> Result<Oid, ExecuteError> {
        let index = self.own_index();
        self.made_by_git = true;
        self.git.run_hook("pre-commit", &[], &index)?;
        let staged = self.git.write_tree(Some(&index))?;
        let worktree = self.journal.worktree.as_mut().expect("bug: a plan that commits has a worktree");
        let head_tree = self.repo.with_objects(|objects| objects.tree_of(worktree.commit))?;
        worktree.files = staged;
        let target = self.readable(how.commit())?;
        let tree = match how {
            CommitMode::OnTop(_) | CommitMode::Amend(_) => staged,
            CommitMode::OnTopElsewhere(_) | CommitMode::AmendElsewhere(_) => self
                .git
                .merge_trees(head_tree, target.tree, staged)?
                .ok_or_else(|| ExecuteError::StagedDoesNotApply { branch: branch.clone() })?,
        };
        let amends = matches!(how, CommitMode::Amend(_) | CommitMode::AmendElsewhere(_));
        // What was to be staged may turn out to be nothing: no hunk was picked, or a change was taken back.
        let says_something = amends && message.is_some();
        if tree == target.tree && !says_something {
            return Err(ExecuteError::NothingPicked);
        }
        let message = self.message(message, amends.then_some((&target, how.commit())))?;
        let sign = self.git.signing()?;
        let parents = if amends { target.parents.clone() } else { vec![how.commit()] };
        let authored_by = amends.then_some(&target);
        Ok(self.git.commit_tree(NewCommit { tree, parents, message, authored_by, sign })?)
    }

    /// The message after the hooks that may change or refuse it.
    fn message(&self, given: Option<&str>, amended: Option<(&RawCommit, Oid)>) -> Result<Vec<u8>, ExecuteError> {
        let text = match (given, amended) {
            (Some(given), _) => format!("{}\n", given.trim()).into_bytes(),
            (None, Some((original, _))) => original.message.clone(),
            (None, None) => return Err(ExecuteError::NothingPicked),
        };
        let path = message_path(&self.repo.paths.git_dir);
        crate::durable::write(&path, &text).map_err(io_error("write the message"))?;
        let index = self.own_index();
        let file = OsString::from(&path);
        let mut arguments = vec![file.clone()];
        match (given, amended) {
            (Some(_), _) => arguments.push("message".into()),
            (None, Some((_, commit))) => arguments.extend(["commit".into(), commit.to_string().into()]),
            (None, None) => {}
        }
        self.git.run_hook("prepare-commit-msg", &arguments, &index)?;
        self.git.run_hook("commit-msg", &[file], &index)?;
        let message = std::fs::read(&path).map_err(io_error("read the message"))?;
        // A hook that leaves nothing of a message refuses it.
        if message.trim_ascii().is_empty() && !text.trim_ascii().is_empty() {
            return Err(ExecuteError::MessageEmptied);
        }
        Ok(message)
    }

    /// A commit whose texts can go into a new one.
    pub(super) fn readable(&self, commit: Oid) -> Result<RawCommit, ExecuteError> {
        Ok(self.repo.with_objects(|objects| self.git.readable_commit(objects, commit))?)
    }
}
