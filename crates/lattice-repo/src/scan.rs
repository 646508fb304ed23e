//! Repository to snapshot, with at most three git processes for any number of branches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lattice_model::event::RefChange;
use lattice_model::history::{Ancestry, History};
use lattice_model::id::{Fingerprint, Oid};
use lattice_model::name::{BranchName, RefName};
use lattice_model::settings::Settings;
use lattice_model::snapshot::{
    Completeness, ConfigReading, Context, Divergence, Head, Holder, LedgerReading, MetadataReading, OpState,
    OpStateReading, ReadableRest, Recorded, Snapshot, UnusableRef, WorkingCopy,
};
use lattice_model::time::Timestamp;

use crate::Repo;
use crate::defect::Defect;
use crate::durable;
use crate::facts::Facts;
use crate::fingerprint::Covered;
use crate::format;
use crate::git::GitError;
use crate::git::commits::RawCommit;
use crate::git::refs::Listing;
use crate::git::worktree::{self, HeadName};
use crate::ledger::LEDGER;
use crate::lock;

/// Which facts a command needs beyond those that every scan gives.
#[derive(Debug, Clone)]
pub struct ScanRequest {
    pub look: Look,
    pub working_copy: ReadWorkingCopy,
    pub now: Timestamp,
    /// The user's own options, which the repository's override.
    pub defaults: Settings,
}

/// Whether every object is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Afresh,
    /// For commands that only show: where refs and objects are as they were, what was read before is used.
    Again,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadWorkingCopy {
    No,
    Yes,
}

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error(transparent)]
    Git(#[from] GitError),
}

/// All branch and metadata refs, sorted into what can be used and what cannot.
#[derive(Debug, Default)]
pub(crate) struct RefsRead {
    pub(crate) refs: BTreeMap<RefName, Oid>,
    pub(crate) worktrees: BTreeMap<BranchName, PathBuf>,
    pub(crate) ledger: Option<Oid>,
    pub(crate) unusable: Vec<UnusableRef>,
    pub(crate) warnings: Vec<String>,
}

impl Repo {
    /// Reads the repository. Changes nothing.
    pub fn scan(&self, request: &ScanRequest) -> Result<Snapshot, ScanError> {
        assert!(!self.git.has(Defect::Panic), "bug: a test wants one");
        let mut settings = request.defaults.clone();
        let config = self.read_config(&mut settings);
        let listing = self.git.start_listing(&SCANNED)?;
        // Two more are needed where anything is tracked; they make themselves ready while the refs are listed.
        let walk = if request.look == Look::Afresh { Some(self.start_reading()?) } else { None };
        let listing = listing.finish()?;
        let text = if walk.is_none() { listing.text.clone() } else { Vec::new() };
        let read = self.sorted(listing);
        let branches: BTreeMap<_, _> = read.refs.iter().filter_map(|(n, oid)| Some((n.as_branch()?, *oid))).collect();
        let trunk = settings.trunk.as_ref().and_then(|trunk| branches.get(trunk)).copied();
        let covered = || Covered::new(&read.refs, settings.trunk.as_ref(), config.digest().cloned());
        let key = if walk.is_none() { self.recall_key(&text, trunk) } else { None };
        let recalled = key.as_ref().and_then(|key| self.recalled_facts(key, &read));
        let (facts, covered) = match (recalled, walk) {
            (Some(facts), _) => (facts, covered()),
            (None, Some(walk)) => self.read_facts(walk, (&read, &branches, trunk), covered, None)?,
            (None, None) => self.read_facts(self.start_reading()?, (&read, &branches, trunk), covered, key.as_ref())?,
        };
        let Facts { metadata, walked, ledger } = facts;
        let fingerprint = covered.fingerprint();
        let op_state = self.read_op_state();
        let divergence = match op_state {
            OpStateReading::Absent => self.divergence(&ledger, (&covered, &read.refs), &fingerprint)?,
            OpStateReading::Present(_) | OpStateReading::Damaged { .. } => None,
        };
        let mut recorded = self.recorded(&ledger, divergence.as_ref())?;
        self.recall_gone(&ledger, (&branches, &metadata), &mut recorded)?;
        let stale_locks = worktree::stale_locks(&self.paths, &request.now);
        let mut snapshot = Snapshot {
            repository: self.paths.clone(),
            head: self.read_head(&branches)?,
            config,
            settings,
            gone_worktrees: read.worktrees.values().filter(|path| !path.exists()).cloned().collect(),
            worktrees: read.worktrees,
            held: self.rebased_elsewhere(),
            unusable: read.unusable,
            history: History::new(walked.parents),
            unreadable: walked.unreadable,
            op_state,
            git_operation: self.git.operation(&self.paths)?,
            working_copy: self.read_working_copy(request.working_copy),
            ledger,
            completeness: self.completeness(),
            stale_locks,
            warnings: read.warnings,
            fingerprint,
            divergence,
            recorded,
            branches,
            metadata,
        };
        let answers = self.settle_bases(&snapshot)?;
        snapshot.history = snapshot.history.with_ancestry(answers);
        Ok(snapshot)
    }

