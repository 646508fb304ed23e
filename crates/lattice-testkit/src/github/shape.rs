//! Holds requests and answers to GitHub's own description of its API, of which `cargo xtask openapi` fetches what is used.
//!
//! An answer of the fake has the fields that Lattice looks at. The others that GitHub always sends are filled in from
//! the description, and the whole is then checked against it, where a field that GitHub does not have is a mistake too.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::{Map, Value, json};

use super::api::LONG_AGO;
use crate::fetched;
use crate::http::{Request, Response};

/// Where the description is among what was fetched.
pub const DESCRIPTION_FILE: &str = "github.json";

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let path = fetched::path(DESCRIPTION_FILE, "openapi");
    let text = std::fs::read_to_string(path).expect("what was fetched can be read");
    serde_json::from_str(&text).expect("the description was written by `cargo xtask openapi`")
});

/// Fails where the description is missing, instead of later in an answer.
pub(super) fn require() {
    LazyLock::force(&DESCRIPTION);
}

/// What was made of a shape, which takes longer than checking.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<jsonschema::Validator>>>> = LazyLock::new(Mutex::default);

/// The answer as GitHub would send it, or what GitHub would not send or take.
pub(super) fn completed(request: &Request, path: &str, mut response: Response) -> Result<Response, Vec<String>> {
    let Some(operation) = operation(&request.method, path) else {
        let asked = format!("{} {path} is not in GitHub's description", request.method);
        return if response.status == 404 { Ok(response) } else { Err(vec![asked]) };
    };
    let (sent, place) = (document(&request.body), format!("/operations/{}", escaped(&operation)));
    let mut problems = Vec::new();
    if !sent.is_null() {
        problems.extend(problems_of(&sent, &format!("{place}/request")));
    }
    let place = format!("{place}/answers/{}", response.status);
    // The description leaves out what any request may be refused with.
    let is_known = response.status < 400 || DESCRIPTION.pointer(&place).is_some();
    let place = if is_known { place } else { "/$defs/basic-error".to_owned() };
    match DESCRIPTION.pointer(&place) {
        None => problems.push(format!("{operation} is never answered with {}", response.status)),
        Some(Value::Null) if response.body.is_empty() => {}
        Some(Value::Null) => problems.push(format!("{operation} with {} has no content", response.status)),
        Some(shape) => {
            let mut answer = document(&response.body);
            fill(shape, &mut answer);
            problems.extend(problems_of(&answer, &place));
            response.body = answer.to_string().into_bytes();
        }
    }
    if problems.is_empty() { Ok(response) } else { Err(problems) }
}

fn document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The operation whose path this is.
fn operation(method: &str, path: &str) -> Option<String> {
    let path = path.trim_matches('/');
    let fits = |template: &str| {
        let (own, parts) = (template.trim_matches('/').split('/'), path.split('/'));
        own.clone().count() == parts.clone().count()
            && own.zip(parts).all(|(own, part)| own.starts_with('{') || own == part)
    };
    let operations = DESCRIPTION["operations"].as_object().into_iter().flatten().map(|(name, _)| name);
    operations
        .filter(|name| name.split_once(' ').is_some_and(|(own, template)| own == method && fits(template)))
        .max()
        .cloned()
}

/// A name as one part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn problems_of(value: &Value, place: &str) -> Vec<String> {
    let validator = {
        let mut known = VALIDATORS.lock().expect("no test panics with it");
        Arc::clone(known.entry(place.to_owned()).or_insert_with(|| {
            let shape = DESCRIPTION.pointer(place).expect("the place was looked up");
            let schema = json!({ "allOf": [shape], "$defs": DESCRIPTION["$defs"] });
            Arc::new(jsonschema::validator_for(&schema).expect("the description is a schema"))
        }))
    };
    validator.iter_errors(value).map(|error| format!("{place} at {}: {error}", error.instance_path())).collect()
}

fn resolved(shape: &Value) -> &Value {
    let place = shape["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| DESCRIPTION.pointer(place)).map_or(shape, resolved)
}

fn variants(shape: &Value) -> impl Iterator<Item = &Value> {
    shape["anyOf"].as_array().into_iter().flatten().map(resolved)
}

/// Adds what is required and missing.
fn fill(shape: &Value, value: &mut Value) {
    let shape = resolved(shape);
    for part in shape["allOf"].as_array().into_iter().flatten() {
        fill(part, value);
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill(&shape["items"], item)),
        Value::Object(fields) => {
            let fits = |variant: &&Value| {
                let known = variant["properties"].as_object();
                known.is_some_and(|known| fields.keys().all(|name| known.contains_key(name)))
            };
            if let Some(variant) = variants(shape).find(fits) {
                return fill(variant, value);
            }
            fill_fields(shape, fields);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill_fields(shape: &Value, fields: &mut Map<String, Value>) {
    for name in shape["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            fields.insert(name.to_owned(), plain(&shape["properties"][name]));
        }
    }
    for (name, value) in fields {
        fill(&shape["properties"][name], value);
    }
}

/// The plainest value of a shape.
fn plain(shape: &Value) -> Value {
    let shape = resolved(shape);
    if let Some(first) = variants(shape).next() {
        return plain(first);
    }
    if let Some(first) = shape["enum"].get(0) {
        return first.clone();
    }
    let mut value = match (shape["type"].as_str(), shape["format"].as_str()) {
        (Some("string"), Some("date-time")) => json!(LONG_AGO),
        (Some("string"), _) => json!(""),
        (Some("integer" | "number"), _) => json!(0),
        (Some("boolean"), _) => json!(false),
        (Some("array"), _) => json!([]),
        (Some("object"), _) => json!({}),
        (_, _) if shape.get("allOf").is_some() || shape.get("properties").is_some() => json!({}),
        (_, _) => Value::Null,
    };
    fill(shape, &mut value);
    value
}
