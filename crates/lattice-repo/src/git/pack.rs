//! Writes many objects at once: few as files that git makes of them, many as a pack. Their ids are known beforehand.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use lattice_model::id::Oid;
use sha1::Digest as _;

use crate::durable;

use super::error::GitError;
use super::process::Git;

/// From this many objects on the pack is kept as it is: creating a file for each costs more than
/// everything else, and `git gc` treats a small pack like any other.
const KEEP_FROM: usize = 20;

/// Objects to be written. No ref is created or moved.
pub(crate) struct Pack {
    objects: Vec<Object>,
    ids: HashSet<Oid>,
    size: usize,
    hex_len: usize,
}

struct Object {
    id: Oid,
    kind: Kind,
    content: Rc<[u8]>,
}

/// A commit for Lattice's own use.
pub(crate) struct NewCommit<'a> {
    pub(crate) message: &'a str,
    pub(crate) seconds: i64,
    pub(crate) parents: Vec<Oid>,
    pub(crate) tree: Oid,
}

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Blob(Oid),
    Tree(Oid),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Commit = 1,
    Tree = 2,
    Blob = 3,
}

impl Pack {
    /// For a repository whose ids have `hex_len` digits.
    pub(crate) fn new(hex_len: usize) -> Self {
        Self { objects: Vec::new(), ids: HashSet::new(), size: 0, hex_len }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// How many bytes the objects have in memory.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn blob(&mut self, content: &[u8]) -> Oid {
        self.add(Kind::Blob, content.to_vec())
    }

    pub(crate) fn tree(&mut self, mut entries: Vec<(String, Entry)>) -> Oid {
        // Git sorts folders as if their names ended in a slash.
        let key = |(name, entry): &(String, Entry)| match entry {
            Entry::Blob(_) => name.clone(),
            Entry::Tree(_) => format!("{name}/"),
        };
        entries.sort_by_key(key);
        entries.dedup();
        let mut content = Vec::new();
        for (name, entry) in entries {
            let (mode, oid) = match entry {
                Entry::Blob(oid) => ("100644", oid),
                Entry::Tree(oid) => ("40000", oid),
            };
            content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            content.extend_from_slice(oid.as_bytes());
        }
        self.add(Kind::Tree, content)
    }

    pub(crate) fn commit(&mut self, commit: &NewCommit<'_>) -> Oid {
        let who = format!("Lattice <lattice@localhost> {} +0000", commit.seconds);
        let parents: String = commit.parents.iter().map(|parent| format!("parent {parent}\n")).collect();
        let content = format!("tree {}\n{parents}author {who}\ncommitter {who}\n\n{}", commit.tree, commit.message);
        self.add(Kind::Commit, content.into_bytes())
    }

    /// A commit whose every byte is given.
    pub(crate) fn raw_commit(&mut self, content: Vec<u8>) -> Oid {
        self.add(Kind::Commit, content)
    }

    pub(crate) fn tree_id(&self, content: &[u8]) -> Oid {
        object_id(Kind::Tree, content, self.hex_len)
    }

    /// A tree whose every byte is given, and its id.
    pub(crate) fn raw_tree(&mut self, id: Oid, content: Rc<[u8]>) {
        self.push(Object { id, kind: Kind::Tree, content });
    }

    fn add(&mut self, kind: Kind, content: Vec<u8>) -> Oid {
        let id = object_id(kind, &content, self.hex_len);
        self.push(Object { id, kind, content: content.into() });
        id
    }

    /// Adds an object, unless it is there already: a pack has each of them once.
    fn push(&mut self, object: Object) {
        if self.ids.insert(object.id) {
            self.size += object.content.len();
            self.objects.push(object);
        }
    }

    /// Writes everything, durably: the ledger points to some of it before the whole file system is flushed.
    pub(crate) fn write(self, git: &Git, common_dir: &Path) -> Result<(), GitError> {
        let packed = Packed::new(&self.objects, self.hex_len)?;
        if self.objects.len() < KEEP_FROM {
            git.call("unpack-objects").arg("-q").stdin(packed.stream).run()?;
            return self.check_stored(git, common_dir);
        }
        if shares_files(common_dir) {
            // Who may read the files is a matter of configuration that git knows best.
            return git.call("index-pack").arg("--stdin").stdin(packed.stream).run().map(drop);
        }
        packed.install(&git.objects_dir(common_dir).join("pack"))
    }

    /// With one flush for many objects, git writes them elsewhere first, and does not look whether it could move them to
    /// their place: it ends with success where a folder must not be written or the disk is full.
    fn check_stored(&self, git: &Git, common_dir: &Path) -> Result<(), GitError> {
        let folder = git.objects_dir(common_dir);
        let file = |id: Oid| {
            let name = id.to_string();
            folder.join(&name[..2]).join(&name[2..])
        };
        let elsewhere: Vec<_> = self.objects.iter().map(|object| object.id).filter(|id| !file(*id).exists()).collect();
        if elsewhere.is_empty() {
            return Ok(());
        }
        // What was there before may be in a pack.
        let names: String = elsewhere.iter().map(|id| format!("{id}\n")).collect();
        let told = git.call("cat-file").arg("--batch-check").stdin(names.into_bytes()).run()?;
        let told = String::from_utf8_lossy(&told);
        match elsewhere.iter().zip(told.lines()).find(|(_, line)| line.ends_with(" missing")) {
            Some((id, _)) => {
                let source = std::io::Error::other("git could not put the object there");
                Err(GitError::Write { path: file(*id), source })
            }
            None => Ok(()),
        }
    }
}

