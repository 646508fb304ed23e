//! Rewrites branches in memory: without git where comparing trees is enough, else as many as possible with one
//! process.

use std::collections::{BTreeMap, BTreeSet};

use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::{Place, Step};

use crate::defect::Defect;
use crate::git::picker::{AHEAD, Pick};
use crate::git::rewrite::{Picked, Replayed};

use crate::format::journal::{DropReason, Dropped};

use super::conflicts::Conflict;
use super::{ExecuteError, Executor};

/// A branch's own commits, from the lowest, and where they go.
#[derive(Debug, Clone)]
pub(super) struct Rewrite {
    pub(super) branch: BranchName,
    pub(super) tip: Oid,
    pub(super) fork: Oid,
    pub(super) commits: Vec<Oid>,
    pub(super) onto: Place,
}

pub(super) enum Outcome {
    Done,
    Conflict { rewrite: Rewrite, onto: Oid },
}

/// Whether what git's replay made can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    All,
    /// A branch has no new tip, or a commit changes nothing any more and has to be dropped.
    NotAll,
}

impl Executor<'_> {
    /// Computes the new tip of every branch that has none yet, until one conflicts.
    pub(super) fn rewrite_remaining(&mut self) -> Result<Outcome, ExecuteError> {
        loop {
            self.pick_without_git()?;
            let remaining = self.remaining();
            let Some(first) = remaining.first() else { return Ok(Outcome::Done) };
            let onto = self.place(&first.onto)?;
            self.made_by_git = true;
            if self.picker.amends() {
                // Git's own replay knows nothing of what is absorbed.
                match self.pick_all(remaining)? {
                    Some(conflict) => return Ok(conflict),
                    None => continue,
                }
            }
            let group = self.group(&remaining, onto)?;
            let forks: BTreeSet<_> =
                group.iter().filter(|rewrite| self.is_root(rewrite, &group)).map(|r| r.fork).collect();
            let branches: Vec<_> = group.iter().map(|rewrite| rewrite.branch.clone()).collect();
            let forks: Vec<_> = forks.into_iter().collect();
            self.picker.flush(&self.git)?;
            match self.git.replay(onto, &forks, &branches)? {
                Replayed::Done(tips) => {
                    if self.take(tips, &group)? == Taken::NotAll
                        && let Some(conflict) = self.pick_all(group)?
                    {
                        return Ok(conflict);
                    }
                }
                Replayed::Conflict if group.len() > 1 => {
                    if let Some(conflict) = self.one_by_one(group)? {
                        return Ok(conflict);
                    }
                }
                Replayed::Conflict => return Ok(Outcome::Conflict { rewrite: first.clone(), onto }),
                Replayed::Unsupported => {
                    if let Some(conflict) = self.pick_all(remaining)? {
                        return Ok(conflict);
                    }
                }
            }
        }
    }

    /// Computes new tips, from the first branch on, as far as no file was changed on both sides.
    fn pick_without_git(&mut self) -> Result<(), ExecuteError> {
        let remaining = self.remaining();
        let ahead: Vec<_> = remaining.iter().flat_map(|rewrite| rewrite.commits.iter().copied()).collect();
        let mut taken = 0;
        for rewrite in remaining {
            let mut tip = self.place(&rewrite.onto)?;
            let mut dropped = Vec::new();
            for commit in &rewrite.commits {
                if taken % AHEAD == 0 {
                    self.repo.with_objects(|objects| self.picker.read_ahead(objects, &ahead[taken..]))?;
                }
                taken += 1;
                let committer = self.committer()?;
                let pick = Pick { commit: *commit, onto: tip, committer: &committer };
                let picked = self.repo.with_objects(|objects| self.picker.pick(objects, pick))?;
                let Some(new) = picked else { return Ok(()) };
                if new == tip {
                    dropped.push(*commit);
                }
                tip = new;
            }
            self.arrived(&rewrite.branch, tip, dropped)?;
            if self.picker.is_large() {
                self.picker.flush(&self.git)?;
            }
        }
        Ok(())
    }

    /// Notes the new tip of a branch, and what was dropped on the way.
    fn arrived(&mut self, branch: &BranchName, tip: Oid, dropped: Vec<Oid>) -> Result<(), ExecuteError> {
        self.journal.tips.insert(branch.clone(), tip);
        for commit in dropped {
            let subject = self.repo.with_objects(|objects| objects.commit(commit))?.subject();
            self.journal.dropped.push(Dropped {
                branch: branch.clone(),
                commit,
                subject,
                because: DropReason::BelowHasIt,
            });
        }
        Ok(())
    }

    /// `Name <mail> seconds zone` of the user, the same for all commits of the operation.
    pub(super) fn committer(&mut self) -> Result<String, ExecuteError> {
        if let Some(committer) = &self.committer {
            return Ok(committer.clone());
        }
        Ok(self.committer.insert(self.git.committer()?).clone())
    }

    fn remaining(&self) -> Vec<Rewrite> {
        let drops = usize::from(self.git.has(Defect::CommitDropped));
        let out = self.left_out();
        let waits = |branch: &BranchName| !self.journal.tips.contains_key(branch) && !out.contains(branch);
        let step = |step: &Step| match step {
            Step::Rewrite { branch, tip, fork, commits, onto } if waits(branch) => Some(Rewrite {
                branch: branch.clone(),
                tip: *tip,
                fork: *fork,
                commits: commits[..commits.len().saturating_sub(drops)].to_vec(),
                onto: onto.clone(),
            }),
            _ => None,
        };
        self.journal.plan.steps.iter().filter_map(step).collect()
    }

    /// Where a place is, now that earlier steps have results.
    pub(super) fn place(&self, place: &Place) -> Result<Oid, ExecuteError> {
        match place {
            Place::Object(oid) => Ok(*oid),
            Place::TipOf(branch) => self.tip_after(branch),
        }
    }

    /// The tip that a branch has after the plan.
    fn tip_after(&self, branch: &BranchName) -> Result<Oid, ExecuteError> {
        if let Some(tip) = self.journal.tips.get(branch) {
            return Ok(*tip);
        }
        let created = self.journal.plan.steps.iter().find_map(|step| match step {
            Step::SetRef { name, to: Some(Place::Object(oid)), .. } if *name == branch.branch_ref() => Some(*oid),
            _ => None,
        });
        created.ok_or_else(|| ExecuteError::JournalUnusable { reason: format!("{branch} has no new tip") })
    }

    /// The branches that one process can move: those that go to the same place, and those that
    /// stand directly on one of them.
    fn group(&self, remaining: &[Rewrite], onto: Oid) -> Result<Vec<Rewrite>, ExecuteError> {
        let mut group: Vec<Rewrite> = Vec::new();
        let mut own: BTreeSet<Oid> = BTreeSet::new();
        let mut below: BTreeSet<Oid> = BTreeSet::new();
        for rewrite in remaining.iter().filter(|rewrite| !rewrite.commits.is_empty()) {
            let follows = self.follows(rewrite, &group);
            let same_place = match &rewrite.onto {
                Place::Object(at) => *at == onto,
                Place::TipOf(branch) => self.journal.tips.get(branch) == Some(&onto),
            };
            // A fork that is another branch's own commit would hide that commit from the process.
            let hides = own.contains(&rewrite.fork) || rewrite.commits.iter().any(|commit| below.contains(commit));
            if follows || (same_place && !hides) {
                own.extend(&rewrite.commits);
                if !follows {
                    below.insert(rewrite.fork);
                }
                group.push(rewrite.clone());
            }
        }
        Ok(group)
    }

    fn follows(&self, rewrite: &Rewrite, group: &[Rewrite]) -> bool {
        let Place::TipOf(parent) = &rewrite.onto else { return false };
        group.iter().any(|below| below.branch == *parent && below.tip == rewrite.fork)
    }

    fn is_root(&self, rewrite: &Rewrite, group: &[Rewrite]) -> bool {
        !self.follows(rewrite, group)
    }

    fn take(&mut self, tips: BTreeMap<BranchName, Oid>, group: &[Rewrite]) -> Result<Taken, ExecuteError> {
        if group.iter().any(|rewrite| !tips.contains_key(&rewrite.branch)) {
            self.check_unmoved()?;
            return Ok(Taken::NotAll);
        }
        for rewrite in group {
            let below = match &rewrite.onto {
                Place::TipOf(branch) => tips.get(branch).copied(),
                Place::Object(_) => None,
            };
            let below = below.map_or_else(|| self.place(&rewrite.onto), Ok)?;
            if self.has_emptied(rewrite, below, tips[&rewrite.branch])? {
                return Ok(Taken::NotAll);
            }
        }
        self.journal.tips.extend(tips);
        Ok(Taken::All)
    }

    /// Whether one of the commits that git made of a branch changes nothing, where the one it was made of did. Newer
    /// versions of git drop such a commit.
    fn has_emptied(&self, rewrite: &Rewrite, below: Oid, tip: Oid) -> Result<bool, ExecuteError> {
        let tree_of = |commit: Oid| self.repo.with_objects(|objects| objects.tree_of(commit));
        let made = self.newest(tip, rewrite.commits.len())?;
        if made.iter().any(|(commit, _)| *commit == below) {
            return Ok(true);
        }
        let trees: Vec<_> = made.iter().map(|(_, raw)| raw.tree).chain([tree_of(below)?]).collect();
        for (old, trees) in rewrite.commits.iter().rev().zip(trees.windows(2)) {
            if trees[0] != trees[1] {
                continue;
            }
            let old = self.repo.with_objects(|objects| objects.commit(*old))?;
            if let Some(parent) = old.parents.first()
                && tree_of(*parent)? != old.tree
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A replay that prints nothing may have done something else instead: newer versions of git move the refs
    /// themselves by default. Otherwise it found a name ambiguous, such as `refs/heads/a` beside a branch with
    /// just that name.
    fn check_unmoved(&self) -> Result<(), ExecuteError> {
        let read = self.repo.read_refs()?;
        let touched = self.journal.plan.touched_refs();
        let moved = touched.into_iter().filter(|touched| read.refs.get(&touched.name).copied() != touched.old);
        let names: Vec<_> = moved.map(|touched| touched.name).collect();
        if names.is_empty() { Ok(()) } else { Err(ExecuteError::GitMovedRefs { names }) }
    }

    /// Finds the branch that conflicts; the others are moved.
    fn one_by_one(&mut self, group: Vec<Rewrite>) -> Result<Option<Outcome>, ExecuteError> {
        for rewrite in group {
            let onto = self.place(&rewrite.onto)?;
            match self.git.replay(onto, &[rewrite.fork], std::slice::from_ref(&rewrite.branch))? {
                Replayed::Done(tips) => {
                    if self.take(tips, std::slice::from_ref(&rewrite))? == Taken::NotAll
                        && let Some(conflict) = self.pick_all(vec![rewrite])?
                    {
                        return Ok(Some(conflict));
                    }
                }
                Replayed::Conflict | Replayed::Unsupported => return Ok(Some(Outcome::Conflict { rewrite, onto })),
            }
        }
        Ok(None)
    }

    /// The slow way for a git without `replay`, or a name that it does not understand: commit by commit.
    fn pick_all(&mut self, remaining: Vec<Rewrite>) -> Result<Option<Outcome>, ExecuteError> {
        for rewrite in remaining {
            let onto = self.place(&rewrite.onto)?;
            if self.pick_each(&rewrite, onto)?.is_some() {
                return Ok(Some(Outcome::Conflict { rewrite, onto }));
            }
        }
        Ok(None)
    }

    /// Applies the commits of a branch one by one, up to the first that conflicts.
    pub(super) fn pick_each(&mut self, rewrite: &Rewrite, onto: Oid) -> Result<Option<Conflict>, ExecuteError> {
        let committer = self.committer()?;
        let (mut tip, mut dropped) = (onto, Vec::new());
        for commit in &rewrite.commits {
            let pick = Pick { commit: *commit, onto: tip, committer: &committer };
            let (git, picker) = (&self.git, &mut self.picker);
            match self.repo.with_objects(|objects| git.pick(objects, picker, pick))? {
                Picked::Done(new) => {
                    if new == tip {
                        dropped.push(*commit);
                    }
                    tip = new;
                }
                Picked::Conflict(files) => {
                    return Ok(Some(Conflict { branch: rewrite.branch.clone(), commit: *commit, files }));
                }
            }
        }
        self.arrived(&rewrite.branch, tip, dropped)?;
        Ok(None)
    }
}
