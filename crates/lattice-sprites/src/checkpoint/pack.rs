//! Writes a checkpoint: the content that changed, then the list of everything.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, SeekFrom as Seek};

use super::manifest::{Body, Entry, Layer, MAGIC, Manifest, ManifestError, Piece};
use super::walk::{Walk, index, open_folder};
use super::{Roots, pack_name};

/// A pack that is written and not yet there for anyone.
pub(crate) struct Packed {
    file: File,
    temporary: String,
    name: String,
    folder: OwnedFd,
    files: u64,
    bytes: u64,
}

/// What a checkpoint cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Where the layers are mounted, so that a mapped file can be told by its path.
const MOUNTED: [(&str, Layer); 2] = [("/workspace", Layer::Workspace), ("/home/agent", Layer::Home)];

/// Writes down the layers as they are now. Nothing may change them meanwhile.
pub(crate) fn pack(roots: &Roots, id: &str, previous: Option<&str>, mapped: &BTreeSet<PathBuf>) -> io::Result<Packed> {
    let old = match previous {
        Some(previous) => read_previous(roots, previous)?,
        None => Manifest::default(),
    };
    let temporary = format!(".{id}.tmp");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::openat(&roots.checkpoints, &temporary, flags, Mode::from_raw_mode(0o600))?);
    let mut writer = Writer::new(file.try_clone()?, id, &old, mapped)?;
    let known = index(&old);
    let mut entries = Vec::new();
    for (layer, place) in [(Layer::Workspace, &roots.workspace), (Layer::Home, &roots.home)] {
        let content = |folder: BorrowedFd<'_>, name: &[u8], entry: &Entry| writer.content(&known, folder, name, entry);
        let mut walk = Walk { layer, entries: &mut entries, linked: HashMap::new(), content, known: &known };
        walk.folder(open_folder(place.as_fd(), b".")?, Vec::new())?;
    }
    let files = entries.len() as u64;
    let bytes = writer.finish(entries)?;
    let folder = roots.checkpoints.try_clone()?;
    Ok(Packed { file, temporary, name: pack_name(id), folder, files, bytes })
}

fn read_previous(roots: &Roots, previous: &str) -> io::Result<Manifest> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&roots.checkpoints, pack_name(previous), flags, Mode::empty())?;
    Manifest::from_file(File::from(file), previous).map_err(|error| match error {
        ManifestError::Io(error) => error,
        ManifestError::Missing(_) | ManifestError::Damaged(_) => io::Error::other(error.to_string()),
    })
}

impl Packed {
    /// Makes the pack durable, and only then gives it its name.
    pub(crate) fn publish(self) -> io::Result<Made> {
        self.file.sync_data()?;
        rustix::fs::renameat(&self.folder, &self.temporary, &self.folder, &self.name)?;
        let folder = rustix::fs::openat(&self.folder, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::fs::fsync(&folder)?;
        Ok(Made { files: self.files, bytes: self.bytes })
    }
}

struct Writer<'a> {
    out: BufWriter<File>,
    at: u64,
    packs: Vec<String>,
    /// This pack among `packs`.
    own: u32,
    mapped: &'a BTreeSet<PathBuf>,
    piece: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(file: File, id: &str, old: &Manifest, mapped: &'a BTreeSet<PathBuf>) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(MAGIC)?;
        let mut packs = old.packs.clone();
        let own = u32::try_from(packs.len()).map_err(io::Error::other)?;
        packs.push(id.to_owned());
        Ok(Self { out, at: MAGIC.len() as u64, packs, own, mapped, piece: vec![0; 1 << 18] })
    }

    /// The content of a file: as before if nothing tells otherwise, else written here.
    fn content(
        &mut self,
        known: &HashMap<(Layer, &[u8]), &Entry>,
        folder: BorrowedFd<'_>,
        name: &[u8],
        entry: &Entry,
    ) -> io::Result<Body> {
        if let Some(before) = known.get(&(entry.layer, entry.path.as_slice()))
            && is_unchanged(before, entry)
            && !self.is_mapped(entry)
            && let Body::File(_) = before.body
        {
            return Ok(before.body.clone());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
        let mut pieces = Vec::new();
        let mut position = 0;
        while position < entry.size {
            // The next bytes that are there; what lies before them is a hole.
            let start = match rustix::fs::seek(&file, Seek::Data(position)) {
                Ok(start) => start,
                Err(rustix::io::Errno::NXIO) => break,
                Err(error) => return Err(error.into()),
            };
            let end = rustix::fs::seek(&file, Seek::Hole(start))?;
            file.seek(SeekFrom::Start(start))?;
            let pack_at = self.at;
            let length = self.copy(&mut file, end - start)?;
            pieces.push(Piece { pack: self.own, pack_at, file_at: start, length });
            if length < end - start {
                break;
            }
            position = end;
        }
        Ok(Body::File(pieces))
    }

    fn copy(&mut self, file: &mut File, length: u64) -> io::Result<u64> {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.piece.len());
            let count = file.read(&mut self.piece[..most])?;
            if count == 0 {
                break;
            }
            self.out.write_all(&self.piece[..count])?;
            left -= count as u64;
        }
        self.at += length - left;
        Ok(length - left)
    }

    fn is_mapped(&self, entry: &Entry) -> bool {
        if self.mapped.is_empty() {
            return false;
        }
        let mounted = MOUNTED.iter().find(|(_, layer)| *layer == entry.layer).map_or("", |(path, _)| path);
        use std::os::unix::ffi::OsStrExt as _;
        self.mapped.contains(&Path::new(mounted).join(std::ffi::OsStr::from_bytes(&entry.path)))
    }

    fn finish(mut self, entries: Vec<Entry>) -> io::Result<u64> {
        let list = Manifest { packs: self.packs, entries }.encode();
        self.out.write_all(&list)?;
        for number in [self.at, list.len() as u64] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.at + list.len() as u64)
    }
}

fn is_unchanged(before: &Entry, now: &Entry) -> bool {
    (before.inode, before.size, before.modified, before.changed, before.mode)
        == (now.inode, now.size, now.modified, now.changed, now.mode)
}
