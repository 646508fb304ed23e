//! What an operation that was killed leaves behind: processes of git that outlive it for a moment, and lock files
//! of those that were killed too.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use lattice_model::id::OpId;

use crate::durable;
use crate::git::process::INSIDE_OPERATION;

use super::error::io_error;
use super::keep::keep_ref;
use super::{ExecuteError, Executor};

/// Git ends by itself when nobody talks to it any more.
const PATIENCE: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);

/// The commands that change refs, files or HEAD. Others, such as a daemon that git started, may stay.
const WRITERS: &[&[u8]] =
    &[b"update-ref", b"symbolic-ref", b"read-tree", b"rebase", b"checkout-index", b"update-index"];

impl Executor<'_> {
    /// Waits for the processes of an operation that was cut off, and removes what those that were killed left in
    /// the way of its refs.
    pub(super) fn settle_remains(&self) -> Result<(), ExecuteError> {
        let mut waited = 0;
        while let Some(pid) = writer_of(&self.journal.op_id) {
            if waited == PATIENCE {
                return Err(ExecuteError::StillRunning { pid });
            }
            waited += 1;
            thread::sleep(PAUSE);
        }
        let plan = self.journal.plan.touched_refs().into_iter().map(|touched| touched.name);
        let own = [self.pending_ref(), keep_ref(&self.journal.op_id), crate::ledger::ledger_ref()];
        let prepared = self.journal.prepared.as_ref();
        let mut values: Vec<_> = prepared.iter().flat_map(|p| p.edits.iter().filter_map(|edit| edit.new)).collect();
        values.extend(prepared.iter().flat_map(|p| [p.keep, p.intent, p.committed]));
        let written: Vec<_> = values.iter().map(|value| format!("{value}\n")).collect();
        for name in plan.chain(own) {
            let lock = self.repo.paths.common_dir.join(format!("{name}.lock"));
            if is_ours(&lock, &written) {
                durable::remove(&lock).map_err(io_error("remove a lock file of the operation"))?;
            }
        }
        Ok(())
    }
}

/// A living process of the operation that may change something.
fn writer_of(op: &OpId) -> Option<u32> {
    let wanted = format!("{INSIDE_OPERATION}={op}");
    let me = std::process::id();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // Processes of other users cannot be looked at, and are not ours.
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if pid == me || !environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            continue;
        }
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if words.split(|byte| *byte == 0).any(|word| WRITERS.contains(&word)) {
            return Some(pid);
        }
    }
    None
}

/// Whether a lock holds what the operation was about to write, or stays empty: a living git fills its own at once.
fn is_ours(lock: &Path, written: &[String]) -> bool {
    let content = || fs::read(lock).ok();
    match content() {
        None => false,
        Some(text) if text.is_empty() => {
            thread::sleep(PAUSE);
            content().is_some_and(|text| text.is_empty())
        }
        Some(text) => written.iter().any(|value| value.as_bytes() == text),
    }
}
