//! The shapes of GitHub's REST API that the fake of it is held to, from GitHub's own description as npm has it.
//!
//! Only what Lattice uses is taken, and of that only what a value can be checked against, as plain JSON Schema.

use lattice_testkit::fetched;
use lattice_testkit::github::DESCRIPTION_FILE;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

use crate::Failure;
use crate::process::Call;

const PACKAGE: &str = "@octokit/openapi@23.0.2";

/// What Lattice asks for; `R` stands for a repository.
const OPERATIONS: &[&str] = &[
    "GET /user",
    "GET /user/installations",
    "GET /user/installations/{installation_id}/repositories",
    "GET R",
    "GET R/issues",
    "POST R/issues",
    "GET R/issues/{issue_number}",
    "PATCH R/issues/{issue_number}",
    "GET R/issues/{issue_number}/comments",
    "POST R/issues/{issue_number}/comments",
    "PATCH R/issues/comments/{comment_id}",
    "GET R/issues/{issue_number}/labels",
    "POST R/issues/{issue_number}/labels",
    "DELETE R/issues/{issue_number}/labels/{name}",
    "GET R/pulls",
    "POST R/pulls",
    "GET R/pulls/{pull_number}",
    "GET R/pulls/{pull_number}/comments",
    "GET R/pulls/{pull_number}/files",
    "PUT R/pulls/{pull_number}/merge",
    "PUT R/pulls/{pull_number}/merge-async",
    "GET R/pulls/{pull_number}/merge-async/{uuid}",
    "POST R/pulls/{pull_number}/requested_reviewers",
    "GET R/pulls/{pull_number}/reviews",
    "POST R/pulls/{pull_number}/reviews",
    "GET R/stacks",
    "POST R/stacks",
    "POST R/stacks/{stack_number}/add",
    "POST R/stacks/{stack_number}/unstack",
];

/// Fetches the description, unless what was written earlier is of the same version and has all that is used.
pub fn ensure() -> Result<(), Failure> {
    let known = std::fs::read_to_string(fetched::folder().join(DESCRIPTION_FILE)).unwrap_or_default();
    let known: Value = serde_json::from_str(&known).unwrap_or_default();
    let operations = known["operations"].as_object();
    let has_all = operations.is_some_and(|known| {
        known.len() == OPERATIONS.len() && OPERATIONS.iter().all(|name| known.contains_key(&written_out(name)))
    });
    if known["$comment"] == json!(PACKAGE) && has_all { Ok(()) } else { write() }
}

/// Fetches the description and writes what is used of it.
pub fn write() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    Call { program: "npm", arguments: &["pack", "--silent", PACKAGE], environment: &[] }.run(folder.path())?;
    let unpack = "tar -xzf *.tgz package/generated/api.github.com.json";
    Call { program: "sh", arguments: &["-c", unpack], environment: &[] }.run(folder.path())?;
    let whole = crate::read(&folder.path().join("package/generated/api.github.com.json"))?;
    let whole: Value = serde_json::from_str(&whole).map_err(|error| Failure::Problems(vec![error.to_string()]))?;
    let folder = fetched::folder();
    std::fs::create_dir_all(&folder).map_err(|cause| Failure::File { path: folder.clone(), cause })?;
    let path = folder.join(DESCRIPTION_FILE);
    crate::bench::write_file(&path, &trimmed(&whole))
}

/// One line for each operation and each shape, so that a change can be read.
fn trimmed(whole: &Value) -> String {
    let mut taken = Taken { whole, shapes: BTreeMap::new(), parts: BTreeSet::new() };
    let operations: BTreeMap<String, Value> = OPERATIONS.iter().map(|name| taken.operation(name)).collect();
    for part in std::mem::take(&mut taken.parts) {
        // What is part of a whole cannot say that there is nothing else.
        if let Some(shape) = taken.shapes.get_mut(&part).and_then(Value::as_object_mut) {
            shape.remove("unevaluatedProperties");
        }
    }
    let lines = |values: &BTreeMap<String, Value>| {
        values.iter().map(|(name, value)| format!("{}: {value}", json!(name))).collect::<Vec<_>>().join(",\n")
    };
    format!(
        "{{\n\"$comment\": {},\n\"operations\": {{\n{}\n}},\n\"$defs\": {{\n{}\n}}\n}}\n",
        json!(PACKAGE),
        lines(&operations),
        lines(&taken.shapes)
    )
}

