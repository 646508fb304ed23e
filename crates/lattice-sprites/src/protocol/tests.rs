//! Tests of the protocol: lines in, events and findings out.

use serde_json::{Map, Value, json};

use super::{Event, Happening, InputType, Line, Lines, Rules, Secrets, check_inputs, read_event};

const EXAMPLE: &str = r#"{"protocol_version":"v1","event_type":"INFO","sprite_id":"sprite-42","work_item_id":"issue-17","timestamp":"2026-01-15T10:30:00Z","payload":{"message":"Starting implementation"}}"#;

fn envelope(kind: &str, payload: Value) -> Value {
    let mut event: Value = serde_json::from_str(EXAMPLE).expect("the example is JSON");
    event["event_type"] = json!(kind);
    event["payload"] = payload;
    event
}

fn event(kind: &str, payload: Value) -> Event {
    read_event(envelope(kind, payload).to_string().as_bytes()).expect("a valid event").0
}

/// Each finding as `rule: detail`, for a valid event too.
fn findings(line: &str) -> Vec<String> {
    let found = match read_event(line.as_bytes()) {
        Ok((_, found)) | Err(found) => found,
    };
    found.into_iter().map(|finding| format!("{}: {}", finding.rule.as_str(), finding.detail)).collect()
}

#[track_caller]
fn valid(kind: &str, payload: Value) {
    assert_eq!(findings(&envelope(kind, payload.clone()).to_string()), [""; 0], "{kind} {payload}");
}

#[track_caller]
fn invalid(kind: &str, payload: Value, expected: &str) {
    let line = envelope(kind, payload).to_string();
    assert!(read_event(line.as_bytes()).is_err(), "{line} is no event");
    let found = findings(&line);
    assert!(found.len() == 1 && found[0].contains(expected), "{line} gives {found:?}, not {expected}");
}

/// `payload` without one of its keys, each in turn; keys of inner objects are written `outer.inner`.
#[track_caller]
fn requires(kind: &str, payload: &Value, keys: &[&str]) {
    for key in keys {
        let mut less = payload.clone();
        match key.split_once('.') {
            None => drop(less.as_object_mut().expect("an object").remove(*key)),
            Some((outer, inner)) => drop(less[outer].as_object_mut().expect("an object").remove(inner)),
        }
        invalid(kind, less, &format!("missing-key: `{key}` is missing"));
    }
}

fn with(payload: &Value, key: &str, value: Value) -> Value {
    let mut changed = payload.clone();
    match key.split_once('.') {
        None => changed[key] = value,
        Some((outer, inner)) => changed[outer][inner] = value,
    }
    changed
}

// proves: SP-3, SP-13, SP-14, SP-16, SP-17, SP-18
#[test]
fn an_envelope_has_six_keys_and_each_has_its_form() {
    let (event, remarks) = read_event(EXAMPLE.as_bytes()).expect("the example of the specification");
    assert_eq!((event.to_line().as_str(), remarks.len()), (EXAMPLE, 0), "it is read and written as it stands there");
    let whole: Value = serde_json::from_str(EXAMPLE).expect("JSON");
    let broken = |key: &str, value: Value| findings(&with(&whole, key, value).to_string());
    for key in ["protocol_version", "event_type", "sprite_id", "work_item_id", "timestamp", "payload"] {
        let mut less = whole.clone();
        less.as_object_mut().expect("an object").remove(key);
        assert_eq!(findings(&less.to_string()), [format!("missing-key: `{key}` is missing")]);
    }
    assert_eq!(broken("protocol_version", json!("v2")), ["wrong-version: `protocol_version` is \"v2\", not \"v1\""]);
    for name in ["info", "PROGRESS", ""] {
        assert_eq!(broken("event_type", json!(name)), [format!("unknown-type: \"{name}\" is no event type")]);
    }
    for id in ["sprite_id", "work_item_id"] {
        for value in [json!(""), json!(" "), json!(17), json!(null)] {
            assert_eq!(broken(id, value), [format!("bad-field: `{id}` must be text that is not empty")]);
        }
    }
    for time in ["yesterday", "2026-01-15T10:30:00", "2026-01-15", "2026-01-15T10:30:00+02:00"] {
        assert!(broken("timestamp", json!(time))[0].starts_with("bad-timestamp"), "{time}");
    }
    for payload in [json!("text"), json!([]), json!(null), json!(1)] {
        assert_eq!(broken("payload", payload), ["bad-field: `payload` must be an object"]);
    }
    let extra = with(&whole, "trace", json!(1)).to_string();
    assert_eq!(findings(&extra), ["extra-key: `trace` is no key of an event"]);
    assert!(read_event(extra.as_bytes()).is_ok(), "an event with one key too many still counts");
}

