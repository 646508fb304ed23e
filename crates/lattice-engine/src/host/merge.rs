//! `merge`: lands a stack from the bottom, bringing the rest along after each step.

use std::collections::BTreeSet;

use lattice_model::command::merge::{Merge, TrunkFollows};
use lattice_model::command::restack::{Reach, Restack};
use lattice_model::command::submit::{Open, Overwrite, Refresh, SubmitReach, whole_stack};
use lattice_model::command::sync::Sync;
use lattice_model::event::Detail;
use lattice_model::gate::{Command, Refusal, RepairBundle};
use lattice_model::host::AccessReading;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::Hooks;
use lattice_model::remote::MergeMethod;
use lattice_model::snapshot::Snapshot;
use lattice_repo::ReadWorkingCopy;

use super::submit::RestackFirst;
use super::{Host, SubmitOptions, SyncOptions};
use crate::lifecycle::{Mode, Outcome};
use crate::{Engine, EngineError};

#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// Land up to this branch; the current one if absent.
    pub branch: Option<BranchName>,
    pub method: MergeMethod,
    pub hooks: Hooks,
}

/// What landed, and where it stopped if it did.
#[derive(Debug)]
pub struct Merged {
    pub progress: Progress,
    /// What ended it: all is done, or something was in the way. What landed has landed even if that is an error.
    pub end: Result<Outcome, EngineError>,
}

/// Branches, lowest first.
#[derive(Debug, Default)]
pub struct Progress {
    /// What was to land, with the numbers of their pull requests, as soon as the host was asked.
    pub line: Vec<(BranchName, u64)>,
    pub landed: Vec<LandedPull>,
}

/// A pull request that landed, and what was done here and on the remote because of it.
#[derive(Debug)]
pub struct LandedPull {
    pub branch: BranchName,
    pub number: u64,
    pub then: Vec<Outcome>,
}

