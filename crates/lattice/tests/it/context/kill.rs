//! A pack that is killed: the session record is the old one or the new one, and the next run is right.

use lattice_testkit::tracer::{Caller, Fault, Victim};
use serde_json::Value;

use super::sample;
use crate::lattice;

const NOW: (&str, &str) = ("LATTICE_NOW", "2026-02-01T00:00:00Z");

// proves: CE-91
#[test]
fn a_kill_at_any_call_leaves_a_whole_session_record_and_an_index_that_is_right() {
    let repo = sample();
    let cache = repo.dir().join(".git/lattice/cache");
    let pack = |request: &str| {
        let program = lattice(&repo).env(NOW.0, NOW.1);
        program.args(["context", "pack", request, "--budget", "900", "--session", "kept", "--threads", "1"])
    };
    let forget = || std::fs::remove_dir_all(&cache).expect("it is safe to delete");
    let record = || {
        let shown = lattice(&repo).args(["context", "session", "show", "kept"]).json();
        shown["result"]["user_request"].as_str().expect("a record").to_owned()
    };
    let expected = pack("the total of a Cart").ok().stdout;
    pack("the old request").ok();
    forget();
    let whole = pack("the total of a Cart").traced(Fault::None);
    assert_eq!(whole.output.code, Some(0), "{}", whole.output.snapshot());
    let (mut old, mut new) = (0, 0);
    for (number, point) in whole.points.iter().enumerate().filter(|(_, point)| point.by == Caller::Program) {
        pack("the old request").ok();
        forget();
        let traced = pack("the total of a Cart").traced(Fault::Kill(number, Victim::All));
        if !traced.struck {
            continue;
        }
        match record().as_str() {
            "the old request" => old += 1,
            "the total of a Cart" => new += 1,
            other => panic!("killed at {number}, {}: {other}", point.name),
        }
        let out = pack("the total of a Cart").ok();
        assert!(out.stdout == expected, "killed at {number}, {}", point.name);
        let again: Value = pack("the total of a Cart").args(["--explain"]).json();
        assert_eq!(again["explain"]["scanned"], 0, "killed at {number}, {}", point.name);
    }
    assert!(old > 5 && new > 0, "{old} kills before the record was there, {new} after");
}
