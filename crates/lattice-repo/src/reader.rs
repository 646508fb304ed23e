//! A read-only view of a repository for gathering context; it can be shared between threads.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lattice_model::id::Oid;
use lattice_model::snapshot::Repository;

use crate::git::error::GitError;
use crate::git::listing::{Beginning, ChangedFile, CommitPaths, DiffRange, LoggedCommit, WorkFile, keep_beginning};
use crate::git::process::GitProgram;
use crate::{Repo, durable, git};

/// Reads a repository. Nothing here writes a ref, an object, the index or a file of the user's.
#[derive(Debug, Clone)]
pub struct Reader {
    git: git::Git,
    paths: Repository,
}

impl Repo {
    /// The part of this repository that may be handed to readers.
    pub fn reader(&self) -> Reader {
        Reader { git: self.git.clone(), paths: self.paths.clone() }
    }
}

impl Reader {
    /// Finds the repository around `directory`.
    pub fn open(program: &GitProgram, directory: &Path) -> Result<Self, GitError> {
        let paths = git::discover::discover(program, directory)?;
        let git = program.in_repository(&paths.git_dir, paths.work_dir.as_deref());
        Ok(Self { git, paths })
    }

    pub fn paths(&self) -> &Repository {
        &self.paths
    }

    /// Where what can be computed again is kept, shared by all worktrees.
    pub fn cache_dir(&self) -> PathBuf {
        self.paths.common_dir.join("lattice").join("cache")
    }

    /// Where session records are kept unless the user names another folder.
    pub fn sessions_dir(&self) -> PathBuf {
        self.paths.common_dir.join("lattice").join("sessions")
    }

    /// All files of the working tree that Git does not ignore, sorted by path.
    pub fn files(&self) -> Result<Vec<WorkFile>, GitError> {
        self.git.work_files()
    }

    /// Files besides the working tree that decide what `files` answers; `None` if no files tell.
    pub fn listing_inputs(&self) -> Result<Option<Vec<PathBuf>>, GitError> {
        self.git.listing_inputs(&self.paths.git_dir, &self.paths.common_dir)
    }

    /// Those of these folders that Git ignores with all that is in them.
    pub fn ignored_folders(&self, folders: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, GitError> {
        self.git.ignored_folders(folders)
    }

    /// What of the environment decides which configuration Git reads.
    pub fn configuration_variables(&self) -> Vec<u8> {
        let names = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
        let values = names.map(|name| self.git.variable(name).map_or(Vec::new(), |value| value.as_bytes().to_vec()));
        values.join(&0)
    }

    /// The branch that HEAD is on; `None` if it is detached.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        self.git.head_branch()
    }

    /// The commit that a name of the user's stands for.
    pub fn resolve(&self, name: &str) -> Result<Option<Oid>, GitError> {
        self.git.resolve_commit(name)
    }

    /// The blob whose id begins with these digits, if there is exactly one.
    pub fn resolve_blob(&self, prefix: &str) -> Result<Option<Oid>, GitError> {
        self.git.resolve_blob(prefix)
    }

    pub fn merge_base(&self, one: Oid, other: Oid) -> Result<Option<Oid>, GitError> {
        self.git.merge_base(one, other)
    }

    /// The newest commits of HEAD, newest first.
    pub fn log(&self, count: usize) -> Result<Vec<LoggedCommit>, GitError> {
        match self.resolve("HEAD")? {
            Some(_) => self.git.recent_log(count),
            None => Ok(Vec::new()),
        }
    }

    /// What the newest commits touched, newest first.
    pub fn recent_paths(&self, count: usize) -> Result<Vec<CommitPaths>, GitError> {
        self.git.recent_paths(count)
    }

    /// The files that differ, in Git's order.
    pub fn changed_files(&self, range: DiffRange) -> Result<Vec<ChangedFile>, GitError> {
        self.git.differing_files(range)
    }

    /// The first `limit` bytes of a difference; `seen` hears of the beginning of every line of it.
    pub fn diff(&self, range: DiffRange, limit: u64, seen: impl FnMut(&[u8])) -> Result<Beginning, GitError> {
        self.git.diff_beginning(range, limit, seen)
    }

    /// The first `limit` bytes of a blob.
    pub fn blob(&self, blob: Oid, limit: u64) -> Result<Beginning, GitError> {
        self.git.blob_beginning(blob, limit)
    }
}

/// Replaces a file of our own, such as a session record, by one with this content.
pub fn write_own_file(path: &Path, content: &[u8]) -> io::Result<()> {
    durable::write(path, content)
}

/// Reads a regular file of our own of at most `limit` bytes; `None` if there is none.
pub fn read_own_file(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, durable::ReadError> {
    durable::read(path, limit)
}

/// Puts a finished file of the cache in its place, without waiting for the disk: what is lost is computed again.
#[expect(clippy::disallowed_methods, reason = "a file of the cache appears whole or not at all")]
pub fn publish_cache_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    durable::create_folder(folder)?;
    let temporary = durable::temporary(path);
    let written = File::create(&temporary).and_then(|mut file| {
        durable::share(&file, folder);
        file.write_all(content)?;
        std::fs::rename(&temporary, path)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// The first `limit` bytes of an open file and how long it is in lines and bytes.
pub fn file_beginning(file: File, limit: u64) -> io::Result<Beginning> {
    keep_beginning(file, limit, &mut |_| {})
}
