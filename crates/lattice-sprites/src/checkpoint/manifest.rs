//! The list in a pack: everything that the upper layers hold, in a form that is written and read by hand.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::{is_id, pack_name};

/// Which layer an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Layer {
    Workspace,
    Home,
}

/// One file, folder, link or hole of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) layer: Layer,
    /// Relative, the bytes of the names joined by `/`; the layer itself is empty.
    pub(super) path: Vec<u8>,
    pub(super) mode: u32,
    pub(super) modified: (i64, i64),
    /// What tells whether it changed.
    pub(super) inode: u64,
    pub(super) changed: (i64, i64),
    pub(super) size: u64,
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    Folder,
    /// Pieces of content; what lies between them is a hole.
    File(Vec<Piece>),
    /// Another name of the file at this index of the list.
    Link(u32),
    Symlink(Vec<u8>),
    Fifo,
    /// Something below is deleted.
    Whiteout,
}

/// Where bytes of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index into the packs of the list.
    pub(super) pack: u32,
    pub(super) pack_at: u64,
    pub(super) file_at: u64,
    pub(super) length: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The packs that the content is in.
    pub(super) packs: Vec<String>,
    /// Parents before their children.
    pub(super) entries: Vec<Entry>,
}

/// Why a list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("the checkpoint `{0}` is not there")]
    Missing(String),
    #[error("the checkpoint `{0}` is damaged")]
    Damaged(String),
    #[error("the checkpoint could not be read")]
    Io(#[from] io::Error),
}

pub(super) const MAGIC: &[u8; 8] = b"LTCHKP1\n";
/// Offset and length of the list, and the magic bytes again.
pub(super) const TRAILER: u64 = 24;

