//! Tests of `emit` and `sprite ingest`: what an agent writes and what Lattice understands.

use std::path::Path;
use std::process::Command;

use lattice_testkit::{Lattice, TestRepo};
use serde_json::{Value, json};

use crate::lattice;

const PREFIX: &str = "LATTICE_EVENT ";

/// `emit` in a workspace that does not exist yet, outside of any repository.
fn emit(repo: &TestRepo) -> Lattice {
    lattice(repo)
        .cwd("/")
        .arg("emit")
        .env("LATTICE_WORKSPACE", workspace(repo))
        .env("LATTICE_SPRITE_ID", "s1")
        .env("LATTICE_WORK_ITEM_ID", "issue-17")
}

fn workspace(repo: &TestRepo) -> std::path::PathBuf {
    repo.dir().join("../workspace")
}

fn outbox(repo: &TestRepo) -> String {
    std::fs::read_to_string(workspace(repo).join(".lattice/outbox.jsonl")).expect("the outbox")
}

fn rules(document: &Value) -> Vec<String> {
    let violations = document["violations"].as_array().expect("a list");
    violations.iter().map(|violation| violation["rule"].as_str().unwrap_or_default().to_owned()).collect()
}

// proves: SP-2, SP-5, SP-6, SP-9, SP-12, SP-81, SP-83
#[test]
fn every_event_goes_to_stdout_and_to_the_outbox_as_one_line() {
    let repo = TestRepo::draw("main*");
    let proposal = json!({
        "observed_failure": { "phase": "p", "exit_code": 1, "stderr_hint": "h" },
        "suggested_adjustment": { "type": "add_system_package", "details": {} },
        "confidence": 1, "evidence": [], "scope": "repo_specific",
    });
    let calls: [(&[&str], Value); 9] = [
        (&["info", "two\nlines", "--kind", "note"], json!({ "message": "two\nlines", "kind": "note" })),
        (&["phase-started", "test"], json!({ "phase": "test" })),
        (&["phase-finished", "test", "--success", "true"], json!({ "phase": "test", "success": true })),
        (
            &["action-request", "LABEL_ISSUE", "--param", "labels=[\"a\"]", "--param", "note=17", "--blocking"],
            json!({ "action": "LABEL_ISSUE", "parameters": { "labels": ["a"], "note": "17" }, "blocking": true }),
        ),
        (&["artifact", "--kind", "file", "--ref", "a.txt"], json!({ "kind": "file", "ref": "a.txt" })),
        (
            &["waiting", "--reason", "r", "--checkpoint", "chk_1", "--expect", "ok=array<boolean>"],
            json!({ "reason": "r", "checkpoint_id": "chk_1", "expected_inputs": { "ok": "array<boolean>" } }),
        ),
        (&["completed", "--status", "failure", "--summary", "s"], json!({ "status": "failure", "summary": "s" })),
        (&["error", "m", "--details", "{\"a\":1}"], json!({ "message": "m", "details": { "a": 1 } })),
        (&["environment-proposal", "--json", "-"], proposal.clone()),
    ];
    for (at, (args, payload)) in calls.into_iter().enumerate() {
        let out = emit(&repo).args(args).stdin(proposal.to_string()).ok();
        assert_eq!(out.stdout.matches('\n').count(), 1, "{args:?}: {}", out.stdout);
        let shown = out.stdout.trim_end().strip_prefix(PREFIX).expect("the prefix");
        let kept = outbox(&repo);
        assert_eq!(kept.lines().nth(at), Some(shown), "the outbox has the same text without the prefix");
        let event: Value = serde_json::from_str(shown).expect("JSON");
        assert_eq!(event["payload"], payload);
        let keys: Vec<_> = event.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["event_type", "payload", "protocol_version", "sprite_id", "timestamp", "work_item_id"]);
    }
    assert_eq!(outbox(&repo).lines().count(), 9, "an outbox that is there keeps its lines");
    assert!(!outbox(&repo).contains("LATTICE_EVENT"));
}

#[test]
fn an_event_that_lattice_would_refuse_is_not_emitted() {
    let repo = TestRepo::draw("main*");
    emit(&repo).args(["phase-started", " "]).fails(2);
    emit(&repo).args(["waiting", "--reason", "r", "--checkpoint", "c", "--expect", "a=float"]).fails(2);
    let out = emit(&repo).args(["info", "--json", "-"]).stdin("{\"message\":1}").fails(2);
    assert!(out.stdout.contains("`message` must be text"), "{}", out.snapshot());
    let out = emit(&repo).env("LATTICE_SPRITE_ID", "").args(["info", "m"]).fails(1);
    assert!(out.stderr.contains("LATTICE_SPRITE_ID is not set"), "{}", out.snapshot());
    assert!(!workspace(&repo).exists(), "nothing was written");
    std::fs::create_dir_all(workspace(&repo).join(".lattice")).expect("a folder");
    std::os::unix::fs::symlink(repo.dir().join("stolen"), workspace(&repo).join(".lattice/outbox.jsonl"))
        .expect("a link");
    emit(&repo).args(["info", "m"]).fails(1);
    assert!(!repo.dir().join("stolen").exists(), "a link is not followed");
}

