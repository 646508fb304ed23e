//! Cuts text into the pieces that the tokens of an encoding never cross.

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

/// The pieces of `o200k`, but for white space that ends no line.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+",
);

/// The same for `cl100k`.
const CL100K: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
);

pub(super) struct Cutter(Regex);

impl Cutter {
    pub(super) fn o200k() -> Self {
        Self::new(O200K)
    }

    pub(super) fn cl100k() -> Self {
        Self::new(CL100K)
    }

    fn new(pattern: &str) -> Self {
        Self(Regex::new(pattern).expect("bug: a pattern of the program's own is wrong"))
    }

    /// The pieces, from the first to the last. Together they are the text.
    pub(super) fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let found = self.0.find(Input::new(rest).anchored(Anchored::Yes));
            let end = found.map_or_else(|| space(rest), |found| found.end()).max(first.len_utf8());
            let (piece, after) = rest.split_at(end);
            rest = after;
            Some(piece)
        })
    }
}

/// Where a piece of white space ends: before its last character, which goes with what follows it, if there is one.
fn space(text: &str) -> usize {
    let end = text.find(|letter: char| !letter.is_whitespace()).unwrap_or(text.len());
    let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
    if end == text.len() || end == last { end } else { end - last }
}
