//! Cuts a stream of bytes, however it arrives, into the lines that may be events.

use memchr::memmem::Finder;

use super::{LONGEST_LINE, PREFIX};

/// The prefix of an event behind the end of the line before it.
const EVENT_AFTER_LINE: &[u8] = b"\nLATTICE_EVENT ";

/// What a stream consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'a> {
    /// What follows the prefix, without the end of the line.
    Event(&'a [u8]),
    /// An event line that is longer than any event may be; its bytes are gone.
    TooLong { bytes: u64 },
}

/// Which lines count as events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// Lines with the prefix; all others are ordinary output.
    Stdout,
    /// Every line that is not empty.
    Outbox,
}

/// A cutter that holds at most one line, and of ordinary output nothing but its first bytes.
#[derive(Debug)]
pub struct Lines {
    dialect: Dialect,
    /// The line so far, if it may still be an event.
    held: Vec<u8>,
    /// The bytes of the line so far.
    length: u64,
    is_ordinary: bool,
    number: u64,
    /// Finds an event behind the end of a line.
    event_after_line: Finder<'static>,
}

impl Lines {
    /// For what an agent prints.
    pub fn stdout() -> Self {
        Self::new(Dialect::Stdout)
    }

    /// For the outbox.
    pub fn outbox() -> Self {
        Self::new(Dialect::Outbox)
    }

    fn new(dialect: Dialect) -> Self {
        let event_after_line = Finder::new(EVENT_AFTER_LINE);
        Self { dialect, held: Vec::new(), length: 0, is_ordinary: false, number: 0, event_after_line }
    }

    /// Takes more bytes; `event` gets each line that ends in them, with its number from 1.
    pub fn feed(&mut self, bytes: &[u8], mut event: impl FnMut(u64, Line<'_>)) {
        let mut bytes = self.without_ordinary(bytes);
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            if self.length == 0 {
                // A line that lies in one piece needs no copy.
                self.number += 1;
                self.whole(&bytes[..end], &mut event);
            } else {
                self.extend(&bytes[..end]);
                self.finish(&mut event);
            }
            bytes = self.without_ordinary(&bytes[end + 1..]);
        }
        self.extend(bytes);
    }

    /// What follows the ordinary lines that it begins with. Most lines are such, so they are not cut one by one.
    fn without_ordinary<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.dialect == Dialect::Outbox || self.length > 0 || bytes.starts_with(PREFIX) {
            return bytes;
        }
        let next = self.event_after_line.find(bytes).or_else(|| memchr::memrchr(b'\n', bytes));
        let (lines, rest) = bytes.split_at(next.map_or(0, |end| end + 1));
        self.number += memchr::memchr_iter(b'\n', lines).count() as u64;
        rest
    }

    /// The stream has ended; what is left is a line without an end.
    pub fn end(&mut self, mut event: impl FnMut(u64, Line<'_>)) {
        if self.length > 0 {
            self.finish(&mut event);
        }
    }

    /// How much memory the line so far takes.
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    fn whole(&self, line: &[u8], event: &mut impl FnMut(u64, Line<'_>)) {
        let Some(body) = self.body(line) else { return };
        if body.len() > LONGEST_LINE {
            return event(self.number, Line::TooLong { bytes: line.len() as u64 });
        }
        event(self.number, Line::Event(body));
    }

    /// What of a line is the event.
    fn body<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.dialect {
            Dialect::Stdout => line.strip_prefix(PREFIX),
            Dialect::Outbox => (!line.trim_ascii().is_empty()).then_some(line),
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if self.is_ordinary || self.length > (LONGEST_LINE + PREFIX.len() + 1) as u64 {
            self.held = Vec::new();
            return;
        }
        self.held.extend_from_slice(bytes);
        let start = self.held.len().min(PREFIX.len());
        if self.dialect == Dialect::Stdout && self.held[..start] != PREFIX[..start] {
            self.is_ordinary = true;
            self.held.clear();
        }
    }

    fn finish(&mut self, event: &mut impl FnMut(u64, Line<'_>)) {
        self.number += 1;
        let held = std::mem::take(&mut self.held);
        if self.length > held.len() as u64 && !self.is_ordinary {
            event(self.number, Line::TooLong { bytes: self.length });
        } else {
            self.whole(&held, event);
        }
        self.held = held;
        self.held.clear();
        self.length = 0;
        self.is_ordinary = false;
    }
}
