//! Other worktrees: where a branch moves that one of them has checked out, its index and files move along.

use std::collections::BTreeSet;
use std::path::Path;

use lattice_model::name::BranchName;

use crate::format::journal::{Edit, FileMove, Follower, Prepared};
use crate::git::remains::is_abandoned;
use crate::git::worktree::{HeadName, git_dir_at, index_path};
use crate::git::{Git, GitError};
use crate::scan::RefsRead;

use super::error::io_error;
use super::{ExecuteError, Executor};

impl Executor<'_> {
    /// The worktrees that follow. One that cannot holds its branch back.
    pub(super) fn followers(&mut self, read: &RefsRead, edits: &[Edit]) -> Result<Vec<Follower>, ExecuteError> {
        let here = self.repo.paths.work_dir.clone();
        let mut followers = Vec::new();
        for edit in edits {
            let (Some(branch), Some(old), Some(new)) = (edit.name.as_branch(), edit.old, edit.new) else { continue };
            let elsewhere = read.worktrees.get(&branch).filter(|path| Some(*path) != here.as_ref());
            let Some(work_dir) = elsewhere.filter(|_| old != new) else { continue };
            if !work_dir.exists() {
                return Err(held(&branch, work_dir, "is gone; if that is for good: git worktree prune"));
            }
            let files = self.repo.with_objects(|objects| {
                Ok(FileMove { from: objects.tree_of(old)?, to: self.picker.tree_of(objects, new)? })
            })?;
            let git_dir = git_dir_at(&self.repo.paths.common_dir, work_dir);
            let git_dir = git_dir.ok_or_else(|| held(&branch, work_dir, "is not known to Git"))?;
            followers.push(Follower { branch, git_dir, work_dir: work_dir.clone(), files });
        }
        Ok(followers)
    }

    /// Asks git whether anything of the user's is in the way there, once all objects exist.
    pub(super) fn try_followers(&self, followers: &[Follower]) -> Result<(), ExecuteError> {
        for follower in followers {
            let (branch, work_dir) = (&follower.branch, &follower.work_dir);
            let git = self.at(follower);
            let attached = HeadName::Ref(branch.branch_ref().to_string());
            if git.head(&follower.git_dir)? != attached {
                return Err(held(branch, work_dir, "has a rebase of it in progress"));
            }
            let FileMove { from, to } = follower.files;
            match git.try_move_files(&index_path(&follower.git_dir), from, to) {
                Ok(()) => {}
                Err(GitError::Failed { .. }) => {
                    return Err(held(branch, work_dir, "has uncommitted changes in the way"));
                }
                Err(GitError::IndexLocked { .. }) => {
                    return Err(held(branch, work_dir, "has another git at work"));
                }
                Err(other) => return Err(other.into()),
            }
        }
        Ok(())
    }

    pub(super) fn move_followers(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        for follower in &prepared.followers {
            let FileMove { from, to } = follower.files;
            self.at(follower).move_files(from, to)?;
        }
        Ok(())
    }

    pub(super) fn move_followers_back(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        for follower in &prepared.followers {
            let FileMove { from, to } = follower.files;
            self.at(follower).complete_move(to, from, self.hex_len())?;
        }
        Ok(())
    }

    /// Completes what may have been cut off, on the way forth.
    pub(super) fn complete_followers(&self, prepared: &Prepared) -> Result<(), ExecuteError> {
        for follower in &prepared.followers {
            let FileMove { from, to } = follower.files;
            self.at(follower).complete_move(from, to, self.hex_len())?;
        }
        Ok(())
    }

    /// Clears locks of their indices away that a killed git left.
    pub(super) fn settle_followers(&self) -> Result<(), ExecuteError> {
        let touched: BTreeSet<_> =
            self.journal.plan.touched_refs().iter().filter_map(|touched| touched.name.as_branch()).collect();
        let here = self.repo.paths.work_dir.as_ref();
        // Whether a worktree can follow is tried before it is known to be one that does.
        for (_, work_dir) in self.journal.checked_out.iter().filter(|(branch, _)| touched.contains(*branch)) {
            let git_dir = git_dir_at(&self.repo.paths.common_dir, work_dir).filter(|_| Some(work_dir) != here);
            let Some(lock) = git_dir.map(|git_dir| index_path(&git_dir).with_extension("lock")) else { continue };
            if is_abandoned(&lock, work_dir) {
                crate::durable::remove(&lock).map_err(io_error("remove a lock file of the operation"))?;
            }
        }
        Ok(())
    }

    fn at(&self, follower: &Follower) -> Git {
        self.git.in_worktree(&follower.git_dir, &follower.work_dir)
    }
}

fn held(branch: &BranchName, work_dir: &Path, why: &str) -> ExecuteError {
    let reason = format!("the worktree {} {why}", work_dir.display());
    ExecuteError::HeldBack { held: [(branch.clone(), reason)].into() }
}