/// A pack as git stores it.
struct Packed {
    stream: Vec<u8>,
    checksum: Vec<u8>,
    /// Id, checksum and place of each object, by id.
    entries: Vec<(Oid, u32, u32)>,
    hex_len: usize,
}

impl Packed {
    fn new(objects: &[Object], hex_len: usize) -> Result<Self, GitError> {
        let too_large = |_| GitError::unexpected("index-pack", "more than a pack can hold");
        let mut stream = b"PACK\0\0\0\x02".to_vec();
        stream.extend_from_slice(&u32::try_from(objects.len()).map_err(too_large)?.to_be_bytes());
        let mut compressor = Compress::new(Compression::fast(), true);
        let mut entries = Vec::with_capacity(objects.len());
        for object in objects {
            let start = stream.len();
            stream.extend_from_slice(&object_header(object.kind, object.content.len()));
            deflate(&mut compressor, &object.content, &mut stream);
            let mut crc = Crc::new();
            crc.update(&stream[start..]);
            entries.push((object.id, crc.sum(), u32::try_from(start).map_err(too_large)?));
        }
        let checksum = digest(hex_len, &[&stream]);
        stream.extend_from_slice(&checksum);
        entries.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        Ok(Self { stream, checksum, entries, hex_len })
    }

    /// The index of the pack, version 2.
    fn index(&self) -> Vec<u8> {
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        let mut count = 0_u32;
        let mut entries = self.entries.iter().peekable();
        for first_byte in 0..=u8::MAX {
            while entries.next_if(|entry| entry.0.as_bytes()[0] == first_byte).is_some() {
                count += 1;
            }
            index.extend_from_slice(&count.to_be_bytes());
        }
        self.entries.iter().for_each(|entry| index.extend_from_slice(entry.0.as_bytes()));
        self.entries.iter().for_each(|entry| index.extend_from_slice(&entry.1.to_be_bytes()));
        self.entries.iter().for_each(|entry| index.extend_from_slice(&entry.2.to_be_bytes()));
        index.extend_from_slice(&self.checksum);
        let checksum = digest(self.hex_len, &[&index]);
        index.extend_from_slice(&checksum);
        index
    }

    /// Puts the pack where git looks for packs; its index comes last, since that is what git looks for.
    fn install(self, folder: &Path) -> Result<(), GitError> {
        let name: String = self.checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| GitError::Write { path, source }
        };
        let pack = folder.join(format!("pack-{name}.pack"));
        durable::write_read_only(&pack, &self.stream).map_err(failed(&pack))?;
        let index = folder.join(format!("pack-{name}.idx"));
        durable::write_read_only(&index, &self.index()).map_err(failed(&index))
    }
}

/// Whether the configuration gives others access to files that are made.
fn shares_files(common_dir: &Path) -> bool {
    let text = std::fs::read_to_string(common_dir.join("config")).unwrap_or_default().to_ascii_lowercase();
    text.contains("sharedrepository") || text.contains("include")
}

/// The id that git gives a blob with this content.
pub(crate) fn blob_id(content: &[u8], hex_len: usize) -> Oid {
    object_id(Kind::Blob, content, hex_len)
}

fn object_id(kind: Kind, content: &[u8], hex_len: usize) -> Oid {
    let name = match kind {
        Kind::Commit => "commit",
        Kind::Tree => "tree",
        Kind::Blob => "blob",
    };
    let header = format!("{name} {}\0", content.len());
    Oid::from_bytes(&digest(hex_len, &[header.as_bytes(), content])).expect("bug: a digest has the length of an id")
}

/// Appends what `content` becomes. One compressor serves all objects: a new one has a quarter of a megabyte to clear.
fn deflate(compressor: &mut Compress, content: &[u8], stream: &mut Vec<u8>) {
    compressor.reset();
    loop {
        let read = usize::try_from(compressor.total_in()).expect("bug: no more is read than is in memory");
        stream.reserve(content.len() - read + 64);
        let status = compressor.compress_vec(&content[read..], stream, FlushCompress::Finish);
        if status.expect("bug: compressing in memory does not fail") == Status::StreamEnd {
            return;
        }
    }
}

/// Type and size: four bits of the size first, then seven at a time.
fn object_header(kind: Kind, size: usize) -> Vec<u8> {
    let mut rest = size >> 4;
    let mut bytes = vec![((kind as u8) << 4) | (size & 15) as u8];
    while rest > 0 {
        *bytes.last_mut().expect("bug: it begins with one byte") |= 0x80;
        bytes.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    bytes
}

fn digest(hex_len: usize, parts: &[&[u8]]) -> Vec<u8> {
    match hex_len {
        64 => parts.iter().fold(sha2::Sha256::new(), |hash, part| hash.chain_update(part)).finalize().to_vec(),
        _ => parts.iter().fold(sha1::Sha1::new(), |hash, part| hash.chain_update(part)).finalize().to_vec(),
    }
}
