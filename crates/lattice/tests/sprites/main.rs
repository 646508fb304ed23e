//! Sprites through the built program: real sandboxes, real repositories, agents as scripts.

#![expect(clippy::disallowed_methods, reason = "tests write files and start programs as they need")]

mod actions;
mod attack;
mod attacks;
mod bare;
mod checkpoint;
mod context;
mod cycles;
mod left;
mod life;
mod network;
mod protocol;
mod rename;
mod run;
mod scale;
mod shown;

use lattice_testkit::{Lattice, Output, TestRepo};
use serde_json::Value;

/// The program, ready to run in `repo`.
fn lattice(repo: &TestRepo) -> Lattice {
    Lattice::new(env!("CARGO_BIN_EXE_lattice"), repo)
}

/// Checks a document against the schema that it names.
#[track_caller]
fn validated(repo: &TestRepo, document: &Value) {
    let name = document["schema"].as_str().unwrap_or_default();
    let command =
        name.strip_prefix("lattice.").and_then(|rest| rest.strip_suffix("/v1")).expect("the name of a schema");
    let schema: Value = serde_json::from_str(&lattice(repo).args(["schema", command]).ok().stdout).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema that can be used");
    if let Err(error) = validator.validate(document) {
        panic!("{document:#} is not as its schema says: {error}");
    }
}

/// Runs a script as the agent of the sprite `name`.
fn agent(repo: &TestRepo, name: &str, script: &str) -> Output {
    lattice(repo).args(["run", "Do it", "--name", name, "--", "bash", "-c", script]).run()
}

/// One document about a sprite.
#[track_caller]
fn look(repo: &TestRepo, words: &[&str]) -> Value {
    let document = lattice(repo).arg("sprite").args(words).json();
    validated(repo, &document);
    document
}

/// The rules that a sprite broke.
fn rules(repo: &TestRepo, name: &str) -> Vec<String> {
    let shown = look(repo, &["show", name]);
    let violations = shown["violations"].as_array().expect("a list");
    violations.iter().map(|violation| violation["rule"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Adds to the configuration of a repository.
fn configure(repo: &TestRepo, text: &str) {
    let path = repo.dir().join(".git/lattice/config.toml");
    let before = std::fs::read_to_string(&path).expect("a configuration");
    std::fs::write(path, format!("{before}\n{text}")).expect("a configuration");
}

fn is_root() -> bool {
    let id = std::process::Command::new("id").arg("-u").output().expect("id runs").stdout;
    id.starts_with(b"0\n")
}

fn log(repo: &TestRepo, name: &str) -> String {
    look(repo, &["logs", name])["log"].as_str().expect("a log").to_owned()
}