impl Manifest {
    /// Reads the list of a pack.
    pub(super) fn read(folder: &Path, id: &str) -> Result<Self, ManifestError> {
        if !is_id(id) {
            return Err(ManifestError::Missing(id.to_owned()));
        }
        match File::open(folder.join(pack_name(id))) {
            Ok(file) => Self::from_file(file, id),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ManifestError::Missing(id.to_owned())),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn from_file(mut file: File, id: &str) -> Result<Self, ManifestError> {
        let damaged = || ManifestError::Damaged(id.to_owned());
        let length = file.metadata()?.len();
        let end = length.checked_sub(TRAILER).ok_or_else(damaged)?;
        file.seek(SeekFrom::Start(end))?;
        let mut trailer = [0; TRAILER as usize];
        file.read_exact(&mut trailer)?;
        let number = |at: usize| u64::from_le_bytes(trailer[at..at + 8].try_into().unwrap_or_default());
        let (offset, size) = (number(0), number(8));
        if &trailer[16..] != MAGIC || offset.checked_add(size) != Some(end) {
            return Err(damaged());
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| damaged())?];
        file.read_exact(&mut bytes)?;
        Reader { rest: &bytes }.manifest().ok_or_else(damaged)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() * 128);
        put_number(&mut out, self.packs.len() as u64);
        self.packs.iter().for_each(|pack| put_bytes(&mut out, pack.as_bytes()));
        put_number(&mut out, self.entries.len() as u64);
        self.entries.iter().for_each(|entry| put_entry(&mut out, entry));
        out
    }
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.push(match entry.layer {
        Layer::Workspace => 0,
        Layer::Home => 1,
    });
    put_bytes(out, &entry.path);
    for number in [u64::from(entry.mode), entry.modified.0 as u64, entry.modified.1 as u64, entry.inode] {
        put_number(out, number);
    }
    for number in [entry.changed.0 as u64, entry.changed.1 as u64, entry.size, entry.attributes.len() as u64] {
        put_number(out, number);
    }
    for (name, value) in &entry.attributes {
        put_bytes(out, name);
        put_bytes(out, value);
    }
    match &entry.body {
        Body::Folder => out.push(0),
        Body::File(pieces) => {
            out.push(1);
            put_number(out, pieces.len() as u64);
            for piece in pieces {
                let numbers = [u64::from(piece.pack), piece.pack_at, piece.file_at, piece.length];
                numbers.into_iter().for_each(|number| put_number(out, number));
            }
        }
        Body::Link(index) => {
            out.push(2);
            put_number(out, u64::from(*index));
        }
        Body::Symlink(target) => {
            out.push(3);
            put_bytes(out, target);
        }
        Body::Fifo => out.push(4),
        Body::Whiteout => out.push(5),
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn manifest(mut self) -> Option<Manifest> {
        let packs = self.number()?;
        let packs = (0..packs).map(|_| String::from_utf8(self.bytes()?).ok().filter(|id| is_id(id)));
        let packs: Vec<_> = packs.collect::<Option<_>>()?;
        let count = self.number()?;
        let mut entries = Vec::new();
        // Whether each path is a folder; a path that comes twice could be a link the second time.
        let mut known_paths = HashMap::new();
        for _ in 0..count {
            let entry = self.entry()?;
            let known = match &entry.body {
                Body::File(pieces) => pieces.iter().all(|piece| (piece.pack as usize) < packs.len()),
                Body::Link(index) => (*index as usize) < entries.len(),
                Body::Folder | Body::Symlink(_) | Body::Fifo | Body::Whiteout => true,
            };
            if !known || !is_inside(&entry.path) || !is_below(&entry, &known_paths) {
                return None;
            }
            let place = (entry.layer, entry.path.clone());
            if known_paths.insert(place, entry.body == Body::Folder).is_some() {
                return None;
            }
            entries.push(entry);
        }
        self.rest.is_empty().then_some(Manifest { packs, entries })
    }

    fn entry(&mut self) -> Option<Entry> {
        let layer = match self.byte()? {
            0 => Layer::Workspace,
            1 => Layer::Home,
            _ => return None,
        };
        let path = self.bytes()?;
        let mode = u32::try_from(self.number()?).ok()?;
        let modified = (self.number()? as i64, self.number()? as i64);
        let inode = self.number()?;
        let changed = (self.number()? as i64, self.number()? as i64);
        let size = self.number()?;
        let count = self.number()?;
        let attributes = (0..count).map(|_| Some((self.bytes()?, self.bytes()?))).collect::<Option<_>>()?;
        let body = self.body()?;
        Some(Entry { layer, path, mode, modified, inode, changed, size, attributes, body })
    }

    fn body(&mut self) -> Option<Body> {
        Some(match self.byte()? {
            0 => Body::Folder,
            1 => {
                let count = self.number()?;
                let piece = |reader: &mut Self| {
                    Some(Piece {
                        pack: u32::try_from(reader.number()?).ok()?,
                        pack_at: reader.number()?,
                        file_at: reader.number()?,
                        length: reader.number()?,
                    })
                };
                Body::File((0..count).map(|_| piece(self)).collect::<Option<_>>()?)
            }
            2 => Body::Link(u32::try_from(self.number()?).ok()?),
            3 => Body::Symlink(self.bytes()?),
            4 => Body::Fifo,
            5 => Body::Whiteout,
            _ => return None,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let (head, rest) = self.rest.split_at_checked(8)?;
        self.rest = rest;
        Some(u64::from_le_bytes(head.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (head, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(head.to_vec())
    }
}

/// A path that a restore may write: no way out of the layer.
fn is_inside(path: &[u8]) -> bool {
    path.is_empty() || path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// Whether the folder that an entry is in comes before it. A link in its place would lead out of the layer.
fn is_below(entry: &Entry, known: &HashMap<(Layer, Vec<u8>), bool>) -> bool {
    let parent = match entry.path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &entry.path[..slash],
        None => b"",
    };
    entry.path.is_empty() && entry.body == Body::Folder || known.get(&(entry.layer, parent.to_vec())) == Some(&true)
}
