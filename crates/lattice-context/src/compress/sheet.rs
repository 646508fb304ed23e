//! What other forms of a chunk would cost, by sums over its lines: nothing is rendered for it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::outline::{Outline, gap_line, merged};
use crate::chunk::ContextChunk;
use crate::language::Language;
use crate::tokens::TokenCounter;

/// The sizes of a chunk's lines and of the marks that stand for what is missing.
///
/// A sum over lines is exact for counters whose units add up, and close for the others.
#[derive(Debug)]
pub(super) struct Sheet {
    /// Units before each line, and after the last one.
    before: Vec<u64>,
    /// The whitespace that each line begins with.
    indents: Vec<String>,
    /// What is paid in any form: heading, fences, and the note on what is missing.
    frame: u64,
    /// What stands in the place of each body.
    markers: Vec<u64>,
}

impl Sheet {
    pub(super) fn new(chunk: &ContextChunk, frame: u64, counter: &dyn TokenCounter) -> Self {
        let mut before = vec![0];
        let (mut group, mut base) = (String::new(), 0);
        let mut indents = Vec::new();
        for line in chunk.content.split_inclusive('\n') {
            // A line break that follows another one is often no token of its own.
            if !line.trim().is_empty() {
                base = before[before.len() - 1];
                group.clear();
            }
            group.push_str(line);
            before.push(base + counter.units(&group));
            indents.push(super::outline::indent_of(line).to_owned());
        }
        Self { before, indents, frame, markers: Vec::new() }
    }

    /// The price with these bodies shown and the others outlined.
    pub(super) fn with_bodies(
        &mut self,
        (language, outline): (&Language, &Outline),
        kept: &BTreeSet<usize>,
        counter: &dyn TokenCounter,
    ) -> u64 {
        if self.markers.is_empty() {
            let indent = |line: usize| self.indents.get(line).map_or("", String::as_str);
            let marker = |body: &super::outline::Body| counter.units(&body.marker(language, indent(body.cut.start)));
            self.markers = outline.bodies.iter().map(marker).collect();
        }
        let mut price = self.frame;
        let mut at = 0;
        for (number, body) in outline.bodies.iter().enumerate() {
            if kept.contains(&number) || body.cut.start < at || body.cut.end > self.indents.len() {
                continue;
            }
            price += self.lines(at..body.cut.start) + self.markers[number];
            at = body.cut.end;
        }
        price + self.lines(at..self.indents.len())
    }

    /// The price of these lines alone.
    pub(super) fn with_lines(
        &self,
        language: Option<&Language>,
        wanted: &[Range<usize>],
        counter: &dyn TokenCounter,
    ) -> u64 {
        let last = self.indents.len();
        let gap = |from: usize, to: usize| {
            let indent = self.indents.get(to).or(self.indents.get(from)).map_or("", String::as_str);
            if from < to { counter.units(&gap_line(language, indent, to - from)) } else { 0 }
        };
        let mut price = self.frame;
        let mut at = 0;
        for range in merged(wanted, last) {
            price += gap(at, range.start) + self.lines(range.clone());
            at = range.end;
        }
        price + gap(at, last)
    }

    fn lines(&self, range: Range<usize>) -> u64 {
        // Groups of lines are counted together, so a sum that begins inside of one may be a little less than nothing.
        self.before[range.end].saturating_sub(self.before[range.start])
    }
}
