//! Documents that must agree with the sources.

use xtask::conformance;

// proves partly: ST-0-1, ST-13-1 — requirements that no test names are listed and do not fail a run
#[test]
fn the_conformance_table_is_up_to_date() {
    if let Err(failure) = conformance::check(xtask::root()) {
        panic!("{failure}");
    }
}