// proves: SP-22, SP-23, SP-24, SP-25, SP-26, SP-27
#[test]
fn notes_and_phases_have_their_form() {
    let info = json!({ "message": "75%", "kind": "progress", "metadata": { "percent": 75, "phase": "test" } });
    valid("INFO", info.clone());
    assert_eq!(event("INFO", info.clone()).payload["metadata"], info["metadata"], "metadata stays as it is");
    requires("INFO", &info, &["message"]);
    invalid("INFO", json!({ "message": 7 }), "`message` must be text");
    for kind in ["progress", "observation", "assumption", "note", "custom-kind"] {
        valid("INFO", json!({ "message": "m", "kind": kind }));
    }
    valid("INFO", json!({ "message": "m" }));
    invalid("INFO", with(&info, "kind", json!(1)), "`kind` must be text");
    invalid("INFO", with(&info, "metadata", json!([])), "`metadata` must be an object");
    for phase in ["bootstrap", "implement", "test", "polish", "review", "my-own-phase"] {
        valid("PHASE_STARTED", json!({ "phase": phase }));
        valid("PHASE_FINISHED", json!({ "phase": phase, "success": false }));
    }
    requires("PHASE_STARTED", &json!({ "phase": "p" }), &["phase"]);
    requires("PHASE_FINISHED", &json!({ "phase": "p", "success": true }), &["phase", "success"]);
    invalid("PHASE_FINISHED", json!({ "phase": "p", "success": "yes" }), "`success` must be true or false");
}

// proves: SP-30, SP-41, SP-42, SP-43, SP-44
#[test]
fn requests_and_artifacts_have_their_form() {
    let comment = json!({ "action": "POST_COMMENT", "parameters": { "body": "Done." }, "blocking": false });
    let parameters = json!({ "title": "t", "body": "Resolves #17", "base": "main", "head": "sprite/fix-cache" });
    valid("ACTION_REQUEST", comment.clone());
    valid("ACTION_REQUEST", json!({ "action": "OPEN_PR", "parameters": parameters, "blocking": true }));
    requires("ACTION_REQUEST", &comment, &["action", "parameters"]);
    invalid("ACTION_REQUEST", with(&comment, "parameters", json!([])), "`parameters` must be an object");
    invalid("ACTION_REQUEST", with(&comment, "blocking", json!("no")), "`blocking` must be true or false");
    let silent = event("ACTION_REQUEST", json!({ "action": "POST_COMMENT", "parameters": {} }));
    assert!(!silent.action_request().expect("a request").blocking, "without a word it does not block");
    let artifact = json!({ "kind": "branch", "ref": "sprite/fix-cache", "url": null, "metadata": {} });
    for kind in ["branch", "commit", "file", "pr_url", "issue_url", "report"] {
        valid("ARTIFACT", with(&artifact, "kind", json!(kind)));
    }
    requires("ARTIFACT", &artifact, &["kind"]);
    for (key, value) in [("ref", json!(null)), ("ref", json!(12)), ("url", json!("u")), ("metadata", json!({ "a": 1 }))]
    {
        valid("ARTIFACT", with(&artifact, key, value));
    }
    valid("ARTIFACT", json!({ "kind": "file" }));
    invalid("ARTIFACT", with(&artifact, "metadata", json!([])), "`metadata` must be an object");
    invalid("ARTIFACT", with(&artifact, "url", json!(1)), "`url` must be text");
}

