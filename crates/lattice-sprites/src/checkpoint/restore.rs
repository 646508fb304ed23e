//! Makes the layers what they were at a checkpoint.
//!
//! What is as it was stays, so a restore costs what changed. Nothing is taken for the same by its times: content that is
//! kept was compared with the checkpoint's.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::manifest::{Body, Entry, Layer, Manifest, ManifestError, Piece};
use super::pack_name;
use super::walk::read_attributes;
use crate::tree::{give, remove_all};

/// More would only wait for each other.
const MOST_WORKERS: usize = 4;

/// Rights without which the owner cannot read and change a file, or a folder.
const OPEN_FILE: u32 = 0o600;
const OPEN_FOLDER: u32 = 0o700;

/// Why a checkpoint cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("`{path}` could not be restored")]
    Io { path: String, source: io::Error },
}

/// A checkpoint that is there as a whole.
pub struct Checkpoint {
    packs: PathBuf,
    manifest: Manifest,
}

impl Checkpoint {
    /// Reads the list of a checkpoint, and sees that everything it names is there.
    pub fn open(packs: &Path, id: &str) -> Result<Self, ManifestError> {
        let manifest = Manifest::read(packs, id)?;
        for (pack, end) in manifest.packs.iter().zip(ends(&manifest)).filter(|(_, end)| *end > 0) {
            match fs::metadata(packs.join(pack_name(pack))) {
                Ok(found) if found.len() >= end => {}
                Ok(_) => return Err(ManifestError::Damaged(pack.clone())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(ManifestError::Missing(pack.clone()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { packs: packs.to_owned(), manifest })
    }

    /// Makes two folders what they were. New files belong to `owner` if one is given.
    ///
    /// Nobody else may change the folders meanwhile. Who is cut off has left something in between, and does it again.
    pub fn restore(&self, (workspace, home): (&Path, &Path), owner: Option<u32>) -> Result<(), RestoreError> {
        let entries = &self.manifest.entries;
        let path = |entry: &Entry| {
            let top = match entry.layer {
                Layer::Workspace => workspace,
                Layer::Home => home,
            };
            if entry.path.is_empty() { top.to_owned() } else { top.join(OsStr::from_bytes(&entry.path)) }
        };
        let paths: Vec<PathBuf> = entries.iter().map(path).collect();
        let linked = entries.iter().filter_map(|entry| match entry.body {
            Body::Link(first) => Some(first as usize),
            Body::Folder | Body::File(_) | Body::Symlink(_) | Body::Fifo | Body::Whiteout => None,
        });
        let restore = Restore {
            folder: &self.packs,
            manifest: &self.manifest,
            expected: paths.iter().map(PathBuf::as_path).collect(),
            linked: linked.collect(),
            paths: &paths,
            owner,
        };
        let (parts, tops, links) = parts(entries);
        // A folder gets its rights and times when nothing is put into it any more.
        restore.put_all(&tops, &mut Source::new())?;
        at_once(&parts, |part, source| restore.put_all(part, source))?;
        restore.put_all(&links, &mut Source::new())?;
        at_once(&parts, |part, _| restore.finish_folders(part))?;
        restore.finish_folders(&tops)
    }
}

/// How long each pack must be at least.
fn ends(manifest: &Manifest) -> Vec<u64> {
    let mut ends = vec![0; manifest.packs.len()];
    for entry in &manifest.entries {
        let Body::File(pieces) = &entry.body else { continue };
        for piece in pieces {
            let end = &mut ends[piece.pack as usize];
            *end = piece.pack_at.saturating_add(piece.length).max(*end);
        }
    }
    ends
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
    let used = manifest.packs.iter().zip(ends(&manifest)).filter(|(pack, end)| *end > 0 || *pack == id);
    Ok(used.map(|(pack, _)| packs.join(pack_name(pack))).collect())
}

struct Restore<'a> {
    folder: &'a Path,
    manifest: &'a Manifest,
    paths: &'a [PathBuf],
    /// The same, to look up.
    expected: HashSet<&'a Path>,
    /// Entries with further names.
    linked: HashSet<usize>,
    owner: Option<u32>,
}

/// Packs that are open, and room for what is read of them and of what is there.
pub(super) struct Source {
    open: HashMap<u32, File>,
    buffer: Vec<u8>,
    there: Vec<u8>,
}

impl Source {
    pub(super) fn new() -> Self {
        Self { open: HashMap::new(), buffer: vec![0; 1 << 17], there: vec![0; 1 << 17] }
    }

    /// Hands the bytes of a piece on, with their place in the file, for as long as they are wanted.
    pub(super) fn read(
        &mut self,
        (folder, manifest): (&Path, &Manifest),
        piece: &Piece,
        mut take: impl FnMut(&[u8], u64) -> io::Result<bool>,
    ) -> io::Result<()> {
        let pack = match self.open.entry(piece.pack) {
            Slot::Occupied(open) => open.into_mut(),
            Slot::Vacant(slot) => {
                let name = pack_name(&manifest.packs[piece.pack as usize]);
                slot.insert(File::open(folder.join(name))?)
            }
        };
        let mut done = 0;
        while done < piece.length {
            let most = usize::try_from(piece.length - done).unwrap_or(usize::MAX).min(self.buffer.len());
            pack.read_exact_at(&mut self.buffer[..most], piece.pack_at + done)?;
            if !take(&self.buffer[..most], piece.file_at + done)? {
                break;
            }
            done += most as u64;
        }
        Ok(())
    }
}

impl Restore<'_> {
    fn packs(&self) -> (&Path, &Manifest) {
        (self.folder, self.manifest)
    }

    fn at(&self, number: usize) -> impl FnOnce(io::Error) -> RestoreError {
        move |source| RestoreError::Io { path: self.paths[number].display().to_string(), source }
    }

    fn put_all(&self, part: &Part, source: &mut Source) -> Result<(), RestoreError> {
        part.iter().try_for_each(|&number| self.put(number, source).map_err(self.at(number)))
    }

    fn put(&self, number: usize, source: &mut Source) -> io::Result<()> {
        let (entry, path) = (&self.manifest.entries[number], self.paths[number].as_path());
        match (self.kept(number)?, &entry.body) {
            (None, _) => self.make(entry, path, source),
            (Some(found), Body::Folder) => self.clear(&found, path),
            (Some(found), Body::File(pieces)) => {
                let is_same = found.len() == entry.size && self.is_same(&found, pieces, path, source)?;
                if !is_same {
                    // What cannot be written any more, for whatever reason, is made anew.
                    return match open(path, OFlags::WRONLY | OFlags::TRUNC) {
                        Ok(file) => self.fill(entry, pieces, &file, source),
                        Err(_) => remove_all(path).and_then(|()| self.make(entry, path, source)),
                    };
                }
                if is_finished(entry, &found) { Ok(()) } else { finish(entry, path) }
            }
            (Some(found), _) if is_finished(entry, &found) => Ok(()),
            (Some(_), _) => finish(entry, path),
        }
    }

    /// What is there in the place of an entry and can stay; anything else is removed.
    fn kept(&self, number: usize) -> io::Result<Option<Metadata>> {
        let (entry, path) = (&self.manifest.entries[number], self.paths[number].as_path());
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let kind = found.file_type();
        let stays = match &entry.body {
            Body::Folder => kind.is_dir(),
            Body::File(_) => {
                let is_alone = found.nlink() == 1 && !self.linked.contains(&number);
                kind.is_file() && is_alone && found.mode() & OPEN_FILE == OPEN_FILE
            }
            Body::Link(_) => false,
            Body::Symlink(target) => kind.is_symlink() && fs::read_link(path)?.as_os_str().as_bytes() == target,
            Body::Fifo => kind.is_fifo(),
            // Those of an overlay are names of one file, so none of them can get times of its own.
            Body::Whiteout => {
                let is_alone = found.nlink() == 1 || is_finished(entry, &found);
                kind.is_char_device() && found.rdev() == 0 && is_alone
            }
        };
        // A restore that was cut off may have made something and not yet given it away.
        let is_owned = self.owner.is_none_or(|owner| (found.uid(), found.gid()) == (owner, owner));
        if stays && kind.is_dir() {
            if !is_owned {
                give(path, self.owner)?;
            }
            drop_access_lists(path)?;
            return Ok(Some(found));
        }
        let is_plain = || Ok::<_, io::Error>(!has_access_list(path)? && attributes(path)? == sorted(&entry.attributes));
        if stays && is_owned && (kind.is_symlink() || is_plain()?) {
            return Ok(Some(found));
        }
        remove_all(path)?;
        Ok(None)
    }

    /// Removes from a folder what was not in it.
    fn clear(&self, found: &Metadata, folder: &Path) -> io::Result<()> {
        if found.mode() & OPEN_FOLDER != OPEN_FOLDER {
            fs::set_permissions(folder, fs::Permissions::from_mode(OPEN_FOLDER))?;
        }
        for found in fs::read_dir(folder)? {
            let path = found?.path();
            if !self.expected.contains(path.as_path()) {
                remove_all(&path)?;
            }
        }
        Ok(())
    }

    /// Gives folders their attributes, rights and times, the innermost first.
    fn finish_folders(&self, part: &Part) -> Result<(), RestoreError> {
        let is_folder = |number: &&usize| self.manifest.entries[**number].body == Body::Folder;
        let mut folders = part.iter().rev().filter(is_folder);
        folders.try_for_each(|&number| {
            let (entry, path) = (&self.manifest.entries[number], self.paths[number].as_path());
            drop_attributes(entry, path).and_then(|()| finish(entry, path)).map_err(self.at(number))
        })
    }

    fn make(&self, entry: &Entry, path: &Path, source: &mut Source) -> io::Result<()> {
        match &entry.body {
            Body::Folder => {
                fs::create_dir(path)?;
                return give(path, self.owner);
            }
            Body::Link(first) => return fs::hard_link(&self.paths[*first as usize], path),
            Body::File(pieces) => {
                let file = open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
                if let Some(owner) = self.owner {
                    rustix::fs::fchown(&file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
                }
                for (name, value) in &entry.attributes {
                    rustix::fs::fsetxattr(&file, name.as_slice(), value, XattrFlags::empty())?;
                }
                return self.fill(entry, pieces, &file, source);
            }
            Body::Symlink(target) => std::os::unix::fs::symlink(OsStr::from_bytes(target), path)?,
            Body::Fifo => rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?,
            Body::Whiteout => {
                rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::from_raw_mode(0o600), 0)?;
            }
        }
        give(path, self.owner)?;
        finish(entry, path)
    }

    /// Whether a file of the right length has this content, in one piece without holes.
    fn is_same(&self, found: &Metadata, pieces: &[Piece], path: &Path, source: &mut Source) -> io::Result<bool> {
        let is_whole = match pieces {
            [] => found.len() == 0,
            [piece] => piece.file_at == 0 && piece.length == found.len() && found.blocks() * 512 >= found.len(),
            _ => false,
        };
        if !is_whole {
            return Ok(false);
        }
        let Some(piece) = pieces.first() else { return Ok(true) };
        let file = open(path, OFlags::RDONLY)?;
        let mut there = std::mem::take(&mut source.there);
        let mut is_same = true;
        source.read(self.packs(), piece, |bytes, at| {
            let there = &mut there[..bytes.len()];
            is_same = file.read_exact_at(there, at).map(|()| there == bytes)?;
            Ok(is_same)
        })?;
        source.there = there;
        Ok(is_same)
    }

    /// All through one open file, which is empty: each path would be looked up again.
    fn fill(&self, entry: &Entry, pieces: &[Piece], file: &File, source: &mut Source) -> io::Result<()> {
        let mut end = 0;
        for piece in pieces {
            source.read(self.packs(), piece, |bytes, at| file.write_all_at(bytes, at).map(|()| true))?;
            end = end.max(piece.file_at + piece.length);
        }
        if end != entry.size {
            file.set_len(entry.size)?;
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(entry.mode))?;
        Ok(rustix::fs::futimens(file, &timestamps(entry))?)
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(OPEN_FILE))?))
}

