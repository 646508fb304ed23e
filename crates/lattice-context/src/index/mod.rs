//! The index: what is known of every content, kept by blob id, shared by all worktrees, and safe to delete.

pub mod scan;
pub mod segment;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lattice_repo::publish_cache_file;
use sha1::{Digest, Sha1};

use crate::language::language_of;
use crate::retrieve::terms::{TermHash, hash};
use crate::text::{Decoded, decode};
use crate::workspace::{Entry, Workspace};
use scan::{FIELDS, Scanned};
use segment::{BlobKey, DocFacts, Record, Segment, SegmentBuilder};

/// Changes whenever what a segment holds does.
const VERSION: &str = "context-1";

/// Larger files are data; they can still be packed by name.
const INDEX_LIMIT: u64 = 1 << 20;

/// A builder of this size is written out, so that memory stays bounded.
const BUILDER_LIMIT: usize = 24 << 20;

/// More segments than this are merged.
const MOST_SEGMENTS: usize = 8;

/// The index of a workspace at one moment: its files and where each one's content is described.
#[derive(Debug)]
pub struct Index {
    pub files: Vec<IndexedFile>,
    segments: Vec<Segment>,
    /// What could not be read.
    pub warnings: Vec<String>,
    /// How many contents were read for this.
    pub scanned: usize,
}

/// A file and the place of its description.
#[derive(Debug, Clone)]
pub struct IndexedFile {
    pub path: String,
    place: Option<(u32, u32)>,
}

/// How a term occurs in a file.
#[derive(Debug, Clone, Copy)]
pub struct Occurrence {
    pub file: u32,
    pub counts: [u8; FIELDS],
}

impl Index {
    /// Brings the index up to date and opens it. Nothing about the cache can make this fail.
    pub fn open(workspace: &Workspace, entries: Vec<Entry>, threads: usize) -> Self {
        let folder = workspace.cache_dir().map(|cache| cache.join(VERSION));
        let mut segments = folder.as_deref().map(open_all).unwrap_or_default();
        let mut known = places(&segments);
        let mut warnings = Vec::new();
        let keys: Vec<Option<BlobKey>> =
            entries.iter().map(|entry| entry.blob.map(|blob| key_of(&blob.to_string(), &entry.path))).collect();
        let missing: Vec<usize> =
            (0..entries.len()).filter(|at| keys[*at].is_none_or(|key| !known.contains_key(&key))).collect();
        let work = Work { workspace, entries: &entries, keys: &keys, missing: &missing, known: &known };
        let done = work.run(threads);
        let scanned = done.scanned;
        for bytes in done.segments {
            match keep(folder.as_deref(), &bytes) {
                Ok(segment) => segments.push(segment),
                Err(error) => warnings.push(format!("the index could not be written: {error}")),
            }
        }
        known = places(&segments);
        let files = entries.into_iter().enumerate().map(|(at, entry)| {
            let key = keys[at].or(done.keys.get(&at).copied());
            IndexedFile { path: entry.path, place: key.and_then(|key| known.get(&key).copied()) }
        });
        let files: Vec<_> = files.collect();
        if let Some(folder) = folder.as_deref().filter(|_| segments.len() > MOST_SEGMENTS) {
            merge(folder, &segments, &files);
        }
        Self { files, segments, warnings, scanned }
    }

    /// Where each of these terms occurs, by file.
    pub fn occurrences(&self, terms: &[TermHash]) -> Vec<Vec<Occurrence>> {
        let mut files_of: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        for (number, file) in self.files.iter().enumerate() {
            if let Some(place) = file.place {
                files_of.entry(place).or_default().push(u32::try_from(number).unwrap_or(u32::MAX));
            }
        }
        let of_term = |term: &TermHash| {
            let mut found = Vec::new();
            for (number, segment) in self.segments.iter().enumerate() {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                // A list that is damaged is as good as empty; the next run writes it again.
                for posting in segment.postings(*term).unwrap_or_default() {
                    let files = files_of.get(&(number, posting.doc)).into_iter().flatten();
                    found.extend(files.map(|file| Occurrence { file: *file, counts: posting.counts }));
                }
            }
            found.sort_unstable_by_key(|occurrence| occurrence.file);
            found
        };
        terms.iter().map(of_term).collect()
    }

    pub fn facts(&self, file: u32) -> Option<&DocFacts> {
        let (segment, doc) = self.files.get(file as usize)?.place?;
        Some(&self.segments.get(segment as usize)?.docs.get(doc as usize)?.1)
    }

    pub fn record(&self, file: u32) -> Option<Record> {
        let (segment, doc) = self.files.get(file as usize)?.place?;
        self.segments.get(segment as usize)?.record(doc).ok()
    }
}

