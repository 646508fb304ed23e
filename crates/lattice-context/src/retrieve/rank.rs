//! Ranks files for a request: text, names, places, imports, history and the kind of file, each visible.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::files::{FileKind, FolderSigns, in_folder, stem, tested_stem};
use super::history::History;
use super::imports::ModuleMap;
use super::request::Query;
use super::terms;
use crate::index::scan::FIELDS;
use crate::index::{Index, Occurrence};
use crate::task::TaskType;

/// What speaks for a file. The parts add up, and `kind` multiplies the sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// BM25F over path, definitions, code, comments and strings; 1 for the best file.
    pub text: f64,
    /// The request names the path, or the module.
    pub path: f64,
    /// The request names something that is defined here.
    pub symbol: f64,
    /// A stack trace goes through it.
    pub frame: f64,
    /// It imports, or is imported by, files that rank high.
    pub imports: f64,
    /// Changed lately, or together with files that rank high.
    pub history: f64,
    /// Tests of it rank high, or it tests what ranks high.
    pub neighbour: f64,
    /// What the kind of file is worth for this task.
    pub kind: f64,
}

/// A file with its rank's reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    pub path: String,
    /// From 0 to 1, relative to the best.
    pub relevance: f64,
    pub signals: Signals,
}

/// The constants of ranking, in one place.
struct Weights {
    k1: f64,
    b: f64,
    fields: [f64; FIELDS],
    path_term: f64,
    path_mention: f64,
    module_mention: f64,
    symbol: f64,
    frame: f64,
    imports: f64,
    history: f64,
    together: f64,
    tested: f64,
}

const WEIGHTS: Weights = Weights {
    k1: 1.2,
    b: 0.6,
    fields: [2.5, 1.0, 0.8],
    path_term: 2.5,
    path_mention: 1.0,
    module_mention: 0.5,
    symbol: 0.6,
    frame: 0.5,
    imports: 0.12,
    history: 0.05,
    together: 0.05,
    tested: 0.15,
};

/// How many files the graph signals start from.
const SEEDS: usize = 12;

/// Signals that spread are computed for this many of the best files by text.
const POOL: usize = 400;

/// Files that a request is ranked over.
pub struct Ranker<'a> {
    pub index: &'a Index,
    pub history: &'a History,
    pub modules: &'a ModuleMap,
    pub task: TaskType,
}

/// Where the terms of a request occur.
pub struct Occurrences<'a> {
    query: &'a Query,
    hashes: Vec<terms::TermHash>,
    found: Vec<Vec<Occurrence>>,
}

