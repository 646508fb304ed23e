//! `submit`: restack, then one push, then the pull requests, then the links to them.

use std::collections::BTreeMap;

use lattice_model::branch::PrState;
use lattice_model::command::link::Relink;
use lattice_model::command::restack::{Reach, Restack};
use lattice_model::command::submit::{Open, Overwrite, Refresh, Submit, SubmitReach, link_to, whole_stack};
use lattice_model::event::Detail;
use lattice_model::gate::Refusal;
use lattice_model::host::{Draft, HostFacts, HostStacks, OverviewPlace, Pull, PullState, PullText};
use lattice_model::name::BranchName;
use lattice_model::plan::Hooks;
use lattice_model::snapshot::Snapshot;
use lattice_repo::ReadWorkingCopy;

use super::{Host, HostOutcome};
use crate::lifecycle::{Mode, Outcome};
use crate::{Engine, EngineError};

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct SubmitOptions {
    pub branch: Option<BranchName>,
    pub reach: SubmitReach,
    pub draft: Option<Draft>,
    pub overwrite: Overwrite,
    pub open: Open,
    pub refresh: Refresh,
    pub reviewers: Vec<String>,
    pub restack: RestackFirst,
    pub hooks: Hooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestackFirst {
    Yes,
    No,
}

impl Engine {
    /// Pushes what changed and opens or updates pull requests.
    ///
    /// `edit` may change what a new pull request says, or refuse: then nothing is pushed.
    pub fn submit(
        &self,
        mode: &Mode,
        options: &SubmitOptions,
        edit: impl Fn(&BranchName, PullText) -> Result<PullText, Refusal>,
    ) -> Result<HostOutcome, EngineError> {
        let host = self.host()?;
        let request = |facts| Submit {
            branch: options.branch.clone(),
            reach: options.reach,
            draft: options.draft,
            overwrite: options.overwrite,
            open: options.open,
            refresh: options.refresh,
            reviewers: options.reviewers.clone(),
            overview: self.overview_place(),
            hooks: options.hooks,
            host: facts,
        };
        if let Some(bundle) = self.blocked(&request(host.offline_facts()))? {
            return Ok(HostOutcome::gated(bundle));
        }
        self.one_repository(&host)?;
        self.check_restacked(&host, options)?;
        let before = match (options.restack, mode) {
            (RestackFirst::Yes, Mode::Execute | Mode::DryRun) => Some(self.restack_for(options, mode)?),
            (RestackFirst::Yes, Mode::ExecuteExactly(_)) | (RestackFirst::No, _) => None,
        };
        if let Some(outcome @ (Outcome::Paused(_) | Outcome::Gated(_))) = before {
            return Ok(HostOutcome { before: None, outcome, pulls: BTreeMap::new() });
        }
        match (before, self.push_and_ask(mode, options, &host, (request, edit))) {
            (before, Ok((outcome, pulls))) => {
                let before = before.filter(|before| !matches!(before, Outcome::Nothing { .. }));
                Ok(HostOutcome { before, outcome, pulls })
            }
            (Some(done @ Outcome::Done { .. }), Err(source)) => {
                Err(EngineError::After { done: Box::new(done), source: Box::new(source) })
            }
            (_, Err(source)) => Err(source),
        }
    }

    fn push_and_ask(
        &self,
        mode: &Mode,
        options: &SubmitOptions,
        host: &Host,
        (request, edit): (impl Fn(HostFacts) -> Submit, impl Fn(&BranchName, PullText) -> Result<PullText, Refusal>),
    ) -> Result<(Outcome, BTreeMap<BranchName, Pull>), EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        let Some(start) = options.branch.clone().or_else(|| snapshot.head.branch().cloned()) else {
            return Ok((Outcome::Nothing { plan: empty() }, BTreeMap::new()));
        };
        let stack = whole_stack(&snapshot, &start);
        let mut facts = self.facts(host, &snapshot, &stack)?;
        facts.private = self.private(host, &snapshot, super::bases(&snapshot, &stack))?;
        facts.stacks = match options.reach {
            SubmitReach::Downstack | SubmitReach::Stack => host.stacks(&facts, &stack)?,
            SubmitReach::Alone => HostStacks::NotKept,
        };
        for branch in request(facts.clone()).branches(&snapshot) {
            if facts.pulls.get(&branch).is_none_or(|pull| pull.state != PullState::Open) {
                let text = edit(&branch, self.pull_text(&snapshot, &branch)?)?;
                facts.texts.insert(branch.clone(), text);
            }
        }
        let mut pulls = facts.pulls.clone();
        let outcome = self.run_then(
            mode,
            (ReadWorkingCopy::No, Detail::default()),
            |_, _: &Snapshot| Ok(request(facts)),
            |lock, plan| self.perform(host, lock, plan, &mut pulls),
        )?;
        if let Outcome::Done { .. } | Outcome::Nothing { .. } = outcome
            && *mode != Mode::DryRun
        {
            self.relink(host, "submit", &pulls)?;
        }
        Ok((outcome, pulls))
    }

    /// Pushes one branch for a sprite, and opens a pull request with this text if there is to be one.
    pub fn submit_alone(
        &self,
        branch: &BranchName,
        pull: Option<(PullText, Draft)>,
    ) -> Result<HostOutcome, EngineError> {
        let options = SubmitOptions {
            branch: Some(branch.clone()),
            reach: SubmitReach::Alone,
            draft: pull.as_ref().map(|(_, draft)| *draft),
            overwrite: Overwrite::Never,
            open: if pull.is_some() { Open::Missing } else { Open::None },
            refresh: Refresh::Changed,
            reviewers: Vec::new(),
            restack: RestackFirst::No,
            hooks: Hooks::Run,
        };
        self.submit(&Mode::Execute, &options, |_, text| Ok(pull.as_ref().map_or(text, |(wanted, _)| wanted.clone())))
    }

    /// Nothing is restacked onto commits of the trunk with which it could not be submitted.
    fn check_restacked(&self, host: &Host, options: &SubmitOptions) -> Result<(), EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        let start = options.branch.as_ref().or(snapshot.head.branch());
        let (Some(start), Some((trunk, tip)), RestackFirst::Yes) = (start, snapshot.trunk(), options.restack) else {
            return Ok(());
        };
        let moves = |branch: &BranchName| {
            snapshot.metadata_of(branch).is_some_and(|(metadata, _)| !metadata.freeze.is_frozen())
        };
        let mut bases = super::bases(&snapshot, &whole_stack(&snapshot, start));
        bases.retain(|(branch, _)| moves(branch));
        let moved = bases.iter().map(|(branch, _)| (branch.clone(), tip)).collect();
        let mut facts = host.offline_facts();
        facts.private = self.private(host, &snapshot, moved)?;
        let Some(branch) = facts.private.first() else { return Ok(()) };
        let refused = facts.check_public(branch, trunk);
        let is_private_now = !self.private(host, &snapshot, bases)?.is_empty();
        Ok(refused.map_err(|refusal| match is_private_now {
            true => refusal,
            false => refusal.hint("or leave it where it stands: lattice submit --no-restack"),
        })?)
    }

    fn restack_for(&self, options: &SubmitOptions, mode: &Mode) -> Result<Outcome, EngineError> {
        let reach = match options.reach {
            SubmitReach::Downstack | SubmitReach::Alone => Reach::Downstack,
            SubmitReach::Stack => Reach::Stack,
        };
        let (branch, hooks) = (options.branch.clone(), options.hooks);
        self.run(mode, ReadWorkingCopy::No, |_, _| Ok(Restack::new(branch, reach, hooks)))
    }

    pub(super) fn overview_place(&self) -> OverviewPlace {
        match self.settings().forge.overview.as_str() {
            "comment" => OverviewPlace::Comment,
            "off" => OverviewPlace::Off,
            _ => OverviewPlace::Body,
        }
    }

    /// Writes what the host says now of a pull request that a command changed, if a branch here is linked to it.
    pub fn relink_changed(&self, host: &Host, command: &'static str, number: u64) -> Result<(), EngineError> {
        let pull = host.wait(host.forge()?.pull(number))?;
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        let linked = snapshot.tracked().find_map(|(metadata, _)| match &metadata.pr {
            PrState::Linked { url, .. } if *url == pull.url => Some(metadata.name.clone()),
            PrState::Linked { .. } | PrState::None {} => None,
        });
        match linked {
            Some(branch) => self.relink(host, command, &[(branch, pull)].into()).map(drop),
            None => Ok(()),
        }
    }

    /// Writes what the host said into the cached part of metadata: an operation of its own.
    pub(super) fn relink(
        &self,
        host: &Host,
        command: &'static str,
        pulls: &BTreeMap<BranchName, Pull>,
    ) -> Result<Outcome, EngineError> {
        let links = pulls.iter().map(|(branch, pull)| (branch.clone(), link_to(&host.reading, pull))).collect();
        self.run(&Mode::Execute, ReadWorkingCopy::No, |_, _| Ok(Relink { command, links }))
    }
}

fn empty() -> lattice_model::plan::Plan {
    lattice_model::plan::Plan::new("submit", Hooks::Run)
}
