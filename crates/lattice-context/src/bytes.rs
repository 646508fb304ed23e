//! Values of our own cache files as bytes.

use std::ops::Range;

/// Numbers, texts and lists as bytes.
#[derive(Debug, Default)]
pub(crate) struct Writing(pub(crate) Vec<u8>);

impl Writing {
    /// Seven bits in each byte, the lowest first.
    pub(crate) fn size(&mut self, mut size: usize) {
        while size >= 0x80 {
            self.0.push(size as u8 | 0x80);
            size >>= 7;
        }
        self.0.push(size as u8);
    }

    pub(crate) fn range(&mut self, range: &Range<usize>) {
        self.size(range.start);
        self.size(range.end);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn list<T>(&mut self, items: &[T], one: impl Fn(&mut Self, &T)) {
        self.size(items.len());
        items.iter().for_each(|item| one(self, item));
    }
}

/// The same from bytes; anything unexpected is `None`.
pub(crate) struct Reading<'a>(pub(crate) &'a [u8]);

impl<'a> Reading<'a> {
    pub(crate) fn size(&mut self) -> Option<usize> {
        let mut size = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            size |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(size);
            }
        }
        None
    }

    pub(crate) fn range(&mut self) -> Option<Range<usize>> {
        Some(self.size()?..self.size()?)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.size()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    pub(crate) fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.size()?;
        (0..count).map(|_| one(self)).collect()
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    pub(crate) fn short(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }
}