impl Ranker<'_> {
    /// Looks up the terms of a request.
    pub fn look_up<'q>(&self, query: &'q Query) -> Occurrences<'q> {
        let hashes: Vec<_> = query.terms.keys().map(|term| terms::hash(term)).collect();
        let found = self.index.occurrences(&hashes);
        Occurrences { query, hashes, found }
    }

    /// How much each term of a request says in this workspace.
    pub fn term_weights(&self, terms: &Occurrences<'_>) -> HashMap<terms::TermHash, f64> {
        let weights =
            terms.query.terms.values().zip(&terms.found).map(|(weight, found)| weight * self.idf(found.len()));
        terms.hashes.iter().copied().zip(weights).collect()
    }

    /// All files with anything that speaks for them, best first; ties in the order of paths.
    pub fn rank(&self, terms: &Occurrences<'_>) -> Vec<Ranked> {
        let files = &self.index.files;
        let query = terms.query;
        let mut signals = vec![Signals::default(); files.len()];
        self.text(terms, &mut signals);
        self.places(query, &mut signals);
        self.symbols(query, &mut signals);
        self.kinds(&mut signals);
        if query.terms.is_empty() {
            self.lately(&mut signals);
        }
        self.spread(&mut signals);
        let best = signals.iter().map(Signals::sum).fold(0.0, f64::max);
        let mut ranked: Vec<Ranked> = files
            .iter()
            .zip(&signals)
            .filter(|(_, signals)| signals.sum() > 0.0)
            .map(|(file, signals)| Ranked {
                path: file.path.clone(),
                relevance: signals.sum() / best,
                signals: *signals,
            })
            .collect();
        ranked.sort_by(|one, other| other.relevance.total_cmp(&one.relevance).then_with(|| one.path.cmp(&other.path)));
        ranked
    }

    fn kinds(&self, signals: &mut [Signals]) {
        // Files of one folder follow each other.
        let (mut folder, mut signs) = ("", FolderSigns::default());
        for (file, signals) in self.index.files.iter().zip(signals) {
            let (own, name) = in_folder(&file.path);
            if own != folder {
                (folder, signs) = (own, FolderSigns::of(own));
            }
            signals.kind = kind_weight(signs.kind_of(name), self.task);
        }
    }

    fn text(&self, terms: &Occurrences<'_>, signals: &mut [Signals]) {
        let path_terms = self.path_terms(&terms.hashes);
        let average = self.average_lengths();
        let mut scores = vec![0.0; signals.len()];
        let mut frequencies = vec![0.0; signals.len()];
        for ((weight, found), in_paths) in terms.query.terms.values().zip(&terms.found).zip(&path_terms) {
            let idf = self.idf(found.len().max(in_paths.len()));
            let weight = weight * idf;
            for occurrence in found {
                frequencies[occurrence.file as usize] = self.frequency(occurrence, &average);
            }
            for file in in_paths {
                frequencies[*file as usize] += WEIGHTS.path_term;
            }
            for file in found.iter().map(|occurrence| occurrence.file).chain(in_paths.iter().copied()) {
                // A file that is in both lists counts once.
                let frequency = std::mem::take(&mut frequencies[file as usize]);
                scores[file as usize] += weight * frequency / (WEIGHTS.k1 + frequency);
            }
        }
        let best = scores.iter().copied().fold(0.0, f64::max);
        if best > 0.0 {
            signals.iter_mut().zip(scores).for_each(|(signals, score)| signals.text = score / best);
        }
    }

    fn idf(&self, files: usize) -> f64 {
        let (all, found) = (self.index.files.len() as f64, files as f64);
        (1.0 + (all - found + 0.5) / (found + 0.5)).ln().max(0.0)
    }

    fn frequency(&self, occurrence: &Occurrence, average: &[f64; FIELDS]) -> f64 {
        let Some(facts) = self.index.facts(occurrence.file) else { return 0.0 };
        (0..FIELDS)
            .map(|field| {
                let length = f64::from(facts.lengths[field]) / average[field];
                WEIGHTS.fields[field] * f64::from(occurrence.counts[field]) / (1.0 - WEIGHTS.b + WEIGHTS.b * length)
            })
            .sum()
    }

    fn average_lengths(&self) -> [f64; FIELDS] {
        let mut sums = [0.0; FIELDS];
        let mut count: f64 = 0.0;
        for file in 0..self.index.files.len() {
            if let Some(facts) = u32::try_from(file).ok().and_then(|file| self.index.facts(file)) {
                count += 1.0;
                sums.iter_mut().zip(facts.lengths).for_each(|(sum, length)| *sum += f64::from(length));
            }
        }
        sums.map(|sum| (sum / count.max(1.0)).max(1.0))
    }

    /// The files whose paths hold each of these terms.
    fn path_terms(&self, wanted: &[terms::TermHash]) -> Vec<Vec<u32>> {
        let places: HashMap<_, _> = wanted.iter().enumerate().map(|(at, hash)| (*hash, at)).collect();
        let hits = |text: &str| {
            let mut hits = Vec::new();
            for word in terms::words(text) {
                terms::of_word(word, |term| hits.extend(places.get(&terms::hash(term)).copied()));
            }
            hits
        };
        let mut found = vec![Vec::new(); wanted.len()];
        // Files of one folder follow each other, and share most of their path.
        let (mut folder, mut of_folder) = ("", Vec::new());
        for (number, file) in (0..).zip(&self.index.files) {
            let (own, name) = in_folder(&file.path);
            if own != folder {
                (folder, of_folder) = (own, hits(own));
            }
            for at in of_folder.iter().copied().chain(hits(name)) {
                if found[at].last() != Some(&number) {
                    found[at].push(number);
                }
            }
        }
        found
    }

    /// Paths, modules and frames that the request names.
    fn places(&self, query: &Query, signals: &mut [Signals]) {
        for path in query.paths.keys() {
            for file in self.files_named(path) {
                let signal = &mut signals[file as usize].path;
                *signal = signal.max(WEIGHTS.path_mention);
            }
        }
        for module in &query.modules {
            let found = self.modules.resolve("", module);
            for file in &found {
                let signal = &mut signals[*file as usize].path;
                *signal = signal.max(WEIGHTS.module_mention);
            }
        }
        let frames = query.frames.len() as f64;
        for (depth, frame) in query.frames.iter().enumerate() {
            for file in self.files_named(&frame.path) {
                let signal = &mut signals[file as usize].frame;
                *signal = signal.max(WEIGHTS.frame * (depth as f64 + 1.0) / frames);
            }
        }
    }

    /// The files that a path of a request means: it may be written with less in front, or with more.
    fn files_named(&self, path: &str) -> Vec<u32> {
        let mut tail = path;
        for _ in 0..24 {
            let ends =
                |known: &str| known.strip_suffix(tail).is_some_and(|before| before.is_empty() || before.ends_with('/'));
            let found: Vec<u32> =
                (0..).zip(&self.index.files).filter(|(_, file)| ends(&file.path)).map(|(at, _)| at).collect();
            match found.len() {
                0 => {}
                1..=3 => return found,
                _ => return Vec::new(),
            }
            match tail.split_once('/') {
                Some((_, shorter)) if shorter.contains('/') => tail = shorter,
                Some(_) | None => break,
            }
        }
        Vec::new()
    }

    /// Files that define what the request names; the rarer the name, the more it says.
    fn symbols(&self, query: &Query, signals: &mut [Signals]) {
        let names: Vec<(&String, &f64)> = query.identifiers.iter().collect();
        let hashes: Vec<_> = names.iter().map(|(name, _)| terms::hash(&whole(name))).collect();
        let occurrences = self.index.occurrences(&hashes);
        let mut scores = vec![0.0; signals.len()];
        for ((_, weight), found) in names.iter().zip(&occurrences) {
            let defining: Vec<_> = found.iter().filter(|occurrence| occurrence.counts[0] > 0).collect();
            if defining.is_empty() || defining.len() > 12 {
                continue;
            }
            let share = **weight / (defining.len() as f64).sqrt();
            defining.iter().for_each(|occurrence| scores[occurrence.file as usize] += share);
        }
        let best = scores.iter().copied().fold(0.0, f64::max);
        if best > 0.0 {
            for (signals, score) in signals.iter_mut().zip(scores) {
                signals.symbol = WEIGHTS.symbol * score / best;
            }
        }
    }

    /// Without a request, what changed lately is the best guess.
    fn lately(&self, signals: &mut [Signals]) {
        let recency = self.history.recency();
        for (file, signals) in self.index.files.iter().zip(signals) {
            signals.history = 0.01 + recency.get(file.path.as_str()).copied().unwrap_or(0.0);
        }
    }

    /// What ranks high speaks for what it imports, what it changes with, and what it tests.
    fn spread(&self, signals: &mut [Signals]) {
        let mut order: Vec<usize> = (0..signals.len()).filter(|at| signals[*at].sum() > 0.0).collect();
        order.sort_by(|one, other| signals[*other].sum().total_cmp(&signals[*one].sum()).then(one.cmp(other)));
        order.truncate(POOL);
        let best = order.first().map_or(1.0, |first| signals[*first].sum());
        let recency = self.history.recency();
        let by_stem = self.with_stems(order.iter().filter_map(|at| tested_stem(&self.index.files[*at].path)));
        for (rank, at) in order.iter().copied().enumerate() {
            let path = self.index.files[at].path.as_str();
            let share = signals[at].plain() / best;
            signals[at].history += WEIGHTS.history * recency.get(path).copied().unwrap_or(0.0);
            if let Some(tested) = tested_stem(path) {
                for file in by_stem.get(tested).into_iter().flatten().filter(|file| **file as usize != at) {
                    let signal = &mut signals[*file as usize].neighbour;
                    *signal = signal.max(WEIGHTS.tested * share);
                }
            }
            if rank < SEEDS {
                self.spread_from(at, share, signals);
            }
        }
    }

    fn spread_from(&self, at: usize, share: f64, signals: &mut [Signals]) {
        let path = self.index.files[at].path.clone();
        let record = u32::try_from(at).ok().and_then(|at| self.index.record(at)).unwrap_or_default();
        let mut imported: Vec<u32> =
            record.imports.iter().flat_map(|import| self.modules.resolve(&path, import)).collect();
        imported.sort_unstable();
        imported.dedup();
        let each = WEIGHTS.imports * share / (imported.len() as f64).sqrt().max(1.0);
        for file in imported.iter().filter(|file| **file as usize != at) {
            signals[*file as usize].imports += each;
        }
        for (other, count) in self.history.together_with(&path) {
            if let Some(at) = self.index.number_of(other) {
                signals[at as usize].history += WEIGHTS.together * share * count;
            }
        }
    }

    /// The files with these stems; a stem that many files have says nothing.
    fn with_stems<'a>(&self, wanted: impl Iterator<Item = &'a str>) -> HashMap<&'a str, Vec<u32>> {
        let mut stems: HashMap<&str, Vec<u32>> = wanted.map(|stem| (stem, Vec::new())).collect();
        for (number, file) in (0..).zip(&self.index.files) {
            if let Some(files) = stems.get_mut(stem(&file.path)) {
                files.push(number);
            }
        }
        stems.retain(|_, files| files.len() <= 4);
        stems
    }
}

