//! References: each number once, never the item itself.
#![no_main]

use lattice_context::bundle::references;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut found = references([text], 7);
    assert!(!found.contains(&7) && !found.contains(&0));
    let count = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), count);
});
