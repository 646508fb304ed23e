//! Trees that an agent made, as the host sees them.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Gives something that was made for a sprite to the user that its sandbox runs as.
pub(crate) fn give(path: &Path, owner: Option<u32>) -> io::Result<()> {
    match owner {
        Some(owner) => std::os::unix::fs::lchown(path, Some(owner), Some(owner)),
        None => Ok(()),
    }
}

/// Removes a tree, also one whose folders were closed, as the work folder of an overlay is.
///
/// However deep it is: folders are moved to the top before they are emptied, so that no path and no row of open folders
/// gets long.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return fs::remove_file(path),
        Ok(_) => {}
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    let top = open_folder(rustix::fs::CWD, path)?;
    let mut moved = 0_u64;
    loop {
        let names = names(&top)?;
        if names.is_empty() {
            break;
        }
        for (name, is_folder) in names {
            if is_folder {
                empty((&top, &name), &mut moved)?;
                rustix::fs::unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
            } else {
                rustix::fs::unlinkat(&top, &name, AtFlags::empty())?;
            }
        }
    }
    fs::remove_dir(path)
}

/// Takes everything out of a folder: files are removed, folders come to the top.
fn empty((top, name): (&OwnedFd, &CStr), moved: &mut u64) -> io::Result<()> {
    open_up(top.as_fd(), name)?;
    let folder = open_folder(top, name)?;
    for (inner, is_folder) in names(&folder)? {
        if !is_folder {
            rustix::fs::unlinkat(&folder, &inner, AtFlags::empty())?;
            continue;
        }
        // To move a folder is to change what is above it, which it must allow.
        open_up(folder.as_fd(), &inner)?;
        loop {
            *moved += 1;
            match rustix::fs::renameat_with(&folder, &inner, top, format!(".{moved}"), RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                done => break done?,
            }
        }
    }
    Ok(())
}

fn open_up(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    Ok(rustix::fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty())?)
}

fn open_folder(place: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(place, name, flags, Mode::empty())?)
}

/// What is in a folder, and whether each is a folder itself.
fn names(folder: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut names = Vec::new();
    for found in Dir::read_from(folder)? {
        let found = found?;
        let name = found.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match found.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            known => known,
        };
        names.push((name.to_owned(), kind == FileType::Directory));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_deeper_than_any_path_is_removed_with_its_closed_folders() {
        let scratch = tempfile::tempdir().expect("a folder");
        let path = scratch.path().join("tree");
        fs::create_dir(&path).expect("a folder");
        let mut folder = open_folder(rustix::fs::CWD, &path).expect("it opens");
        for _ in 0..3000 {
            rustix::fs::mkdirat(&folder, "deep", Mode::RWXU).expect("a folder");
            rustix::fs::symlinkat("/etc", &folder, ".1").expect("a link");
            folder = open_folder(&folder, "deep").expect("it opens");
        }
        fs::create_dir_all(path.join("closed/inner")).expect("folders");
        fs::set_permissions(path.join("closed"), fs::Permissions::from_mode(0o000)).expect("it is closed");
        remove_all(&path).expect("all of it is removed");
        assert!(!path.exists() && Path::new("/etc/passwd").exists());
    }
}
