//! Outlines by content: each text is parsed once, and not again by the next run.
//!
//! The file has a table, sorted by key, and what the table points at. All of it is checked when it is read: what is
//! damaged is parsed again.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lattice_repo::publish_cache_file;
use sha1::{Digest, Sha1};

use super::outline::{Body, Marker, Outline, outline};
use crate::bytes::{Reading, Writing};
use crate::index::segment::checksum;
use crate::language::Language;

/// Changes whenever the outline of some text does.
pub(crate) const FILE_NAME: &str = "outlines-1";

/// What a file may hold; more than this, and only what was used last stays.
const MOST_BYTES: usize = 8 << 20;
const MOST_ENTRIES: usize = 1 << 16;

const MAGIC: u64 = 0x3130_4e4c_5455_4f4c;
const HEADER: usize = 3 * 8;
const ENTRY: usize = 16 + 8 + 4 + 4;

type Key = [u8; 16];

/// What was parsed in this run, in front of what earlier runs left.
#[derive(Debug, Default)]
pub struct Outlines {
    path: Option<PathBuf>,
    kept: OnceLock<Option<Kept>>,
    known: Mutex<HashMap<Key, Known>>,
}

#[derive(Debug, Clone)]
struct Known {
    outline: Arc<Outline>,
    is_new: bool,
}

/// The file of earlier runs.
#[derive(Debug)]
struct Kept {
    file: File,
    table: Vec<u8>,
}

impl Outlines {
    /// Outlines that are kept in this folder.
    pub fn in_folder(folder: Option<&Path>) -> Self {
        Self { path: folder.map(|folder| folder.join(FILE_NAME)), ..Self::default() }
    }

    /// The outline of a text; none if its language has no grammar or it cannot be parsed.
    pub fn of(&self, language: &Language, text: &str) -> Option<Arc<Outline>> {
        language.grammar.as_ref()?;
        let key = key(language, text);
        if let Some(known) = self.known().get(&key) {
            return Some(Arc::clone(&known.outline));
        }
        let lines = text.lines().count();
        let known = match self.kept().and_then(|kept| kept.get(&key)).filter(|outline| fits(outline, lines)) {
            Some(outline) => Known { outline: Arc::new(outline), is_new: false },
            None => Known { outline: Arc::new(outline(language, text)?), is_new: true },
        };
        let outline = Arc::clone(&known.outline);
        self.known().insert(key, known);
        Some(outline)
    }

    /// Leaves what is new for the next run. A file that cannot be written only costs time.
    pub fn save(&self) {
        let known = self.known();
        let Some(path) = self.path.as_deref().filter(|_| known.values().any(|known| known.is_new)) else { return };
        let mut all: BTreeMap<Key, Vec<u8>> =
            known.iter().map(|(key, known)| (*key, written(&known.outline))).collect();
        let own: usize = all.values().map(|bytes| bytes.len() + ENTRY).sum();
        if let Some(kept) = self.kept()
            && own + kept.size() <= MOST_BYTES
        {
            for (key, bytes) in kept.all() {
                all.entry(key).or_insert(bytes);
            }
        }
        if all.len() <= MOST_ENTRIES {
            let _ = publish_cache_file(path, &file(&all));
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> Option<&Kept> {
        self.kept.get_or_init(|| self.path.as_deref().and_then(Kept::open)).as_ref()
    }
}

impl Kept {
    fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let header = read(&file, 0, HEADER)?;
        let mut numbers = Reading(&header);
        let (magic, entries, sum) = (numbers.number()?, numbers.number()?, numbers.number()?);
        if magic != MAGIC || entries > MOST_ENTRIES as u64 {
            return None;
        }
        let table = read(&file, HEADER as u64, usize::try_from(entries).ok()? * ENTRY)?;
        (checksum(&table) == sum).then_some(Self { file, table })
    }

    fn size(&self) -> usize {
        let end = self.table.chunks_exact(ENTRY).filter_map(place).map(|(at, length, _)| at + length as u64).max();
        usize::try_from(end.unwrap_or(0)).unwrap_or(usize::MAX)
    }

    fn get(&self, key: &Key) -> Option<Outline> {
        let count = self.table.len() / ENTRY;
        let entry = |at: usize| &self.table[at * ENTRY..(at + 1) * ENTRY];
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            if entry(middle)[..16] < key[..] { low = middle + 1 } else { high = middle }
        }
        let found = (low < count && entry(low)[..16] == key[..]).then(|| entry(low))?;
        parsed(&self.bytes(found)?)
    }

