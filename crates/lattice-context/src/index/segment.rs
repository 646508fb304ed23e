//! A file of the index: written once, then only read, and only where it is needed.
//!
//! Layout, all numbers little-endian: the doc table, the records, the postings, the blocks of the dictionary, the top of
//! the dictionary, and a footer that says where each of them is. Everything that is read is checked: a damaged
//! file is as good as none.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::scan::{FIELDS, Scanned, Symbol};
use crate::retrieve::terms::TermHash;

/// Which content a doc is of: the beginning of its blob id.
pub type BlobKey = [u8; 16];

const MAGIC: u64 = 0x3130_5845_4449_544c;
const FOOTER: usize = 8 * 8;
const DOC: usize = 16 + 8 + 4 + 4 + 4 + 4 * FIELDS + 4;
const TERM: usize = 8 + 8 + 4 + 4;
const BLOCK: usize = 64;
const POSTING: usize = 4 + FIELDS;
/// What is read of one file at most; more would be damage.
const MOST: u64 = 1 << 30;

/// A damaged or foreign file.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error("the file is damaged")]
    Damaged,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What is known of one content besides its terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocFacts {
    pub lengths: [u32; FIELDS],
    pub lines: u32,
    pub characters: u32,
    record: (u64, u32),
}

/// The definitions and imports of one content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    pub symbols: Vec<Symbol>,
    pub imports: Vec<String>,
}

/// One occurrence of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub doc: u32,
    pub counts: [u8; FIELDS],
}

/// An open segment.
#[derive(Debug)]
pub struct Segment {
    file: Source,
    pub docs: Vec<(BlobKey, DocFacts)>,
    top: Vec<TermHash>,
    blocks_at: u64,
    terms: u64,
    postings_at: u64,
    records_at: u64,
}

/// Where the bytes of a segment are: on disk, or in memory where nothing can be written.
#[derive(Debug)]
enum Source {
    Disk(File),
    Memory(Vec<u8>),
}

/// Collects contents for one segment.
#[derive(Debug, Default)]
pub struct SegmentBuilder {
    docs: Vec<(BlobKey, DocFacts)>,
    records: Vec<u8>,
    postings: Vec<(TermHash, Posting)>,
}

impl SegmentBuilder {
    pub fn add(&mut self, key: BlobKey, scanned: &Scanned) {
        let doc = u32::try_from(self.docs.len()).unwrap_or(u32::MAX);
        let mut record = String::new();
        for symbol in &scanned.symbols {
            record.push_str(&format!("{} {}\n", symbol.line, symbol.name));
        }
        for import in &scanned.imports {
            record.push_str(&format!("i {import}\n"));
        }
        let facts = DocFacts {
            lengths: scanned.lengths,
            lines: scanned.lines,
            characters: scanned.characters,
            record: (self.records.len() as u64, u32::try_from(record.len()).unwrap_or(0)),
        };
        self.records.extend_from_slice(record.as_bytes());
        self.docs.push((key, facts));
        self.postings.extend(scanned.terms.iter().map(|(term, counts)| (*term, Posting { doc, counts: *counts })));
    }

