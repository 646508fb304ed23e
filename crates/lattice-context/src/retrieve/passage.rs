//! How much a passage of a file is about a request.

use std::collections::{HashMap, HashSet};

use super::request::Query;
use super::terms::{self, TermHash};

/// The terms of a request with their weight in this workspace.
#[derive(Debug, Clone, Default)]
pub struct Passages {
    weights: HashMap<TermHash, f64>,
    names: HashSet<String>,
}

/// How soon a term that is said again stops to matter.
const SATURATION: f64 = 1.2;

/// What a passage gains when the request names what it defines.
const NAMED: f64 = 1.5;

impl Passages {
    /// `weights` are those that the files were ranked with.
    pub fn new(query: &Query, weights: HashMap<TermHash, f64>) -> Self {
        Self { weights, names: query.identifiers.keys().cloned().collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// A number that can be compared with that of other passages.
    pub fn score(&self, text: &str) -> f64 {
        let mut counts: HashMap<TermHash, f64> = HashMap::new();
        let mut length: f64 = 0.0;
        for word in terms::words(text) {
            terms::of_word(word, |term| {
                length += 1.0;
                let hash = terms::hash(term);
                if self.weights.contains_key(&hash) {
                    *counts.entry(hash).or_default() += 1.0;
                }
            });
        }
        // Long passages hold many words by chance.
        let norm = 0.6 + 0.4 * (length / 120.0);
        let mut found: Vec<(TermHash, f64)> = counts.into_iter().collect();
        // Sums of floating point numbers depend on their order.
        found.sort_by_key(|(hash, _)| *hash);
        found.iter().map(|(hash, count)| self.weights[hash] * count / (count + SATURATION * norm)).sum()
    }

    /// The same for something that has a name.
    pub fn score_named(&self, name: &str, text: &str) -> f64 {
        let last = name.rsplit('.').next().unwrap_or(name);
        let named = self.names.contains(last) || self.names.contains(name);
        let mut by_name = 0.0;
        terms::of_word(last, |term| by_name += self.weights.get(&terms::hash(term)).copied().unwrap_or(0.0));
        let score = self.score(text) + by_name;
        if named { score * NAMED } else { score }
    }
}
