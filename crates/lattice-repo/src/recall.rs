//! What a look at the repository read of objects, kept for the next look that finds the same refs and objects: it then
//! needs git only to list the refs. Nothing is decided by it that changes anything.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lattice_model::id::{ContentDigest, Oid};

use crate::Repo;
use crate::durable;
use crate::reader::publish_cache_file;

/// A larger file is not ours.
const SIZE_LIMIT: u64 = 256 << 20;

/// The contents of objects that a scan needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recalled {
    pub(crate) parents: BTreeMap<Oid, Vec<Oid>>,
    pub(crate) metadata: BTreeMap<Oid, Vec<u8>>,
    pub(crate) ledger: Option<Vec<u8>>,
}

impl Repo {
    /// What everything that is kept depends on; `None` where nothing can be kept.
    pub(crate) fn recall_key(&self, listing: &[u8], trunk: Option<Oid>) -> Option<ContentDigest> {
        let store = self.git.store_stamp(&self.paths.common_dir)?;
        let trunk = trunk.map(|trunk| trunk.to_string()).unwrap_or_default();
        Some(ContentDigest::of(&[listing, trunk.as_bytes(), &store].concat()))
    }

    /// What is kept under this key.
    pub(crate) fn recall(&self, key: &ContentDigest) -> Option<Recalled> {
        let bytes = durable::read(&self.recall_path(), SIZE_LIMIT).ok().flatten()?;
        parse(&bytes, key)
    }

    /// Keeps what was read. Whatever stands in the way of that only costs time.
    pub(crate) fn remember(&self, key: &ContentDigest, read: &Recalled) {
        let _ = publish_cache_file(&self.recall_path(), &render(read, key));
    }

    fn recall_path(&self) -> PathBuf {
        self.lattice_dir().join("cache").join("scan-1")
    }
}

/// The key, a digest of the rest, and the rest: lines of ids for the walk, then each blob and the record with its size.
fn render(read: &Recalled, key: &ContentDigest) -> Vec<u8> {
    let mut rest = Vec::new();
    for (commit, parents) in &read.parents {
        rest.extend_from_slice(format!("walk {commit}").as_bytes());
        parents.iter().for_each(|parent| rest.extend_from_slice(format!(" {parent}").as_bytes()));
        rest.push(b'\n');
    }
    let blobs = read.metadata.iter().map(|(oid, content)| (format!("blob {oid}"), content));
    for (name, content) in blobs.chain(read.ledger.iter().map(|content| ("ledger -".to_owned(), content))) {
        rest.extend_from_slice(format!("{name} {}\n", content.len()).as_bytes());
        rest.extend_from_slice(content);
        rest.push(b'\n');
    }
    let mut bytes = format!("{key} {}\n", ContentDigest::of(&rest)).into_bytes();
    bytes.extend_from_slice(&rest);
    bytes
}

fn parse(bytes: &[u8], key: &ContentDigest) -> Option<Recalled> {
    let (first, mut rest) = line(bytes)?;
    let (found, digest) = first.split_once(' ')?;
    if found != key.as_str() || digest != ContentDigest::of(rest).as_str() {
        return None;
    }
    let mut read = Recalled::default();
    while !rest.is_empty() {
        let (header, after) = line(rest)?;
        let mut words = header.split(' ');
        let (kind, name) = (words.next()?, words.next()?);
        rest = after;
        if kind == "walk" {
            let parents: Option<Vec<_>> = words.map(|word| Oid::from_hex(word.as_bytes())).collect();
            read.parents.insert(Oid::from_hex(name.as_bytes())?, parents?);
            continue;
        }
        let size: usize = words.next()?.parse().ok()?;
        let content = after.get(..size)?.to_vec();
        rest = after.get(size + 1..)?;
        match kind {
            "blob" => drop(read.metadata.insert(Oid::from_hex(name.as_bytes())?, content)),
            _ => read.ledger = Some(content),
        }
    }
    Some(read)
}

fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_whole_or_not_at_all() {
        let oid = |digit: &str| Oid::new(&digit.repeat(40)).expect("an id");
        let read = Recalled {
            parents: BTreeMap::from([(oid("1"), vec![]), (oid("2"), vec![oid("1"), oid("3")])]),
            metadata: BTreeMap::from([(oid("4"), b"{}\nwalk".to_vec()), (oid("5"), Vec::new())]),
            ledger: Some(b"a\nrecord\xff".to_vec()),
        };
        let (key, other) = (ContentDigest::of(b"key"), ContentDigest::of(b"other"));
        let bytes = render(&read, &key);
        assert_eq!(parse(&bytes, &key), Some(read));
        assert_eq!(parse(&bytes, &other), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(parse(&damaged, &key), None, "byte {at}");
            assert_eq!(parse(&bytes[..at], &key), None, "cut at {at}");
        }
    }
}