    pub fn len(&self) -> usize {
        self.docs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// How much memory the collection takes, roughly.
    pub fn size(&self) -> usize {
        self.records.len() + self.postings.len() * 16
    }

    /// The bytes of the file.
    pub fn finish(mut self) -> Vec<u8> {
        self.postings.sort_unstable_by_key(|(term, posting)| (*term, posting.doc));
        let mut bytes = Vec::with_capacity(self.size());
        for (key, facts) in &self.docs {
            let start = bytes.len();
            bytes.extend_from_slice(key);
            put(&mut bytes, facts.record.0);
            put32(&mut bytes, facts.record.1);
            put32(&mut bytes, facts.lines);
            put32(&mut bytes, facts.characters);
            facts.lengths.iter().for_each(|length| put32(&mut bytes, *length));
            let sum = checksum(&bytes[start..]) as u32;
            put32(&mut bytes, sum);
        }
        let records_at = bytes.len() as u64;
        bytes.extend_from_slice(&self.records);
        let postings_at = bytes.len() as u64;
        let mut dictionary: Vec<(TermHash, u64, u32, u32)> = Vec::new();
        for group in self.postings.chunk_by(|one, other| one.0 == other.0) {
            let start = bytes.len();
            for (_, posting) in group {
                put32(&mut bytes, posting.doc);
                bytes.extend_from_slice(&posting.counts);
            }
            let sum = checksum(&bytes[start..]) as u32;
            dictionary.push((group[0].0, start as u64 - postings_at, u32::try_from(group.len()).unwrap_or(0), sum));
        }
        let blocks_at = bytes.len() as u64;
        for (term, at, count, sum) in &dictionary {
            put(&mut bytes, *term);
            put(&mut bytes, *at);
            put32(&mut bytes, *count);
            put32(&mut bytes, *sum);
        }
        let top_at = bytes.len() as u64;
        dictionary.iter().step_by(BLOCK).for_each(|(term, ..)| put(&mut bytes, *term));
        let tables = checksum(&bytes[top_at as usize..]);
        let footer = [
            MAGIC,
            self.docs.len() as u64,
            records_at,
            postings_at,
            blocks_at,
            top_at,
            dictionary.len() as u64,
            tables,
        ];
        footer.iter().for_each(|number| put(&mut bytes, *number));
        bytes
    }
}

impl Segment {
    pub fn open(path: &Path) -> Result<Self, SegmentError> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Self::read(Source::Disk(file), size)
    }

    pub fn from_memory(bytes: Vec<u8>) -> Result<Self, SegmentError> {
        let size = bytes.len() as u64;
        Self::read(Source::Memory(bytes), size)
    }

    fn read(file: Source, size: u64) -> Result<Self, SegmentError> {
        if size < FOOTER as u64 || size > MOST {
            return Err(SegmentError::Damaged);
        }
        let footer = read(&file, size - FOOTER as u64, FOOTER)?;
        let number = |at: usize| get(&footer, at * 8);
        let (docs, records_at, postings_at, blocks_at, top_at, terms) =
            (number(1), number(2), number(3), number(4), number(5), number(6));
        let ordered = records_at <= postings_at && postings_at <= blocks_at && blocks_at <= top_at && top_at <= size;
        let sized = docs.checked_mul(DOC as u64) == Some(records_at)
            && terms.checked_mul(TERM as u64) == top_at.checked_sub(blocks_at)
            && size - FOOTER as u64 - top_at == terms.div_ceil(BLOCK as u64) * 8;
        if number(0) != MAGIC || !ordered || !sized {
            return Err(SegmentError::Damaged);
        }
        let top = read(&file, top_at, (size - FOOTER as u64 - top_at) as usize)?;
        if checksum(&top) != number(7) {
            return Err(SegmentError::Damaged);
        }
        let table = read(&file, 0, records_at as usize)?;
        let docs = table.chunks_exact(DOC).map(doc).collect::<Option<Vec<_>>>().ok_or(SegmentError::Damaged)?;
        let top = top.chunks_exact(8).map(|chunk| get(chunk, 0)).collect();
        Ok(Self { file, docs, top, blocks_at, terms, postings_at, records_at })
    }

    /// Where a term occurs.
    pub fn postings(&self, term: TermHash) -> Result<Vec<Posting>, SegmentError> {
        let Some(block) = self.top.partition_point(|first| *first <= term).checked_sub(1) else {
            return Ok(Vec::new());
        };
        let first = (block * BLOCK) as u64;
        let count = self.terms.saturating_sub(first).min(BLOCK as u64) as usize;
        let bytes = read(&self.file, self.blocks_at + first * TERM as u64, count * TERM)?;
        let entry = bytes.chunks_exact(TERM).find(|entry| get(entry, 0) == term);
        let Some(entry) = entry else { return Ok(Vec::new()) };
        self.posting_list(get(entry, 8), get32(entry, 16), get32(entry, 20))
    }

    /// Every term with its occurrences, for a merge.
    pub fn all_postings(&self, mut each: impl FnMut(TermHash, &[Posting])) -> Result<(), SegmentError> {
        let bytes = read(&self.file, self.blocks_at, self.terms as usize * TERM)?;
        for entry in bytes.chunks_exact(TERM) {
            let postings = self.posting_list(get(entry, 8), get32(entry, 16), get32(entry, 20))?;
            each(get(entry, 0), &postings);
        }
        Ok(())
    }

