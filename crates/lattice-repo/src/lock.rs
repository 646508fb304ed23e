//! The repository lock: one writer at a time, in the order in which they came, and everyone knows who.

mod queue;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lattice_model::time::Timestamp;
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::durable;
use queue::{Ticket, first_in_line};

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
        let line = path.with_extension("queue");
        let mut ticket = None;
        let mut waited_ms = 0;
        loop {
            // Whoever came before goes first, also if the lock is free at this very moment.
            let ahead = first_in_line(&line, ticket.as_ref());
            if ahead.is_none() && try_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(failed)? {
                break;
            }
            if waited_ms >= timeout_ms {
                let free = try_lock(&file, FlockOperation::NonBlockingLockShared).map_err(failed)?;
                let holder = if free { ahead.flatten() } else { read_holder(&mut file) };
                return Err(LockError::Held { holder, waited_ms });
            }
            // Who cannot queue, because files cannot be made there, waits all the same.
            ticket = ticket.or_else(|| Ticket::take(&line, me).ok());
            thread::sleep(Duration::from_millis(POLL_MS));
            waited_ms += POLL_MS;
        }
        write_holder(&mut file, me);
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
        durable::create_folder(folder)?;
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let everyone = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    match rustix::fs::open(path, flags | OFlags::RDWR | OFlags::CREATE, everyone) {
        // A lock that another user made can be held without being written.
        Err(rustix::io::Errno::ACCESS) => {
            Ok(File::from(rustix::fs::open(path, flags | OFlags::RDONLY, Mode::empty())?))
        }
        opened => {
            let file = File::from(opened?);
            durable::share(&file, path.parent().unwrap_or(path));
            Ok(file)
        }
    }
}

fn try_lock(file: &File, how: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, how) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Says who it is. Only for people who wait; a lock is held whether or not this can be written.
fn write_holder(file: &mut File, me: &LockHolder) {
    let text = serde_json::to_vec(me).expect("bug: a holder is plain text and numbers");
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text));
}

fn read_holder(file: &mut File) -> Option<LockHolder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