// proves: SP-47, SP-49, SP-50, SP-53, SP-56
#[test]
fn pauses_and_ends_have_their_form() {
    let inputs = json!({ "approved": "boolean", "comments": "array<string>" });
    let waiting = json!({ "reason": "PR_REVIEW", "checkpoint_id": "chk_abc123", "expected_inputs": inputs });
    valid("WAITING", waiting.clone());
    requires("WAITING", &waiting, &["reason", "checkpoint_id"]);
    invalid("WAITING", with(&waiting, "reason", json!("")), "`reason` must be text that is not empty");
    valid("WAITING", json!({ "reason": "r", "checkpoint_id": "chk_1" }));
    for kind in ["string", "integer", "boolean", "map", "array<string>", "array<array<integer>>"] {
        valid("WAITING", with(&waiting, "expected_inputs", json!({ "a": kind })));
    }
    for kind in ["float", "array", "array<>", "array<float>", "array<string", ""] {
        invalid("WAITING", with(&waiting, "expected_inputs", json!({ "a": kind })), "is no type");
    }
    invalid("WAITING", with(&waiting, "expected_inputs", json!({ "a": 1 })), "`a` names none");
    invalid("WAITING", with(&waiting, "expected_inputs", json!("a")), "must be an object from names to types");
    for status in ["success", "failure"] {
        valid("COMPLETED", json!({ "status": status, "summary": "s" }));
        valid("COMPLETED", json!({ "status": status }));
    }
    requires("COMPLETED", &json!({ "status": "success" }), &["status"]);
    invalid("COMPLETED", json!({ "status": "ok" }), "`status` must be one of success, failure");
    let error = json!({ "message": "Build failed", "details": { "phase": "test", "exit_code": 1, "attempts": 3 } });
    valid("ERROR", error.clone());
    requires("ERROR", &error, &["message"]);
    valid("ERROR", json!({ "message": "m" }));
}

fn proposal() -> Value {
    json!({
        "observed_failure": { "phase": "bootstrap", "exit_code": 127, "stderr_hint": "bash: node: command not found" },
        "suggested_adjustment": { "type": "runtime_install", "details": { "runtime": "node", "version": "20" } },
        "confidence": 0.85,
        "evidence": ["package.json present", "no .nvmrc found"],
        "scope": "repo_specific",
    })
}

// proves: SP-60, SP-61, SP-62, SP-63, SP-64, SP-65, SP-66
#[test]
fn a_proposal_has_its_form() {
    const KIND: &str = "ENVIRONMENT_PROPOSAL";
    valid(KIND, proposal());
    requires(KIND, &proposal(), &["observed_failure", "suggested_adjustment", "confidence", "evidence", "scope"]);
    let inner = ["observed_failure.phase", "observed_failure.exit_code", "observed_failure.stderr_hint"];
    requires(KIND, &proposal(), &inner);
    requires(KIND, &proposal(), &["suggested_adjustment.type", "suggested_adjustment.details"]);
    for sure in [json!(0.0), json!(0.85), json!(1), json!(1.0)] {
        valid(KIND, with(&proposal(), "confidence", sure));
    }
    for unsure in [json!(-0.1), json!(1.01), json!("high"), json!(null)] {
        invalid(KIND, with(&proposal(), "confidence", unsure), "`confidence` must be a number from 0.0 to 1.0");
    }
    invalid(KIND, with(&proposal(), "evidence", json!("one")), "`evidence` must be a list of texts");
    valid(KIND, with(&proposal(), "scope", json!("global_candidate")));
    invalid(KIND, with(&proposal(), "scope", json!("global")), "`scope` must be one of");
    let allowed = [
        "runtime_install",
        "runtime_version_adjust",
        "dependency_manager_switch",
        "add_preinstall_step",
        "adjust_smoke_command",
        "add_system_package",
        "enable_network_access",
        "escalate_to_human",
    ];
    for kind in allowed {
        valid(KIND, with(&proposal(), "suggested_adjustment.type", json!(kind)));
    }
    invalid(KIND, with(&proposal(), "suggested_adjustment.type", json!("run_shell")), "must be one of runtime_install");
}