struct Taken<'a> {
    whole: &'a Value,
    /// What operations refer to, by name.
    shapes: BTreeMap<String, Value>,
    /// Those that are only parts of others.
    parts: BTreeSet<String>,
}

impl Taken<'_> {
    fn operation(&mut self, name: &str) -> (String, Value) {
        let name = written_out(name);
        let (method, path) = name.split_once(' ').expect("an operation has a method and a path");
        let found = self.whole["paths"][path][method.to_lowercase()].clone();
        assert!(found.is_object(), "GitHub describes no {name}");
        let mut answers = Map::new();
        for (status, answer) in found["responses"].as_object().into_iter().flatten() {
            let answer = match answer["$ref"].as_str() {
                Some(place) => self.whole["components"]["responses"][last(place)].clone(),
                None => answer.clone(),
            };
            answers.insert(status.clone(), self.content(&answer));
        }
        let request = self.content(&found["requestBody"]);
        (name.clone(), json!({ "request": request, "answers": answers }))
    }

    fn content(&mut self, holder: &Value) -> Value {
        match &holder["content"]["application/json"]["schema"] {
            Value::Null => Value::Null,
            schema => self.shape(&schema.clone(), Use::Whole),
        }
    }

    fn shape(&mut self, from: &Value, used: Use) -> Value {
        let mut to = Map::new();
        for (key, value) in from.as_object().into_iter().flatten() {
            let new = match (key.as_str(), value) {
                ("$ref", Value::String(place)) => json!(format!("#/$defs/{}", self.referred(last(place), used))),
                ("properties", Value::Object(all)) => {
                    all.iter().map(|(name, value)| (name.clone(), self.shape(value, Use::Whole))).collect()
                }
                ("allOf", Value::Array(all)) => all.iter().map(|value| self.shape(value, Use::Part)).collect(),
                ("oneOf" | "anyOf", Value::Array(all)) => all.iter().map(|value| self.shape(value, used)).collect(),
                ("items", value) => self.shape(value, Use::Whole),
                ("additionalProperties", Value::Object(_)) => self.shape(value, Use::Whole),
                ("format", Value::String(format)) if format != "date-time" => continue,
                ("type" | "required" | "enum" | "additionalProperties" | "format", value) => value.clone(),
                _ => continue,
            };
            // Variants often overlap, and a value may fit two of them.
            let key = if key == "oneOf" { "anyOf" } else { key };
            to.insert(key.to_owned(), new);
        }
        let closed = to.contains_key("properties") || to.contains_key("allOf");
        if used == Use::Whole && closed && !to.contains_key("additionalProperties") {
            to.insert("unevaluatedProperties".to_owned(), json!(false));
        }
        if from["nullable"] == json!(true) { nullable(to) } else { Value::Object(to) }
    }

    fn referred(&mut self, name: &str, used: Use) -> String {
        if used == Use::Part {
            self.parts.insert(name.to_owned());
        }
        if !self.shapes.contains_key(name) {
            // Shapes may refer to each other.
            self.shapes.insert(name.to_owned(), Value::Null);
            let shape = self.shape(&self.whole["components"]["schemas"][name].clone(), Use::Whole);
            self.shapes.insert(name.to_owned(), shape);
        }
        name.to_owned()
    }
}

/// The name of an operation as GitHub has it.
fn written_out(name: &str) -> String {
    name.replace(" R", " /repos/{owner}/{repo}")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Whole,
    /// Together with others, which have more properties.
    Part,
}

fn nullable(shape: Map<String, Value>) -> Value {
    json!({ "anyOf": [{ "type": "null" }, shape] })
}

fn last(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}
