//! Makes the tables of the exact counters: each vocabulary as one file that is read where it lies.

#![expect(clippy::disallowed_methods, reason = "cargo names a folder for what is built, and it is no user's")]

#[path = "src/tokens/layout.rs"]
mod layout;

use std::path::Path;

use tiktoken_rs::CoreBPE;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokens/layout.rs");
    let folder = std::env::var_os("OUT_DIR").expect("cargo names a folder");
    for (name, vocabulary) in [("o200k", tiktoken_rs::o200k_base()), ("cl100k", tiktoken_rs::cl100k_base())] {
        let table = table(&vocabulary.expect("the crate has its tables"));
        std::fs::write(Path::new(&folder).join(name), table).expect("the folder can be written");
    }
}

/// The tokens of a vocabulary by their rank. A number without a token lies between them and the special ones.
fn table(vocabulary: &CoreBPE) -> Vec<u8> {
    let tokens: Vec<Vec<u8>> = (0..).map_while(|rank| vocabulary.decode_bytes(&[rank]).ok()).collect();
    let mut slots = vec![layout::FREE; layout::slots(tokens.len())];
    for (rank, token) in tokens.iter().enumerate() {
        let rank = u32::try_from(rank).expect("few enough tokens");
        let (mut at, mark) = layout::place(token, slots.len());
        while slots[at] != layout::FREE {
            at = layout::after(at, slots.len());
        }
        slots[at] = layout::slot(mark, rank);
    }
    let mut end = 0;
    let ends = tokens.iter().map(|token| {
        end += u32::try_from(token.len()).expect("short tokens");
        end
    });
    let count = u32::try_from(tokens.len()).expect("few enough tokens");
    let numbers = [count].into_iter().chain(slots).chain([0]).chain(ends);
    let mut bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    bytes.extend(tokens.concat());
    bytes
}
