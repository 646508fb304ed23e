//! `truncate_file`: lines around places that matter, and `...` for the rest.

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
    let lines: Vec<&str> = content.split_inclusive('\n').collect();
    let all = lines.len() as u64;
    if lines.len() <= max_lines {
        return Truncated { content: content.to_owned(), original_lines: all, kept_lines: all };
    }
    let mut targets: Vec<usize> =
        around_lines.iter().copied().filter(|line| (1..=lines.len()).contains(line)).collect();
    targets.sort_unstable();
    targets.dedup();
    let windows = if targets.is_empty() {
        merged(std::slice::from_ref(&(0..max_lines)), lines.len())
    } else {
        fitting_windows(&targets, lines.len(), max_lines)
    };
    let kept: usize = windows.iter().map(Range::len).sum();
    Truncated { content: with_markers(&lines, &windows), original_lines: all, kept_lines: kept as u64 }
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

fn with_markers(lines: &[&str], windows: &[Range<usize>]) -> String {
    let newline = if lines.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let mut content = String::new();
    let mut at = 0;
    let marker = |content: &mut String| {
        if !content.is_empty() && !content.ends_with('\n') {
            content.push_str(newline);
        }
        content.push_str(MARKER);
        content.push_str(newline);
    };
    for window in windows {
        if window.start > at {
            marker(&mut content);
        }
        content.extend(lines[window.clone()].iter().copied());
        at = window.end;
    }
    if at < lines.len() {
        marker(&mut content);
    }
    content
}
