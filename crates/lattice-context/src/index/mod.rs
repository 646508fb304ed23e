//! The index: what is known of every content, kept by blob id, shared by all worktrees, and safe to delete.

pub mod scan;
pub mod segment;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lattice_model::id::Oid;
use lattice_repo::publish_cache_file;
use sha1::{Digest, Sha1};

use crate::language::language_of;
use crate::retrieve::terms::{TermHash, WordHasher, hash};
use crate::text::{Decoded, decode};
use crate::workspace::{Entry, Skip, Workspace};
use scan::{FIELDS, Scanned};
use segment::{BlobKey, DocFacts, Record, Segment, SegmentBuilder};

/// Changes whenever what a segment holds does.
const VERSION: &str = "context-1";

/// Larger files are data; they can still be packed by name.
const INDEX_LIMIT: u64 = 1 << 20;

/// A builder of this size is written out, so that memory stays bounded.
const BUILDER_LIMIT: usize = 24 << 20;

/// Reading so many files takes long enough to say how far it is, after every few hundred of them.
const LONG: usize = 2_000;
const TOLD_EVERY: usize = 256;

/// More segments than this are merged.
const MOST_SEGMENTS: usize = 8;

/// The index of a workspace at one moment: its files and where each one's content is described.
#[derive(Debug)]
pub struct Index {
    pub files: Vec<IndexedFile>,
    segments: Vec<Segment>,
    described: Described,
    /// What could not be read.
    pub warnings: Vec<String>,
    /// How many contents were read for this.
    pub scanned: usize,
}

/// The files that each description is of.
#[derive(Debug)]
struct Described {
    /// For each segment, where the files of each of its docs begin, and the end of the last.
    starts: Vec<Vec<u32>>,
    files: Vec<u32>,
}

impl Described {
    fn new(segments: &[Segment], files: &[IndexedFile]) -> Self {
        let mut placed: Vec<((u32, u32), u32)> =
            (0..).zip(files).filter_map(|(number, file)| Some((file.place?, number))).collect();
        placed.sort_unstable();
        let mut rest = placed.iter().map(|(place, _)| *place).zip(0..).peekable();
        let mut starts = Vec::new();
        for (number, segment) in (0..).zip(segments) {
            let docs = 0..=u32::try_from(segment.docs.len()).unwrap_or(u32::MAX);
            let end = u32::try_from(placed.len()).unwrap_or(u32::MAX);
            let start = |doc: u32| {
                while rest.next_if(|(place, _)| *place < (number, doc)).is_some() {}
                rest.peek().map_or(end, |(_, at)| *at)
            };
            starts.push(docs.map(start).collect());
        }
        Self { starts, files: placed.into_iter().map(|(_, number)| number).collect() }
    }

    fn of(&self, segment: usize, doc: u32) -> &[u32] {
        let range = self.starts.get(segment).and_then(|starts| starts.get(doc as usize..doc as usize + 2));
        range.map_or(&[], |range| &self.files[range[0] as usize..range[1] as usize])
    }
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
            entries.iter().map(|entry| entry.blob.map(|blob| key_of(&blob, &entry.path))).collect();
        let missing: Vec<usize> =
            (0..entries.len()).filter(|at| keys[*at].is_none_or(|key| !known.contains_key(&key))).collect();
        let work = Work { workspace, entries: &entries, missing: &missing, known: &known };
        let done = work.run(threads);
        let scanned = done.scanned;
        for bytes in done.segments {
            match keep(folder.as_deref(), &bytes) {
                Ok(segment) => segments.push(segment),
                Err(error) => warnings.push(format!("the index could not be written: {error}")),
            }
        }
        if scanned > 0 {
            known = places(&segments);
        }
        let new = done.keys.iter().filter_map(|(at, (_, blob))| Some((entries[*at].path.clone(), (*blob)?)));
        workspace.keep_listing(&new.collect::<Vec<_>>());
        let files = entries.into_iter().enumerate().map(|(at, entry)| {
            let key = keys[at].or(done.keys.get(&at).map(|(key, _)| *key));
            IndexedFile { path: entry.path, place: key.and_then(|key| known.get(&key).copied()) }
        });
        let files: Vec<_> = files.collect();
        if let Some(folder) = folder.as_deref().filter(|_| segments.len() > MOST_SEGMENTS) {
            merge(folder, &segments, &files);
        }
        let described = Described::new(&segments, &files);
        Self { files, segments, described, warnings, scanned }
    }

    /// Where each of these terms occurs, by file.
    pub fn occurrences(&self, terms: &[TermHash]) -> Vec<Vec<Occurrence>> {
        let of_term = |term: &TermHash| {
            let mut found = Vec::new();
            for (number, segment) in self.segments.iter().enumerate() {
                // A list that is damaged is as good as empty; the next run writes it again.
                for posting in segment.postings(*term).unwrap_or_default() {
                    let files = self.described.of(number, posting.doc).iter();
                    found.extend(files.map(|file| Occurrence { file: *file, counts: posting.counts }));
                }
            }
            found.sort_unstable_by_key(|occurrence| occurrence.file);
            found
        };
        terms.iter().map(of_term).collect()
    }

    /// The number of the file with this path.
    pub fn number_of(&self, path: &str) -> Option<u32> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        u32::try_from(at).ok()
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

