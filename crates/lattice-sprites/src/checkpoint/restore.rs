//! Rebuilds the layers of a checkpoint in empty folders.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};

use super::manifest::{Body, Entry, Layer, Manifest, ManifestError, Piece};
use super::pack_name;

/// More would only wait for each other.
const MOST_WORKERS: usize = 4;

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
    let path = |entry: &Entry| {
        let top = match entry.layer {
            Layer::Workspace => workspace,
            Layer::Home => home,
        };
        top.join(OsStr::from_bytes(&entry.path))
    };
    let paths: Vec<PathBuf> = manifest.entries.iter().map(path).collect();
    let (parts, tops, links) = parts(&manifest.entries);
    let restore = Restore { folder: packs, manifest: &manifest, paths: &paths, owner };
    // A top is there already; it gets its rights and times with the other folders, when nothing is put into it any more.
    restore.make_all(&tops, &mut Source::new())?;
    at_once(&parts, |part, source| restore.make_all(part, source))?;
    restore.make_all(&links, &mut Source::new())?;
    at_once(&parts, |part, _| restore.finish_folders(part))?;
    restore.finish_folders(&tops)
}

/// Numbers of entries, in the order in which they are made.
type Part = Vec<usize>;

/// What is below each name in a top, which can be made beside the others; the tops themselves; and second names of files,
/// which need the first.
fn parts(entries: &[Entry]) -> (Vec<Part>, Part, Part) {
    let mut below: BTreeMap<(Layer, &[u8]), Part> = BTreeMap::new();
    let (mut tops, mut links) = (Part::new(), Part::new());
    for (number, entry) in entries.iter().enumerate() {
        let name = entry.path.split(|byte| *byte == b'/').next().unwrap_or_default();
        match entry.body {
            Body::Link(_) => links.push(number),
            _ if name.is_empty() => tops.push(number),
            _ => below.entry((entry.layer, name)).or_default().push(number),
        }
    }
    (below.into_values().collect(), tops, links)
}

/// Does something with each part, as many at once as there are processors: making a file is mostly waiting for the kernel.
fn at_once(
    parts: &[Part],
    work: impl Fn(&Part, &mut Source) -> Result<(), RestoreError> + Sync,
) -> Result<(), RestoreError> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut source = Source::new();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(part, &mut source)?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS).min(parts.len());
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(some)).collect();
        let done = some();
        others.into_iter().fold(done, |done, other| done.and(other.join().expect("bug: a restore does not panic")))
    })
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

struct Restore<'a> {
    folder: &'a Path,
    manifest: &'a Manifest,
    paths: &'a [PathBuf],
    owner: Option<u32>,
}

/// Packs that are open, and room for what is copied out of them.
struct Source {
    open: HashMap<u32, File>,
    buffer: Vec<u8>,
}

impl Source {
    fn new() -> Self {
        Self { open: HashMap::new(), buffer: vec![0; 1 << 17] }
    }
}

impl Restore<'_> {
    fn at(&self, number: usize) -> impl FnOnce(io::Error) -> RestoreError {
        move |source| RestoreError::Io { path: self.paths[number].display().to_string(), source }
    }

    fn make_all(&self, part: &Part, source: &mut Source) -> Result<(), RestoreError> {
        part.iter().try_for_each(|&number| self.make(number, source).map_err(self.at(number)))
    }

    /// Gives folders their rights and times, the innermost first.
    fn finish_folders(&self, part: &Part) -> Result<(), RestoreError> {
        let is_folder = |number: &&usize| self.manifest.entries[**number].body == Body::Folder;
        let mut folders = part.iter().rev().filter(is_folder);
        folders.try_for_each(|&number| {
            finish(&self.manifest.entries[number], &self.paths[number]).map_err(self.at(number))
        })
    }

    fn make(&self, number: usize, source: &mut Source) -> io::Result<()> {
        let (entry, path) = (&self.manifest.entries[number], self.paths[number].as_path());
        match &entry.body {
            Body::Folder => {
                match fs::create_dir(path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && entry.path.is_empty() => {}
                    made => made?,
                }
                return self.own(path);
            }
            Body::Link(first) => return fs::hard_link(&self.paths[*first as usize], path),
            Body::File(pieces) => return self.file(entry, pieces, path, source),
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
    fn file(&self, entry: &Entry, pieces: &[Piece], path: &Path, source: &mut Source) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?);
        let mut end = 0;
        for piece in pieces {
            let pack = match source.open.entry(piece.pack) {
                Slot::Occupied(open) => open.into_mut(),
                Slot::Vacant(slot) => {
                    let name = pack_name(&self.manifest.packs[piece.pack as usize]);
                    slot.insert(File::open(self.folder.join(name))?)
                }
            };
            let mut done = 0;
            while done < piece.length {
                let most = usize::try_from(piece.length - done).unwrap_or(usize::MAX).min(source.buffer.len());
                pack.read_exact_at(&mut source.buffer[..most], piece.pack_at + done)?;
                file.write_all_at(&source.buffer[..most], piece.file_at + done)?;
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
