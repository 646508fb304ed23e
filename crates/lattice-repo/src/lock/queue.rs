//! The line in front of the lock: a file for each who waits, numbered in the order in which they came.
//!
//! Who waits holds a lock on their own file. The kernel drops it with its owner, so the dead are recognised and
//! passed over.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::{LockHolder, open, read_holder, try_lock, write_holder};

/// How many numbers are tried that others took first.
const ATTEMPTS: u64 = 1000;

/// A place in the line, given up when it is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    path: PathBuf,
    number: u64,
    _file: File,
}

impl Ticket {
    /// Goes to the end of the line.
    pub(super) fn take(line: &Path, me: &LockHolder) -> io::Result<Self> {
        // Its lock comes before its number, so that nobody takes it for one of the dead.
        let unnumbered = line.join(format!("new-{}-{:?}", me.pid, std::thread::current().id()));
        let mut file = open(&unnumbered)?;
        try_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        write_holder(&mut file, me);
        let last = numbers(line).last().copied().unwrap_or(0);
        let taken = (last + 1..=last + ATTEMPTS).find_map(|number| {
            let path = line.join(number.to_string());
            match fs::hard_link(&unnumbered, &path) {
                Ok(()) => Some(Ok((path, number))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(error) => Some(Err(error)),
            }
        });
        let _ = fs::remove_file(&unnumbered);
        let (path, number) = taken.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        Ok(Self { path, number, _file: file })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Left behind it would be taken for one of the dead, and that is what it is.
        let _ = fs::remove_file(&self.path);
    }
}

/// Who stands before this ticket, or before anyone who has none; `None` if nobody does.
pub(super) fn first_in_line(line: &Path, ticket: Option<&Ticket>) -> Option<Option<LockHolder>> {
    let before = |number: &u64| ticket.is_none_or(|ticket| *number < ticket.number);
    for number in numbers(line).into_iter().filter(before) {
        let path = line.join(number.to_string());
        let Ok(mut file) = open(&path) else { continue };
        match try_lock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(true) => {
                // Its owner died.
                let _ = fs::remove_file(&path);
            }
            Ok(false) | Err(_) => return Some(read_holder(&mut file)),
        }
    }
    None
}

/// The numbers in the line, in order.
fn numbers(line: &Path) -> Vec<u64> {
    let entries = fs::read_dir(line).into_iter().flatten().flatten();
    let mut numbers: Vec<u64> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