/// A story as words: `chk_1` is a checkpoint, `resume` a resume, everything else an event.
fn broken_rules(story: &str) -> Vec<&'static str> {
    let mut rules = Rules::default();
    let mut broken = Vec::new();
    for word in story.split_whitespace() {
        let (name, rest) = word.split_once(':').unwrap_or((word, ""));
        let ask = |blocking| event("ACTION_REQUEST", json!({ "action": rest, "parameters": {}, "blocking": blocking }));
        let wait = |inputs: Option<Value>| {
            let mut payload = json!({ "reason": "r", "checkpoint_id": rest });
            inputs.into_iter().for_each(|inputs| payload["expected_inputs"] = inputs);
            event("WAITING", payload)
        };
        let said = match name {
            "resume" => None,
            "info" => Some(event("INFO", json!({ "message": "m" }))),
            "error" => Some(event("ERROR", json!({ "message": "m" }))),
            "completed" => Some(event("COMPLETED", json!({ "status": "success" }))),
            "ask" => Some(ask(true)),
            "tell" => Some(ask(false)),
            "wait" => Some(wait(None)),
            "wait-pr" => Some(wait(Some(json!({ "pr_number": "integer", "pr_url": "string" })))),
            "wait-other" => Some(wait(Some(json!({ "approved": "boolean" })))),
            _ => {
                rules.observe(Happening::Checkpoint(name));
                continue;
            }
        };
        let happening = said.as_ref().map_or(Happening::Resumed, Happening::Event);
        broken.extend(rules.observe(happening).into_iter().map(|finding| finding.rule.as_str()));
    }
    broken
}

// proves: SP-32, SP-73, SP-74, SP-77, SP-79, SP-88
#[test]
fn rules_across_events_are_kept_or_named() {
    let stories: [(&str, &[&str]); 17] = [
        ("info chk_1 wait:chk_1", &[]),
        ("info wait:chk_1 chk_1", &["waiting-without-checkpoint"]),
        ("chk_1 wait:chk_2", &["waiting-without-checkpoint"]),
        ("chk_1 wait:chk_1 info", &["after-waiting"]),
        ("chk_1 wait:chk_1 completed error", &["after-waiting", "after-waiting"]),
        ("chk_1 wait:chk_1 resume info completed", &[]),
        ("chk_1 wait:chk_1 resume completed", &["resume-not-acknowledged"]),
        ("tell:POST_COMMENT info completed", &[]),
        ("ask:OPEN_PR chk_1 wait-pr:chk_1", &[]),
        ("chk_1 ask:OPEN_PR wait-pr:chk_1", &["blocking-without-waiting"]),
        ("ask:OPEN_PR chk_1 wait:chk_1", &["blocking-without-waiting"]),
        ("ask:OPEN_PR chk_1 wait-other:chk_1", &["blocking-without-waiting"]),
        ("ask:OPEN_PR info chk_1 wait-pr:chk_1", &["blocking-without-waiting"]),
        ("ask:OPEN_PR completed", &["blocking-without-waiting"]),
        ("tell:DELETE_REPO info", &["unknown-action"]),
        ("chk_1 error", &[]),
        ("error", &["error-without-checkpoint"]),
    ];
    for (story, expected) in stories {
        assert_eq!(broken_rules(story), expected, "{story}");
    }
    assert_eq!(super::Rule::ErrorWithoutCheckpoint.weight(), super::Weight::Hint, "that one is only recommended");
}

fn cut_into(lines: &mut Lines, bytes: &[u8], size: usize) -> Vec<(u64, Result<Vec<u8>, u64>)> {
    let mut found = Vec::new();
    let mut take = |number, line: Line<'_>| match line {
        Line::Event(bytes) => found.push((number, Ok(bytes.to_vec()))),
        Line::TooLong { bytes } => found.push((number, Err(bytes))),
    };
    bytes.chunks(size).for_each(|piece| lines.feed(piece, &mut take));
    lines.end(&mut take);
    found
}