type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

fn sorted(attributes: &Attributes) -> Attributes {
    let mut attributes = attributes.clone();
    attributes.sort_unstable();
    attributes
}

fn attributes(path: &Path) -> io::Result<Attributes> {
    Ok(sorted(&read_attributes(path.as_os_str().as_bytes())?))
}

/// Rights that no checkpoint holds; those of a folder are passed on to what is made in it.
const ACCESS_LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

fn has_access_list(path: &Path) -> io::Result<bool> {
    match rustix::fs::lgetxattr(path, ACCESS_LISTS[0], &mut [0; 0][..]) {
        Ok(_) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn drop_access_lists(folder: &Path) -> io::Result<()> {
    for name in ACCESS_LISTS {
        match rustix::fs::lremovexattr(folder, name) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Removes attributes that a folder did not have.
fn drop_attributes(entry: &Entry, path: &Path) -> io::Result<()> {
    for (name, _) in attributes(path)? {
        if !entry.attributes.iter().any(|(wanted, _)| *wanted == name) {
            rustix::fs::lremovexattr(path, name.as_slice())?;
        }
    }
    Ok(())
}

/// Whether something that stays has its rights and times.
fn is_finished(entry: &Entry, found: &Metadata) -> bool {
    let has_rights = matches!(entry.body, Body::Symlink(_)) || found.mode() & 0o7777 == entry.mode;
    has_rights && (found.mtime(), found.mtime_nsec()) == entry.modified
}

/// Attributes, rights and times, in this order: the last two would be changed by the first.
fn finish(entry: &Entry, path: &Path) -> io::Result<()> {
    if !matches!(entry.body, Body::Symlink(_)) {
        for (name, value) in &entry.attributes {
            rustix::fs::lsetxattr(path, name.as_slice(), value, XattrFlags::empty())?;
        }
        rustix::fs::chmodat(CWD, path, Mode::from_raw_mode(entry.mode), AtFlags::empty())?;
    }
    Ok(rustix::fs::utimensat(CWD, path, &timestamps(entry), AtFlags::SYMLINK_NOFOLLOW)?)
}

fn timestamps(entry: &Entry) -> Timestamps {
    let time = Timespec { tv_sec: entry.modified.0, tv_nsec: entry.modified.1 };
    Timestamps { last_access: time, last_modification: time }
}
