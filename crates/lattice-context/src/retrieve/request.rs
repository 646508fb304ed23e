//! What a request talks about: words, identifiers, paths, modules, places in stack traces.

use std::collections::{BTreeMap, BTreeSet};

use super::terms;
use crate::language::language_of;

/// A request taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Terms and how much each matters.
    pub terms: BTreeMap<String, f64>,
    /// Identifiers as they are written: with an underscore, a capital inside, or in backquotes.
    pub identifiers: BTreeMap<String, f64>,
    /// Paths, with the line if there is one.
    pub paths: BTreeMap<String, Option<u32>>,
    /// Dotted names, which may be modules.
    pub modules: BTreeSet<String>,
    /// Places of stack traces, the innermost last.
    pub frames: Vec<Frame>,
}

/// A place that a trace or a compiler names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub path: String,
    pub line: u32,
    pub function: Option<String>,
}

/// Requests are cut here before they are looked at; what a person means stands at the beginning.
const LONGEST: usize = 64 << 10;

/// The first line of a request says most.
const TITLE_WEIGHT: f64 = 2.0;
const IDENTIFIER_WEIGHT: f64 = 2.0;

pub fn parse(request: &str) -> Query {
    let request = crate::text::at_most(request, LONGEST);
    let mut query = Query::default();
    let mut fenced = false;
    for (number, line) in request.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let weight = if number == 0 { TITLE_WEIGHT } else { 1.0 };
        if let Some(frame) = frame(line) {
            query.paths.entry(frame.path.clone()).or_insert(Some(frame.line));
            query.frames.push(frame);
        }
        query.line(line, weight);
    }
    for weight in query.terms.values_mut() {
        // A word that is said ten times is not ten times as important.
        *weight = 1.0 + weight.ln_1p() - 1.0_f64.ln_1p();
    }
    query
}

impl Query {
    fn line(&mut self, line: &str, weight: f64) {
        for piece in line.split(|c: char| {
            c.is_whitespace()
                || matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '"' | '\'' | '<' | '>' | '=' | '|')
        }) {
            let quoted = piece.contains('`');
            let piece = piece.trim_matches(|c: char| !(terms::is_word(c) || c == '/' || c == '@' || c == '~'));
            if piece.is_empty() || piece.contains("://") {
                continue;
            }
            self.path_or_module(piece);
            for word in terms::words(piece) {
                self.word(word, weight, quoted);
            }
        }
    }

    fn word(&mut self, word: &str, weight: f64, quoted: bool) {
        let is_identifier = looks_like_code(word) || (quoted && word.len() > 2);
        let weight = if is_identifier { weight * IDENTIFIER_WEIGHT } else { weight };
        if is_identifier {
            let entry = self.identifiers.entry(word.to_owned()).or_default();
            *entry = entry.max(weight);
        }
        let lower = word.to_lowercase();
        if is_stop(&lower) {
            return;
        }
        terms::of_word(word, |term| {
            if !is_stop(term) {
                *self.terms.entry(term.to_owned()).or_default() += weight;
            }
        });
    }

    fn path_or_module(&mut self, piece: &str) {
        let (path, line) = match piece.split_once(':') {
            Some((path, rest)) => (path, rest.split(':').next().and_then(|line| line.parse().ok())),
            None => (piece, None),
        };
        let path = path.trim_start_matches("./");
        if language_of(path).is_some() || (path.contains('/') && path.len() > 3) {
            self.paths.entry(path.to_owned()).or_insert(line);
        } else if path.contains('.') && path.split('.').all(|part| !part.is_empty() && part.chars().all(terms::is_word))
        {
            self.modules.insert(path.to_owned());
        }
        if let Some((head, _)) = path.split_once("::")
            && !head.is_empty()
        {
            self.modules.insert(path.replace("::", "."));
        }
    }
}

fn is_stop(term: &str) -> bool {
    terms::STOP_WORDS.contains(&term)
}

/// `snake_case`, `camelCase` and `CamelCase` are names; words and `ABBREVIATIONS` may be anything.
fn looks_like_code(word: &str) -> bool {
    let inner = word.trim_matches('_');
    if inner.len() < 3 {
        return false;
    }
    let has_underscore = inner.contains('_') || word.starts_with("__");
    let lower_then_upper =
        inner.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    has_underscore || lower_then_upper
}

/// The place that a line of a trace names.
fn frame(line: &str) -> Option<Frame> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("File \"") {
        // Python: File "a/b.py", line 12, in f
        let (path, rest) = rest.split_once('"')?;
        let rest = rest.trim_start_matches(", line ");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let function = rest.split_once(" in ").map(|(_, name)| name.trim().to_owned());
        return Some(Frame { path: path.to_owned(), line: digits.parse().ok()?, function });
    }
    if let Some(rest) = line.strip_prefix("at ") {
        // JavaScript: at f (a/b.js:12:3); Rust: at ./src/a.rs:12:3; Java: at a.B.f(B.java:12)
        let place = rest.rsplit_once('(').map_or(rest, |(_, place)| place.trim_end_matches(')'));
        let function = rest.split_once(" (").map(|(name, _)| name.to_owned());
        let (path, line) = path_and_line(place)?;
        return Some(Frame { path, line, function });
    }
    let word = line.split_whitespace().next()?;
    let (path, line) = path_and_line(word)?;
    Some(Frame { path, line, function: None })
}

fn path_and_line(place: &str) -> Option<(String, u32)> {
    let mut parts = place.split(':');
    let path = parts.next()?;
    let line = parts.next()?.parse().ok()?;
    language_of(path).is_some().then(|| (path.trim_start_matches("./").to_owned(), line))
}