// proves: SP-4
#[test]
fn lines_are_found_however_the_bytes_arrive() {
    let stream =
        b"build output\nLATTICE_EVENT {\"a\":1}\r\n{\"no\":\"prefix\"}\n\xff\xfe\0LATTICE_EVENT x\n LATTICE_EVENT y\n\
        LATTICE_EVENT{}\nsee LATTICE_EVENT {}\n\nLATTICE_EVENT \nLATTICE_EVENT last";
    let expected = [(2, Ok(b"{\"a\":1}".to_vec())), (9, Ok(b"".to_vec())), (10, Ok(b"last".to_vec()))];
    for size in 1..=stream.len() {
        assert_eq!(cut_into(&mut Lines::stdout(), stream, size), expected, "in pieces of {size}");
    }
    let outbox = b"{\"a\":1}\n\r\n{\"b\":2}\r\nhalf";
    let expected = [(1, Ok(b"{\"a\":1}".to_vec())), (3, Ok(b"{\"b\":2}".to_vec())), (4, Ok(b"half".to_vec()))];
    for size in 1..=outbox.len() {
        assert_eq!(cut_into(&mut Lines::outbox(), outbox, size), expected, "in pieces of {size}");
    }
}

#[test]
fn a_line_of_ten_megabytes_is_read_and_one_that_is_too_long_costs_no_memory() {
    let message = "x".repeat(10 * 1024 * 1024);
    let mut stream = b"LATTICE_EVENT ".to_vec();
    stream.extend(envelope("INFO", json!({ "message": message })).to_string().bytes());
    stream.push(b'\n');
    let found = cut_into(&mut Lines::stdout(), &stream, 64 * 1024);
    let line = found[0].1.as_ref().expect("a line of this length is read");
    assert_eq!(read_event(line).expect("an event").0.text("message").len(), message.len());
    let mut lines = Lines::stdout();
    let mut found = Vec::new();
    let piece = vec![b'x'; 1024 * 1024];
    lines.feed(b"LATTICE_EVENT ", |_, _| unreachable!("no line has ended"));
    (0..64).for_each(|_| lines.feed(&piece, |_, _| unreachable!("no line has ended")));
    assert_eq!(lines.held_bytes(), 0, "what cannot be an event is not held");
    lines.feed(b"\nLATTICE_EVENT ok\n", |number, line| found.push((number, format!("{line:?}"))));
    assert_eq!(found[0], (1, format!("TooLong {{ bytes: {} }}", 64 * 1024 * 1024 + 14)));
    assert_eq!(found[1].0, 2, "the next line is read as if nothing had happened");
}

#[test]
fn hostile_lines_are_refused_with_a_reason() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases = [
        ("", "EOF"),
        ("\0", "expected value"),
        ("[]", "no object"),
        ("nonsense", "expected ident"),
        (&EXAMPLE.replace("issue-17", "\u{0}"), "control character"),
        (&EXAMPLE.replace("\"message\"", "\"message\":1,\"message\""), "the key `message` stands twice"),
        (&EXAMPLE.replace("\"sprite_id\"", "\"event_type\":\"ERROR\",\"sprite_id\""), "stands twice"),
        (&EXAMPLE.replace("{\"message\"", &format!("{{\"metadata\":{deep},\"message\"")), "recursion limit"),
        (&EXAMPLE.replace("{\"message\"", "{\"metadata\":{\"n\":1e999},\"message\""), "number out of range"),
        (&format!("{EXAMPLE}{EXAMPLE}"), "trailing characters"),
        (&envelope("ENVIRONMENT_PROPOSAL", proposal()).to_string().replace("0.85", "NaN"), "expected value"),
        (&EXAMPLE.replace("2026-01-15", "99999-01-15"), "bad-timestamp"),
    ];
    for (line, expected) in cases {
        let found = findings(line);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?} should say {expected}");
    }
    assert!(read_event(b"\xff\xfe{}").is_err(), "bytes that are no text");
    assert_eq!(findings(&EXAMPLE.replace("2026", "9999")), [""; 0], "a far year is a year");
}

