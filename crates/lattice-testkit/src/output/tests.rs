//! What is replaced in output and what stays.

use super::normalise_numbers;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(normalise_numbers(text), expected);
}

#[test]
fn durations_and_process_ids_are_replaced() {
    check("restacked 3 branches in 12 ms", "restacked 3 branches in <time> ms");
    check("done (1.25s)", "done (<time>s)");
    check(r#"{"elapsed_ms": 17, "pid":4242}"#, r#"{"elapsed_ms": <time>, "pid":<pid>}"#);
    check("the lock is held by process 4242.", "the lock is held by process <pid>.");
}

#[test]
fn ids_dates_counts_and_names_stay() {
    let text = "1a2b3c4 2026-01-02T03:04:05Z 3 stacks branch-7 v1.2 10%";
    check(text, text);
}
