//! From text to terms: identifiers are split at case, underscores and digits, and endings are cut.

use std::hash::{BuildHasherDefault, Hasher};

/// A term as the index knows it.
pub type TermHash = u64;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Words longer than this are data, not names.
const LONGEST: usize = 64;

/// The hash of a term; the same on every machine.
pub fn hash(term: &str) -> TermHash {
    term.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Hashes words as terms are hashed; what is hashed comes from files, and collisions only cost time.
pub(crate) type WordHasher = BuildHasherDefault<Fnv>;

pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(OFFSET)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        // The map takes its bits from the top.
        self.0.rotate_left(20) ^ self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    }
}

/// Calls `each` with every term of a word: the whole of it and its parts.
pub fn of_word(word: &str, mut each: impl FnMut(&str)) {
    if word.len() > LONGEST {
        return;
    }
    let mut buffer = String::with_capacity(word.len());
    let parts = split_identifier(word, |part| {
        lower_into(part, &mut buffer);
        if buffer.len() > 1 || !buffer.is_ascii() {
            each(stem(&buffer));
        }
    });
    if parts > 1 {
        lower_into(word.trim_matches('_'), &mut buffer);
        each(&buffer);
    }
}

/// The words of a text: runs of letters, digits and underscores.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = &rest[run(rest, |c| !is_word(c))..];
        let (word, after) = rest.split_at(run(rest, is_word));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// The length of the beginning whose characters all fit.
fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let length = if byte.is_ascii() {
            usize::from(fits(char::from(*byte)))
        } else {
            text[at..].chars().next().filter(|c| fits(*c)).map_or(0, char::len_utf8)
        };
        if length == 0 {
            break;
        }
        at += length;
    }
    at
}

pub fn is_word(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() || c == '_' } else { c.is_alphanumeric() }
}

/// The parts of an identifier; returns how many there are.
fn split_identifier(word: &str, mut each: impl FnMut(&str)) -> usize {
    let mut count = 0;
    let mut emit = |part: &str| {
        if !part.is_empty() {
            count += 1;
            each(part);
        }
    };
    let mut start = 0;
    let mut previous = Kind::Other;
    let mut before_previous = Kind::Other;
    let mut previous_at = 0;
    for (at, character) in word.char_indices() {
        let kind = Kind::of(character);
        let border = match (previous, kind) {
            (_, Kind::Other) => true,
            (Kind::Other, _) => false,
            (Kind::Lower, Kind::Upper) => true,
            (Kind::Digit, Kind::Digit) => false,
            (Kind::Digit, _) | (_, Kind::Digit) => true,
            (Kind::Upper, Kind::Lower) if before_previous == Kind::Upper => {
                // `HTTPServer` is `HTTP` and `Server`.
                emit(&word[start..previous_at]);
                start = previous_at;
                false
            }
            (Kind::Upper | Kind::Lower, Kind::Upper | Kind::Lower) => false,
        };
        if border {
            emit(&word[start..at]);
            start = if kind == Kind::Other { at + character.len_utf8() } else { at };
        }
        before_previous = previous;
        previous = kind;
        previous_at = at;
    }
    emit(&word[start..]);
    count
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Other,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' => return Self::Lower,
            'A'..='Z' => return Self::Upper,
            '0'..='9' => return Self::Digit,
            '\0'..='\x7f' => return Self::Other,
            _ => {}
        }
        if character.is_uppercase() {
            Self::Upper
        } else if character.is_alphabetic() {
            Self::Lower
        } else if character.is_numeric() {
            Self::Digit
        } else {
            Self::Other
        }
    }
}

fn lower_into(text: &str, buffer: &mut String) {
    buffer.clear();
    if text.is_ascii() {
        buffer.extend(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        buffer.extend(text.chars().flat_map(char::to_lowercase));
    }
}

/// Without the endings of plurals and verb forms; short words stay.
pub fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.len() < 4 {
        return word;
    }
    for (ending, left) in
        [("ations", 4), ("ation", 4), ("ings", 4), ("ing", 4), ("ies", 3), ("ed", 4), ("es", 4), ("s", 3)]
    {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= left
            && !(ending == "s" && (stem.ends_with('s') || stem.ends_with('u') || stem.ends_with('i')))
        {
            return stem.strip_suffix('e').filter(|stem| stem.len() >= left).unwrap_or(stem);
        }
    }
    word.strip_suffix('e').filter(|stem| stem.len() >= 4).unwrap_or(word)
}

/// Words that say nothing about code.
pub const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "after",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "but",
    "by",
    "can",
    "cannot",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "don",
    "each",
    "else",
    "even",
    "every",
    "for",
    "from",
    "get",
    "gets",
    "give",
    "gives",
    "given",
    "go",
    "got",
    "had",
    "has",
    "have",
    "he",
    "her",
    "here",
    "his",
    "how",
    "however",
    "i",
    "if",
    "in",
    "instead",
    "into",
    "is",
    "isn",
    "it",
    "its",
    "just",
    "like",
    "look",
    "looks",
    "made",
    "make",
    "makes",
    "many",
    "may",
    "maybe",
    "me",
    "might",
    "more",
    "most",
    "much",
    "must",
    "my",
    "need",
    "needs",
    "new",
    "no",
    "not",
    "now",
    "of",
    "on",
    "one",
    "only",
    "or",
    "other",
    "our",
    "out",
    "over",
    "please",
    "see",
    "seem",
    "seems",
    "she",
    "should",
    "since",
    "so",
    "some",
    "such",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "think",
    "this",
    "those",
    "though",
    "through",
    "to",
    "too",
    "under",
    "up",
    "us",
    "use",
    "used",
    "uses",
    "using",
    "very",
    "want",
    "was",
    "way",
    "we",
    "well",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "why",
    "will",
    "with",
    "without",
    "work",
    "works",
    "would",
    "you",
    "your",
    "doesn",
    "didn",
    "won",
    "ve",
    "re",
    "ll",
    "hi",
    "hello",
    "thanks",
    "thank",
    "bug",
    "issue",
    "expected",
    "actual",
    "behavior",
    "behaviour",
    "description",
    "reproduce",
    "steps",
    "example",
    "following",
    "problem",
    "currently",
    "version",
    "output",
    "result",
    "results",
];
