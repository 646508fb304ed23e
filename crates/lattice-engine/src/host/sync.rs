//! `sync`: fetch, then trunk and what landed, then restack, then the links: operations in a row.

use std::collections::{BTreeMap, BTreeSet};

use lattice_model::command::restack::{Reach, Restack};
use lattice_model::command::sync::{Fetch, Sync, TrunkRelation};
use lattice_model::event::Detail;
use lattice_model::gate::RepairBundle;
use lattice_model::host::{HostFacts, Pull, PullState};
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::Hooks;
use lattice_model::snapshot::Snapshot;
use lattice_repo::ReadWorkingCopy;

use super::submit::RestackFirst;
use super::{Host, HostOutcome};
use crate::lifecycle::{Mode, Outcome};
use crate::{Engine, EngineError};

#[derive(Debug, Clone, Copy)]
pub struct SyncOptions {
    pub restack: RestackFirst,
    pub hooks: Hooks,
}

/// What came of it.
#[derive(Debug)]
pub struct Synced {
    /// Each operation that did something or stopped, in order.
    pub outcomes: Vec<Outcome>,
    pub pulls: BTreeMap<BranchName, Pull>,
    /// Branches of which everything is in the trunk and that are still here.
    pub landed: Vec<BranchName>,
    /// Branches that have commits on the remote which were never here, parents first.
    pub theirs: Vec<BranchName>,
    /// What stopped it. All that `outcomes` says was done before.
    pub end: Result<(), EngineError>,
}

impl Engine {
    /// Brings the repository up to date with its remote. `choose` picks which landed branches are deleted.
    pub fn sync(
        &self,
        mode: &Mode,
        options: SyncOptions,
        choose: impl FnOnce(&[BranchName]) -> BTreeSet<BranchName>,
    ) -> Synced {
        let (outcomes, landed, theirs) = (Vec::new(), Vec::new(), Vec::new());
        let mut synced = Synced { outcomes, pulls: BTreeMap::new(), landed, theirs, end: Ok(()) };
        synced.end = self.sync_parts(mode, options, choose, &mut synced);
        synced
    }

    fn sync_parts(
        &self,
        mode: &Mode,
        options: SyncOptions,
        choose: impl FnOnce(&[BranchName]) -> BTreeSet<BranchName>,
        synced: &mut Synced,
    ) -> Result<(), EngineError> {
        let host = self.host()?;
        if let Some(bundle) = self.blocked(&Sync::probe(host.offline_facts(), options.hooks))? {
            synced.stops(Outcome::Gated(bundle));
            return Ok(());
        }
        if synced.stops(self.fetch(&host, mode, "sync")?) {
            return Ok(());
        }
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        let tracked: Vec<_> = snapshot.tracked().map(|(metadata, _)| metadata.name.clone()).collect();
        let facts = self.facts(&host, &snapshot, &tracked)?;
        synced.pulls.clone_from(&facts.pulls);
        let theirs = |branch: &BranchName| facts.heads.contains_key(branch) && !facts.ours.contains(branch);
        synced.theirs = snapshot.graph().topological().into_iter().filter(theirs).collect();
        let trunk = self.trunk_relation(&host, &snapshot)?;
        let landed = self.landed(&snapshot, &facts, trunk)?;
        let whole = |(branch, count): (&BranchName, &usize)| {
            let own = snapshot.position(branch).map_or(0, |position| position.commits.len());
            (*count > 0 && *count >= own).then(|| branch.clone())
        };
        synced.landed = landed.iter().filter_map(whole).collect();
        synced.theirs.retain(|branch| !synced.landed.contains(branch));
        let delete = if *mode == Mode::Execute { choose(&synced.landed) } else { BTreeSet::new() };
        let request = Sync { trunk, landed, delete, hooks: options.hooks, host: facts };
        if synced.stops(self.run(mode, ReadWorkingCopy::No, |_, _| Ok(request))?) || *mode == Mode::DryRun {
            return Ok(());
        }
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        synced.landed.retain(|branch| snapshot.tip(branch).is_some());
        if options.restack == RestackFirst::Yes && self.restack_all(&snapshot, options.hooks, synced)? {
            return Ok(());
        }
        let relinked = self.relink(&host, "sync", &synced.pulls.clone())?;
        synced.stops(relinked);
        Ok(())
    }

