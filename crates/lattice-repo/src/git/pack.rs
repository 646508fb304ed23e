//! Writes many objects with one process, as a pack that git takes apart. Their ids are known beforehand.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use lattice_model::id::Oid;
use sha1::Digest as _;

use super::error::GitError;
use super::process::Git;

/// From this many objects on the pack is kept as it is: creating a file for each costs more than
/// everything else, and `git gc` treats a small pack like any other.
const KEEP_FROM: usize = 20;

/// Objects to be written. No ref is created or moved.
pub(crate) struct Pack {
    objects: Vec<(Kind, Vec<u8>)>,
    hex_len: usize,
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
        Self { objects: Vec::new(), hex_len }
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

    fn add(&mut self, kind: Kind, content: Vec<u8>) -> Oid {
        let id = object_id(kind, &content, self.hex_len);
        self.objects.push((kind, content));
        id
    }

    /// Hands everything to git.
    pub(crate) fn write(self, git: &Git) -> Result<(), GitError> {
        let mut stream = b"PACK\0\0\0\x02".to_vec();
        let count =
            u32::try_from(self.objects.len()).map_err(|_| GitError::unexpected("index-pack", "too many objects"))?;
        stream.extend_from_slice(&count.to_be_bytes());
        for (kind, content) in &self.objects {
            stream.extend_from_slice(&object_header(*kind, content.len()));
            let mut encoder = ZlibEncoder::new(&mut stream, Compression::fast());
            let written = encoder.write_all(content).and_then(|()| encoder.finish().map(drop));
            written.expect("bug: writing to memory does not fail");
        }
        let trailer = digest(self.hex_len, &[&stream]);
        stream.extend_from_slice(&trailer);
        if self.objects.len() < KEEP_FROM {
            return git.call("unpack-objects").arg("-q").stdin(stream).run().map(drop);
        }
        // The whole file system is flushed before any ref moves, so git need not flush this pack by itself.
        let call = git.call("index-pack").arg("--stdin").stdin(stream);
        let call = call.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "core.fsync");
        call.env("GIT_CONFIG_VALUE_0", "none").run().map(drop)
    }
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
