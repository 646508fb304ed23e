//! `get`: fetch, then each branch of the stack from the lowest on.

use std::collections::BTreeMap;

use lattice_model::command::get::{Checkout, FETCHED, FreezeOnGet, Get, Relation, Replace};
use lattice_model::command::submit::link_to;
use lattice_model::gate::Refusal;
use lattice_model::host::{Pull, PullState};
use lattice_model::id::{Oid, OpId};
use lattice_model::name::{BranchName, RefName};
use lattice_model::plan::Hooks;
use lattice_model::snapshot::Snapshot;
use lattice_repo::ReadWorkingCopy;

use super::Host;
use crate::lifecycle::{Mode, Outcome};
use crate::{Engine, EngineError};

/// How deep a stack may be that is taken in from the top.
const DEPTH: usize = 200;

#[derive(Debug, Clone)]
pub struct GetOptions {
    /// A branch, or the number of a pull request.
    pub target: String,
    pub freeze: FreezeOnGet,
    pub checkout: Checkout,
    pub replace: Replace,
    pub hooks: Hooks,
}

/// What came of it: an outcome for each branch, lowest first.
#[derive(Debug)]
pub struct Got {
    pub branch: Option<BranchName>,
    pub outcomes: Vec<Outcome>,
    /// Branches whose own commits gave way, with the operations that did it, lowest first.
    pub replaced: Vec<(BranchName, OpId)>,
    /// What stopped it. All that `outcomes` says was done before.
    pub end: Result<(), EngineError>,
}

/// One branch to take in.
struct Wanted {
    branch: BranchName,
    base: BranchName,
    pull: Option<Pull>,
}

impl Engine {
    /// Takes a branch or pull request of the remote in, with what it stands on.
    pub fn get(&self, mode: &Mode, options: &GetOptions) -> Result<Got, EngineError> {
        let host = self.host()?;
        let mut got = Got { branch: None, outcomes: Vec::new(), replaced: Vec::new(), end: Ok(()) };
        match self.fetch(&host, mode, "get")? {
            Outcome::Gated(bundle) => {
                got.outcomes.push(Outcome::Gated(bundle));
                return Ok(got);
            }
            Outcome::Done { .. }
            | Outcome::Nothing { .. }
            | Outcome::Planned { .. }
            | Outcome::Differs { .. }
            | Outcome::Paused(_) => {}
        }
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        let chain = self.chain(&host, &snapshot, &options.target)?;
        got.branch = chain.first().map(|wanted| wanted.branch.clone());
        let (last, mut foreseen) = (chain.len(), BTreeMap::new());
        for (at, wanted) in chain.into_iter().rev().enumerate() {
            let checkout = if at + 1 == last { options.checkout } else { Checkout::No };
            match self.get_one(&host, (mode, options), (&wanted, checkout), &mut foreseen) {
                Ok((relation, outcome)) => {
                    if !got.take(wanted.branch, relation, outcome) {
                        break;
                    }
                }
                Err(error) => {
                    got.end = Err(error);
                    break;
                }
            }
        }
        Ok(got)
    }

    /// The branch and those below it that are not tracked here, or are copies that the remote has newer, topmost first.
    fn chain(&self, host: &Host, snapshot: &Snapshot, target: &str) -> Result<Vec<Wanted>, EngineError> {
        let trunk =
            snapshot.settings.trunk.clone().ok_or_else(|| Refusal::new("no-trunk", "no trunk is configured"))?;
        let there = self.repo.tracking(host.reading.name())?;
        let is_old = |branch: &BranchName| {
            is_copy(snapshot, branch) && there.get(branch).is_some_and(|there| Some(*there) != snapshot.tip(branch))
        };
        let mut chain: Vec<Wanted> = Vec::new();
        let mut next = Some(self.wanted(host, snapshot, &trunk, target)?);
        while let Some(wanted) = next {
            let below = wanted.base.clone();
            let is_here = snapshot.is_tracked(&below) && !is_old(&below);
            let known = below == trunk || is_here || chain.iter().any(|wanted| wanted.branch == below);
            chain.push(wanted);
            if known || chain.len() > DEPTH {
                break;
            }
            next = Some(self.wanted_branch(host, snapshot, &trunk, &below)?);
        }
        Ok(chain)
    }

    fn wanted(
        &self,
        host: &Host,
        snapshot: &Snapshot,
        trunk: &BranchName,
        target: &str,
    ) -> Result<Wanted, EngineError> {
        let Ok(number) = target.trim_start_matches('#').parse::<u64>() else {
            let branch = BranchName::new(target).map_err(|error| Refusal::new("bad-name", error.to_string()))?;
            return self.wanted_branch(host, snapshot, trunk, &branch);
        };
        let pull = host.wait(host.forge()?.pull(number))?;
        let name = match &pull.fork {
            // Somebody else's `main` must not become ours.
            Some(_) => format!("pr-{number}/{}", pull.head),
            None => pull.head.clone(),
        };
        let branch = BranchName::new(name).map_err(|error| Refusal::new("bad-name", error.to_string()))?;
        let base = BranchName::new(pull.base.clone()).unwrap_or_else(|_| trunk.clone());
        Ok(Wanted { branch, base, pull: Some(pull) })
    }

