//! `truncate_file`: lines around places that matter, and `...` for the rest.

use std::io::{self, BufRead};
use std::ops::Range;

use crate::compress::outline::merged;

/// What a removed region becomes.
pub const MARKER: &str = "...";

/// Lines that are kept before and after a target.
const AROUND: usize = 10;

/// A text with lines left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    pub content: String,
    pub original_lines: u64,
    pub kept_lines: u64,
}

/// Keeps at most `max_lines` lines: those around the targets, else the head. Targets outside of the text do no harm.
pub fn truncate_file(content: &str, max_lines: usize, around_lines: &[usize]) -> String {
    truncate(content, max_lines, around_lines).content
}

/// As `truncate_file`, with the number of lines before and after.
pub fn truncate(content: &str, max_lines: usize, around_lines: &[usize]) -> Truncated {
    let lines = content.split_inclusive('\n').count();
    let windows = chosen(lines, max_lines, around_lines);
    let mut kept = Kept::new(&windows, usize::MAX);
    content.split_inclusive('\n').enumerate().for_each(|(line, text)| kept.see(line, text.as_bytes()));
    let kept_lines = windows.iter().map(Range::len).sum::<usize>() as u64;
    Truncated { content: kept.finish(), original_lines: lines as u64, kept_lines }
}

/// As `truncate_file`, of what may be too long to be held: it is read twice, and at most `most_bytes` of it are kept.
pub fn truncate_stream<R: BufRead>(
    open: impl Fn() -> io::Result<R>,
    max_lines: usize,
    around_lines: &[usize],
    most_bytes: usize,
) -> io::Result<String> {
    let mut lines = 0;
    each_piece(open()?, |line, _| lines = line + 1)?;
    let windows = chosen(lines, max_lines, around_lines);
    let mut kept = Kept::new(&windows, most_bytes);
    each_piece(open()?, |line, piece| kept.see(line, piece))?;
    Ok(kept.finish())
}

/// Lines, in pieces where they are long, with the number of the line that each piece is of.
fn each_piece(mut input: impl BufRead, mut see: impl FnMut(usize, &[u8])) -> io::Result<()> {
    let mut line = 0;
    loop {
        let held = input.fill_buf()?;
        if held.is_empty() {
            return Ok(());
        }
        let end = memchr::memchr(b'\n', held).map_or(held.len(), |at| at + 1);
        see(line, &held[..end]);
        line += usize::from(held[end - 1] == b'\n');
        input.consume(end);
    }
}

/// The lines that stay of so many.
fn chosen(lines: usize, max_lines: usize, around_lines: &[usize]) -> Vec<Range<usize>> {
    if lines <= max_lines {
        return merged(std::slice::from_ref(&(0..lines)), lines);
    }
    let mut targets: Vec<usize> = around_lines.iter().copied().filter(|line| (1..=lines).contains(line)).collect();
    targets.sort_unstable();
    targets.dedup();
    if targets.is_empty() {
        merged(std::slice::from_ref(&(0..max_lines)), lines)
    } else {
        fitting_windows(&targets, lines, max_lines)
    }
}

/// Windows of ten lines around each target, merged.
pub fn windows(targets: &[usize], lines: usize) -> Vec<Range<usize>> {
    around(targets, lines, AROUND)
}

/// Windows that shrink evenly until they fit; of too many targets the first are kept.
fn fitting_windows(targets: &[usize], lines: usize, max_lines: usize) -> Vec<Range<usize>> {
    for radius in (0..=AROUND).rev() {
        let windows = around(targets, lines, radius);
        if windows.iter().map(Range::len).sum::<usize>() <= max_lines {
            return windows;
        }
    }
    around(&targets[..max_lines.min(targets.len())], lines, 0)
}

fn around(targets: &[usize], lines: usize, radius: usize) -> Vec<Range<usize>> {
    let window = |target: &usize| (target - 1).saturating_sub(radius)..target.saturating_add(radius);
    let valid = targets.iter().filter(|target| (1..=lines).contains(*target));
    merged(&valid.map(window).collect::<Vec<_>>(), lines)
}

/// What windows keep of lines that come one after the other.
struct Kept<'w> {
    windows: &'w [Range<usize>],
    most_bytes: usize,
    bytes: Vec<u8>,
    newline: &'static str,
    /// Something was left out since the last line that was kept.
    gap: bool,
}

impl<'w> Kept<'w> {
    fn new(windows: &'w [Range<usize>], most_bytes: usize) -> Self {
        Self { windows, most_bytes, bytes: Vec::new(), newline: "\n", gap: false }
    }

    fn see(&mut self, line: usize, piece: &[u8]) {
        if line == 0 && piece.ends_with(b"\r\n") {
            self.newline = "\r\n";
        }
        while let [first, rest @ ..] = self.windows
            && first.end <= line
        {
            self.windows = rest;
        }
        let is_wanted = self.windows.first().is_some_and(|window| window.contains(&line));
        let room = self.most_bytes.saturating_sub(self.bytes.len());
        if is_wanted && room > 0 && self.gap {
            self.mark();
        }
        let kept = if is_wanted { piece.len().min(room) } else { 0 };
        self.bytes.extend_from_slice(&piece[..kept]);
        self.gap = kept < piece.len();
    }

    fn mark(&mut self) {
        if self.bytes.last().is_some_and(|last| *last != b'\n') {
            self.bytes.extend_from_slice(self.newline.as_bytes());
        }
        self.bytes.extend_from_slice(MARKER.as_bytes());
        self.bytes.extend_from_slice(self.newline.as_bytes());
    }

    fn finish(mut self) -> String {
        if self.gap {
            self.mark();
        }
        crate::text::lossy(self.bytes)
    }
}
