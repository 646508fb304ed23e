//! Splits large files at top-level items, and items that are large themselves at their members.

use std::ops::Range;

use super::outline::Outline;

/// The lines of each part, counted from 0. The parts follow each other and cover the file.
pub fn split(outline: Option<&Outline>, text: &str, most_lines: usize) -> Vec<Range<usize>> {
    let lines = text.lines().count();
    if lines <= most_lines {
        return std::iter::once(0..lines).collect();
    }
    let paragraphs = || (paragraphs(text), Vec::new());
    let (items, members) = outline.map_or_else(paragraphs, |outline| (outline.items.clone(), outline.members.clone()));
    let mut parts = Vec::new();
    for item in grouped(0..lines, &items, most_lines) {
        match item.len() > most_lines {
            true => parts.extend(grouped(item, &members, most_lines)),
            false => parts.push(item),
        }
    }
    parts
}

/// Neighbours together up to `most_lines`; what is longer by itself stays whole.
fn grouped(lines: Range<usize>, starts: &[usize], most_lines: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let (mut from, mut last) = (lines.start, lines.start);
    let inside = starts.iter().copied().filter(|start| *start > lines.start && *start < lines.end);
    for start in inside.chain(std::iter::once(lines.end)) {
        if start - from > most_lines && last > from {
            parts.push(from..last);
            from = last;
        }
        last = start;
    }
    parts.push(from..lines.end);
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
