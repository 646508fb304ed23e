//! Answers the kernel's questions about renames, as the first process of a sandbox.
//!
//! A rename of anything but a folder goes on in the kernel. That of a folder is carried out by a process of its own,
//! which has the rights of the agent and no more.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};

use super::filter::Renaming;
use super::spec::Spec;
use super::sys::{self, Change, Fork, Question, Verdict};
use super::{confine, relocate};

/// Where questions arrive, and what is being done about them.
pub(super) struct Renames {
    listener: Option<OwnedFd>,
    /// Folders on their way: the process that moves one, and the question that it answers.
    moving: Vec<(libc::pid_t, u64)>,
}

/// One side of a rename.
struct Side {
    /// What the path begins at, if it does not begin at the root.
    folder: OwnedFd,
    path: Vec<u8>,
}

/// More a path does not have.
const LONGEST: u64 = 4096;

impl Renames {
    pub(super) fn new(listener: Option<OwnedFd>) -> Self {
        Self { listener, moving: Vec::new() }
    }

    pub(super) fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(OwnedFd::as_fd)
    }

    /// Nobody is left who could ask.
    pub(super) fn close(&mut self) {
        self.listener = None;
    }

    pub(super) fn are_open(&self) -> bool {
        !self.moving.is_empty()
    }

    /// Hears one question and answers it, or has it answered.
    pub(super) fn hear(&mut self, spec: &Spec) {
        let Some(listener) = &self.listener else { return };
        let Ok(question) = sys::question(listener.as_fd()) else { return };
        let worker = sides(&question)
            .filter(|_| sys::is_waiting(listener.as_fd(), question.id))
            .and_then(|(old, new, flags)| start(spec, &question, (&old, &new), flags));
        match worker {
            Some(worker) => self.moving.push((worker, question.id)),
            None => sys::answer(listener.as_fd(), question.id, Verdict::GoOn),
        }
    }

    /// Gives the answer of a process that moved a folder, if this is one.
    pub(super) fn ended(&mut self, process: libc::pid_t, change: Change) {
        let Some(at) = self.moving.iter().position(|(moving, _)| *moving == process) else { return };
        let (_, question) = self.moving.swap_remove(at);
        let done = match change {
            Change::Exited(0) => Ok(()),
            Change::Exited(errno) => Err(errno),
            Change::Killed(_) | Change::Stopped(_) => Err(libc::EIO),
        };
        if let Some(listener) = &self.listener {
            sys::answer(listener.as_fd(), question, Verdict::Done(done));
        }
    }
}

/// What is to be renamed to what, if it is a folder.
fn sides(question: &Question) -> Option<(Side, Side, RenameFlags)> {
    let [a, b, c, d, e, _] = question.arguments;
    let here = libc::AT_FDCWD as u64;
    let (old, new, flags) = match question.call {
        libc::SYS_renameat2 => ((a, b), (c, d), e),
        libc::SYS_renameat => ((a, b), (c, d), 0),
        _ => ((here, a), (here, b), 0),
    };
    let memory = File::open(format!("/proc/{}/mem", question.task)).ok()?;
    let side = |(folder, path): (u64, u64)| {
        let path = text(&memory, path)?;
        // What `self` is there is different for everyone.
        let folder = (!path.starts_with(b"/proc/")).then(|| folder_of(question.task, folder))??;
        Some(Side { folder, path })
    };
    let (old, new) = (side(old)?, side(new)?);
    let found = rustix::fs::statat(&old.folder, old.path.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    is_folder.then_some((old, new, RenameFlags::from_bits_retain(flags as u32)))
}

/// The folder that a descriptor of a task stands for, or the one that it works in.
fn folder_of(task: libc::pid_t, descriptor: u64) -> Option<OwnedFd> {
    // Only the lower half of a register counts for a number of this size.
    let descriptor = descriptor as u32 as i32;
    let path = match descriptor {
        libc::AT_FDCWD => format!("/proc/{task}/cwd"),
        descriptor => format!("/proc/{task}/fd/{descriptor}"),
    };
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// A text in the memory of a task. It is read page by page, since what follows the last one may not be there.
fn text(memory: &File, at: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while (text.len() as u64) < LONGEST {
        let next = at.checked_add(text.len() as u64)?;
        let mut piece = vec![0; usize::try_from(LONGEST - next % LONGEST).ok()?];
        memory.read_exact_at(&mut piece, next).ok()?;
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&piece[..end]);
                return Some(text);
            }
            None => text.append(&mut piece),
        }
    }
    None
}

/// Starts a process that renames with the rights of the agent; its exit code is the error.
fn start(spec: &Spec, question: &Question, (old, new): (&Side, &Side), flags: RenameFlags) -> Option<libc::pid_t> {
    let here = folder_of(question.task, libc::AT_FDCWD as u64)?;
    match sys::fork().ok()? {
        Fork::Parent(worker) => Some(worker),
        Fork::Child => {
            let confined = rustix::process::fchdir(&here).is_ok() && confine::confine(spec, Renaming::Direct).is_ok();
            let sides = ((old.folder.as_fd(), old.path.as_slice()), (new.folder.as_fd(), new.path.as_slice()));
            let errno = match confined.then(|| relocate::rename(sides.0, sides.1, flags)) {
                Some(Ok(())) => 0,
                Some(Err(error)) => error.raw_os_error(),
                None => libc::EIO,
            };
            std::process::exit(errno)
        }
    }
}