impl Signals {
    /// Everything together.
    pub fn sum(&self) -> f64 {
        self.plain() * if self.kind == 0.0 { 1.0 } else { self.kind }
    }

    fn plain(&self) -> f64 {
        self.text + self.path + self.symbol + self.frame + self.imports + self.history + self.neighbour
    }
}

/// A whole identifier as the index has it: several parts stand together, a single one is stemmed.
fn whole(name: &str) -> String {
    let mut last = String::new();
    terms::of_word(name, |term| last = term.to_owned());
    last
}

/// What a kind of file is worth for a task.
fn kind_weight(kind: FileKind, task: TaskType) -> f64 {
    match (kind, task) {
        (FileKind::Source, _) => 1.0,
        (FileKind::Test, TaskType::Test) => 1.0,
        (FileKind::Fixture, TaskType::Test) => 0.7,
        (FileKind::Test, TaskType::Implement | TaskType::Debug | TaskType::Refactor | TaskType::Analyze) => 0.4,
        (FileKind::Config, _) => 0.5,
        (FileKind::Docs, TaskType::Analyze) => 0.7,
        (FileKind::Docs, TaskType::Implement | TaskType::Debug | TaskType::Refactor | TaskType::Test) => 0.35,
        (FileKind::Fixture, TaskType::Implement | TaskType::Debug | TaskType::Refactor | TaskType::Analyze) => 0.25,
        (FileKind::Generated, _) => 0.2,
        (FileKind::Data, _) => 0.2,
    }
}
