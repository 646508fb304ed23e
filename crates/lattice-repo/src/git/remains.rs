//! What processes of git leave behind when the program that started them is killed, or when they are.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lattice_model::id::OpId;
use lattice_model::name::RefName;
use lattice_model::snapshot::Repository;

use rustix::process::{Pid, Signal, kill_process};

use super::process::INSIDE_OPERATION;

/// The commands that change refs, files or HEAD. Others, such as a daemon that git started, may stay.
const WRITERS: &[&[u8]] =
    &[b"update-ref", b"symbolic-ref", b"read-tree", b"rebase", b"checkout-index", b"update-index"];

/// A living git fills a lock file as soon as it has made it.
const PAUSE: Duration = Duration::from_millis(20);

/// A living process of the operation that may change something.
pub(crate) fn writer_of(op: &OpId) -> Option<u32> {
    let writes = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| WRITERS.contains(&word))
    };
    processes_of(op.as_str().as_ref()).find(writes)
}

/// Ends all processes of an operation but this one: a hook that hangs, and what it started.
pub(super) fn stop(op: &OsStr) {
    // One that was just being started is found the second time.
    for pid in processes_of(op).chain(processes_of(op)) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// The living processes that were told to belong to an operation, without this one.
fn processes_of(op: &OsStr) -> impl Iterator<Item = u32> {
    let wanted = [INSIDE_OPERATION.as_bytes(), b"=", op.as_bytes()].concat();
    let me = std::process::id();
    let belongs = move |pid: &u32| {
        // Processes of other users cannot be looked at, and are not ours.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        *pid != me && environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(belongs)
}

/// The files with which git keeps others from these refs, in this worktree.
pub(crate) fn locks_of<'a>(
    repository: &Repository,
    names: impl IntoIterator<Item = &'a RefName>,
) -> impl Iterator<Item = PathBuf> {
    let common = repository.common_dir.clone();
    let refs: Vec<_> = names.into_iter().map(|name| common.join(format!("{name}.lock"))).collect();
    let others = [head_lock(&repository.git_dir), common.join("packed-refs.lock")];
    refs.into_iter().chain(others)
}

/// The file with which git keeps others from the HEAD of a worktree.
pub(crate) fn head_lock(git_dir: &Path) -> PathBuf {
    git_dir.join("HEAD.lock")
}

/// Where a lock is that a plan names.
pub(crate) fn lock_path(common_dir: &Path, name: &str) -> PathBuf {
    common_dir.join(name)
}

/// Whether a lock holds one of these values, or stays empty.
pub(crate) fn is_left_behind(lock: &Path, written: &[String]) -> bool {
    let content = || fs::read(lock).ok();
    match content() {
        None => false,
        Some(text) if text.is_empty() => {
            thread::sleep(PAUSE);
            content().is_some_and(|text| text.is_empty())
        }
        // Git writes the value and the end of its line one after the other.
        Some(text) => written.iter().any(|value| value.as_bytes().starts_with(&text)),
    }
}

/// Whether the index of a worktree is locked by nobody that is alive: no git runs there, and nobody else, such as an
/// editor with a git of its own, lets go of it in time.
pub(crate) fn is_abandoned(lock: &Path, work_dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = || fs::symlink_metadata(lock).ok().map(|found| (found.ino(), found.len(), found.mtime_nsec()));
    let Some(before) = identity() else { return false };
    if git_runs_below(work_dir) {
        return false;
    }
    thread::sleep(PAUSE);
    identity() == Some(before) && !git_runs_below(work_dir)
}

fn git_runs_below(work_dir: &Path) -> bool {
    let mine = format!("PPid:\t{}\n", std::process::id());
    let below = |entry: fs::DirEntry| {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let is_git = name.trim_end() == "git" || name.starts_with("git-");
        let here = || fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(work_dir));
        // Those that this process started only read by now.
        let is_mine = || fs::read_to_string(entry.path().join("status")).is_ok_and(|text| text.contains(&mine));
        is_git && here() && !is_mine()
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().any(below)
}

/// What git writes next to a lock file before it takes the place of the file.
pub(crate) fn draft_beside(lock: &Path) -> PathBuf {
    lock.with_extension("new")
}
