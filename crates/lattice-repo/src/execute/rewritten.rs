//! What goes with a rewrite besides the commits: signatures, notes and hooks, as with git's own rebase.

use std::collections::BTreeMap;
use std::ffi::OsString;

use lattice_model::event::HeadValue;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::{CommitMode, Derivation, Place, Step};

use crate::durable;
use crate::git::commits::{NewCommit, RawCommit, Sign};
use crate::git::manners::{Cause, Manners, lines, may_have_notes};
use crate::git::worktree::index_path;

use super::{ExecuteError, Executor};

impl Executor<'_> {
    fn manners(&mut self) -> Result<Manners, ExecuteError> {
        if let Some(manners) = &self.manners {
            return Ok(manners.clone());
        }
        Ok(self.manners.insert(self.git.manners(&self.repo.paths.common_dir)?).clone())
    }

    /// As above, if the plan does anything that they are about.
    fn manners_if_due(&mut self) -> Option<Manners> {
        if !self.journal.plan.steps.iter().any(has_manners) {
            return None;
        }
        self.manners().ok()
    }

    /// Lets the user's hook refuse each branch that is about to be rebased.
    pub(super) fn ask_before_rewriting(&mut self) -> Result<(), ExecuteError> {
        const HOOK: &str = "pre-rebase";
        let rewrites: Vec<_> = self.journal.plan.steps.iter().filter_map(rewrite).collect();
        if rewrites.is_empty() || !self.manners.as_ref().is_some_and(|manners| manners.has_hook(HOOK)) {
            return Ok(());
        }
        let index = index_path(&self.repo.paths.git_dir);
        let head = self.journal.worktree.as_ref().map(|worktree| &worktree.head);
        for (branch, _, onto) in rewrites {
            let upstream = match onto {
                Place::Object(commit) => commit.to_string(),
                Place::TipOf(parent) => parent.to_string(),
            };
            let mut arguments = vec![OsString::from(upstream)];
            // Git names the branch only if another one is checked out.
            if head != Some(&HeadValue::Branch(branch.clone())) {
                arguments.push(branch.to_string().into());
            }
            self.git.run_hook(HOOK, &arguments, &index)?;
        }
        Ok(())
    }

    /// Signs the commits that were made so far, if the user signs.
    pub(super) fn sign(&mut self) -> Result<(), ExecuteError> {
        let rewrites: Vec<_> = self.journal.plan.steps.iter().filter_map(rewrite).collect();
        let ready = |branch: &BranchName| {
            self.journal.tips.contains_key(branch)
                && !self.journal.resolved.contains(branch)
                && !self.journal.signed.contains(branch)
        };
        let ready: Vec<(BranchName, usize)> = rewrites
            .into_iter()
            .filter(|(branch, _, _)| ready(branch))
            .map(|(branch, commits, _)| (branch.clone(), self.journal.remaining(branch, commits).len()))
            .collect();
        if ready.is_empty() || self.manners()?.sign == Sign::No {
            return Ok(());
        }
        self.picker.flush(&self.git)?;
        self.made_by_git = true;
        let mut signed: BTreeMap<Oid, Oid> = BTreeMap::new();
        for (branch, count) in ready {
            let tip = self.journal.tips[&branch];
            for (commit, raw) in self.newest(tip, count)?.into_iter().rev() {
                let parents = raw.parents.iter().map(|parent| *signed.get(parent).unwrap_or(parent)).collect();
                let (tree, message) = (raw.tree, raw.message.clone());
                let new = NewCommit { tree, parents, message, authored_by: Some(&raw), sign: Sign::Yes };
                signed.insert(commit, self.git.commit_tree(new)?);
            }
            self.journal.tips.insert(branch.clone(), *signed.get(&tip).unwrap_or(&tip));
            self.journal.signed.insert(branch);
        }
        Ok(())
    }

    /// So many commits down from a tip, the newest first.
    pub(super) fn newest(&self, tip: Oid, count: usize) -> Result<Vec<(Oid, RawCommit)>, ExecuteError> {
        let (mut at, mut commits) = (tip, Vec::new());
        for _ in 0..count {
            let raw = self.repo.with_objects(|objects| objects.commit(at))?;
            let below = raw.parents.first().copied();
            commits.push((at, raw));
            match below {
                Some(below) => at = below,
                None => break,
            }
        }
        Ok(commits)
    }

    /// Which commits took the place of which, oldest first; git itself tells of those of its own rebase.
    fn replaced(&self, cause: Cause) -> Result<Vec<(Oid, Oid)>, ExecuteError> {
        let mut pairs = Vec::new();
        for step in &self.journal.plan.steps {
            match (cause, step) {
                (Cause::Rebase, Step::Rewrite { branch, commits, .. }) if !self.journal.resolved.contains(branch) => {
                    let commits = self.journal.remaining(branch, commits);
                    let new = self.newest(self.journal.tips[branch], commits.len())?;
                    pairs.extend(commits.into_iter().zip(new.into_iter().rev().map(|(commit, _)| commit)));
                }
                (
                    Cause::Rebase,
                    Step::Derive {
                        branch,
                        how: Derivation::Squash { commits, .. } | Derivation::Rest { commits, .. },
                        ..
                    },
                ) => {
                    pairs.extend(commits.iter().map(|commit| (*commit, self.journal.tips[branch])));
                }
                (
                    Cause::Amend,
                    Step::Commit { branch, how: CommitMode::Amend(old) | CommitMode::AmendElsewhere(old), .. },
                ) => pairs.push((*old, self.journal.tips[branch])),
                _ => {}
            }
        }
        pairs.retain(|(old, new)| old != new);
        Ok(pairs)
    }

    /// Copies notes to where their commits went. Like git, nobody stops because that is not possible.
    pub(super) fn copy_notes(&mut self) {
        if !may_have_notes(&self.repo.paths.common_dir) {
            return;
        }
        let Some(manners) = self.manners_if_due() else { return };
        for cause in [Cause::Amend, Cause::Rebase] {
            let pairs = self.replaced(cause).unwrap_or_default();
            if !pairs.is_empty() {
                let _ = self.git.copy_notes(&manners, cause, &pairs, self.notes);
            }
        }
    }

    pub(super) fn run_post_rewrite(&mut self) {
        let Some(manners) = self.manners_if_due() else { return };
        if !manners.has_hook("post-rewrite") {
            return;
        }
        for cause in [Cause::Amend, Cause::Rebase] {
            let pairs = self.replaced(cause).unwrap_or_default();
            let list = self.own_index().with_extension("rewritten");
            if !pairs.is_empty() && durable::write(&list, &lines(&pairs)).is_ok() {
                let _ = self.git.run_post_rewrite(&manners, cause, &list);
                let _ = durable::remove(&list);
            }
        }
    }

    /// Tells the hook that other files are checked out.
    pub(super) fn run_post_checkout(&mut self) {
        const HOOK: &str = "post-checkout";
        let moves = |step: &Step| matches!(step, Step::Switch { .. } | Step::Rewrite { .. });
        if !self.journal.plan.steps.iter().any(moves) {
            return;
        }
        let has_hook = self.manners_if_due().is_some_and(|manners| manners.has_hook(HOOK));
        let Some(before) = self.journal.worktree.as_ref().filter(|_| has_hook) else { return };
        let Ok((head, commit)) = self.head_commit() else { return };
        if head != before.head || commit != before.commit {
            let arguments = [before.commit.to_string(), commit.to_string(), "1".to_owned()].map(OsString::from);
            let _ = self.git.run_hook(HOOK, &arguments, &index_path(&self.repo.paths.git_dir));
        }
    }
}

/// Whether a step does something that git would not do without hooks, notes or signatures.
pub(super) fn has_manners(step: &Step) -> bool {
    matches!(step, Step::Rewrite { .. } | Step::Switch { .. } | Step::Commit { .. } | Step::Derive { .. })
}

fn rewrite(step: &Step) -> Option<(&BranchName, &Vec<Oid>, &Place)> {
    match step {
        Step::Rewrite { branch, commits, onto, .. } => Some((branch, commits, onto)),
        _ => None,
    }
}
