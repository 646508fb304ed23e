//! How a vocabulary lies in its file: the number of tokens, the slots of a hash table, where each token ends, and their
//! bytes. What makes the file and what reads it share this.

/// A slot has a rank in its lower bits and some of the token's hash in the others, so that few tokens are compared.
const RANK_BITS: u32 = 18;

/// The bits of a slot that are its rank.
pub(crate) const RANKS: u32 = (1 << RANK_BITS) - 1;

/// A slot without a token.
pub(crate) const FREE: u32 = u32::MAX;

/// The slots of so many tokens: a power of two, at most half of them taken.
pub(crate) fn slots(tokens: usize) -> usize {
    assert!(tokens < RANKS as usize, "ranks fit into their bits");
    (2 * tokens).next_power_of_two()
}

/// The slot where the search for a token begins, and what is kept of its hash.
pub(crate) fn place(token: &[u8], slots: usize) -> (usize, u32) {
    let hash = hash(token);
    (hash as usize & (slots - 1), (hash >> 32) as u32 >> RANK_BITS)
}

/// The next slot of a search.
pub(crate) fn after(at: usize, slots: usize) -> usize {
    (at + 1) & (slots - 1)
}

pub(crate) fn slot(mark: u32, rank: u32) -> u32 {
    mark << RANK_BITS | rank
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    hash ^ hash >> 29
}