    fn bytes(&self, entry: &[u8]) -> Option<Vec<u8>> {
        let (at, length, sum) = place(entry)?;
        let bytes = read(&self.file, at, length as usize).filter(|_| length as usize <= MOST_BYTES)?;
        (checksum(&bytes) as u32 == sum).then_some(bytes)
    }

    fn all(&self) -> impl Iterator<Item = (Key, Vec<u8>)> {
        self.table.chunks_exact(ENTRY).filter_map(|entry| Some((entry[..16].try_into().ok()?, self.bytes(entry)?)))
    }
}

/// Offset, length and checksum of an entry's outline.
fn place(entry: &[u8]) -> Option<(u64, u32, u32)> {
    let mut reading = Reading(entry.get(16..)?);
    let (at, length, sum) = (reading.number()?, reading.short()?, reading.short()?);
    Some((at, length, sum))
}

fn read(file: &File, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

fn key(language: &Language, text: &str) -> Key {
    let digest = Sha1::new().chain_update(language.name).chain_update([0]).chain_update(text).finalize();
    let mut key = [0; 16];
    key.copy_from_slice(&digest[..16]);
    key
}

/// Whether an outline can be one of a text with so many lines.
fn fits(outline: &Outline, lines: usize) -> bool {
    let inside = |range: &Range<usize>| range.start <= range.end && range.end <= lines;
    outline.bodies.iter().all(|body| inside(&body.lines) && inside(&body.cut))
        && outline.items.iter().chain(&outline.members).all(|line| *line <= lines)
}

fn file(all: &BTreeMap<Key, Vec<u8>>) -> Vec<u8> {
    let mut at = (HEADER + all.len() * ENTRY) as u64;
    let mut table = Vec::new();
    for (key, bytes) in all {
        table.extend_from_slice(key);
        table.extend_from_slice(&at.to_le_bytes());
        table.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes());
        table.extend_from_slice(&(checksum(bytes) as u32).to_le_bytes());
        at += bytes.len() as u64;
    }
    let header = [MAGIC, all.len() as u64, checksum(&table)];
    let mut file: Vec<u8> = header.iter().flat_map(|number| number.to_le_bytes()).collect();
    file.extend(table);
    all.values().for_each(|bytes| file.extend_from_slice(bytes));
    file
}

fn written(outline: &Outline) -> Vec<u8> {
    let mut writing = Writing(Vec::new());
    writing.list(&outline.bodies, |writing, body| {
        writing.text(&body.name);
        writing.range(&body.lines);
        writing.range(&body.cut);
        writing.list(&body.frames, Writing::range);
        let marker = match body.marker {
            Marker::Comment => 0,
            Marker::Ellipsis => 1,
        };
        writing.size(marker);
    });
    writing.list(&outline.items, |writing, line| writing.size(*line));
    writing.list(&outline.members, |writing, line| writing.size(*line));
    writing.list(&outline.imports, Writing::range);
    writing.0
}

fn parsed(bytes: &[u8]) -> Option<Outline> {
    let mut reading = Reading(bytes);
    let body = |reading: &mut Reading<'_>| {
        let (name, lines, cut) = (reading.text()?, reading.range()?, reading.range()?);
        let frames = reading.list(Reading::range)?;
        let marker = if reading.size()? == 0 { Marker::Comment } else { Marker::Ellipsis };
        Some(Body { name, lines, cut, frames, marker })
    };
    let bodies = reading.list(body)?;
    let (items, members) = (reading.list(Reading::size)?, reading.list(Reading::size)?);
    let imports = reading.list(Reading::range)?;
    Some(Outline { bodies, items, members, imports })
}
