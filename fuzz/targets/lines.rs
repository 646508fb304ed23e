//! The line parser: the same events, however the bytes are cut.
#![no_main]

use lattice_sprites::protocol::{Line, Lines};
use libfuzzer_sys::fuzz_target;

fn read(bytes: &[u8], size: usize) -> Vec<(u64, Option<Vec<u8>>)> {
    let (mut lines, mut found) = (Lines::stdout(), Vec::new());
    let mut note = |number, line: Line<'_>| match line {
        Line::Event(line) => found.push((number, Some(line.to_vec()))),
        Line::TooLong { .. } => found.push((number, None)),
    };
    bytes.chunks(size).for_each(|piece| lines.feed(piece, &mut note));
    lines.end(&mut note);
    found
}

fuzz_target!(|bytes: &[u8]| {
    let size = bytes.first().map_or(1, |byte| usize::from(*byte) + 1);
    assert_eq!(read(bytes, size), read(bytes, usize::MAX));
});
