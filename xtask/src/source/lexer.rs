//! Tells code, literals and comments of a Rust file apart; it knows no more of the language than that needs.

use super::Line;

/// Cuts a file into its lines.
pub(super) fn lines(content: &str) -> Vec<Line> {
    let mut lexer = Lexer { characters: content.chars().collect(), at: 0, lines: Vec::new(), line: Line::default() };
    while lexer.at < lexer.characters.len() {
        lexer.step();
    }
    lexer.end_line();
    if lexer.lines.last().is_some_and(Line::is_blank) {
        lexer.lines.pop();
    }
    lexer.lines
}

struct Lexer {
    characters: Vec<char>,
    at: usize,
    lines: Vec<Line>,
    line: Line,
}

/// What a character belongs to.
#[derive(Clone, Copy)]
enum Part {
    Code,
    Literal,
    Comment,
}

impl Lexer {
    fn step(&mut self) {
        if self.sees("//") {
            self.line_comment();
        } else if self.sees("/*") {
            self.block_comment();
        } else if let Some(hashes) = self.raw_string_hashes() {
            self.raw_string(hashes);
        } else if self.sees("\"") {
            self.quoted('"');
        } else if self.sees("'") && self.is_character_literal() {
            self.quoted('\'');
        } else {
            self.take(Part::Code);
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|character| character != '\n') {
            self.take(Part::Comment);
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.characters.len() {
            if self.sees("/*") {
                depth += 1;
                self.take_many(2, Part::Comment);
            } else if self.sees("*/") {
                depth -= 1;
                self.take_many(2, Part::Comment);
                if depth == 0 {
                    return;
                }
            } else {
                self.take(Part::Comment);
            }
        }
    }

    /// The number of hashes of a raw string that begins here. `r#name` is an identifier.
    fn raw_string_hashes(&self) -> Option<usize> {
        if self.peek(0) != Some('r') || self.follows_identifier() {
            return None;
        }
        let hashes = self.characters[self.at + 1..].iter().take_while(|character| **character == '#').count();
        (self.peek(1 + hashes) == Some('"')).then_some(hashes)
    }

    /// Whether what stands before this place makes it the middle of a name. The prefixes
    /// `b` and `c` of literals do not.
    fn follows_identifier(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).is_some_and(|at| is_word(self.characters[at]));
        let prefixed = self.at > 0 && matches!(self.characters[self.at - 1], 'b' | 'c');
        if prefixed { before(2) } else { before(1) }
    }

    fn raw_string(&mut self, hashes: usize) {
        self.take_many(hashes + 2, Part::Code);
        let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
        while self.at < self.characters.len() && !self.sees(&end) {
            self.take(Part::Literal);
        }
        self.take_many(hashes + 1, Part::Code);
    }

    fn quoted(&mut self, quote: char) {
        self.take(Part::Code);
        while self.peek(0).is_some_and(|character| character != quote) {
            if self.peek(0) == Some('\\') {
                self.take(Part::Literal);
            }
            self.take(Part::Literal);
        }
        self.take(Part::Code);
    }

    /// `'a'` and `'\n'` are characters, `'a` is a lifetime.
    fn is_character_literal(&self) -> bool {
        self.peek(1) == Some('\\') || self.peek(2) == Some('\'')
    }

    fn take_many(&mut self, count: usize, part: Part) {
        for _ in 0..count {
            self.take(part);
        }
    }

    fn take(&mut self, part: Part) {
        let Some(character) = self.peek(0) else {
            return;
        };
        self.at += 1;
        if character == '\n' {
            self.end_line();
            return;
        }
        match part {
            Part::Code => {
                self.line.code.push(character);
                self.line.text.push(character);
            }
            Part::Literal => self.line.text.push(character),
            Part::Comment => self.line.comment.push(character),
        }
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        line.number = self.lines.len() + 1;
        self.lines.push(line);
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn sees(&self, expected: &str) -> bool {
        expected.chars().enumerate().all(|(ahead, character)| self.peek(ahead) == Some(character))
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