    pub(crate) fn read_config(&self, settings: &mut Settings) -> ConfigReading {
        match durable::read(&self.config_path(), format::config::SIZE_LIMIT) {
            Ok(None) => ConfigReading::Absent,
            Ok(Some(bytes)) => format::config::parse(&bytes, settings),
            Err(error) => ConfigReading::Invalid {
                digest: lattice_model::id::ContentDigest::of(b""),
                reason: error.to_string(),
                rest: ReadableRest::default(),
            },
        }
    }

    /// Branches that a rebase in another worktree will move when it ends.
    fn rebased_elsewhere(&self) -> BTreeMap<BranchName, String> {
        let rebased = worktree::rebased_branches(&self.paths.common_dir).into_iter();
        let elsewhere = rebased.filter(|(_, path)| Some(path) != self.paths.work_dir.as_ref());
        elsewhere
            .map(|(branch, path)| (branch, format!("the worktree {} has a rebase of it in progress", path.display())))
            .collect()
    }

    pub(crate) fn read_refs(&self) -> Result<RefsRead, GitError> {
        Ok(self.sorted(self.git.list_refs(&SCANNED)?))
    }

    fn sorted(&self, listing: Listing) -> RefsRead {
        let mut read = sort_refs(listing);
        for (branch, path) in worktree::rebased_branches(&self.paths.common_dir) {
            read.worktrees.entry(branch).or_insert(path);
        }
        read
    }

    fn read_head(&self, branches: &BTreeMap<BranchName, Oid>) -> Result<Head, GitError> {
        Ok(match self.git.head(&self.paths.git_dir)? {
            HeadName::Commit(commit) => Head::Detached(commit),
            HeadName::Unreadable(text) => Head::Unusable(text.escape_debug().to_string()),
            HeadName::Ref(name) => match RefName::new(name.clone()).ok().and_then(|name| name.as_branch()) {
                None => Head::Unusable(name.escape_debug().to_string()),
                Some(branch) => match branches.get(&branch) {
                    Some(tip) => Head::Branch { name: branch, tip: *tip },
                    None => Head::Unborn(branch.to_string()),
                },
            },
        })
    }

    pub(crate) fn read_op_state(&self) -> OpStateReading {
        let damaged = |reason: String| OpStateReading::Damaged { reason };
        match durable::read(&self.op_state_path(), format::op_state::SIZE_LIMIT) {
            Ok(None) => OpStateReading::Absent,
            Err(error) => damaged(error.to_string()),
            Ok(Some(bytes)) => {
                let holder = if lock::is_held(&self.lock_path()) { Holder::Alive } else { Holder::Gone };
                match format::op_state::parse(&bytes, holder) {
                    Ok(state) => self.usable(state).map_or_else(damaged, OpStateReading::Present),
                    Err(error) => damaged(error.to_string()),
                }
            }
        }
    }

    /// A marker whose operation nobody can finish or give up is as good as a damaged one.
    fn usable(&self, state: OpState) -> Result<OpState, String> {
        if !state.origin_git_dir.exists() {
            return Err(format!("the worktree of {} is gone", state.origin_git_dir.display()));
        }
        match self.read_journal(&state) {
            Ok(_) => Ok(state),
            // The marker goes before the journal does: if it is gone, the operation ended while we looked.
            Err(_) if !self.op_state_path().exists() => Ok(state),
            Err(error) => Err(error.to_string()),
        }
    }

