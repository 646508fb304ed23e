//! How much a passage of a file is about a request.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::request::Query;
use super::terms::{self, TermHash, WordHasher};
use crate::index::segment::checksum;

/// The terms of a request with their weight in this workspace.
#[derive(Debug, Default)]
pub struct Passages {
    weights: HashMap<TermHash, f64>,
    names: HashSet<String>,
    /// Marks of texts, by a checksum of each: a text is looked at when files are divided, and again for its bodies.
    marked: Mutex<HashMap<(u64, usize), Arc<Marks>>>,
}

/// The words of a text that a request is about.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// Where each word begins, and how many terms there are up to its end.
    words: Vec<(usize, u32)>,
    terms: u32,
    hits: Vec<(usize, TermHash)>,
}

impl Marks {
    fn terms_before(&self, at: usize) -> u32 {
        let words = self.words.partition_point(|(place, _)| *place < at);
        words.checked_sub(1).map_or(0, |last| self.words[last].1)
    }
}

/// How soon a term that is said again stops to matter.
const SATURATION: f64 = 1.2;

/// What a passage gains when the request names what it defines.
const NAMED: f64 = 1.5;

impl Passages {
    /// `weights` are those that the files were ranked with.
    pub fn new(query: &Query, weights: HashMap<TermHash, f64>) -> Self {
        Self { weights, names: query.identifiers.keys().cloned().collect(), marked: Mutex::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Where a text has terms of the request, for scoring its passages.
    pub fn marks(&self, text: &str) -> Arc<Marks> {
        let key = (checksum(text.as_bytes()), text.len());
        let marked = || self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = marked().get(&key) {
            return Arc::clone(known);
        }
        let marks = Arc::new(self.fresh_marks(text));
        marked().insert(key, Arc::clone(&marks));
        marks
    }

    fn fresh_marks(&self, text: &str) -> Marks {
        let mut marks = Marks::default();
        // Most words of a text are there many times.
        let mut seen: HashMap<&str, (u32, Vec<TermHash>), WordHasher> = HashMap::default();
        for word in terms::words(text) {
            let (count, hits) = seen.entry(word).or_insert_with(|| {
                let (mut count, mut hits) = (0, Vec::new());
                terms::of_word(word, |term| {
                    count += 1;
                    let hash = terms::hash(term);
                    hits.extend(self.weights.contains_key(&hash).then_some(hash));
                });
                (count, hits)
            });
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            marks.terms += *count;
            marks.words.push((at, marks.terms));
            marks.hits.extend(hits.iter().map(|hash| (at, *hash)));
        }
        marks
    }

    /// A number that can be compared with that of other passages.
    pub fn score(&self, text: &str) -> f64 {
        self.score_in(&self.marks(text), &(0..text.len()))
    }

    /// The same for the bytes of a text with these marks; both ends are between words.
    pub fn score_in(&self, marks: &Marks, bytes: &Range<usize>) -> f64 {
        let hits = |at: usize| marks.hits.partition_point(|(place, _)| *place < at);
        let mut found: Vec<TermHash> =
            marks.hits[hits(bytes.start)..hits(bytes.end)].iter().map(|(_, hash)| *hash).collect();
        // Sums of floating point numbers depend on their order.
        found.sort_unstable();
        // Long passages hold many words by chance.
        let length = f64::from(marks.terms_before(bytes.end) - marks.terms_before(bytes.start));
        let norm = 0.6 + 0.4 * (length / 120.0);
        let one = |group: &[TermHash]| {
            let count = group.len() as f64;
            self.weights[&group[0]] * count / (count + SATURATION * norm)
        };
        found.chunk_by(|one, other| one == other).map(one).sum()
    }

    /// The same for something that has a name.
    pub fn score_named(&self, name: &str, marks: &Marks, bytes: &Range<usize>) -> f64 {
        let last = name.rsplit('.').next().unwrap_or(name);
        let named = self.names.contains(last) || self.names.contains(name);
        let mut by_name = 0.0;
        terms::of_word(last, |term| by_name += self.weights.get(&terms::hash(term)).copied().unwrap_or(0.0));
        let score = self.score_in(marks, bytes) + by_name;
        if named { score * NAMED } else { score }
    }
}
