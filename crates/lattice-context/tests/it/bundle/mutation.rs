//! Bytes that were changed at random: what reads the words of strangers neither panics nor believes them.

use std::collections::HashSet;

use lattice_context::bundle::{Manifest, references};

use super::{MadeUp, pull};

/// A small generator, so that a failing case is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("it is small")
    }
}

/// Pieces that readers of Markdown and JSON care about.
const PIECES: [&str; 24] = [
    "#12",
    "#",
    "```",
    "~~~",
    "`",
    "<!--",
    "-->",
    "<div>",
    "[",
    "](",
    "*",
    "_",
    "\\",
    "\n",
    "\n\n",
    "    ",
    "|",
    "&#35;",
    "\u{202e}",
    "\"",
    "{",
    "}",
    "999999999999",
    "../",
];

fn mutated(seed: &str, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.as_bytes().to_vec();
    for _ in 0..1 + dice.roll(8) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(4) {
            0 if at < bytes.len() => bytes[at] = u8::try_from(dice.roll(256)).expect("a byte"),
            1 => drop(bytes.drain(at..(at + dice.roll(9)).min(bytes.len()))),
            2 => {
                let end = (at + dice.roll(40)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => drop(bytes.splice(at..at, PIECES[dice.roll(PIECES.len())].bytes())),
        }
    }
    bytes
}

#[test]
fn references_are_numbers_that_are_there_however_the_text_is_changed() {
    let seed =
        "Fixes #7, see (#8).\n\n```\n#9\n```\n> a `#10` <!-- #11 -->\n\n| #12 |\n|---|\n| o/r#13 |\n\n<div>#14</div>";
    let mut dice = Dice(0x5eed);
    for _ in 0..3000 {
        let text = String::from_utf8_lossy(&mutated(seed, &mut dice)).into_owned();
        let found = references([text.as_str()], 7);
        let distinct: HashSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "{text:?}");
        assert!(!found.contains(&7) && !found.contains(&0), "{text:?}");
        // Entities and escapes are text too, so that a number may stand there in another form.
        let literal = |number: &u64| text.contains(&number.to_string()) || text.contains('&') || text.contains('\\');
        assert!(found.iter().all(literal), "{text:?}: {found:?}");
    }
}

#[test]
fn a_manifest_that_is_read_names_only_files_of_a_bundle_however_it_was_changed() {
    let seed = MadeUp::pull_request().gather(pull(1)).manifest.render();
    let mut dice = Dice(0xbad);
    let mut read = 0;
    for _ in 0..3000 {
        let Ok(manifest) = Manifest::parse(&mutated(&seed, &mut dice)) else { continue };
        read += 1;
        for file in &manifest.files {
            assert!(!file.path.contains("..") && !file.path.starts_with('/'), "{}", file.path);
        }
    }
    assert!(read > 0, "some changes do no harm");
}
