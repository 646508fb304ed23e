//! One request through scan, gate, plan, execute, verify and record. Never prints, never prompts.

mod doctor;
mod error;
mod host;
mod lifecycle;
mod operations;
mod read;
mod resume;
mod sprite;

use std::path::{Path, PathBuf};

use lattice_model::event::Origin;
use lattice_model::id::OpId;
use lattice_model::settings::Settings;
use lattice_model::snapshot::{LedgerReading, OpStateReading, Repository, Snapshot};
use lattice_model::time::Timestamp;
use lattice_repo::{Lock, LockHolder, Look, ReadWorkingCopy, Repo, ScanRequest};

pub use doctor::{Applied, ChosenFix};
pub use error::EngineError;
pub use host::{
    GetOptions, GitHubReader, Got, Host, HostEnvironment, HostOutcome, HostStanding, LandedPull, MergeOptions, Merged,
    Progress, RestackFirst, SubmitOptions, SyncOptions, Synced, api_url, web_host,
};
pub use lattice_repo::{
    Aborted, CommitLine, ConfigEditError, Conflict, DeriveError, DiffShape, DropReason, Dropped, ExecuteError,
    Foresight, GitError, GitProgram, INSIDE_OPERATION, LedgerEntry, LockError, LockHolder as Holder, Paused,
    ReadWorkingCopy as WorkingCopyNeed, ScanError, edit_setting, list_settings, read_setting, unset_setting,
    user_settings,
};
pub use lifecycle::{Mode, Outcome};
pub use operations::{Operation, OperationState, Pick, Reversal};
pub use read::{Depth, Verification};
pub use sprite::{ImportOutcome, ImportRequest, Landed, detached_name};

/// What the program knows of the world outside the repository.
#[derive(Debug, Clone)]
pub struct Environment {
    pub git: GitProgram,
    pub now: Timestamp,
    /// Makes operation ids differ between runs.
    pub seed: String,
    /// The user's own options, which the repository's override.
    pub user_settings: Settings,
    /// The operation whose hook started this program.
    pub inside: Option<OpId>,
    /// Hears of each stage as it happens.
    pub trace: Trace,
    pub hosts: HostEnvironment,
}

/// Where the stages of the lifecycle are told, for `--debug`.
#[derive(Debug, Clone, Copy)]
pub struct Trace(pub Option<fn(stage: &str, detail: &str)>);

/// An open repository and the way through the law.
#[derive(Debug)]
pub struct Engine {
    repo: Repo,
    environment: Environment,
    /// Who asks for what this engine does.
    origin: Origin,
}

impl Engine {
    /// Opens the repository around `directory`.
    pub fn open(environment: Environment, directory: &Path) -> Result<Self, EngineError> {
        let repo = Repo::open(environment.git.clone(), directory)?;
        Ok(Self { repo, environment, origin: Origin::User })
    }

    /// The same, acting for a sprite.
    #[must_use]
    pub fn for_sprite(self, sprite: &str) -> Self {
        Self { origin: Origin::Sprite(sprite.to_owned()), ..self }
    }

    pub fn repository(&self) -> &Repository {
        self.repo.paths()
    }

    /// Where a text is while the user of this worktree edits it.
    pub fn draft(&self, name: &str) -> PathBuf {
        self.repository().git_dir.join("lattice").join(name)
    }

    /// Reads the repository for a command that changes nothing, and records divergence if it is new.
    pub fn observe(&self, command: &str, working_copy: ReadWorkingCopy) -> Result<Observed, EngineError> {
        let snapshot = self.scan(working_copy)?;
        let evidence = self.note_divergence(&snapshot, command);
        Ok(Observed { snapshot, evidence })
    }

    /// As `observe`, for a command that only shows: what an earlier one read need not be read again.
    pub fn glance(&self, command: &str) -> Result<Observed, EngineError> {
        let snapshot = self.scan_as(Look::Again, ReadWorkingCopy::No)?;
        let evidence = self.note_divergence(&snapshot, command);
        Ok(Observed { snapshot, evidence })
    }

    fn scan(&self, working_copy: ReadWorkingCopy) -> Result<Snapshot, EngineError> {
        self.scan_as(Look::Afresh, working_copy)
    }

    fn scan_as(&self, look: Look, working_copy: ReadWorkingCopy) -> Result<Snapshot, EngineError> {
        let defaults = self.environment.user_settings.clone();
        let request = ScanRequest { look, working_copy, now: self.environment.now.clone(), defaults };
        let snapshot = self.repo.scan(&request)?;
        self.trace_scan(&snapshot);
        Ok(snapshot)
    }

    fn trace_scan(&self, snapshot: &Snapshot) {
        if self.environment.trace.0.is_none() {
            return;
        }
        let in_progress = match (&snapshot.op_state, snapshot.git_operation) {
            (OpStateReading::Present(state), _) => state.command.clone(),
            (OpStateReading::Damaged { .. }, _) => "unreadable".to_owned(),
            (OpStateReading::Absent, Some(operation)) => format!("git {}", operation.as_str()),
            (OpStateReading::Absent, None) => "none".to_owned(),
        };
        let diverged = snapshot.divergence.as_ref().map_or(0, |divergence| divergence.changes.len());
        let (tracked, fingerprint) = (snapshot.metadata.len(), &snapshot.fingerprint);
        let issues = lattice_model::doctor::diagnose(snapshot).len();
        self.trace("scan", &format!("{tracked} tracked branches, {issues} issues"));
        self.trace("scan", &format!("operation in progress: {in_progress}"));
        self.trace("scan", &format!("fingerprint {fingerprint}, {diverged} refs changed outside of Lattice"));
        if snapshot.divergence.is_some() {
            self.trace("divergence", "is recorded, at the latest with the operation");
        }
    }

    /// Evidence is worth having and never worth failing for.
    fn note_divergence(&self, snapshot: &Snapshot, command: &str) -> Evidence {
        if snapshot.divergence.is_none() {
            return Evidence::Complete;
        }
        match self.repo.record_divergence(snapshot, command, self.op_id(command, snapshot), &self.environment.now) {
            Ok(()) => Evidence::Complete,
            Err(error) => Evidence::NotRecorded(error.to_string()),
        }
    }

    fn lock(&self, command: &str, snapshot_settings: &Settings) -> Result<Lock, EngineError> {
        if let Some(op) = &self.environment.inside {
            return Err(EngineError::InsideOperation { op: op.clone() });
        }
        let me =
            LockHolder { pid: std::process::id(), command: command.to_owned(), since: self.environment.now.clone() };
        Ok(self.repo.lock(&me, snapshot_settings.lock_timeout_ms)?)
    }

    /// An id for an operation: different for each run and each state of the ledger, reproducible from its seed.
    fn op_id(&self, command: &str, snapshot: &Snapshot) -> OpId {
        let tip = match &snapshot.ledger {
            LedgerReading::Absent => String::new(),
            LedgerReading::Tip { commit, .. } | LedgerReading::Damaged { commit, .. } => commit.to_string(),
        };
        OpId::of(format!("{}\0{}\0{command}\0{tip}", self.environment.seed, self.environment.now).as_bytes())
    }

    fn trace(&self, stage: &str, detail: &str) {
        if let Some(told) = self.environment.trace.0 {
            told(stage, detail);
        }
    }
}

/// A reading, and whether what it showed could be recorded.
#[derive(Debug)]
pub struct Observed {
    pub snapshot: Snapshot,
    pub evidence: Evidence,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    Complete,
    /// The repository could not be written; the command goes on.
    NotRecorded(String),
}
