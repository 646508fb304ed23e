//! What commands that only look need beyond a snapshot.

use std::collections::BTreeMap;

use lattice_model::branch::{BranchMetadataV1, PrState};
use lattice_model::command::squash::BranchHunk;
use lattice_model::doctor;
use lattice_model::host::PullState;
use lattice_model::id::Oid;
use lattice_model::issue::Severity;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;
use lattice_repo::{CommitLine, DiffShape, Look, ReadWorkingCopy};

use crate::{Engine, EngineError};

/// The invariants that were checked, and what was found against them.
#[derive(Debug)]
pub struct Verification {
    pub checked: Vec<&'static str>,
    pub violations: Vec<String>,
}

impl Engine {
    /// The branch that the remote calls its main one, as far as the last fetch tells.
    pub fn main_branch_of_remote(&self) -> Result<Option<BranchName>, EngineError> {
        Ok(self.repo.main_branch_of(self.settings().forge.remote())?)
    }

    /// How to make a branch here that only the remote has.
    pub fn way_to_make(&self, branch: &BranchName) -> Result<Option<String>, EngineError> {
        let settings = self.settings();
        let remote = settings.forge.remote();
        let word = branch.word();
        let there = self.repo.remote_has(remote, branch)?;
        Ok(there.then(|| format!("git branch {word} {remote}/{word}")))
    }

    /// Where two branches meet.
    pub fn merge_base(&self, snapshot: &Snapshot, one: &BranchName, other: &BranchName) -> Option<Oid> {
        let (one, other) = (snapshot.tip(one)?, snapshot.tip(other)?);
        self.repo.merge_base(one, other).ok().flatten()
    }

    /// The branches among `candidates` that `branch` contains and that contain all others it contains.
    pub fn nearest_below(
        &self,
        snapshot: &Snapshot,
        branch: &BranchName,
        candidates: &[BranchName],
    ) -> Result<Vec<BranchName>, EngineError> {
        let Some(tip) = snapshot.tip(branch) else { return Ok(Vec::new()) };
        let tips: Vec<_> = candidates.iter().filter_map(|candidate| snapshot.tip(candidate)).collect();
        let nearest = self.repo.nearest_below(tip, &tips)?;
        let is_nearest = |name: &&BranchName| snapshot.tip(name).is_some_and(|tip| nearest.contains(&tip));
        Ok(candidates.iter().filter(is_nearest).cloned().collect())
    }

    /// The staged hunks, with the commits of the current stack that last touched their lines.
    pub fn staged_hunks(&self, snapshot: &Snapshot) -> Result<Vec<lattice_model::command::absorb::Hunk>, EngineError> {
        let head = snapshot.head.branch().and_then(|branch| snapshot.tip(branch));
        match (head, snapshot.trunk()) {
            (Some(head), Some((_, trunk))) => Ok(self.repo.staged_hunks(head, trunk)?),
            (None, _) | (_, None) => Ok(Vec::new()),
        }
    }

    /// What the current branch changes, in the smallest parts that can go elsewhere by themselves.
    pub fn branch_hunks(&self, snapshot: &Snapshot) -> Result<Vec<BranchHunk>, EngineError> {
        let Some(branch) = snapshot.head.branch() else { return Ok(Vec::new()) };
        let fork = snapshot.position(branch).and_then(|position| position.fork);
        match (fork, snapshot.tip(branch)) {
            (Some(fork), Some(tip)) => Ok(self.repo.hunks_between(fork, tip)?),
            (None, _) | (_, None) => Ok(Vec::new()),
        }
    }

    /// What each commit after `from` changes up to `to`, as text.
    pub fn history_text(&self, from: Oid, to: Oid) -> Result<String, EngineError> {
        Ok(self.repo.history_text(from, to)?)
    }

    /// The branch that a tracked one stands on.
    pub fn parent_of(&self, branch: &BranchName) -> Result<Option<BranchName>, EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::No)?;
        Ok(snapshot.metadata_of(branch).map(|(metadata, _)| metadata.parent.name().clone()))
    }

    /// Branches that are known to have an open pull request, with its number. Changes nothing.
    pub fn open_pulls(&self) -> Result<BTreeMap<BranchName, u64>, EngineError> {
        let pull = |metadata: &BranchMetadataV1| match &metadata.pr {
            PrState::Linked { number, last_known, .. }
                if last_known.as_ref().is_none_or(|known| known.state == PullState::Open.as_str()) =>
            {
                Some((metadata.name.clone(), *number))
            }
            PrState::Linked { .. } | PrState::None {} => None,
        };
        let snapshot = self.scan_as(Look::Again, ReadWorkingCopy::No)?;
        Ok(snapshot.tracked().filter_map(|(metadata, _)| pull(metadata)).collect())
    }

    /// All branches that can be named. Changes nothing.
    pub fn branches(&self) -> Result<Vec<BranchName>, EngineError> {
        Ok(self.scan(ReadWorkingCopy::No)?.branches.into_keys().collect())
    }

    pub fn tip(&self, branch: &BranchName) -> Result<Option<Oid>, EngineError> {
        Ok(self.scan(ReadWorkingCopy::No)?.tip(branch))
    }

    /// The commit that a user's text names.
    pub fn find_commit(&self, name: &str) -> Option<Oid> {
        self.repo.find_commit(name).ok().flatten()
    }

    /// The branch that was checked out here before, as far as Git remembers one.
    pub fn branch_before(&self) -> Result<Option<BranchName>, EngineError> {
        Ok(self.repo.branch_before()?)
    }

    pub fn commits(&self, ids: &[Oid]) -> Result<Vec<CommitLine>, EngineError> {
        Ok(self.repo.commits(ids)?)
    }

    pub fn diff(&self, from: Oid, to: Oid, shape: DiffShape) -> Result<String, EngineError> {
        Ok(self.repo.diff(from, to, shape)?)
    }

    /// The text of the repository's configuration file.
    pub fn config_text(&self) -> Option<String> {
        self.repo.config_text()
    }

    /// The branch that is checked out here.
    pub fn current_branch(&self) -> Option<BranchName> {
        self.scan(ReadWorkingCopy::No).ok()?.head.branch().cloned()
    }

    /// The options in force.
    pub fn settings(&self) -> lattice_model::settings::Settings {
        self.lock_settings()
    }

    /// Checks every invariant and changes nothing, not even the ledger.
    pub fn verify(&self, depth: Depth) -> Result<Verification, EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::Yes)?;
        let blocking = |issue: &lattice_model::issue::Issue| issue.severity == Severity::Blocking;
        let issues = doctor::diagnose(&snapshot).into_iter().filter(blocking);
        let mut violations: Vec<_> = issues.map(|issue| format!("{}: {}", issue.id, issue.summary)).collect();
        let mut checked = vec!["configuration", "metadata", "graph", "bases", "operations in progress", "locks"];
        if depth == Depth::Full {
            for (commit, event) in self.repo.events(None)? {
                if let Err(reason) = event {
                    violations.push(format!("ledger record {}: {reason}", commit.short()));
                }
            }
            violations.extend(self.repo.check_objects()?);
            checked.extend(["ledger", "objects"]);
        }
        Ok(Verification { checked, violations })
    }
}

/// How much `verify` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Quick,
    /// Every record of the ledger and every object that a ref leads to.
    Full,
}
