//! Renames a folder that the file system cannot rename: makes it anew and moves what is in it.
//!
//! An overlay refuses to rename a folder of the layers below. Files it can rename, so no content is copied here, and
//! whoever has one of them open keeps it.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, XattrFlags};
use rustix::io::{Errno, Result};

/// A name in an open folder.
#[derive(Clone, Copy)]
struct Spot<'a> {
    folder: BorrowedFd<'a>,
    name: &'a [u8],
}

/// Renames as the system call does, and piece by piece where that is the only way.
pub(super) fn rename(
    (old_folder, old): (BorrowedFd<'_>, &[u8]),
    (new_folder, new): (BorrowedFd<'_>, &[u8]),
    flags: RenameFlags,
) -> Result<()> {
    match rustix::fs::renameat_with(old_folder, old, new_folder, new, flags) {
        Err(Errno::XDEV) if !flags.intersects(RenameFlags::EXCHANGE | RenameFlags::WHITEOUT) => {}
        done => return done,
    }
    let ((old_folder, old), (new_folder, new)) = (parent(old_folder, old)?, parent(new_folder, new)?);
    // Between two file systems nothing can be renamed, and programs know that.
    if rustix::fs::fstat(&old_folder)?.st_dev != rustix::fs::fstat(&new_folder)?.st_dev {
        return Err(Errno::XDEV);
    }
    let (old, new) = (Spot { folder: old_folder.as_fd(), name: old }, Spot { folder: new_folder.as_fd(), name: new });
    match rustix::fs::mkdirat(new.folder, new.name, Mode::RWXU) {
        Err(Errno::EXIST) if !flags.contains(RenameFlags::NOREPLACE) => {
            // An empty folder is replaced, and anything else is in the way.
            rustix::fs::unlinkat(new.folder, new.name, AtFlags::REMOVEDIR)?;
            rustix::fs::mkdirat(new.folder, new.name, Mode::RWXU)?;
        }
        made => made?,
    }
    fill(old, new)
}

/// The folder that a path leads to, and the last name of the path.
fn parent<'a>(folder: BorrowedFd<'_>, path: &'a [u8]) -> Result<(OwnedFd, &'a [u8])> {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let path = &path[..end];
    let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..=slash], &path[slash + 1..]),
        None => (&b"."[..], path),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((rustix::fs::openat(folder, above, flags, Mode::empty())?, name))
}

/// Moves everything of a folder into a new one that is there for it. If that fails, everything goes back.
fn fill(old: Spot<'_>, new: Spot<'_>) -> Result<()> {
    let was = rustix::fs::statat(old.folder, old.name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(was.st_mode) != FileType::Directory {
        return give_up(new, Errno::XDEV);
    }
    // What is in a folder that is closed for writing goes with it.
    let mode = Mode::from_raw_mode(was.st_mode & 0o7777);
    let open = |spot: Spot<'_>| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(spot.folder, spot.name, flags, Mode::empty())
    };
    let opened = rustix::fs::chmodat(old.folder, old.name, mode | Mode::RWXU, AtFlags::empty())
        .and_then(|()| Ok((open(old)?, open(new)?)));
    let (from, to) = match opened {
        Ok(opened) => opened,
        Err(error) => return give_up(new, error),
    };
    let moved = move_all(&from, &to)
        .and_then(|()| copy_attributes(&from, &to))
        .and_then(|()| rustix::fs::unlinkat(old.folder, old.name, AtFlags::REMOVEDIR));
    match moved {
        Ok(()) => {
            rustix::fs::fchmod(&to, mode)?;
            rustix::fs::futimens(&to, &times(&was))
        }
        Err(error) => {
            let _ = move_all(&to, &from);
            let _ = rustix::fs::fchmod(&from, mode);
            let _ = rustix::fs::futimens(&from, &times(&was));
            give_up(new, error)
        }
    }
}

fn give_up(new: Spot<'_>, error: Errno) -> Result<()> {
    let _ = rustix::fs::unlinkat(new.folder, new.name, AtFlags::REMOVEDIR);
    Err(error)
}

/// Moves each entry of a folder; of those that are folders of the layers below, what is in them.
fn move_all(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    let mut names = Vec::new();
    for entry in Dir::read_from(from)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    for name in &names {
        match rustix::fs::renameat(from, name, to, name) {
            Err(Errno::XDEV) => {
                rustix::fs::mkdirat(to, name, Mode::RWXU)?;
                fill(Spot { folder: from.as_fd(), name }, Spot { folder: to.as_fd(), name })?;
            }
            done => done?,
        }
    }
    Ok(())
}

fn copy_attributes(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    let mut names = vec![0; 1 << 16];
    let length = match rustix::fs::flistxattr(from, names.as_mut_slice()) {
        Err(Errno::OPNOTSUPP) => 0,
        length => length?,
    };
    let mut value = vec![0; 1 << 16];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let size = rustix::fs::fgetxattr(from, name, value.as_mut_slice())?;
        rustix::fs::fsetxattr(to, name, &value[..size], XattrFlags::empty())?;
    }
    Ok(())
}

fn times(was: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    Timestamps {
        last_access: time(was.st_atime, was.st_atime_nsec as i64),
        last_modification: time(was.st_mtime, was.st_mtime_nsec as i64),
    }
}
