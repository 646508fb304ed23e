//! One pass over a text: terms by where they stand, what is defined, what is imported.

use std::collections::HashMap;

use crate::language::Language;
use crate::retrieve::terms::{self, TermHash};

/// Where a term stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Definition = 0,
    Code = 1,
    /// Comments and strings, and text that is no code.
    Prose = 2,
}

pub const FIELDS: usize = 3;

/// How many definitions and imports of one file are kept.
const MOST_SYMBOLS: usize = 4000;
const MOST_IMPORTS: usize = 400;

/// What a text is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    pub terms: HashMap<TermHash, [u8; FIELDS]>,
    pub lengths: [u32; FIELDS],
    pub symbols: Vec<Symbol>,
    /// Modules, files and packages as they are written.
    pub imports: Vec<String>,
    pub lines: u32,
    pub characters: u32,
}

/// A name and the line, counted from 1, where it is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub line: u32,
}

/// Words that begin a line which brings in another file.
const IMPORTERS: &[&str] =
    &["import", "from", "use", "#include", "require", "require_relative", "mod", "pub", "export", "using"];

pub fn scan(language: Option<&Language>, text: &str) -> Scanned {
    let mut scanner = Scanner { language, found: Scanned::default(), line: 1, definer: false };
    scanner.run(text);
    scanner.found.imports = imports(language, text);
    scanner.found.lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    scanner.found.characters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    scanner.found
}

struct Scanner<'a> {
    language: Option<&'a Language>,
    found: Scanned,
    line: u32,
    /// Whether the last word of code says that a name follows.
    definer: bool,
}

impl Scanner<'_> {
    fn run(&mut self, text: &str) {
        let Some(language) = self.language.filter(|language| !language.line_comment.is_empty() || language.is_code())
        else {
            return self.words(text, Field::Prose);
        };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let rest = &text[at..];
            let byte = bytes[at];
            if byte == b'\n' {
                self.line += 1;
                at += 1;
            } else if byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 {
                let end = rest.find(|c: char| !terms::is_word(c)).unwrap_or(rest.len());
                // A character that is neither letter nor separator in ASCII is stepped over whole.
                let end = if end == 0 { rest.chars().next().map_or(1, char::len_utf8) } else { end };
                self.code_word(&rest[..end], language);
                at += end;
            } else if let Some(length) = comment_or_string(rest, language) {
                self.definer = false;
                self.words(&rest[..length], Field::Prose);
                at += length;
            } else {
                if !matches!(byte, b' ' | b'\t' | b'!' | b'(' | b'*' | b'&') {
                    self.definer = false;
                }
                at += 1;
            }
        }
    }

    fn code_word(&mut self, word: &str, language: &Language) {
        if self.definer {
            self.add(word, Field::Definition);
            if self.found.symbols.len() < MOST_SYMBOLS {
                self.found.symbols.push(Symbol { name: word.to_owned(), line: self.line });
            }
        }
        self.definer = language.definers.contains(&word);
        self.add(word, Field::Code);
    }

    fn words(&mut self, text: &str, field: Field) {
        for word in terms::words(text) {
            self.add(word, field);
        }
        self.line += u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX);
    }

    fn add(&mut self, word: &str, field: Field) {
        let found = &mut self.found;
        terms::of_word(word, |term| {
            let counts = found.terms.entry(terms::hash(term)).or_default();
            let count = &mut counts[field as usize];
            *count = count.saturating_add(1);
            found.lengths[field as usize] = found.lengths[field as usize].saturating_add(1);
        });
    }
}

/// The length of the comment or string that a text begins with.
fn comment_or_string(rest: &str, language: &Language) -> Option<usize> {
    if let Some((open, close)) = language.block_comment
        && rest.starts_with(open)
    {
        let body = &rest[open.len()..];
        return Some(open.len() + body.find(close).map_or(body.len(), |at| at + close.len()));
    }
    if !language.line_comment.is_empty() && rest.starts_with(language.line_comment) {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    let quote = language.strings.iter().find(|quote| rest.starts_with(**quote))?;
    // A lone apostrophe is a lifetime or a contraction more often than a string over many lines.
    let over_lines = quote.len() == 3 || *quote == "`";
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(quote.len()) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == '\n' && !over_lines {
            return Some(quote.len());
        } else if rest[at..].starts_with(quote) {
            return Some(at + quote.len());
        }
    }
    Some(if over_lines { rest.len() } else { quote.len() })
}

/// What a file brings in, as it is written: `a.b.c`, `./x`, `crate::x`, `stdio.h`.
fn imports(language: Option<&Language>, text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if !language.is_some_and(Language::is_code) {
        return found;
    }
    for line in text.lines() {
        let line = line.trim_start();
        let first = line.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
        let is_import = IMPORTERS.contains(&first) || (line.starts_with("const ") && line.contains("require("));
        if !is_import || found.len() >= MOST_IMPORTS {
            continue;
        }
        let module = |word: &str| {
            let word = word.trim_matches(|c: char| !(terms::is_word(c) || matches!(c, '.' | '/' | '@' | '-')));
            let is_path = word.contains(['.', '/']) || word.contains("::") || !IMPORTERS.contains(&word);
            (is_path && word.chars().any(char::is_alphanumeric)).then(|| word.to_owned())
        };
        // `from a.b import c`: the names behind it are worth a look too, they may be modules.
        let words = line.split(|c: char| {
            c.is_whitespace() || matches!(c, '"' | '\'' | ';' | ',' | '(' | ')' | '{' | '}' | '<' | '>')
        });
        let found_here: Vec<String> = words.filter_map(module).take(12).collect();
        if first == "from" && found_here.len() > 1 {
            let base = found_here[0].clone();
            let joint = if base.ends_with('.') { "" } else { "." };
            found.extend(found_here[1..].iter().map(|name| format!("{base}{joint}{name}")));
            found.push(base);
        } else {
            found.extend(found_here);
        }
    }
    found.sort();
    found.dedup();
    found
}
