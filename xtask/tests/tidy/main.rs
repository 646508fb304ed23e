//! Rules on the sources of the whole workspace, kept as ordinary tests.
//!
//! Each rule lists every place that breaks it as `file:line`.

use xtask::source::{Line, Source, rust_sources};

mod bundles;
mod crates;
mod documents;
mod form;
mod imports;
mod modules;
mod places;
mod purity;

fn sources() -> Vec<Source> {
    rust_sources(xtask::root()).expect("the sources of the workspace can be read")
}

/// Sources of all crates without their integration tests.
fn crate_sources() -> Vec<Source> {
    let mut sources = sources();
    sources.retain(|source| source.path.starts_with("crates/") && source.path.contains("/src/"));
    sources
}

/// Sources of the product: those of all crates but the one that helps tests.
fn product() -> Vec<Source> {
    let mut sources = crate_sources();
    sources.retain(|source| !source.path.starts_with("crates/lattice-testkit/"));
    sources
}

#[track_caller]
fn assert_kept(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}, but not here:\n{}", offenders.join("\n"));
}

fn place(source: &Source, line: &Line) -> String {
    format!("{}:{}: {}", source.path, line.number, line.text.trim())
}

/// The production lines that break a rule, in files whose path begins with none of `allowed`.
fn offenders(sources: &[Source], allowed: &[&str], breaks: impl Fn(&Line) -> bool) -> Vec<String> {
    let mut offenders = Vec::new();
    for source in sources {
        if allowed.iter().any(|prefix| source.path.starts_with(prefix)) {
            continue;
        }
        let lines = source.production().filter(|line| breaks(line));
        offenders.extend(lines.map(|line| place(source, line)));
    }
    offenders
}

/// Whether `name` stands in the code as a whole word.
fn has_word(code: &str, name: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(name)
        .any(|(at, found)| !code[..at].ends_with(is_word) && !code[at + found.len()..].starts_with(is_word))
}