/// The id of a content that Git was not asked about: that of the blob it would be.
pub fn blob_id(content: &[u8]) -> Oid {
    let header = format!("blob {}\0", content.len());
    let digest = Sha1::new().chain_update(header).chain_update(content).finalize();
    Oid::from_bytes(&digest).expect("bug: a digest of SHA-1 has twenty bytes")
}

/// The same content is other terms in another language.
fn key_of(blob: &Oid, path: &str) -> BlobKey {
    let mut key = [0; 16];
    key.copy_from_slice(&blob.as_bytes()[..16]);
    let language = hash(language_of(path).map_or("", |language| language.name)).to_le_bytes();
    key.iter_mut().zip(language).for_each(|(byte, language)| *byte ^= language);
    key
}

fn places(segments: &[Segment]) -> Places {
    let mut places = Places::default();
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

/// Where contents are described: segment and doc.
type Places = HashMap<BlobKey, (u32, u32), WordHasher>;

struct Work<'a> {
    workspace: &'a Workspace,
    entries: &'a [Entry],
    missing: &'a [usize],
    known: &'a Places,
}

#[derive(Default)]
struct Done {
    segments: Vec<Vec<u8>>,
    /// Keys of files whose blob was not known, with the blob where all of the file was read.
    keys: HashMap<usize, (BlobKey, Option<Oid>)>,
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
            if at.is_multiple_of(TOLD_EVERY) && self.missing.len() >= LONG {
                self.workspace.tell(at, self.missing.len());
            }
            let (key, blob, content) = self.scan(*file);
            keys.insert(*file, (key, blob));
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

    /// The key and blob of a file and, if it is not known yet, its content in terms.
    fn scan(&self, file: usize) -> (BlobKey, Option<Oid>, Option<Scanned>) {
        let entry = &self.entries[file];
        let size = self.workspace.open_file(&entry.path).and_then(|file| file.metadata().map_err(|_| Skip::Missing));
        let is_small = size.is_ok_and(|found| found.len() <= INDEX_LIMIT);
        let read = is_small.then(|| self.workspace.read_bytes(&entry.path, INDEX_LIMIT));
        let (bytes, is_whole) = match read {
            Some(Ok((beginning, _))) if beginning.total_bytes <= INDEX_LIMIT => (beginning.bytes, true),
            // Something has to be kept of every blob, or it would be read again each time.
            Some(_) | None => (Vec::new(), false),
        };
        let own = entry.blob.unwrap_or_else(|| blob_id(&bytes));
        let key = key_of(&own, &entry.path);
        let blob = (is_whole && entry.blob.is_none()).then_some(own);
        if entry.blob.is_none() && self.known.contains_key(&key) {
            return (key, blob, None);
        }
        let scanned = match decode(bytes) {
            Decoded::Text(text) => scan::scan(language_of(&entry.path), &text),
            Decoded::Binary => Scanned::default(),
        };
        (key, blob, Some(scanned))
    }
}
