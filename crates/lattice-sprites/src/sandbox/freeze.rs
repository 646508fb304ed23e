//! Holds every process of the sandbox still, so that what is written down is one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use libc::pid_t;

use super::family::Family;
use super::sys::{self, Change, Patience};

/// Everything is held until this is let go.
pub(super) struct Frozen {
    /// Tasks and the signals that they were about to get.
    held: BTreeMap<pid_t, i32>,
    /// Processes that ended while they were to be held.
    pub(super) ended: Vec<(pid_t, Change)>,
}

/// Stops all tasks of a family but this one. A signal would do it too, but shells would see it; a tracer they do not see.
pub(super) fn freeze(family: Family) -> Frozen {
    let mut frozen = Frozen { held: BTreeMap::new(), ended: Vec::new() };
    let mut seized = BTreeSet::new();
    loop {
        let new: Vec<_> = family.tasks().into_iter().filter(|task| !seized.contains(task)).collect();
        if new.is_empty() {
            return frozen;
        }
        for task in new {
            // One that ends in this moment cannot be seized, and need not be.
            if sys::seize(task).is_ok() && sys::interrupt(task).is_ok() {
                frozen.await_stop(task);
            }
            seized.insert(task);
        }
    }
}

impl Frozen {
    fn await_stop(&mut self, task: pid_t) {
        loop {
            match sys::wait(task, Patience::JustLook) {
                Some((_, Change::Stopped(signal))) => {
                    self.held.insert(task, signal);
                    return;
                }
                Some((_, change @ (Change::Exited(_) | Change::Killed(_)))) => {
                    self.ended.push((task, change));
                    return;
                }
                None if cannot_stop(task) => return,
                None => std::thread::yield_now(),
            }
        }
    }

    /// Files that are mapped for writing: what is written that way leaves no trace in their times.
    pub(super) fn mapped_files(&self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        for task in self.held.keys() {
            let Ok(maps) = fs::read(format!("/proc/{task}/maps")) else { continue };
            for line in maps.split(|byte| *byte == b'\n') {
                let mut words = line.splitn(6, |byte| *byte == b' ');
                let rights = words.nth(1).unwrap_or_default();
                let path = words.nth(3).unwrap_or_default().trim_ascii_start();
                if rights.get(1) == Some(&b'w') && rights.get(3) == Some(&b's') && path.starts_with(b"/") {
                    use std::os::unix::ffi::OsStrExt as _;
                    files.insert(PathBuf::from(std::ffi::OsStr::from_bytes(path)));
                }
            }
        }
        files
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.held.iter().for_each(|(task, signal)| drop(sys::release(*task, *signal)));
    }
}

/// Whether a task will not stop and need not: it is over, or it waits in `vfork` for its child to begin.
fn cannot_stop(task: pid_t) -> bool {
    let Ok(state) = fs::read_to_string(format!("/proc/{task}/stat")) else { return true };
    match state.rsplit(") ").next().and_then(|rest| rest.chars().next()) {
        Some('Z' | 'X') | None => return true,
        Some('D') => {}
        Some(_) => return false,
    }
    let call = fs::read_to_string(format!("/proc/{task}/syscall")).unwrap_or_default();
    let call = call.split(' ').next().and_then(|number| number.parse::<libc::c_long>().ok());
    #[cfg(target_arch = "x86_64")]
    let waiting = [libc::SYS_vfork, libc::SYS_clone, libc::SYS_clone3];
    #[cfg(not(target_arch = "x86_64"))]
    let waiting = [libc::SYS_clone, libc::SYS_clone3];
    call.is_some_and(|call| waiting.contains(&call))
}
