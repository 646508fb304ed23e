//! Every payload: what is read is written and read again as the same event.
#![no_main]

use lattice_sprites::protocol::read_event;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok((event, _)) = read_event(line) {
        let (again, _) = read_event(event.to_line().as_bytes()).expect("what was written is read");
        assert_eq!(again.key(), event.key());
    }
});
