//! The repository lock: one writer at a time, and everyone knows who.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lattice_model::time::Timestamp;
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

/// Proof that this process is the only writer. Functions that write ask for it.
///
/// The kernel drops the lock when its holder dies, so a dead holder blocks nobody.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Who holds the lock, as written by the holder itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    pub command: String,
    pub since: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another operation is running")]
    Held { holder: Option<LockHolder>, waited_ms: u64 },
    #[error("the lock {path} cannot be taken")]
    Io { path: PathBuf, source: io::Error },
}

const POLL_MS: u64 = 20;

impl Lock {
    /// Takes the lock, waiting at most `timeout_ms`.
    pub(crate) fn acquire(path: &Path, me: &LockHolder, timeout_ms: u64) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = open(path).map_err(failed)?;
        let mut waited_ms = 0;
        while !try_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(failed)? {
            if waited_ms >= timeout_ms {
                return Err(LockError::Held { holder: read_holder(&mut file), waited_ms });
            }
            thread::sleep(Duration::from_millis(POLL_MS));
            waited_ms += POLL_MS;
        }
        let text = serde_json::to_vec(me).expect("bug: a holder is plain text and numbers");
        // Only for people who wait; the lock itself is held whether or not this can be written.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text));
        Ok(Self { _file: file })
    }
}

/// Whether some process holds the lock now.
pub(crate) fn is_held(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(descriptor) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    !try_lock(&File::from(descriptor), FlockOperation::NonBlockingLockShared).unwrap_or(true)
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)?))
}

fn try_lock(file: &File, how: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, how) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn read_holder(file: &mut File) -> Option<LockHolder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
