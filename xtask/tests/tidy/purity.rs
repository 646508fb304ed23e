//! What the model may not know: the outside world, time, and orders that change between runs.

use xtask::source::Source;

use super::imports::imports;
use super::{assert_kept, has_word, offenders, place, product, sources};

/// Paths that lead to the outside world.
const OUTSIDE: [&str; 10] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio",
];

/// Names that read a clock or reach the system by way of another crate.
const OUTSIDE_WORDS: [&str; 4] = ["Instant", "SystemTime", "rustix", "tempfile"];

// proves partly: ST-4.1-13 — that equal contexts give equal plans
#[test]
fn the_model_does_no_input_or_output_and_reads_no_clock() {
    let mut offenders = Vec::new();
    for source in &model(product()) {
        offenders.extend(impure_places(source));
    }
    assert_kept("the model is pure", &offenders);
}

#[test]
fn the_model_is_synchronous_but_for_the_futures_of_explanations() {
    let sources = model(product());
    let waiting = offenders(&sources, &[], |line| has_word(&line.code, "async") || line.code.contains(".await"));
    assert_kept("the model never waits", &waiting);
    let explanations = ["crates/lattice-model/src/explain"];
    let futures =
        offenders(&sources, &explanations, |line| has_word(&line.code, "Future") || has_word(&line.code, "future"));
    assert_kept("only explanations name futures", &futures);
    let foreign = offenders(&sources, &[], |line| line.code.contains("std::future"));
    assert_kept("futures of the model are those of core", &foreign);
}

#[test]
fn the_model_keeps_its_collections_in_order() {
    let mut offenders = Vec::new();
    for source in &model(sources()) {
        let lines =
            source.lines.iter().filter(|line| has_word(&line.code, "HashMap") || has_word(&line.code, "HashSet"));
        offenders.extend(lines.map(|line| place(source, line)));
    }
    assert_kept("equal input gives equal bytes", &offenders);
}

#[test]
fn the_outside_world_is_seen_in_imports_paths_and_names() {
    let content = "
use std::{fmt, io::Write};
use std::time::Duration;
fn a() { std::fs::read(\"std::env\") }
// std::net
fn b() { Timestamp::now() }
#[cfg(test)]
mod tests { use std::fs; }
";
    let source = Source::new("crates/lattice-model/src/a.rs", content);
    assert_eq!(
        impure_places(&source),
        [
            "crates/lattice-model/src/a.rs:2: imports std::io::Write",
            "crates/lattice-model/src/a.rs:4: fn a() { std::fs::read(\"std::env\") }",
            "crates/lattice-model/src/a.rs:6: fn b() { Timestamp::now() }"
        ]
    );
}

fn model(mut sources: Vec<Source>) -> Vec<Source> {
    sources.retain(|source| source.path.starts_with("crates/lattice-model/"));
    sources
}

fn impure_places(source: &Source) -> Vec<String> {
    let mut places: Vec<String> = imports(source)
        .into_iter()
        .filter(|import| leads_outside(&import.path))
        .map(|import| format!("{}:{}: imports {}", source.path, import.line, import.path))
        .collect();
    let lines = source.production().filter(|line| {
        let code = line.code.trim();
        !code.starts_with("use ") && is_impure(code)
    });
    places.extend(lines.map(|line| place(source, line)));
    places
}

fn leads_outside(path: &str) -> bool {
    OUTSIDE.iter().any(|outside| {
        let rest = path.strip_prefix(outside);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    }) || OUTSIDE_WORDS.iter().any(|word| has_word(path, word))
}

fn is_impure(code: &str) -> bool {
    code.contains("::now(")
        || OUTSIDE.iter().any(|path| has_word(code, path))
        || OUTSIDE_WORDS.iter().any(|word| has_word(code, word))
}