    fn read_working_copy(&self, wanted: ReadWorkingCopy) -> WorkingCopy {
        match (self.paths.context, wanted) {
            (Context::Bare, _) => WorkingCopy::None,
            (Context::Normal | Context::Worktree, ReadWorkingCopy::No) => WorkingCopy::NotRead,
            (Context::Normal | Context::Worktree, ReadWorkingCopy::Yes) => self.git.status(),
        }
    }

    fn completeness(&self) -> Completeness {
        if worktree::is_shallow(&self.paths.common_dir) { Completeness::Shallow } else { Completeness::Complete }
    }

    fn divergence(
        &self,
        ledger: &LedgerReading,
        (covered, refs): (&Covered, &BTreeMap<RefName, Oid>),
        current: &Fingerprint,
    ) -> Result<Option<Divergence>, GitError> {
        let LedgerReading::Tip { commit, event, .. } = ledger else { return Ok(None) };
        let Some(prior) = event.committed.clone().filter(|prior| prior != current) else { return Ok(None) };
        let stored = self.with_objects(|objects| objects.contents(&[format!("{commit}:refs")]))?.pop().flatten();
        let stored = stored.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let (changes, files) = (covered.changes_since(&stored, refs), covered.files_since(&stored));
        Ok(Some(Divergence { prior, current: current.clone(), changes, files }))
    }

    /// What the ledger last saw of the branches that changed, as far as it still exists.
    fn recorded(
        &self,
        ledger: &LedgerReading,
        divergence: Option<&Divergence>,
    ) -> Result<BTreeMap<BranchName, Recorded>, GitError> {
        let (LedgerReading::Tip { commit, .. }, Some(divergence)) = (ledger, divergence) else {
            return Ok(BTreeMap::new());
        };
        let olds: Vec<(&RefChange, Oid)> =
            divergence.changes.iter().filter_map(|change| Some((change, change.old?))).collect();
        let names: Vec<_> = olds.iter().map(|(_, oid)| oid.to_string()).collect();
        let infos = self.with_objects(|objects| objects.info(&names))?;
        let vanished = |change: &RefChange| change.new.is_none() && change.name.as_metadata_of().is_some();
        let event = if divergence.changes.iter().any(vanished) { self.recorded_by(*commit)? } else { *commit };
        let mut recorded: BTreeMap<BranchName, Recorded> = BTreeMap::new();
        for ((change, oid), info) in olds.into_iter().zip(infos) {
            let kind = info.map(|info| info.kind);
            let new = || Recorded { event, tip: None, metadata: None };
            if let (Some(branch), Some("commit")) = (change.name.as_branch(), kind.as_deref()) {
                recorded.entry(branch).or_insert_with(new).tip = Some(oid);
            }
            if let (Some(branch), Some("blob")) = (change.name.as_metadata_of(), kind.as_deref()) {
                let bytes = self.with_objects(|objects| objects.contents(&[oid.to_string()]))?.pop().flatten();
                let read = bytes.and_then(|bytes| format::metadata::parse(&bytes, &branch, oid.hex_len()).ok());
                recorded.entry(branch).or_insert_with(new).metadata = read.map(|metadata| (oid, metadata));
            }
        }
        Ok(recorded)
    }

    /// Adds what older records know of branches that metadata names and that are gone. An operation after the loss
    /// takes it as given, so that the newest record says nothing of them any more.
    fn recall_gone(
        &self,
        ledger: &LedgerReading,
        (branches, metadata): (&BTreeMap<BranchName, Oid>, &BTreeMap<BranchName, MetadataReading>),
        recorded: &mut BTreeMap<BranchName, Recorded>,
    ) -> Result<(), GitError> {
        let LedgerReading::Tip { commit, .. } = ledger else { return Ok(()) };
        let parents = metadata.values().filter_map(|reading| Some(reading.content.as_ref().ok()?.parent.name()));
        let gone = metadata.keys().chain(parents).filter(|name| !branches.contains_key(*name));
        let unknown = |name: &&BranchName| recorded.get(*name).is_none_or(|recorded| recorded.tip.is_none());
        let gone: BTreeSet<_> = gone.filter(unknown).map(BranchName::branch_ref).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let seen = self.last_seen(*commit, gone)?;
        let names: Vec<_> = seen.values().map(|(_, tip)| tip.to_string()).collect();
        let infos = self.with_objects(|objects| objects.info(&names))?;
        for ((name, (event, tip)), info) in seen.into_iter().zip(infos) {
            let exists = info.is_some_and(|info| info.kind == "commit");
            if let Some(branch) = name.as_branch().filter(|_| exists) {
                recorded.entry(branch).or_insert(Recorded { event, tip: None, metadata: None }).tip = Some(tip);
            }
        }
        Ok(())
    }

