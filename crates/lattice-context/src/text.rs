//! Bytes of files as text, or the reason why they are none.

/// How far a file is searched for the NUL byte that says it is no text, as Git does it.
const BINARY_PROBE: usize = 8000;

/// What bytes turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    Text(String),
    Binary,
}

/// Decodes UTF-8 and, with a byte order mark, UTF-16; what is invalid in text becomes a replacement character.
pub fn decode(bytes: Vec<u8>) -> Decoded {
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        _ => {}
    }
    if is_binary(&bytes) {
        return Decoded::Binary;
    }
    Decoded::Text(lossy(bytes))
}

/// Bytes as text, without a copy where they are text.
pub fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Whether Git would call this binary.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_PROBE)].contains(&0)
}

fn utf16(bytes: &[u8], number: fn([u8; 2]) -> u16) -> Decoded {
    let units = bytes.chunks_exact(2).map(|pair| number([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    if text.chars().take(BINARY_PROBE).any(|c| c == '\0') { Decoded::Binary } else { Decoded::Text(text) }
}

/// The longest beginning of a text that has at most `limit` bytes.
pub fn at_most(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Where each line begins, and where the last one ends.
pub fn line_starts(text: &str) -> Vec<usize> {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    let mut starts: Vec<usize> = std::iter::once(0).chain(breaks).collect();
    if starts.last() != Some(&text.len()) {
        starts.push(text.len());
    }
    starts
}