#[test]
fn events_are_equal_if_their_whole_json_is() {
    let key = |text: &str| read_event(text.as_bytes()).expect("an event").0.key();
    let spaced = EXAMPLE.replace("\":", "\" : ");
    assert_eq!(key(EXAMPLE), key(&spaced), "spaces are no content");
    assert_ne!(key(EXAMPLE), key(&EXAMPLE.replace("Starting", "starting")));
    assert_ne!(key(EXAMPLE), key(&EXAMPLE.replace(":00Z", ":01Z")));
    assert_ne!(key(EXAMPLE), key(&EXAMPLE.replace("{\"message\"", "{\"kind\":\"note\",\"message\"")));
}

// proves partly: SP-51 — that `resume` refuses and restores nothing
#[test]
fn an_answer_is_checked_against_what_was_asked_for() {
    let expected: Vec<_> = [("approved", "boolean"), ("comments", "array<string>")]
        .map(|(name, kind)| (name.to_owned(), InputType::new(kind).expect("a type")))
        .into();
    let problems = |answer: Value| check_inputs(&expected, answer.as_object().expect("an object"));
    assert_eq!(problems(json!({ "approved": true, "comments": ["a"] })), [""; 0]);
    assert_eq!(problems(json!({ "approved": "yes", "comments": [] })), ["`approved` must be boolean"]);
    assert_eq!(problems(json!({ "approved": true, "comments": [1] })), ["`comments` must be array<string>"]);
    assert_eq!(problems(json!({ "approved": true })), ["`comments` (array<string>) is missing"]);
    assert_eq!(problems(json!({ "approved": true, "comments": [], "more": 1 })), ["`more` was not asked for"]);
    assert!(check_inputs(&[], &Map::new()).is_empty(), "nothing was asked for");
}

#[test]
fn secrets_are_masked_in_every_form_in_which_they_were_given_out() {
    let mut secrets = Secrets::default();
    secrets.add("pass word/ÿ\"");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let shown = [
        (format!("x {token} y"), "x [masked] y"),
        (format!("\"{token}\""), "\"[masked]\""),
        ("a pass word/ÿ\" b".to_owned(), "a [masked] b"),
        ("cGFzcyB3b3JkL8O/Ig".to_owned(), "[masked]"),
        ("q=pass%20word%2F%C3%BF%22".to_owned(), "q=[masked]"),
        (r#"{"v":"pass word/ÿ\""}"#.to_owned(), r#"{"v":"[masked]"}"#),
    ];
    for (text, expected) in shown {
        assert_eq!(secrets.mask(&text), expected);
    }
    for harmless in ["ghp_short", "xghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2", "password"] {
        assert_eq!(secrets.mask(harmless), harmless);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_bytes_make_the_reader_panic_or_depend_on_how_they_are_cut(
        pieces in proptest::collection::vec(proptest::prop_oneof![
            proptest::collection::vec(proptest::num::u8::ANY, 0..40),
            proptest::strategy::Just(b"LATTICE_EVENT ".to_vec()),
            proptest::strategy::Just(EXAMPLE.as_bytes().to_vec()),
            proptest::strategy::Just(b"\n".to_vec()),
            proptest::strategy::Just(b"\r\n".to_vec()),
        ], 0..30),
        size in 1_usize..64,
    ) {
        let stream: Vec<u8> = pieces.concat();
        let whole = cut_into(&mut Lines::stdout(), &stream, stream.len().max(1));
        proptest::prop_assert_eq!(&cut_into(&mut Lines::stdout(), &stream, size), &whole);
        for (_, line) in whole {
            if let Ok(line) = line {
                let _ = read_event(&line);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back(message in ".*", kind in proptest::option::of(".*"), number in proptest::num::f64::NORMAL) {
        let mut payload = json!({ "message": message, "metadata": { "n": number } });
        kind.into_iter().for_each(|kind| payload["kind"] = json!(kind));
        let event = event("INFO", payload);
        let line = event.to_line();
        proptest::prop_assert!(!line.contains('\n'));
        proptest::prop_assert_eq!(read_event(line.as_bytes()).expect("an event").0, event);
    }
}
