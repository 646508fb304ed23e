//! The way to a host: which remote, which forge, which token; and what is read there before planning.

mod connect;
mod get;
mod merge;
mod perform;
mod reader;
mod standing;
mod submit;
mod sync;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use lattice_forge::Forge;
use lattice_model::capability::Capability;
use lattice_model::gate::{Command, Gate, Refusal, RepairBundle, gate};
use lattice_model::host::{
    AccessReading, AuthReading, ForgeKind, HostFacts, HostStacks, Pull, PullState, RemoteReading,
};
use lattice_model::id::Oid;
use lattice_model::issue::Issue;
use lattice_model::name::BranchName;
use lattice_model::remote::GitRemote;
use lattice_model::snapshot::Snapshot;
use lattice_repo::Remote;

use crate::lifecycle::Outcome;
use crate::{Engine, EngineError};

pub use connect::{HostEnvironment, api_url, web_host};
pub use get::{GetOptions, Got};
pub use merge::{LandedPull, MergeOptions, Merged, Progress};
pub use reader::GitHubReader;
pub use submit::{RestackFirst, SubmitOptions};
pub use sync::{SyncOptions, Synced};

/// What a command that concerns a host led to.
#[derive(Debug)]
pub struct HostOutcome {
    /// What was done, or would be, as an operation of its own before.
    pub before: Option<Outcome>,
    pub outcome: Outcome,
    /// The pull requests that are known afterwards.
    pub pulls: BTreeMap<BranchName, Pull>,
}

/// How far the way to a host is known to lead.
#[derive(Debug)]
pub struct HostStanding {
    pub remote: RemoteReading,
    pub capabilities: BTreeSet<Capability>,
    pub issues: Vec<Issue>,
}

/// A remote with its forge.
pub struct Host {
    pub reading: RemoteReading,
    pub auth: AuthReading,
    parts: Option<Parts>,
    runtime: tokio::runtime::Runtime,
}

struct Parts {
    remote: Remote,
    forge: Arc<dyn Forge>,
    /// What only GitHub has.
    github: Option<connect::GitHubParts>,
}

impl Engine {
    /// Finds the remote and its forge. Asks nobody.
    pub fn host(&self) -> Result<Host, EngineError> {
        let runtime = new_runtime()?;
        // Connections belong to the runtime that they are made in.
        let inside = runtime.enter();
        let found = self.find_host()?;
        drop(inside);
        Ok(Host { reading: found.reading, auth: found.auth, parts: found.parts, runtime })
    }

    /// What blocks a command before anything outside is asked.
    fn blocked<C: Command>(&self, command: &C) -> Result<Option<RepairBundle>, EngineError> {
        match gate(self.scan(lattice_repo::ReadWorkingCopy::No)?, command) {
            Gate::Ready(_) => Ok(None),
            Gate::Repair(bundle) => Ok(Some(bundle)),
        }
    }

    /// How far the way to the host is known to lead. Asks nobody; an answer that was given a moment ago counts.
    pub fn host_standing(&self) -> Result<HostStanding, EngineError> {
        let host = self.host()?;
        let mut facts = host.offline_facts();
        facts.access = self.remembered_access(&host);
        let github = &self.settings().forge.github;
        let capabilities = lattice_model::doctor::host::capabilities(&facts, github);
        let issues = lattice_model::doctor::host::issues(&facts, github);
        Ok(HostStanding { remote: facts.remote, capabilities, issues })
    }

    /// What stands between the user and the host, as far as the host says.
    pub fn host_issues(&self) -> Result<Vec<Issue>, EngineError> {
        let host = self.host()?;
        let mut facts = host.offline_facts();
        if host.parts.is_some() {
            facts.access = self.access(&host)?;
        }
        Ok(lattice_model::doctor::host::issues(&facts, &self.settings().forge.github))
    }

    /// Reads what the remote and the host know of these branches.
    fn facts(&self, host: &Host, snapshot: &Snapshot, branches: &[BranchName]) -> Result<HostFacts, EngineError> {
        let mut facts = host.offline_facts();
        facts.access = self.access(host)?;
        if facts.access != AccessReading::Granted {
            return Ok(facts);
        }
        let (parts, remote) = (host.parts()?, host.remote()?);
        let names: Vec<_> = branches.iter().map(|branch| branch.branch_ref().to_string()).collect();
        // The remote and the host are asked at the same time; neither needs the other.
        let (refs, pulls) = std::thread::scope(|scope| {
            let refs = scope.spawn(|| if names.is_empty() { Ok(BTreeMap::new()) } else { remote.refs(&names) });
            let pulls = host.wait(parts.forge.pulls_of(branches));
            (refs.join().expect("bug: reading refs does not panic"), pulls)
        });
        facts.heads = refs?.into_iter().filter_map(|(name, oid)| Some((name.as_branch()?, oid))).collect();
        facts.pulls = pulls?;
        self.remember_standings(&facts.pulls);
        let pairs =
            facts.heads.iter().filter_map(|(branch, there)| Some((branch.clone(), snapshot.tip(branch)?, *there)));
        facts.ours = BTreeSet::from_iter(self.repo.ours(&pairs.collect::<Vec<_>>())?);
        Ok(facts)
    }
}

