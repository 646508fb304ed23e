//! Token counting: the cheap estimate, exact BPE counts, and room for others.

mod layout;
mod pieces;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, LazyLock};

use pieces::Cutter;
use vocabulary::Vocabulary;

/// Counts tokens.
///
/// A limit is kept in units, which add up exactly where tokens do not: the estimate rounds
/// down, so the sum of many counts would be less than the count of the whole.
pub trait TokenCounter: Send + Sync {
    /// What `--tokenizer` calls it.
    fn name(&self) -> &'static str;

    /// The tokens of a text.
    fn count(&self, text: &str) -> usize;

    /// The size of a text in units that can be added.
    fn units(&self, text: &str) -> u64 {
        self.count(text) as u64
    }

    /// The units of any text with so many tokens, if one says the other: such a text need not be counted again.
    fn known_units(&self, _tokens: usize) -> Option<u64> {
        None
    }

    /// The most units that are still `tokens` tokens.
    fn most_units(&self, tokens: usize) -> u64 {
        tokens as u64
    }

    /// The tokens that a text of so many units has, at most.
    fn tokens_of(&self, units: u64) -> usize {
        usize::try_from(units).unwrap_or(usize::MAX)
    }
}

impl fmt::Debug for dyn TokenCounter + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The counters that come with the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tokenizer {
    Estimate,
    O200k,
    Cl100k,
}

impl Tokenizer {
    pub const ALL: [Self; 3] = [Self::Estimate, Self::O200k, Self::Cl100k];

    pub fn counter(self) -> Arc<dyn TokenCounter> {
        Arc::new(self)
    }
}

/// A byte-pair encoding. What it calls special is ordinary text here.
struct Encoding {
    cutter: Cutter,
    vocabulary: Vocabulary,
}

impl Encoding {
    fn count(&self, text: &str) -> usize {
        self.cutter.pieces(text).map(|piece| self.vocabulary.count(piece.as_bytes())).sum()
    }
}

static O200K: LazyLock<Encoding> = LazyLock::new(|| Encoding {
    cutter: Cutter::o200k(),
    vocabulary: Vocabulary::new(include_bytes!(concat!(env!("OUT_DIR"), "/o200k"))),
});

static CL100K: LazyLock<Encoding> = LazyLock::new(|| Encoding {
    cutter: Cutter::cl100k(),
    vocabulary: Vocabulary::new(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k"))),
});

impl TokenCounter for Tokenizer {
    fn name(&self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }

    fn count(&self, text: &str) -> usize {
        match self {
            Self::Estimate => estimate_tokens(text),
            Self::O200k => O200K.count(text),
            Self::Cl100k => CL100K.count(text),
        }
    }

    fn units(&self, text: &str) -> u64 {
        match self {
            Self::Estimate => text.chars().count() as u64,
            Self::O200k | Self::Cl100k => self.count(text) as u64,
        }
    }

    fn known_units(&self, tokens: usize) -> Option<u64> {
        match self {
            Self::Estimate => None,
            Self::O200k | Self::Cl100k => Some(tokens as u64),
        }
    }

    fn most_units(&self, tokens: usize) -> u64 {
        match self {
            Self::Estimate => (tokens as u64).saturating_mul(4).saturating_add(3),
            Self::O200k | Self::Cl100k => tokens as u64,
        }
    }

    fn tokens_of(&self, units: u64) -> usize {
        let tokens = match self {
            Self::Estimate => units / 4,
            Self::O200k | Self::Cl100k => units,
        };
        usize::try_from(tokens).unwrap_or(usize::MAX)
    }
}

/// The number of characters divided by 4, rounded down.
pub fn estimate_tokens(text: &str) -> usize {
    text.chars().count() / 4
}