/// The key of a content whose id is not known yet: that of the blob it would be.
pub fn blob_id(content: &[u8]) -> String {
    let mut digest = Sha1::new();
    digest.update(format!("blob {}\0", content.len()));
    digest.update(content);
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same content is other terms in another language.
fn key_of(hex: &str, path: &str) -> BlobKey {
    let mut key = [0; 16];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = hex.get(at * 2..at * 2 + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
    }
    let language = hash(language_of(path).map_or("", |language| language.name)).to_le_bytes();
    key.iter_mut().zip(language).for_each(|(byte, language)| *byte ^= language);
    key
}

fn places(segments: &[Segment]) -> HashMap<BlobKey, (u32, u32)> {
    let mut places = HashMap::new();
    for (number, segment) in segments.iter().enumerate() {
        for (doc, (key, _)) in segment.docs.iter().enumerate() {
            let place = (u32::try_from(number).unwrap_or(u32::MAX), u32::try_from(doc).unwrap_or(u32::MAX));
            places.entry(*key).or_insert(place);
        }
    }
    places
}

/// All segments that can be read, in the order of their names.
fn open_all(folder: &Path) -> Vec<Segment> {
    segment_paths(folder).iter().filter_map(|path| Segment::open(path).ok()).collect()
}

fn segment_paths(folder: &Path) -> BTreeSet<PathBuf> {
    let Ok(found) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    let paths = found.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).collect()
}

/// Writes a segment under the name of its content and opens it; where nothing can be written it stays in memory.
fn keep(folder: Option<&Path>, bytes: &[u8]) -> std::io::Result<Segment> {
    let name = format!("{:016x}.seg", segment::checksum(bytes));
    let opened = |path: &Path| Segment::open(path).map_err(std::io::Error::other);
    if let Some(folder) = folder {
        let path = folder.join(&name);
        if publish_cache_file(&path, bytes).is_ok() {
            return opened(&path);
        }
    }
    Segment::from_memory(bytes.to_vec()).map_err(std::io::Error::other)
}

/// Replaces all segments by one with the contents that are still in use, and some that were.
fn merge(folder: &Path, segments: &[Segment], files: &[IndexedFile]) {
    let old = segment_paths(folder);
    let live: BTreeSet<BlobKey> = files
        .iter()
        .filter_map(|file| file.place)
        .filter_map(|(segment, doc)| Some(segments.get(segment as usize)?.docs.get(doc as usize)?.0))
        .collect();
    let all: usize = segments.iter().map(|segment| segment.docs.len()).sum();
    let only_live = all > live.len().saturating_mul(4);
    let mut builder = SegmentBuilder::default();
    let seen = std::cell::RefCell::new(BTreeSet::new());
    for segment in segments {
        let wanted = |key: &BlobKey| (!only_live || live.contains(key)) && seen.borrow_mut().insert(*key);
        if segment.copy_into(&mut builder, wanted).is_err() {
            // What is damaged is left out and scanned again.
            continue;
        }
    }
    let bytes = builder.finish();
    let path = folder.join(format!("{:016x}.seg", segment::checksum(&bytes)));
    if publish_cache_file(&path, &bytes).is_ok() {
        for path in old.iter().filter(|old| **old != path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

struct Work<'a> {
    workspace: &'a Workspace,
    entries: &'a [Entry],
    keys: &'a [Option<BlobKey>],
    missing: &'a [usize],
    known: &'a HashMap<BlobKey, (u32, u32)>,
}

#[derive(Default)]
struct Done {
    segments: Vec<Vec<u8>>,
    /// Keys of files whose blob Git did not know.
    keys: HashMap<usize, BlobKey>,
    scanned: usize,
}

impl Work<'_> {
    /// Scans what is missing, on several threads.
    fn run(&self, threads: usize) -> Done {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Done::default());
        let threads = threads.clamp(1, self.missing.len().div_ceil(64).max(1));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.worker(&next, &done));
            }
        });
        done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn worker(&self, next: &AtomicUsize, done: &Mutex<Done>) {
        let mut builder = SegmentBuilder::default();
        let mut keys = HashMap::new();
        let mut segments = Vec::new();
        let mut scanned = 0;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = self.missing.get(at) else { break };
            let Some((key, content)) = self.scan(*file) else { continue };
            keys.insert(*file, key);
            if let Some(content) = content {
                scanned += 1;
                builder.add(key, &content);
            }
            if builder.size() > BUILDER_LIMIT {
                segments.push(std::mem::take(&mut builder).finish());
            }
        }
        if !builder.is_empty() {
            segments.push(builder.finish());
        }
        let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.segments.extend(segments);
        done.keys.extend(keys);
        done.scanned += scanned;
    }

    /// The key of a file and, if it is not known yet, its content in terms.
    fn scan(&self, file: usize) -> Option<(BlobKey, Option<Scanned>)> {
        let entry = &self.entries[file];
        let read = self.workspace.read_bytes(&entry.path, INDEX_LIMIT);
        let bytes = match read {
            Ok((beginning, _)) if beginning.total_bytes <= INDEX_LIMIT => beginning.bytes,
            // Something has to be kept of every blob, or it would be read again each time.
            Ok(_) | Err(_) => Vec::new(),
        };
        let key = self.keys[file].unwrap_or_else(|| key_of(&blob_id(&bytes), &entry.path));
        if self.keys[file].is_none() && self.known.contains_key(&key) {
            return Some((key, None));
        }
        let scanned = match decode(bytes) {
            Decoded::Text(text) => scan::scan(language_of(&entry.path), &text),
            Decoded::Binary => Scanned::default(),
        };
        Some((key, Some(scanned)))
    }
}