    fn wanted_branch(
        &self,
        host: &Host,
        snapshot: &Snapshot,
        trunk: &BranchName,
        branch: &BranchName,
    ) -> Result<Wanted, EngineError> {
        if branch == trunk {
            return Err(Refusal::new("is-trunk", format!("`{branch}` is the trunk")).hint("lattice sync").into());
        }
        let pull = host.wait(host.forge()?.pulls_of(std::slice::from_ref(branch)))?.remove(branch);
        let open = pull.as_ref().filter(|pull| pull.state == PullState::Open);
        let tracked = snapshot.metadata_of(branch).map(|(metadata, _)| metadata.parent.name().clone());
        let base = open.and_then(|pull| BranchName::new(pull.base.clone()).ok());
        Ok(Wanted { branch: branch.clone(), base: base.or(tracked).unwrap_or_else(|| trunk.clone()), pull })
    }

    fn get_one(
        &self,
        host: &Host,
        (mode, options): (&Mode, &GetOptions),
        (wanted, checkout): (&Wanted, Checkout),
        foreseen: &mut BTreeMap<BranchName, Oid>,
    ) -> Result<(Relation, Outcome), EngineError> {
        let at = self.fetched(host, mode, wanted)?;
        let link = wanted.pull.as_ref().map(|pull| link_to(&host.reading, pull));
        let mut relation = Relation::Absent;
        let outcome = self.run(mode, ReadWorkingCopy::No, |engine, snapshot| {
            let failed = |error: EngineError| Refusal::new("git-failed", error.to_string());
            let trunk = snapshot.settings.trunk.clone().unwrap_or_else(|| wanted.base.clone());
            // What a dry run would have taken in is not here, or not as it would be.
            let below = foreseen.get(&wanted.base).copied().or(snapshot.tip(&wanted.base));
            let parent = if below.is_some() { wanted.base.clone() } else { trunk };
            let below = below.or(snapshot.tip(&parent)).unwrap_or(at);
            let base = engine.repo.merge_base(below, at).ok().flatten().ok_or_else(|| {
                Refusal::new("unrelated-history", format!("`{}` shares no history with `{parent}`", wanted.branch))
            })?;
            relation = engine.relation(host, snapshot, (&wanted.branch, &parent, at)).map_err(failed)?;
            Ok(Get {
                branch: wanted.branch.clone(),
                at,
                relation,
                parent,
                base,
                freeze: options.freeze,
                replace: options.replace,
                checkout,
                link,
                hooks: options.hooks,
            })
        })?;
        if *mode == Mode::DryRun {
            foreseen.insert(wanted.branch.clone(), at);
        }
        Ok((relation, outcome))
    }

    /// Where the remote has the branch, with its commits here.
    fn fetched(&self, host: &Host, mode: &Mode, wanted: &Wanted) -> Result<Oid, EngineError> {
        if let Some(pull) = wanted.pull.as_ref().filter(|pull| pull.fork.is_some()) {
            // Hosts keep the heads of forks under a name of their own.
            let name = RefName::new(format!("refs/pull/{}/head", pull.number)).expect("a number is a valid component");
            let found = host.remote()?.commit_at(&name)?;
            return found.ok_or_else(|| Refusal::new("not-on-remote", format!("{name} is not on the remote")).into());
        }
        let there = match mode {
            // It fetched nothing that moves a ref, so what was seen of the remote may be old.
            Mode::DryRun => host.remote()?.commit_at(&wanted.branch.branch_ref())?,
            Mode::Execute | Mode::ExecuteExactly(_) => {
                self.repo.tracking(host.reading.name())?.get(&wanted.branch).copied()
            }
        };
        there.ok_or_else(|| {
            let what = format!("`{}` is not on `{}`", wanted.branch, host.reading.name());
            Refusal::new("not-on-remote", what).hint("was it deleted there, or pushed to another remote?").into()
        })
    }

    fn relation(
        &self,
        host: &Host,
        snapshot: &Snapshot,
        (branch, parent, at): (&BranchName, &BranchName, Oid),
    ) -> Result<Relation, EngineError> {
        let Some(here) = snapshot.tip(branch) else { return Ok(Relation::Absent) };
        if here == at || self.repo.is_ancestor(at, here)? {
            return Ok(Relation::Contains);
        }
        // A copy that is where the remote once had it has nothing of its own that could be lost. It follows once what it
        // stands on has.
        let follows = || -> Result<bool, EngineError> {
            let below = snapshot.tip(parent).filter(|_| !snapshot.is_trunk(parent));
            Ok(is_copy(snapshot, branch)
                && self.repo.was_at(host.reading.name(), branch, here)
                && below.map_or(Ok(true), |below| self.repo.is_ancestor(below, at))?)
        };
        Ok(match self.repo.is_ancestor(here, at)? || follows()? {
            true => Relation::Behind,
            false => Relation::Diverged,
        })
    }
}

impl Got {
    /// Takes an outcome in; false if nothing more may follow.
    fn take(&mut self, branch: BranchName, relation: Relation, outcome: Outcome) -> bool {
        if let (Relation::Diverged, Outcome::Done { op, .. }) = (relation, &outcome) {
            self.replaced.push((branch, op.clone()));
        }
        let goes_on = !matches!(outcome, Outcome::Gated(_) | Outcome::Differs { .. });
        self.outcomes.push(outcome);
        goes_on
    }
}

/// Whether a branch is somebody else's, and was taken in to be looked at.
fn is_copy(snapshot: &Snapshot, branch: &BranchName) -> bool {
    snapshot.metadata_of(branch).is_some_and(|(metadata, _)| metadata.freeze.reason() == Some(FETCHED))
}
