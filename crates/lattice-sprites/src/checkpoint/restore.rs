//! Rebuilds the layers of a checkpoint in empty folders.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};

use super::manifest::{Body, Entry, Layer, Manifest, ManifestError, Piece};
use super::pack_name;

/// Why a checkpoint cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("`{path}` could not be restored")]
    Io { path: String, source: io::Error },
}

/// Writes what the checkpoint holds into two empty folders, which belong to `owner` if one is given.
pub fn restore(
    packs: &Path,
    id: &str,
    (workspace, home): (&Path, &Path),
    owner: Option<u32>,
) -> Result<(), RestoreError> {
    let manifest = Manifest::read(packs, id)?;
    let buffer = vec![0; 1 << 17];
    let mut restorer = Restorer { folder: packs, manifest: &manifest, open: HashMap::new(), buffer, owner };
    let paths: Vec<PathBuf> = manifest
        .entries
        .iter()
        .map(|entry| {
            let top = match entry.layer {
                Layer::Workspace => workspace,
                Layer::Home => home,
            };
            top.join(OsStr::from_bytes(&entry.path))
        })
        .collect();
    let place = |path: &Path, source: io::Error| RestoreError::Io { path: path.display().to_string(), source };
    for (entry, path) in manifest.entries.iter().zip(&paths) {
        restorer.make(entry, path, &paths).map_err(|source| place(path, source))?;
    }
    // Folders get their rights and times when nothing is put into them any more.
    for (entry, path) in manifest.entries.iter().zip(&paths).rev() {
        if entry.body == Body::Folder {
            finish(entry, path).map_err(|source| place(path, source))?;
        }
    }
    Ok(())
}

/// The packs that a checkpoint needs, its own among them.
pub fn restored_paths(packs: &Path, id: &str) -> Result<Vec<PathBuf>, ManifestError> {
    let manifest = Manifest::read(packs, id)?;
    let mut used = vec![id.to_owned()];
    for entry in &manifest.entries {
        if let Body::File(pieces) = &entry.body {
            used.extend(pieces.iter().map(|piece| manifest.packs[piece.pack as usize].clone()));
        }
    }
    used.sort_unstable();
    used.dedup();
    Ok(used.into_iter().map(|id| packs.join(pack_name(&id))).collect())
}

struct Restorer<'a> {
    folder: &'a Path,
    manifest: &'a Manifest,
    open: HashMap<u32, File>,
    buffer: Vec<u8>,
    owner: Option<u32>,
}

impl Restorer<'_> {
    fn make(&mut self, entry: &Entry, path: &Path, paths: &[PathBuf]) -> io::Result<()> {
        match &entry.body {
            Body::Folder => {
                match fs::create_dir(path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && entry.path.is_empty() => {}
                    made => made?,
                }
                return self.own(path);
            }
            Body::Link(first) => return fs::hard_link(&paths[*first as usize], path),
            Body::File(pieces) => return self.file(entry, pieces, path),
            Body::Symlink(target) => std::os::unix::fs::symlink(OsStr::from_bytes(target), path)?,
            Body::Fifo => rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?,
            Body::Whiteout => {
                rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::from_raw_mode(0o600), 0)?;
            }
        }
        self.own(path)?;
        match entry.body {
            Body::Symlink(_) => times(entry, path),
            Body::Folder | Body::File(_) | Body::Link(_) | Body::Fifo | Body::Whiteout => finish(entry, path),
        }
    }

    /// All through one open file: each path would be looked up again.
    fn file(&mut self, entry: &Entry, pieces: &[Piece], path: &Path) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?);
        let mut end = 0;
        for piece in pieces {
            let pack = match self.open.entry(piece.pack) {
                Slot::Occupied(open) => open.into_mut(),
                Slot::Vacant(slot) => {
                    let name = pack_name(&self.manifest.packs[piece.pack as usize]);
                    slot.insert(File::open(self.folder.join(name))?)
                }
            };
            let mut done = 0;
            while done < piece.length {
                let most = usize::try_from(piece.length - done).unwrap_or(usize::MAX).min(self.buffer.len());
                pack.read_exact_at(&mut self.buffer[..most], piece.pack_at + done)?;
                file.write_all_at(&self.buffer[..most], piece.file_at + done)?;
                done += most as u64;
            }
            end = end.max(piece.file_at + piece.length);
        }
        if end != entry.size {
            file.set_len(entry.size)?;
        }
        if let Some(owner) = self.owner {
            rustix::fs::fchown(&file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
        }
        for (name, value) in &entry.attributes {
            rustix::fs::fsetxattr(&file, name.as_slice(), value, XattrFlags::empty())?;
        }
        rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
        Ok(rustix::fs::futimens(&file, &timestamps(entry))?)
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        let Some(owner) = self.owner else { return Ok(()) };
        let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
        Ok(rustix::fs::chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Attributes, rights and times, in this order: the last two would be changed by the first.
fn finish(entry: &Entry, path: &Path) -> io::Result<()> {
    for (name, value) in &entry.attributes {
        rustix::fs::lsetxattr(path, name.as_slice(), value, XattrFlags::empty())?;
    }
    rustix::fs::chmodat(CWD, path, Mode::from_raw_mode(entry.mode), AtFlags::empty())?;
    times(entry, path)
}

fn times(entry: &Entry, path: &Path) -> io::Result<()> {
    Ok(rustix::fs::utimensat(CWD, path, &timestamps(entry), AtFlags::SYMLINK_NOFOLLOW)?)
}

fn timestamps(entry: &Entry) -> Timestamps {
    let time = Timespec { tv_sec: entry.modified.0, tv_nsec: entry.modified.1 };
    Timestamps { last_access: time, last_modification: time }
}
