//! Splits large files at top-level items, so that a part can be in while the rest is out.

use std::ops::Range;

use super::outline::outline;
use crate::language::Language;

/// The lines of each part, counted from 0. The parts follow each other and cover the file.
pub fn split(language: Option<&Language>, text: &str, most_lines: usize) -> Vec<Range<usize>> {
    let lines = text.lines().count();
    if lines <= most_lines {
        return std::iter::once(0..lines).collect();
    }
    let starts = match language.and_then(|language| outline(language, text)) {
        Some(outline) => outline.items,
        None => paragraphs(text),
    };
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    let mut last = 0;
    for start in starts.into_iter().filter(|start| *start > 0 && *start < lines).chain(std::iter::once(lines)) {
        // The part ends before the item that would make it too long; an item is never cut.
        if start - from > most_lines && last > from {
            parts.push(from..last);
            from = last;
        }
        last = start;
    }
    parts.push(from..lines);
    parts
}

/// Lines after blank ones that begin at the margin.
fn paragraphs(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut blank = true;
    for (number, line) in text.lines().enumerate() {
        let is_blank = line.trim().is_empty();
        if blank && !is_blank && !line.starts_with([' ', '\t']) {
            starts.push(number);
        }
        blank = is_blank;
    }
    starts
}

/// These lines of a text.
pub fn lines_of(text: &str, lines: &Range<usize>) -> String {
    text.split_inclusive('\n').skip(lines.start).take(lines.len()).collect()
}