#[test]
fn emitters_that_run_at_once_do_not_mix_their_lines_and_a_torn_line_swallows_none() {
    let repo = TestRepo::draw("main*");
    std::fs::create_dir_all(workspace(&repo).join(".lattice")).expect("a folder");
    std::fs::write(workspace(&repo).join(".lattice/outbox.jsonl"), "{\"torn").expect("half a line");
    let long = "x".repeat(100_000);
    let message = |number: usize| format!("{number} {long}");
    let running: Vec<_> = (0..12).map(|number| emit(&repo).args(["info", &message(number)]).spawn()).collect();
    running.into_iter().for_each(|one| assert_eq!(one.wait().code, Some(0)));
    let document = ingest(&repo, None, Some(&outbox(&repo)));
    assert_eq!(document["events"].as_array().map(Vec::len), Some(12));
    assert_eq!(rules(&document), ["not-json"]);
    assert_eq!(document["violations"][0]["line"], json!(1));
}

/// What `sprite ingest` makes of two texts.
fn ingest(repo: &TestRepo, stdout: Option<&str>, outbox: Option<&str>) -> Value {
    let mut call = lattice(repo).args(["sprite", "ingest"]);
    for (flag, text) in [("--stdout", stdout), ("--outbox", outbox)] {
        if let Some(text) = text {
            let path = repo.dir().join(format!("../recorded{flag}"));
            std::fs::write(&path, text).expect("a recording");
            call = call.arg(flag).arg(path);
        }
    }
    let document = call.json();
    crate::validated(repo, &document);
    document
}

fn info(message: &str) -> String {
    let event = json!({ "protocol_version": "v1", "event_type": "INFO", "sprite_id": "s1", "work_item_id": "issue-17",
        "timestamp": "2026-01-15T10:30:00Z", "payload": { "message": message } });
    format!("{event}\n")
}

#[test]
fn both_sides_of_a_recording_become_one_history() {
    let repo = TestRepo::draw("main*");
    let said = [info("a"), info("b"), info("c"), info("c")];
    let stdout: String = said.iter().map(|line| format!("building…\n{PREFIX}{line}")).collect();
    let document = ingest(&repo, Some(&stdout), Some(&said.concat()));
    assert_eq!(rules(&document), [""; 0]);
    let events = document["events"].as_array().expect("events");
    let messages: Vec<_> = events.iter().map(|event| event["payload"]["message"].as_str().expect("text")).collect();
    assert_eq!(messages, ["a", "b", "c", "c"], "two that share type and time are two, and so are two equal ones");
    assert!(events.iter().all(|event| event["source"] == "both"), "{document:#}");
    let document = ingest(&repo, Some(&format!("{stdout}{PREFIX}{}", info("lonely"))), Some(&said.concat()));
    assert_eq!(rules(&document), ["one-sided"]);
    lattice(&repo).args(["sprite", "ingest"]).fails(2);
    lattice(&repo).args(["sprite", "ingest", "--stdout", "missing"]).fails(1);
}

/// The document as an agent reads it: echo and append, no helper.
const SHELL: &str = r#"
mkdir -p "$W/.lattice"
say() {
  event='{"protocol_version":"v1","event_type":"'$1'","sprite_id":"s1","work_item_id":"issue-17","timestamp":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","payload":'$2'}'
  echo "LATTICE_EVENT $event"; echo "$event" >> "$W/.lattice/outbox.jsonl"
}
say PHASE_STARTED '{"phase":"implement"}'; echo "some output"; say INFO '{"message":"half done","kind":"progress"}'
say PHASE_FINISHED '{"phase":"implement","success":true}'; say COMPLETED '{"status":"success"}'
"#;
const PYTHON: &str = r#"
import datetime, json, os
os.makedirs(os.environ["W"] + "/.lattice", exist_ok=True)
def say(kind, payload):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = json.dumps({"protocol_version": "v1", "event_type": kind, "sprite_id": "s1", "work_item_id": "issue-17", "timestamp": now, "payload": payload})
    print("LATTICE_EVENT " + event, flush=True)
    open(os.environ["W"] + "/.lattice/outbox.jsonl", "a").write(event + "\n")
say("PHASE_STARTED", {"phase": "implement"}); print("some output"); say("INFO", {"message": "half done", "kind": "progress"})
say("PHASE_FINISHED", {"phase": "implement", "success": True}); say("COMPLETED", {"status": "success"})
"#;
const NODE: &str = r#"
const fs = require("fs"); const dir = process.env.W + "/.lattice"; fs.mkdirSync(dir, { recursive: true });
function say(kind, payload) {
  const event = JSON.stringify({ protocol_version: "v1", event_type: kind, sprite_id: "s1", work_item_id: "issue-17", timestamp: new Date().toISOString(), payload });
  console.log("LATTICE_EVENT " + event); fs.appendFileSync(dir + "/outbox.jsonl", event + "\n");
}
say("PHASE_STARTED", { phase: "implement" }); console.log("some output"); say("INFO", { message: "half done", kind: "progress" });
say("PHASE_FINISHED", { phase: "implement", success: true }); say("COMPLETED", { status: "success" });
"#;

#[test]
fn scripts_that_follow_the_document_literally_are_understood() {
    for (program, flag, script) in [("bash", "-c", SHELL), ("python3", "-c", PYTHON), ("node", "-e", NODE)] {
        let repo = TestRepo::draw("main*");
        let dir: &Path = &workspace(&repo);
        let ran = Command::new(program).args([flag, script]).env("W", dir).output();
        let ran = ran.unwrap_or_else(|error| panic!("{program} does not start: {error}"));
        assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
        let document = ingest(&repo, Some(&String::from_utf8_lossy(&ran.stdout)), Some(&outbox(&repo)));
        assert_eq!(rules(&document), [""; 0], "{program}: {document:#}");
        let kinds: Vec<_> =
            document["events"].as_array().expect("events").iter().map(|event| &event["event_type"]).collect();
        assert_eq!(kinds, ["PHASE_STARTED", "INFO", "PHASE_FINISHED", "COMPLETED"], "{program}");
    }
}