impl Engine {
    /// The branches that `merge` would land, lowest first.
    pub fn to_merge(&self, branch: Option<&BranchName>) -> Result<Vec<BranchName>, EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        let Some(top) = branch.or(snapshot.head.branch()) else { return Ok(Vec::new()) };
        let mut branches = snapshot.graph().downstack(top);
        branches.push(top.clone());
        Ok(branches)
    }

    /// Lands pull requests from the bottom up and stops at the first that does not land.
    pub fn merge(&self, mode: &Mode, options: &MergeOptions) -> Result<Merged, EngineError> {
        let branches = self.to_merge(options.branch.as_ref())?;
        if branches.is_empty() {
            return self.nothing_to_merge(options);
        }
        let mut progress = Progress::default();
        let end = self.merge_all(mode, options, &branches, &mut progress);
        Ok(Merged { progress, end })
    }

    fn merge_all(
        &self,
        mode: &Mode,
        options: &MergeOptions,
        branches: &[BranchName],
        progress: &mut Progress,
    ) -> Result<Outcome, EngineError> {
        let mut end = Outcome::Nothing { plan: lattice_model::plan::Plan::new(Merge::NAME, Hooks::Run) };
        for (at, branch) in branches.iter().enumerate() {
            let then = branches.get(at + 1..).unwrap_or_default();
            end = self.merge_one(mode, options, (branch, then), progress)?;
            if !matches!(end, Outcome::Done { .. }) {
                break;
            }
            let (_, number) = progress.line.get(at).expect("bug: what landed was in the line");
            let mut landed = LandedPull { branch: branch.clone(), number: *number, then: Vec::new() };
            let stopped = self.bring_along(options, branch, then.first(), &mut landed.then);
            progress.landed.push(landed);
            if let Some(stopped) = stopped? {
                return Ok(stopped);
            }
        }
        Ok(end)
    }

    /// HEAD is on no branch: because something is in the way, or because the user wants it so.
    fn nothing_to_merge(&self, options: &MergeOptions) -> Result<Merged, EngineError> {
        match self.blocked(&Sync::probe(self.host()?.offline_facts(), options.hooks))? {
            Some(bundle) => {
                let end = Outcome::Gated(RepairBundle { command: Merge::NAME, ..bundle });
                Ok(Merged { progress: Progress::default(), end: Ok(end) })
            }
            None => {
                Err(Refusal::new("no-current-branch", "HEAD is on no branch").hint("lattice checkout <branch>").into())
            }
        }
    }

    fn merge_one(
        &self,
        mode: &Mode,
        options: &MergeOptions,
        (branch, then): (&BranchName, &[BranchName]),
        progress: &mut Progress,
    ) -> Result<Outcome, EngineError> {
        let host = self.host()?;
        let (method, then) = (options.method, then.to_vec());
        let request = |trunk, host| Merge { branch: branch.clone(), then: then.clone(), method, trunk, host };
        if let Some(bundle) = self.blocked(&request(TrunkFollows::Forward, host.offline_facts()))? {
            return Ok(Outcome::Gated(bundle));
        }
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        let mut facts = self.facts(&host, &snapshot, &whole_stack(&snapshot, branch))?;
        facts.stacks = host.stacks(&facts, std::slice::from_ref(branch))?;
        facts.private = self.private(&host, &snapshot, super::bases(&snapshot, std::slice::from_ref(branch)))?;
        let trunk = self.trunk_follows(&host, &snapshot)?;
        if progress.line.is_empty() {
            let line = [branch].into_iter().chain(&then);
            progress.line = line.filter_map(|name| Some((name.clone(), facts.pulls.get(name)?.number))).collect();
        }
        let mut pulls = facts.pulls.clone();
        self.run_then(
            mode,
            (ReadWorkingCopy::No, Detail::default()),
            |_, _: &Snapshot| Ok(request(trunk, facts)),
            |lock, plan| self.perform(&host, lock, plan, &mut pulls),
        )
    }

    /// Whether the trunk here can follow the remote's. The remote is asked only if what was seen of it does not decide.
    fn trunk_follows(&self, host: &Host, snapshot: &Snapshot) -> Result<TrunkFollows, EngineError> {
        let Some((trunk, here)) = snapshot.trunk() else { return Ok(TrunkFollows::Forward) };
        let follows = |there: Oid| Ok::<_, EngineError>(there == here || self.repo.is_ancestor(here, there)?);
        if let Some(seen) = self.repo.tracking(host.reading.name())?.get(trunk)
            && follows(*seen)?
        {
            return Ok(TrunkFollows::Forward);
        }
        if self.access(host)? != AccessReading::Granted {
            return Ok(TrunkFollows::Forward);
        }
        match host.remote()?.commit_at(&trunk.branch_ref())? {
            Some(there) if !follows(there)? => Ok(TrunkFollows::Not { there }),
            Some(_) | None => Ok(TrunkFollows::Forward),
        }
    }

    /// Takes in what landed and puts the rest of the stack on top of it, here and on the remote.
    fn bring_along(
        &self,
        options: &MergeOptions,
        landed: &BranchName,
        next: Option<&BranchName>,
        done: &mut Vec<Outcome>,
    ) -> Result<Option<Outcome>, EngineError> {
        let sync = SyncOptions { restack: RestackFirst::Yes, hooks: options.hooks };
        let synced = self.sync(&Mode::Execute, sync, |found| {
            BTreeSet::from_iter(found.iter().filter(|branch| *branch == landed).cloned())
        });
        for outcome in synced.outcomes {
            if matches!(outcome, Outcome::Paused(_) | Outcome::Gated(_)) {
                return Ok(Some(outcome));
            }
            done.push(outcome);
        }
        synced.end?;
        let Some(next) = next else { return Ok(None) };
        if self.scan(ReadWorkingCopy::No)?.needs_restack(next) {
            // It conflicts, and was left out for the sake of other stacks. What is to land next cannot be.
            let request = Restack::new(Some(next.clone()), Reach::Upstack, options.hooks);
            return Ok(Some(self.run(&Mode::Execute, ReadWorkingCopy::No, |_, _| Ok(request))?));
        }
        let submit = SubmitOptions {
            branch: Some(next.clone()),
            reach: SubmitReach::Stack,
            draft: None,
            overwrite: Overwrite::Never,
            open: Open::None,
            refresh: Refresh::Changed,
            reviewers: Vec::new(),
            restack: RestackFirst::No,
            hooks: options.hooks,
        };
        let outcome = self.submit(&Mode::Execute, &submit, |_, text| Ok(text))?.outcome;
        Ok(match outcome {
            Outcome::Done { .. } | Outcome::Nothing { .. } => {
                done.push(outcome);
                None
            }
            Outcome::Paused(_) | Outcome::Gated(_) | Outcome::Planned { .. } | Outcome::Differs { .. } => Some(outcome),
        })
    }
}