    /// The record that first held what the tip of the ledger says of refs. Evidence that came later
    /// inherits it, and must not change what is cited.
    fn recorded_by(&self, tip: Oid) -> Result<Oid, GitError> {
        let read = |commit: Oid| -> Result<Option<RawCommit>, GitError> {
            let bytes = self.with_objects(|objects| objects.contents(&[commit.to_string()]))?.pop().flatten();
            Ok(bytes.and_then(|bytes| RawCommit::parse(&bytes)))
        };
        let mut found = tip;
        let Some(mut current) = read(tip)? else { return Ok(tip) };
        while let [parent] = current.parents[..] {
            match read(parent)? {
                Some(below) if below.tree == current.tree => (found, current) = (parent, below),
                Some(_) | None => break,
            }
        }
        Ok(found)
    }

    /// Asks git about bases that the commits of the stacks do not settle.
    fn settle_bases(&self, snapshot: &Snapshot) -> Result<BTreeMap<(Oid, Oid), Ancestry>, GitError> {
        let unsettled = |branch: &BranchName| {
            !snapshot.unreadable.contains_key(branch) && snapshot.position(branch).is_some_and(|at| at.base.is_none())
        };
        let pairs: BTreeSet<_> =
            snapshot.tracked().filter(|(m, _)| unsettled(&m.name)).map(|(m, tip)| (m.base, tip)).collect();
        if pairs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names: Vec<_> = pairs.iter().map(|(base, _)| base.to_string()).collect();
        let infos = self.with_objects(|objects| objects.info(&names))?;
        let mut answers = BTreeMap::new();
        for ((base, tip), info) in pairs.into_iter().zip(infos) {
            let known = info.is_some_and(|info| info.kind == "commit");
            let answer =
                if known { self.git.ancestry(base, tip).unwrap_or(Ancestry::Missing) } else { Ancestry::Missing };
            answers.insert((base, tip), answer);
        }
        Ok(answers)
    }
}

impl RefsRead {
    /// The branches that have metadata, and where it is.
    pub(crate) fn metadata(&self) -> impl Iterator<Item = (BranchName, Oid)> {
        self.refs.iter().filter_map(|(name, oid)| Some((name.as_metadata_of()?, *oid)))
    }
}

/// What a scan looks at.
const SCANNED: [&str; 4] = ["refs/heads/", "refs/branch-metadata/", SPRITES, LEDGER];

/// Refs that keep what sprites start from.
const SPRITES: &str = "refs/lattice/sprites/";

fn sort_refs(listing: Listing) -> RefsRead {
    let mut read = RefsRead { warnings: listing.warnings, ..RefsRead::default() };
    for listed in listing.refs {
        if listed.name == LEDGER.as_bytes() {
            read.ledger = Some(listed.oid);
            continue;
        }
        let name = String::from_utf8(listed.name.clone()).map_err(|_| "its name is not UTF-8 text".to_owned());
        let name = name.and_then(|name| RefName::new(name).map_err(|error| error.to_string()));
        let usable = name.and_then(|name| match (name.as_branch(), name.as_metadata_of()) {
            (None, None) if name.as_str().starts_with(SPRITES) => Ok((name, None)),
            (None, None) => Err("its name would be mistaken for an option or for HEAD".to_owned()),
            (branch, _) => Ok((name, branch)),
        });
        match usable {
            Err(reason) => {
                let shown = String::from_utf8_lossy(&listed.name).escape_debug().to_string();
                read.unusable.push(UnusableRef { name: shown, reason });
            }
            Ok((name, branch)) => {
                if let (Some(branch), Some(path)) = (branch, listed.worktree) {
                    read.worktrees.insert(branch, path);
                }
                read.refs.insert(name, listed.oid);
            }
        }
    }
    read
}
