//! Conflicts that nobody is asked to resolve now: those that a dry run foresees, and those of one stack among many.

use std::collections::{BTreeMap, BTreeSet};

use lattice_model::id::{Oid, OpId};
use lattice_model::name::BranchName;
use lattice_model::plan::{Place, Plan, Step};
use lattice_model::settings::Settings;
use lattice_model::snapshot::Snapshot;
use lattice_model::time::Timestamp;

use crate::Repo;
use crate::format::journal::{Dropped, Journal};

use super::error::io_error;
use super::rewriting::{Outcome, Rewrite};
use super::{ExecuteError, Executor};

/// A branch whose commits do not apply to their new place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub branch: BranchName,
    /// The first of its commits that does not apply.
    pub commit: Oid,
    pub files: Vec<String>,
}

/// What a plan would run into.
#[derive(Debug, Clone, Default)]
pub struct Foresight {
    pub conflicts: Vec<Conflict>,
    /// Commits whose change is there already.
    pub dropped: Vec<Dropped>,
}

impl Repo {
    /// What a plan would run into, found in a folder that is gone afterwards.
    ///
    /// What stands on a branch that conflicts, or on a commit that is still to be made, is not looked at.
    pub fn foresee(&self, snapshot: &Snapshot, plan: &Plan, now: &Timestamp) -> Result<Foresight, ExecuteError> {
        let absorbs = plan.steps.iter().any(|step| matches!(step, Step::Fixup { .. }));
        if absorbs || !plan.steps.iter().any(|step| matches!(step, Step::Rewrite { .. })) {
            return Ok(Foresight::default());
        }
        let objects = self.objects();
        let folder = objects.join(format!("lattice-foresight-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("pack")).map_err(io_error("make room for a trial"))?;
        let trial = Self {
            git: self.git.with_objects_in(&folder, &objects),
            paths: self.paths.clone(),
            objects: Default::default(),
        };
        let op = OpId::of(plan.digest().as_str().as_bytes());
        let journal = Journal::new(snapshot, plan.clone(), (op, now.clone()));
        let found = Executor::new(&trial, journal, Settings::default(), now.clone()).foresight();
        drop(trial);
        // What is left of it is in nobody's way.
        let _ = std::fs::remove_dir_all(&folder);
        found
    }
}

impl Executor<'_> {
    fn foresight(mut self) -> Result<Foresight, ExecuteError> {
        while let Outcome::Conflict { rewrite, onto } = self.rewrite_remaining()? {
            self.note_conflict(&rewrite, onto)?;
        }
        Ok(Foresight { conflicts: self.conflicts, dropped: self.journal.dropped })
    }

    /// Remembers a conflict, so that the branch and what stands on it are left out from now on.
    pub(super) fn note_conflict(&mut self, rewrite: &Rewrite, onto: Oid) -> Result<(), ExecuteError> {
        // One by one they may apply after all.
        let found = self.pick_each(rewrite, onto)?;
        self.conflicts.extend(found);
        Ok(())
    }

    /// The lowest branch of each stack that conflicts, with the reason.
    pub(super) fn held_back(&self) -> BTreeMap<BranchName, String> {
        let below: BTreeMap<_, _> = self.journal.plan.steps.iter().filter_map(stands_on).collect();
        let mut held = BTreeMap::new();
        for conflict in &self.conflicts {
            let mut lowest = &conflict.branch;
            while let Some(next) = below.get(lowest) {
                lowest = next;
            }
            let (branch, files) = (&conflict.branch, conflict.files.join(", "));
            let reason = format!("{branch} conflicts in {files}; to resolve it: lattice restack {}", branch.word());
            held.entry(lowest.clone()).or_insert(reason);
        }
        held
    }

    /// Branches that get no new place now: those that conflict, and what stands on them or on what is yet to be made.
    pub(super) fn left_out(&self) -> BTreeSet<BranchName> {
        let mut out: BTreeSet<_> = self.conflicts.iter().map(|conflict| conflict.branch.clone()).collect();
        for step in &self.journal.plan.steps {
            match step {
                Step::Commit { branch, .. } | Step::Derive { branch, .. }
                    if !self.journal.tips.contains_key(branch) =>
                {
                    out.insert(branch.clone());
                }
                Step::Rewrite { branch, onto: Place::TipOf(below), .. } if out.contains(below) => {
                    out.insert(branch.clone());
                }
                _ => {}
            }
        }
        out
    }
}

/// A rewritten branch and the rewritten one below it.
fn stands_on(step: &Step) -> Option<(&BranchName, &BranchName)> {
    match step {
        Step::Rewrite { branch, onto: Place::TipOf(below), .. } => Some((branch, below)),
        _ => None,
    }
}
