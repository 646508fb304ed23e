//! Goes through a layer and lists what is in it.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::manifest::{Body, Entry, Layer, Manifest};

/// Attributes of the overlay that mean nothing in another layer.
const DROPPED: [&[u8]; 4] =
    [b"user.overlay.origin", b"user.overlay.impure", b"user.overlay.nlink", b"user.overlay.uuid"];

/// A restore names what it makes by whole paths, which the system takes up to 4,096 bytes of; a part is the place's own.
const LONGEST_PATH: usize = 3_000;

/// A layer that is being listed.
pub(super) struct Walk<'a, F> {
    pub(super) layer: Layer,
    pub(super) entries: &'a mut Vec<Entry>,
    /// Files with several names, by device and inode.
    pub(super) linked: HashMap<(u64, u64), u32>,
    /// Gives the content of a file, whose folder and name are given.
    pub(super) content: F,
    pub(super) known: &'a HashMap<(Layer, &'a [u8]), &'a Entry>,
}

/// Opens the folder that a place stands for.
pub(super) fn open_folder(place: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(place, name, flags, Mode::empty())?)
}

impl<F> Walk<'_, F>
where
    F: FnMut(BorrowedFd<'_>, &[u8], &Entry) -> io::Result<Body>,
{
    /// Lists a folder with everything below it.
    pub(super) fn folder(&mut self, folder: OwnedFd, path: Vec<u8>) -> io::Result<()> {
        let stat = rustix::fs::fstat(&folder)?;
        let attributes =
            self.attributes(&stat, &path, || format!("/proc/self/fd/{}/.", folder.as_raw_fd()).into_bytes())?;
        let entry = entry(self.layer, path.clone(), &stat, attributes, Body::Folder);
        self.entries.push(entry);
        let mut names = Vec::new();
        for found in Dir::read_from(&folder)? {
            let name = found?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        for name in names {
            let mut inner = path.clone();
            if !inner.is_empty() {
                inner.push(b'/');
            }
            inner.extend_from_slice(&name);
            self.one(folder.as_fd(), &name, inner)?;
        }
        Ok(())
    }

    fn one(&mut self, folder: BorrowedFd<'_>, name: &[u8], path: Vec<u8>) -> io::Result<()> {
        if path.len() > LONGEST_PATH {
            return Err(io::Error::other(format!("a path of {} bytes could not be restored", path.len())));
        }
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            return self.folder(open_folder(folder, name)?, path);
        }
        let whole = || [format!("/proc/self/fd/{}/", folder.as_raw_fd()).as_bytes(), name].concat();
        let body = match kind {
            FileType::Symlink => Body::Symlink(rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes()),
            FileType::Fifo => Body::Fifo,
            FileType::CharacterDevice if stat.st_rdev == 0 => Body::Whiteout,
            FileType::RegularFile => Body::File(Vec::new()),
            // Sockets belong to processes, which no checkpoint holds; devices cannot be made inside.
            FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Directory
            | FileType::Unknown => {
                return Ok(());
            }
        };
        let attributes = match body {
            Body::Whiteout | Body::Symlink(_) => Vec::new(),
            Body::Folder | Body::File(_) | Body::Link(_) | Body::Fifo => self.attributes(&stat, &path, whole)?,
        };
        let mut entry = entry(self.layer, path, &stat, attributes, body);
        if let Body::File(_) = entry.body {
            let file = (stat.st_dev, stat.st_ino);
            entry.body = match self.linked.get(&file) {
                Some(first) => Body::Link(*first),
                None => (self.content)(folder, name, &entry)?,
            };
            if stat.st_nlink > 1 && !matches!(entry.body, Body::Link(_)) {
                self.linked.insert(file, u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
            }
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Extended attributes; a change of one changes the time of the entry, so known ones are not read again.
    fn attributes(
        &self,
        stat: &Stat,
        path: &[u8],
        whole: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        if let Some(known) = self.known.get(&(self.layer, path))
            && known.inode == stat.st_ino
            && known.changed == (stat.st_ctime, stat.st_ctime_nsec as i64)
        {
            return Ok(known.attributes.clone());
        }
        read_attributes(&whole())
    }
}

pub(super) fn read_attributes(path: &[u8]) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut names = [0; 65536];
    let length = match rustix::fs::llistxattr(path, &mut names) {
        Ok(length) => length,
        Err(rustix::io::Errno::OPNOTSUPP) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut attributes = Vec::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if DROPPED.contains(&name) || !name.starts_with(b"user.") {
            continue;
        }
        let mut value = vec![0; 65536];
        let size = rustix::fs::lgetxattr(path, name, &mut value)?;
        value.truncate(size);
        attributes.push((name.to_vec(), value));
    }
    Ok(attributes)
}

fn entry(layer: Layer, path: Vec<u8>, stat: &Stat, attributes: Vec<(Vec<u8>, Vec<u8>)>, body: Body) -> Entry {
    Entry {
        layer,
        path,
        mode: stat.st_mode & 0o7777,
        modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
        inode: stat.st_ino,
        changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        attributes,
        body,
    }
}

/// Entries by place, to compare with.
pub(super) fn index(manifest: &Manifest) -> HashMap<(Layer, &[u8]), &Entry> {
    manifest.entries.iter().map(|entry| ((entry.layer, entry.path.as_slice()), entry)).collect()
}
