//! The clock of a test is a counter.

use super::{Sandbox, clock};

#[test]
fn the_clock_starts_fixed_and_moves_by_a_second_over_midnight() {
    assert_eq!(clock(0), "2026-01-02T03:04:05Z", "before any run");
    assert_eq!(clock(1), "2026-01-02T03:04:05Z", "the first run");
    assert_eq!(clock(2), "2026-01-02T03:04:06Z", "the second run");
    assert_eq!(clock(1 + 86_400 - 11_045), "2026-01-03T00:00:00Z", "midnight");
}

#[test]
fn commit_dates_are_a_minute_apart() {
    let sandbox = Sandbox::new(None);
    let first = sandbox.tick_commit();
    assert_eq!(first, 1_767_225_600, "the first commit has the first date");
    assert_eq!(sandbox.tick_commit() - first, 60, "reproducible and ordered");
}