    fn posting_list(&self, at: u64, count: u32, sum: u32) -> Result<Vec<Posting>, SegmentError> {
        let length = count as usize * POSTING;
        if self.postings_at.saturating_add(at).saturating_add(length as u64) > self.blocks_at {
            return Err(SegmentError::Damaged);
        }
        let bytes = read(&self.file, self.postings_at + at, length)?;
        if checksum(&bytes) as u32 != sum {
            return Err(SegmentError::Damaged);
        }
        let posting = |chunk: &[u8]| {
            let mut counts = [0; FIELDS];
            counts.copy_from_slice(&chunk[4..]);
            Posting { doc: get32(chunk, 0), counts }
        };
        Ok(bytes
            .chunks_exact(POSTING)
            .map(posting)
            .filter(|posting| (posting.doc as usize) < self.docs.len())
            .collect())
    }

    /// The definitions and imports of a doc.
    pub fn record(&self, doc: u32) -> Result<Record, SegmentError> {
        let facts = self.docs.get(doc as usize).ok_or(SegmentError::Damaged)?.1;
        let (at, length) = facts.record;
        if self.records_at.saturating_add(at).saturating_add(u64::from(length)) > self.postings_at {
            return Err(SegmentError::Damaged);
        }
        let bytes = read(&self.file, self.records_at + at, length as usize)?;
        let text = String::from_utf8(bytes).map_err(|_| SegmentError::Damaged)?;
        let mut record = Record::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("i", import)) => record.imports.push(import.to_owned()),
                Some((line, name)) => {
                    record.symbols.push(Symbol { name: name.to_owned(), line: line.parse().unwrap_or(1) });
                }
                None => {}
            }
        }
        Ok(record)
    }

    /// Adds the docs that `wanted` names to a builder.
    pub fn copy_into(
        &self,
        builder: &mut SegmentBuilder,
        wanted: impl Fn(&BlobKey) -> bool,
    ) -> Result<(), SegmentError> {
        let mut kept: BTreeMap<u32, Scanned> = BTreeMap::new();
        for (number, (key, facts)) in self.docs.iter().enumerate() {
            if wanted(key) {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                let Record { symbols, imports } = self.record(number)?;
                let DocFacts { lengths, lines, characters, .. } = *facts;
                kept.insert(
                    number,
                    Scanned { symbols, imports, lengths, lines, characters, terms: std::collections::HashMap::new() },
                );
            }
        }
        self.all_postings(|term, postings| {
            for posting in postings {
                if let Some(scanned) = kept.get_mut(&posting.doc) {
                    scanned.terms.insert(term, posting.counts);
                }
            }
        })?;
        for (number, scanned) in kept {
            builder.add(self.docs[number as usize].0, &scanned);
        }
        Ok(())
    }
}

fn doc(bytes: &[u8]) -> Option<(BlobKey, DocFacts)> {
    let (facts, sum) = bytes.split_at(DOC - 4);
    if checksum(facts) as u32 != get32(sum, 0) {
        return None;
    }
    let mut key = [0; 16];
    key.copy_from_slice(&facts[..16]);
    let mut lengths = [0; FIELDS];
    for (at, length) in lengths.iter_mut().enumerate() {
        *length = get32(facts, 36 + at * 4);
    }
    let record = (get(facts, 16), get32(facts, 24));
    Some((key, DocFacts { lengths, lines: get32(facts, 28), characters: get32(facts, 32), record }))
}

fn read(source: &Source, at: u64, length: usize) -> io::Result<Vec<u8>> {
    match source {
        Source::Disk(file) => {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, at)?;
            Ok(bytes)
        }
        Source::Memory(bytes) => {
            let start = usize::try_from(at).unwrap_or(usize::MAX);
            let range = start..start.saturating_add(length);
            bytes.get(range).map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        }
    }
}

pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    // Eight bytes at a time: the tables are read at every start.
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = chunks.fold(0xcbf2_9ce4_8422_2325, |hash, chunk| step(hash, get(chunk, 0)));
    let hash = rest.iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)));
    step(hash, bytes.len() as u64) ^ (hash >> 32)
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put32(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}
