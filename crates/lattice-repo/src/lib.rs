//! The only code that reads or writes a Git repository.

mod defect;
mod durable;
mod execute;
mod facts;
mod fingerprint;
mod format;
mod git;
mod ledger;
mod lock;
mod read;
mod reader;
mod recall;
mod remote;
mod scan;
mod verify;
pub mod workspace;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use lattice_model::snapshot::Repository;

use defect::Defect;
pub use durable::ReadError;
pub use execute::{Aborted, Conflict, DeriveError, ExecuteError, Executed, Foresight, OperationRequest, Paused};
pub use format::journal::{DropReason, Dropped};
pub use format::{ConfigEditError, edit_setting, list_settings, read_setting, unset_setting, user_settings};
pub use git::display::{CommitLine, DiffShape};
pub use git::error::GitError;
pub use git::listing::{Beginning, Change, ChangedFile, CommitPaths, DiffRange, LoggedCommit, WorkFile};
pub use git::process::{GitProgram, INSIDE_OPERATION};
pub use ledger::LedgerEntry;
pub use lock::{Lock, LockError, LockHolder};
pub use read::Kept;
pub use reader::{Reader, file_beginning, publish_cache_file, read_own_file, write_own_file};
pub use remote::{Credential, Remote, RemoteUrl};
pub use scan::{Look, ReadWorkingCopy, ScanError, ScanRequest};

/// An open repository.
#[derive(Debug)]
pub struct Repo {
    git: git::Git,
    paths: Repository,
    /// Started when first needed and kept: a process that reads objects serves any number of requests.
    objects: RefCell<Option<git::objects::ObjectReader>>,
}

impl Repo {
    /// Finds the repository around `directory`.
    pub fn open(program: GitProgram, directory: &Path) -> Result<Self, GitError> {
        let paths = git::discover::discover(&program, directory)?;
        let git = program.in_repository(&paths.git_dir, paths.work_dir.as_deref());
        Ok(Self { git, paths, objects: RefCell::new(None) })
    }

    pub fn paths(&self) -> &Repository {
        &self.paths
    }

    /// Lattice's own folder, shared by all worktrees.
    fn lattice_dir(&self) -> PathBuf {
        self.paths.common_dir.join("lattice")
    }

    fn config_path(&self) -> PathBuf {
        self.lattice_dir().join("config.toml")
    }

    fn op_state_path(&self) -> PathBuf {
        self.lattice_dir().join("op-state.json")
    }

    fn lock_path(&self) -> PathBuf {
        self.lattice_dir().join("lock")
    }

    /// Takes the lock that every writer needs.
    pub fn lock(&self, me: &LockHolder, timeout_ms: u64) -> Result<Lock, LockError> {
        if self.git.has(Defect::LockIgnored) {
            return Lock::acquire(&self.lock_path().with_extension(me.pid.to_string()), me, timeout_ms);
        }
        Lock::acquire(&self.lock_path(), me, timeout_ms)
    }

    /// How many digits the object ids of this repository have.
    fn hex_len(&self) -> usize {
        git::discover::hex_len(&self.paths.common_dir)
    }

    /// Asks the process that reads objects.
    fn with_objects<T>(
        &self,
        ask: impl FnOnce(&mut git::objects::ObjectReader) -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let mut slot = self.objects.borrow_mut();
        let reader = match slot.as_mut() {
            Some(reader) => reader,
            None => slot.insert(self.git.object_reader()?),
        };
        let answer = ask(reader);
        if answer.is_err() {
            // After an error nobody knows how far the conversation got.
            *slot = None;
        }
        answer
    }
}
