//! The vocabulary of a byte-pair encoding, read where it lies in the program, and how many of its tokens a piece of text
//! is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::layout;

/// Pieces up to this length are merged by looking at all their pairs again and again.
const SHORT: usize = 64;

/// No token has these bytes.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
pub(super) struct Vocabulary {
    slots: &'static [u8],
    ends: &'static [u8],
    tokens: &'static [u8],
}

impl Vocabulary {
    pub(super) fn new(file: &'static [u8]) -> Self {
        let count = number(file, 0) as usize;
        let (slots, rest) = file[4..].split_at(4 * layout::slots(count));
        let (ends, tokens) = rest.split_at(4 * (count + 1));
        Self { slots, ends, tokens }
    }

    /// How many tokens a piece is.
    pub(super) fn count(&self, piece: &[u8]) -> usize {
        if self.rank(piece) != NONE {
            1
        } else if piece.len() <= SHORT {
            self.merge_short(piece)
        } else {
            self.merge_long(piece)
        }
    }

    fn rank(&self, token: &[u8]) -> u32 {
        let slots = self.slots.len() / 4;
        let (mut at, mark) = layout::place(token, slots);
        loop {
            let slot = number(self.slots, at);
            if slot == layout::FREE {
                return NONE;
            }
            let rank = slot & layout::RANKS;
            if slot == layout::slot(mark, rank) && self.token(rank as usize) == token {
                return rank;
            }
            at = layout::after(at, slots);
        }
    }

    fn token(&self, rank: usize) -> &'static [u8] {
        &self.tokens[number(self.ends, rank) as usize..number(self.ends, rank + 1) as usize]
    }

    /// Joins the two neighbours that are the token of the lowest rank, the first of several, until none are a token.
    fn merge_short(&self, piece: &[u8]) -> usize {
        let mut starts: Vec<usize> = (0..=piece.len()).collect();
        let joined = |starts: &[usize], at: usize| match starts.get(at + 2) {
            Some(end) => self.rank(&piece[starts[at]..*end]),
            None => NONE,
        };
        let mut ranks: Vec<u32> = (0..piece.len()).map(|at| joined(&starts, at)).collect();
        while let Some((at, rank)) = ranks.iter().copied().enumerate().min_by_key(|(_, rank)| *rank) {
            if rank == NONE {
                break;
            }
            starts.remove(at + 1);
            ranks.remove(at + 1);
            ranks[at] = joined(&starts, at);
            if let Some(before) = at.checked_sub(1) {
                ranks[before] = joined(&starts, before);
            }
        }
        ranks.len()
    }

    /// The same with a queue of neighbours, for pieces that are too long to look at each of them every time.
    fn merge_long(&self, piece: &[u8]) -> usize {
        // Where the part that begins here ends, and where the one before it begins. A part that was joined ends nowhere.
        let mut ends: Vec<usize> = (1..=piece.len()).collect();
        let mut before: Vec<usize> = (0..piece.len()).map(|at| at.saturating_sub(1)).collect();
        let joined = |ends: &[usize], start: usize| {
            let end = *ends.get(ends[start])?;
            let rank = self.rank(&piece[start..end]);
            (rank != NONE).then_some(Reverse((rank, start, end)))
        };
        let mut queue: BinaryHeap<_> = (0..piece.len()).filter_map(|start| joined(&ends, start)).collect();
        let mut parts = piece.len();
        while let Some(Reverse((_, start, end))) = queue.pop() {
            let middle = ends[start];
            if middle == 0 || ends.get(middle) != Some(&end) {
                continue;
            }
            (ends[start], ends[middle]) = (end, 0);
            parts -= 1;
            if let Some(before) = before.get_mut(end) {
                *before = start;
            }
            queue.extend(joined(&ends, start));
            if start > 0 {
                queue.extend(joined(&ends, before[start]));
            }
        }
        parts
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes = &bytes[4 * at..4 * at + 4];
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}
