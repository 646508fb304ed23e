//! Tests of the stages one by one.

use serde_json::{Value, json};

use super::sample;
use crate::lattice;

fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON document")
}

// proves partly: CE-18, CE-24, CE-25 — the library's tests prove the numbers
#[test]
fn the_budget_is_printed_bare_and_below_result() {
    let repo = sample();
    let bare = document(&lattice(&repo).args(["context", "budget"]).ok().stdout);
    assert_eq!(
        bare,
        json!({"total":8000,"input_allocation_pct":0.7,"system_prompt":800,"context":4000,"user_request":800,"response_buffer":2400})
    );
    assert_eq!(lattice(&repo).args(["context", "budget"]).json()["result"], bare);
    let out = lattice(&repo).args(["context", "budget", "--total", "0"]).fails(2);
    assert!(out.stderr.contains("--total"));
}

// proves: CE-12, CE-13, CE-14
#[test]
fn chunks_go_from_stage_to_stage_as_json() {
    let repo = sample();
    let gathered = lattice(&repo).args(["context", "gather", "files", "src/**/*.py"]).ok().stdout;
    let scored = lattice(&repo).args(["context", "score", "--request", "the cart"]).stdin(&gathered).ok().stdout;
    let list = document(&scored);
    assert_eq!(list[0]["chunk"]["source"], "src/cart.py");
    assert_eq!(list[0]["parts"]["mention_boost"], 250.0);
    let compressed = document(
        &lattice(&repo).args(["context", "compress", "--budget", "800", "--explain"]).stdin(&scored).ok().stdout,
    );
    assert_eq!(compressed["decisions"].as_array().map(Vec::len), list.as_array().map(Vec::len));
    let plain = document(&lattice(&repo).args(["context", "compress"]).stdin(&gathered).ok().stdout);
    assert_eq!(plain["budget"], 4000, "the default share, and plain chunks are accepted");
    let tools =
        ["--tool", "grep", "--tool", r#"{"name":"run","description":"runs"}"#, "--artifact", "file=src/auth.py"];
    let envelope = lattice(&repo).args(["context", "pack", "the cart", "--format", "envelope"]).args(tools).ok().stdout;
    let parsed = document(&envelope);
    assert_eq!(parsed["tools"], json!([{"name":"grep"},{"name":"run","description":"runs"}]));
    assert_eq!(parsed["artifacts"], json!([{"type":"file","path":"src/auth.py"}]));
    assert!(parsed["context"]["utilization"].is_number() && parsed["context"]["chunks"].is_array());
    let prompt = |()| lattice(&repo).args(["context", "prompt"]).stdin(&envelope).ok().stdout;
    assert_eq!(prompt(()), prompt(()));
    assert_eq!(
        prompt(()),
        lattice(&repo).args(["context", "prompt"]).stdin(&envelope).json()["result"].as_str().expect("text")
    );
    let refused = lattice(&repo).args(["context", "score"]).stdin("[{\"content\":1}]").fails(1);
    assert!(refused.stderr.contains("is not as expected"), "{}", refused.stderr);
    for what in [&["structure", "--depth", "1"][..], &["dependencies"], &["git", "--commits", "2"]] {
        lattice(&repo).args(["context", "gather"]).args(what).ok();
    }
}
