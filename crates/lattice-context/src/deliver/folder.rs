//! A folder of this machine that is replaced as a whole.
//!
//! A delivery is written beside the folder and exchanged with it by one rename, so that whoever reads sees the old
//! files or the new ones. Every name is opened below an open folder and no link is followed: where somebody planted
//! one, it is replaced, and what it leads to stays as it is. Nothing waits for the disk, since what a power cut
//! takes is gathered again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use super::Backend;

const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);

/// A folder, by its parent and its name there.
pub struct HostFolder {
    parent: OwnedFd,
    name: String,
    /// Where a delivery is written until it is whole.
    fresh: String,
    /// Whose the files are, if not the user's.
    owner: Option<u32>,
}

impl HostFolder {
    /// The folder `path`, which may be missing as its parents may. A relative path starts at `base` and goes through
    /// no links; an absolute one is the user's own choice up to its last part.
    pub fn at(base: &Path, path: &Path, owner: Option<u32>) -> io::Result<Self> {
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this names no folder of its own"));
        };
        let name = name.to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the name is no text"))?;
        let above = path.parent().unwrap_or(Path::new(""));
        let mut parent = if path.is_absolute() {
            std::fs::create_dir_all(above)?;
            open_folder(CWD, above, OFlags::empty())?
        } else {
            open_folder(CWD, base, OFlags::empty())?
        };
        for part in above.components().filter(|_| !path.is_absolute()) {
            let part = Path::new(part.as_os_str());
            make_folder(&parent, part, None)?;
            parent = open_folder(&parent, part, OFlags::NOFOLLOW)?;
        }
        Ok(Self { parent, name: name.to_owned(), fresh: format!(".{name}.new"), owner })
    }
}

impl Backend for HostFolder {
    fn clear(&mut self) -> io::Result<()> {
        // Two deliveries at once would write into each other's files.
        rustix::fs::flock(&self.parent, FlockOperation::NonBlockingLockExclusive)?;
        remove(&self.parent, Path::new(&self.fresh))
    }

    fn create(&mut self, folders: &[&str]) -> io::Result<()> {
        make_folder(&self.parent, Path::new(&self.fresh), self.owner)?;
        let root = self.root()?;
        folders.iter().try_for_each(|folder| make_folder(&root, Path::new(folder), self.owner))
    }

    fn write(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let mut folder = self.root()?;
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in above.split('/').filter(|part| !part.is_empty()) {
            folder = open_folder(&folder, Path::new(part), OFlags::NOFOLLOW)?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, name, flags, FILE_MODE)?);
        file.write_all(content)?;
        own(&folder, Path::new(name), self.owner)
    }

    fn list(&mut self) -> io::Result<BTreeMap<String, Option<u64>>> {
        let mut found = BTreeMap::new();
        list(&self.root()?, "", &mut found)?;
        Ok(found)
    }

    fn publish(&mut self) -> io::Result<()> {
        let (parent, fresh, name) = (&self.parent, self.fresh.as_str(), self.name.as_str());
        match rustix::fs::renameat_with(parent, fresh, parent, name, RenameFlags::EXCHANGE) {
            // What was there before has the name of the unfinished now; if it stays, the next delivery removes it.
            Ok(()) => drop(remove(parent, Path::new(fresh))),
            Err(Errno::NOENT) => rustix::fs::renameat(parent, fresh, parent, name)?,
            // Some file systems cannot exchange: for a moment there is nothing.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                remove(parent, Path::new(name))?;
                rustix::fs::renameat(parent, fresh, parent, name)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(rustix::fs::flock(parent, FlockOperation::Unlock)?)
    }
}

impl HostFolder {
    /// The folder that is being written.
    fn root(&self) -> io::Result<OwnedFd> {
        open_folder(&self.parent, Path::new(&self.fresh), OFlags::NOFOLLOW)
    }

    /// What is in the folder now; nothing if there is none.
    pub fn current(&self) -> io::Result<BTreeMap<String, Option<u64>>> {
        let mut found = BTreeMap::new();
        match open_folder(&self.parent, Path::new(&self.name), OFlags::NOFOLLOW) {
            Ok(folder) => list(&folder, "", &mut found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(found)
    }
}

impl Drop for HostFolder {
    /// An unfinished delivery is of no use to anybody.
    fn drop(&mut self) {
        if rustix::fs::flock(&self.parent, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = remove(&self.parent, Path::new(&self.fresh));
        }
    }
}

fn open_folder(parent: impl std::os::fd::AsFd, name: &Path, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

fn make_folder(parent: &OwnedFd, name: &Path, owner: Option<u32>) -> io::Result<()> {
    match rustix::fs::mkdirat(parent, name, FOLDER_MODE) {
        Ok(()) => own(parent, name, owner),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn own(folder: &OwnedFd, name: &Path, owner: Option<u32>) -> io::Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
    Ok(rustix::fs::chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The entries of a folder without `.` and `..`.
fn entries(folder: &OwnedFd) -> io::Result<Vec<std::ffi::OsString>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn list(folder: &OwnedFd, above: &str, found: &mut BTreeMap<String, Option<u64>>) -> io::Result<()> {
    for name in entries(folder)? {
        let path = format!("{above}{}", name.to_string_lossy());
        let stat = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                list(&open_folder(folder, Path::new(&name), OFlags::NOFOLLOW)?, &format!("{path}/"), found)?;
            }
            FileType::RegularFile => drop(found.insert(path, u64::try_from(stat.st_size).ok())),
            _ => drop(found.insert(path, None)),
        }
    }
    Ok(())
}

/// Removes a file, a link or a whole folder.
fn remove(parent: &OwnedFd, name: &Path) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = open_folder(parent, name, OFlags::NOFOLLOW)?;
    for entry in entries(&folder)? {
        remove(&folder, Path::new(&entry))?;
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}
