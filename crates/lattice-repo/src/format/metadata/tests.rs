//! Strictness of the metadata schema.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{parse, render};
use lattice_model::name::BranchName;
use lattice_model::snapshot::MetadataProblem;

fn document() -> Value {
    json!({
        "kind": "lattice.branch-metadata", "schema_version": 1,
        "branch": {"name": "api"},
        "parent": {"kind": "branch", "name": "core"},
        "base": {"oid": "0123456789abcdef0123456789abcdef01234567"},
        "freeze": {"state": "frozen", "scope": "downstack_inclusive", "reason": "released", "frozen_at": "2026-01-02T03:04:05Z"},
        "pr": {"state": "linked", "forge": "github", "number": 7, "url": "https://example.invalid/7",
               "last_known": {"state": "open", "is_draft": false}},
        "timestamps": {"created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:06Z"},
    })
}

fn read(document: &Value) -> Result<(), MetadataProblem> {
    let api = BranchName::new("api").expect("valid");
    parse(document.to_string().as_bytes(), &api, 40).map(drop)
}

/// The objects inside the document, by pointer.
const OBJECTS: &[&str] = &["", "/branch", "/parent", "/base", "/freeze", "/pr", "/pr/last_known", "/timestamps"];

#[test]
fn a_full_document_survives_a_round_trip() {
    let api = BranchName::new("api").expect("valid");
    let metadata = parse(document().to_string().as_bytes(), &api, 40).expect("valid");
    assert_eq!(parse(&render(&metadata), &api, 40).expect("what we write we read"), metadata);
    let written: Value = serde_json::from_slice(&render(&metadata)).expect("JSON");
    assert_eq!(written, document());
}

// proves: ST-3.2.2-1, ST-13.1-1, ST-14.3-3
#[test]
fn an_unknown_field_is_rejected_on_every_level_and_named() {
    for pointer in OBJECTS {
        let mut changed = document();
        let object = changed.pointer_mut(pointer).and_then(Value::as_object_mut).expect("an object");
        object.insert("surprise".to_owned(), json!(1));
        let problem = read(&changed).expect_err("a field that nobody knows");
        assert!(problem.to_string().contains("surprise"), "{pointer}: the field is named: {problem}");
    }
    let mut unfrozen = document();
    unfrozen["freeze"] = json!({"state": "unfrozen", "surprise": 1});
    assert!(read(&unfrozen).is_err(), "also where only the state stands");
    unfrozen["freeze"] = json!({"state": "unfrozen"});
    unfrozen["pr"] = json!({"state": "none", "surprise": 1});
    assert!(read(&unfrozen).is_err(), "also where only the state stands");
    unfrozen["pr"] = json!({"state": "none"});
    assert!(read(&unfrozen).is_ok());
}

// proves: ST-3.2.1-1, ST-3.2.1-3, ST-3.2.2-2, ST-3.2.2-3, ST-3.2.2-9, ST-3.2.2-12, ST-14.3-4
#[test]
fn missing_and_invalid_values_are_rejected() {
    for key in ["kind", "schema_version", "branch", "parent", "base", "freeze", "pr", "timestamps"] {
        let mut changed = document();
        changed.as_object_mut().expect("an object").remove(key);
        assert!(read(&changed).is_err(), "{key} is required");
    }
    let bad: &[(&str, Value)] = &[
        ("/kind", json!("other")),
        ("/schema_version", json!(2)),
        ("/schema_version", json!("1")),
        ("/branch/name", json!("-x")),
        ("/parent/name", json!("../x")),
        ("/parent/kind", json!("root")),
        ("/base", json!("0123456789abcdef0123456789abcdef01234567")),
        ("/base/oid", json!("0123456")),
        ("/base/oid", json!("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")),
        ("/freeze", json!(true)),
        ("/freeze/state", json!("icy")),
        ("/freeze/scope", json!("everything")),
        ("/freeze/frozen_at", json!("yesterday")),
        ("/pr/state", json!("maybe")),
        ("/pr/number", json!(-1)),
        ("/timestamps/updated_at", json!("2026-01-02")),
    ];
    for (pointer, value) in bad {
        let mut changed = document();
        *changed.pointer_mut(pointer).expect("a field") = value.clone();
        assert!(read(&changed).is_err(), "{pointer} = {value} must be rejected");
    }
    let version = {
        let mut changed = document();
        changed["schema_version"] = json!(999);
        read(&changed)
    };
    assert!(version.expect_err("unknown").to_string().contains("999"), "the version is in the message");
}

// proves: ST-3.2.2-10
#[test]
fn a_document_of_another_branch_is_rejected() {
    let mut changed = document();
    changed["branch"]["name"] = json!("b");
    assert_eq!(read(&changed), Err(MetadataProblem::NameMismatch("b".to_owned())));
}

#[test]
fn bytes_that_are_no_document_are_rejected_without_a_panic() {
    let api = BranchName::new("api").expect("valid");
    let text = document().to_string();
    let doubled = text.replacen('{', "{\"kind\":\"lattice.branch-metadata\",", 1);
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let huge = text.replace("\"number\":7", "\"number\":1e400");
    let bom = format!("\u{feff}{text}");
    for bytes in
        [b"".as_slice(), b"{", b"\xff\xfe", doubled.as_bytes(), nested.as_bytes(), huge.as_bytes(), bom.as_bytes()]
    {
        assert!(parse(bytes, &api, 40).is_err());
    }
}

proptest! {
    // proves: ST-3.2.2-4
    #[test]
    fn a_changed_byte_is_rejected_or_changes_the_meaning(at in 0usize..600, byte in any::<u8>()) {
        let api = BranchName::new("api").expect("valid");
        let text = document().to_string().into_bytes();
        let original = parse(&text, &api, 40).expect("valid");
        let mut changed = text.clone();
        let at = at % changed.len();
        changed[at] = byte;
        if let Ok(read) = parse(&changed, &api, 40) {
            let same_value = serde_json::from_slice::<Value>(&changed).ok() == Some(document());
            prop_assert_eq!(same_value, read == original, "what is accepted says what it means");
        }
    }
}
