//! Text that anyone may have written: nothing in it is invisible, ends a line, a cell or a fence, or is without limit.

use std::fmt::Write as _;

use crate::text::at_most;

/// Longer texts are cut. Hosts have lower limits of their own.
const TEXT_LIMIT: usize = 8 << 20;

/// Positions that a warning names.
const SHOWN_PLACES: usize = 10;

/// A text in which everything can be seen, and what had to be done to it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) text: String,
    /// The first hidden characters with line and column, counted from 1.
    places: Vec<(char, usize, usize)>,
    hidden: usize,
    cut_from: Option<usize>,
}

/// Makes a text of several lines harmless. Line ends become `\n`.
pub(super) fn shown(original: &str) -> Shown {
    let kept = at_most(original, TEXT_LIMIT);
    let mut shown = Shown { text: String::with_capacity(kept.len()), ..Shown::default() };
    shown.cut_from = (kept.len() < original.len()).then_some(original.len());
    let (mut line, mut column) = (1, 1);
    let mut before = None;
    let mut characters = kept.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\r' && characters.peek() == Some(&'\n') {
            continue;
        }
        if hides(c, before, characters.peek().copied()) {
            shown.hidden += 1;
            if shown.places.len() < SHOWN_PLACES {
                shown.places.push((c, line, column));
            }
            let _ = write!(shown.text, "<U+{:04X}>", u32::from(c));
        } else {
            shown.text.push(c);
        }
        before = Some(c);
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    shown
}

/// The same for a text that stands on a line of its own.
pub(super) fn on_one_line(original: &str) -> Shown {
    let mut shown = shown(original);
    if shown.text.contains(['\n', '\t']) {
        shown.text = shown.text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    shown
}

impl Shown {
    /// What readers have to know of the text that is called `name`.
    pub(super) fn warnings(&self, name: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.hidden > 0 {
            let place =
                |(c, line, column): &(char, usize, usize)| format!("U+{:04X} at {line}:{column}", u32::from(*c));
            let mut places: Vec<_> = self.places.iter().map(place).collect();
            if self.hidden > places.len() {
                places.push(format!("{} more", self.hidden - places.len()));
            }
            let noun = if self.hidden == 1 { "character" } else { "characters" };
            warnings.push(format!("{name}: {} hidden {noun} made visible ({})", self.hidden, places.join(", ")));
        }
        if let Some(length) = self.cut_from {
            warnings.push(format!("{name}: cut at {TEXT_LIMIT} of {length} bytes"));
        }
        warnings
    }
}

/// Whether readers would not see a character, or a terminal would obey it. Parts of emoji are seen.
fn hides(c: char, before: Option<char>, after: Option<char>) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{fe0e}' | '\u{fe0f}' => !before.is_some_and(takes_variant),
        '\u{200d}' => !(before.is_some_and(joins) && after.is_some_and(is_emoji)),
        c if c.is_control() => true,
        c => HIDDEN.iter().any(|(from, to)| (*from..=*to).contains(&c)),
    }
}

/// Characters that take no room, change the direction, or fill up lines.
const HIDDEN: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Pictures: the blocks that emoji are in.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{203c}'..='\u{2049}' | '\u{2190}'..='\u{2bff}' | '\u{3030}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn takes_variant(c: char) -> bool {
    is_emoji(c) || matches!(c, '0'..='9' | '#' | '*' | '\u{a9}' | '\u{ae}' | '\u{2122}')
}

/// What a joiner may stand behind.
fn joins(c: char) -> bool {
    is_emoji(c) || c == '\u{fe0f}'
}
