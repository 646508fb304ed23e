//! Tests of session records over processes.

use serde_json::{Value, json};

use super::sample;
use crate::lattice;

const KEYS: [&str; 9] = [
    "artifacts",
    "context",
    "context_summary",
    "conversation_history",
    "session_id",
    "state",
    "task_type",
    "timestamp",
    "user_request",
];

fn state() -> Value {
    json!({
        "task_type": "implement",
        "user_request": "add user authentication",
        "context": {"chunks": [], "chunks_included": 12, "tokens_used": 3500, "budget": 4000, "utilization": 0.875},
        "artifacts": [{"type": "file", "path": "src/auth.py"}],
        "conversation_history": [
            {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
            {"role": "user", "content": "three"}, {"role": "assistant", "content": "four"},
        ],
    })
}

// proves: CE-78, CE-79, CE-80, CE-81, CE-82, CE-83, CE-84, CE-85
#[test]
fn a_session_is_stored_with_its_keys_and_comes_back_in_another_process() {
    let repo = sample();
    lattice(&repo)
        .args(["context", "session", "save", "session_abc123"])
        .stdin(state().to_string())
        .env("LATTICE_NOW", "2024-01-15T10:30:00Z")
        .ok();
    let path = repo.dir().join(".git/lattice/sessions/session_abc123.json");
    let stored: Value = serde_json::from_slice(&std::fs::read(path).expect("one file")).expect("JSON");
    assert_eq!(stored.as_object().expect("an object").keys().collect::<Vec<_>>(), KEYS);
    assert_eq!(
        (&stored["session_id"], &stored["timestamp"]),
        (&json!("session_abc123"), &json!("2024-01-15T10:30:00Z"))
    );
    assert_eq!((&stored["task_type"], &stored["state"]), (&json!("implement"), &json!("running")));
    assert_eq!(stored["user_request"], "add user authentication");
    assert_eq!(stored["context_summary"], json!({"chunks_included": 12, "tokens_used": 3500, "utilization": 0.875}));
    for task in ["debug", "refactor", "test", "analyze"] {
        let mut other = state();
        other["task_type"] = json!(task);
        lattice(&repo).args(["context", "session", "save", task, "--state", "completed"]).stdin(other.to_string()).ok();
        let back = lattice(&repo).args(["context", "session", "restore", task]).json();
        assert_eq!((&back["result"]["task_type"], &back["result"]["state"]), (&json!(task), &json!("completed")));
    }
    let listed = lattice(&repo).args(["context", "session", "list"]).ok().stdout;
    assert_eq!(listed, "analyze\ndebug\nrefactor\nsession_abc123\ntest\n");
}

// proves: CE-4, CE-86, CE-87, CE-88, CE-89, CE-90
#[test]
fn what_was_saved_is_restored_unchanged_wherever_it_is_kept() {
    let repo = sample();
    let storage = ["--storage-dir", ".copilot/sessions"];
    lattice(&repo).args(["context", "session", "save", "session_x"]).args(storage).stdin(state().to_string()).ok();
    assert_eq!(std::fs::read_dir(repo.dir().join(".copilot/sessions")).expect("made when missing").count(), 1);
    assert!(!repo.dir().join(".git/lattice/sessions").exists(), "there and nowhere else");
    let back: Value = serde_json::from_str(
        &lattice(&repo).args(["context", "session", "restore", "session_x"]).args(storage).ok().stdout,
    )
    .expect("JSON");
    for key in ["task_type", "user_request", "artifacts", "conversation_history"] {
        assert_eq!(back[key], state()[key], "{key}");
    }
    assert_eq!(back["context"]["tokens_used"], 3500);
    lattice(&repo).args(["context", "pack", "the cart", "--session", "session_y"]).ok();
    let packed = lattice(&repo).args(["context", "session", "restore", "session_y"]).json();
    assert_eq!(packed["result"]["user_request"], "the cart");
    assert!(packed["result"]["context"]["chunks"].as_array().is_some_and(|chunks| !chunks.is_empty()));
    let out = lattice(&repo).args(["context", "session", "restore", "nope"]).fails(1);
    assert!(out.stderr.contains("`nope`"), "{}", out.stderr);
    lattice(&repo).args(["context", "session", "save", "../../x"]).stdin(state().to_string()).fails(1);
}