    /// An operation of its own that moves remote-tracking refs only.
    pub(super) fn fetch(&self, host: &Host, mode: &Mode, command: &'static str) -> Result<Outcome, EngineError> {
        let mut request = Fetch { command, host: host.offline_facts() };
        if let Some(bundle) = self.blocked(&request)? {
            return Ok(Outcome::Gated(RepairBundle { command, ..bundle }));
        }
        request.host.access = self.access(host)?;
        let mut none = BTreeMap::new();
        self.run_then(
            mode,
            (ReadWorkingCopy::No, Detail::default()),
            |_, _: &Snapshot| Ok(request),
            |lock, plan| self.perform(host, lock, plan, &mut none),
        )
    }

    fn trunk_relation(&self, host: &Host, snapshot: &Snapshot) -> Result<TrunkRelation, EngineError> {
        let Some((trunk, here)) = snapshot.trunk() else { return Ok(TrunkRelation::NothingNew) };
        let there = self.repo.tracking(host.reading.name())?.get(trunk).copied();
        match there.filter(|there| *there != here) {
            None => Ok(TrunkRelation::NothingNew),
            Some(there) if self.repo.is_ancestor(here, there)? => Ok(TrunkRelation::Ahead(there)),
            Some(there) if self.repo.is_ancestor(there, here)? => Ok(TrunkRelation::NothingNew),
            Some(there) => Ok(TrunkRelation::Diverged(there)),
        }
    }

    /// How much of each branch the trunk has, by content; parents first, since a branch cannot land before its parent.
    fn landed(
        &self,
        snapshot: &Snapshot,
        facts: &HostFacts,
        relation: TrunkRelation,
    ) -> Result<BTreeMap<BranchName, usize>, EngineError> {
        let mut landed = BTreeMap::new();
        let Some((trunk, here)) = snapshot.trunk() else { return Ok(landed) };
        let tip = match relation {
            TrunkRelation::NothingNew => here,
            TrunkRelation::Ahead(there) | TrunkRelation::Diverged(there) => there,
        };
        let mut whole: BTreeSet<BranchName> = BTreeSet::new();
        for branch in snapshot.graph().topological() {
            let (Some((metadata, _)), Some(position)) = (snapshot.metadata_of(&branch), snapshot.position(&branch))
            else {
                continue;
            };
            let below = metadata.parent.name();
            let commits: Vec<Oid> = position.commits.into_iter().rev().collect();
            if below != trunk && !whole.contains(below) {
                continue;
            }
            if commits.is_empty() {
                // All that the branch ever had of its own is in the trunk; one that never had anything is just new.
                let at = snapshot.tip(&branch).unwrap_or(metadata.base);
                if metadata.base != at && self.repo.is_ancestor(at, tip)? {
                    whole.insert(branch.clone());
                    landed.insert(branch, 1);
                }
                continue;
            }
            let said = facts.pulls.get(&branch).is_some_and(|pull| {
                pull.state == PullState::Merged && pull.base == trunk.as_str() && pull.head_at == snapshot.tip(&branch)
            });
            let count = if said { commits.len() } else { self.repo.landed(tip, &commits)? };
            if count == commits.len() {
                whole.insert(branch.clone());
            }
            if count > 0 {
                landed.insert(branch, count);
            }
        }
        Ok(landed)
    }

    /// Restacks every stack but what has landed. Where there are several, one that conflicts stays as it is; true if the
    /// only one stops at a conflict.
    fn restack_all(&self, snapshot: &Snapshot, hooks: Hooks, synced: &mut Synced) -> Result<bool, EngineError> {
        let landed: BTreeSet<_> = synced.landed.iter().cloned().collect();
        let movable = snapshot.tracked().map(|(metadata, _)| metadata).filter(|metadata| !metadata.freeze.is_frozen());
        let mut names = movable.map(|metadata| &metadata.name).filter(|name| !landed.contains(*name));
        if !names.any(|name| snapshot.needs_restack(name)) {
            return Ok(false);
        }
        let trunk = snapshot.settings.trunk.clone();
        let request = Restack { landed, ..Restack::new(trunk, Reach::Upstack, hooks) };
        Ok(synced.stops(self.run(&Mode::Execute, ReadWorkingCopy::No, |_, _| Ok(request))?))
    }
}

impl Synced {
    /// Takes an outcome in; true if nothing more may follow.
    fn stops(&mut self, outcome: Outcome) -> bool {
        let stops = matches!(outcome, Outcome::Paused(_) | Outcome::Gated(_) | Outcome::Differs { .. });
        self.outcomes.push(outcome);
        stops
    }
}

impl HostOutcome {
    pub(super) fn gated(bundle: lattice_model::gate::RepairBundle) -> Self {
        Self { before: None, outcome: Outcome::Gated(bundle), pulls: BTreeMap::new() }
    }
}