impl Engine {
    /// Those of the branches that stand on commits of the trunk which the trunk of the remote does not have; each comes
    /// with the commit of the trunk that it stands on.
    fn private(
        &self,
        host: &Host,
        snapshot: &Snapshot,
        bases: Vec<(BranchName, Oid)>,
    ) -> Result<BTreeSet<BranchName>, EngineError> {
        let Some((trunk, here)) = snapshot.trunk() else { return Ok(BTreeSet::new()) };
        let seen = self.repo.tracking(host.reading.name())?.get(trunk).copied();
        let mut private = match seen {
            Some(seen) => self.beyond(bases, seen)?,
            None => bases,
        };
        // What is below a branch may also be what landed in another form, or was the trunk's once.
        let elsewhere = self.beyond(private.clone(), here)?;
        private.retain(|base| !elsewhere.contains(base));
        if private.is_empty() || self.access(host)? != AccessReading::Granted {
            return Ok(BTreeSet::new());
        }
        // What was seen of the remote may be old.
        let now = host.remote()?.commit_at(&trunk.branch_ref())?;
        let private = now.map_or(Ok(Vec::new()), |now| self.beyond(private, now))?;
        Ok(private.into_iter().map(|(branch, _)| branch).collect())
    }

    /// Those with a base that `tip` does not contain.
    fn beyond(&self, bases: Vec<(BranchName, Oid)>, tip: Oid) -> Result<Vec<(BranchName, Oid)>, EngineError> {
        let mut beyond = Vec::new();
        for (branch, base) in bases {
            if base != tip && !self.repo.is_ancestor(base, tip)? {
                beyond.push((branch, base));
            }
        }
        Ok(beyond)
    }
}

impl Host {
    /// What the host knows of the stack of these branches, parents first.
    fn stacks(&self, facts: &HostFacts, branches: &[BranchName]) -> Result<HostStacks, EngineError> {
        let forge = &self.parts()?.forge;
        let mut pulls = branches.iter().filter_map(|branch| facts.pulls.get(branch));
        match (pulls.find(|pull| pull.state == PullState::Open), forge.kind()) {
            (Some(lowest), _) => Ok(self.wait(forge.stack_of(lowest.number))?),
            (None, ForgeKind::GitHub) => Ok(HostStacks::NotAsked),
            (None, ForgeKind::Git) => Ok(HostStacks::NotKept),
        }
    }

    /// The forge, for what concerns it alone.
    pub fn forge(&self) -> Result<&dyn Forge, EngineError> {
        Ok(&*self.parts()?.forge)
    }

    /// Waits for an answer of the forge.
    pub fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    fn parts(&self) -> Result<&Parts, EngineError> {
        self.parts.as_ref().ok_or_else(|| self.why_not().into())
    }

    /// Why there is nothing to talk to, in the words of the gate.
    fn why_not(&self) -> Refusal {
        match (&self.auth, &self.reading) {
            (AuthReading::Missing { .. } | AuthReading::Expired { .. }, _) => not_authenticated(self.auth.clone()),
            (_, RemoteReading::Unusable { name, reason }) => {
                Refusal::new("no-remote", format!("the remote `{name}` cannot be used: {reason}"))
                    .hint(format!("git remote set-url {name} <url>"))
            }
            (_, RemoteReading::Missing { name } | RemoteReading::Resolved { name, .. }) => {
                Refusal::new("no-remote", format!("there is no remote `{name}`"))
                    .hint(format!("git remote add {name} <url>; any Git repository will do"))
            }
        }
    }

    /// What is known without asking anybody.
    fn offline_facts(&self) -> HostFacts {
        HostFacts {
            remote: self.reading.clone(),
            auth: self.auth.clone(),
            access: AccessReading::NotAsked,
            heads: BTreeMap::new(),
            ours: BTreeSet::new(),
            private: BTreeSet::new(),
            pulls: BTreeMap::new(),
            stacks: HostStacks::NotAsked,
            texts: BTreeMap::new(),
        }
    }
}

/// Those of the branches that stand on the trunk, each with the commit of it that it stands on.
fn bases(snapshot: &Snapshot, branches: &[BranchName]) -> Vec<(BranchName, Oid)> {
    let trunk = snapshot.settings.trunk.as_ref();
    let base = |branch: &BranchName| {
        let (metadata, _) = snapshot.metadata_of(branch)?;
        (Some(metadata.parent.name()) == trunk).then(|| (branch.clone(), metadata.base))
    };
    branches.iter().filter_map(base).collect()
}

fn new_runtime() -> Result<tokio::runtime::Runtime, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| EngineError::NoRuntime(error.to_string()))
}

/// Why there is no token, in the words of the gate.
fn not_authenticated(auth: AuthReading) -> Refusal {
    let (code, message) = match auth {
        AuthReading::Expired { .. } => ("token-expired", "Authentication expired. Run `lattice auth login` again."),
        AuthReading::Missing { .. } | AuthReading::NotNeeded | AuthReading::Available => {
            ("not-authenticated", "Not authenticated. Run `lattice auth login`.")
        }
    };
    Refusal::new(code, message).hint("lattice auth login")
}
