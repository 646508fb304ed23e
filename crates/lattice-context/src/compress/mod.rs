//! Fits context into a budget: the best chunks whole, code that does not fit without its bodies.

pub mod fill;
pub mod outline;
pub mod outlines;
mod sheet;
pub mod split;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::chunk::{CompressedContext, ContextChunk, Decision, Fidelity, ScoredChunk, Verdict};
use crate::language::{Language, language_named};
use crate::tokens::TokenCounter;
use fill::{Fill, Means, Pricing};
use outline::{Elision, Outline, Rendered};
use outlines::Outlines;

/// Sorts by score and includes what fits; code that does not fit is truncated by its structure; the rest is skipped.
///
/// Room is given to critical chunks first. The result never has more tokens than the budget.
pub fn compress(chunks: Vec<ScoredChunk>, budget: usize, counter: &dyn TokenCounter) -> CompressedContext {
    let means = Means { counter, outlines: &Outlines::default(), threads: 1 };
    let mut fill = Fill::new(chunks, means, Pricing::Content, counter.most_units(budget));
    fill.first_pass();
    fill.finish(budget)
}

/// A chunk without the bodies of its code; none if that would save nothing.
pub fn truncate(chunk: &ContextChunk, counter: &dyn TokenCounter) -> Option<ContextChunk> {
    truncated(chunk, &structure(chunk, &Outlines::default())?, counter)
}

/// What is known of a code's form: its language and its outline.
type Structure = (&'static Language, Arc<Outline>);

fn structure(chunk: &ContextChunk, outlines: &Outlines) -> Option<Structure> {
    let language = language_named(chunk.language()?)?;
    Some((language, outlines.of(language, &chunk.content)?))
}

fn truncated(
    chunk: &ContextChunk,
    (language, outline): &Structure,
    counter: &dyn TokenCounter,
) -> Option<ContextChunk> {
    let rendered = outline::without_bodies(language, &chunk.content, outline, |_| false);
    let shown = abridged(chunk, rendered, Fidelity::Outline, counter);
    (shown.tokens < chunk.tokens).then_some(shown)
}

/// The chunk with other content, a note on what is missing, and how to get it.
fn abridged(chunk: &ContextChunk, rendered: Rendered, fidelity: Fidelity, counter: &dyn TokenCounter) -> ContextChunk {
    let first_line = chunk.metadata.get("first_line").and_then(Value::as_u64).unwrap_or(1);
    let offset = usize::try_from(first_line).unwrap_or(1) - 1;
    let cut: usize = rendered.elisions.iter().map(|elision| elision.last + 1 - elision.first).sum();
    let lines = chunk.content.lines().count();
    let handle = handle_base(chunk);
    let note = note(&rendered.elisions, cut, lines, handle.as_deref());
    let mut content = rendered.content;
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(&commented(chunk, note));
    content.push('\n');
    let elision = |elision: &Elision| {
        let (first, last) = (elision.first + offset, elision.last + offset);
        let handle = handle.as_ref().map(|base| format!("{base}:{first}-{last}"));
        json!({ "name": elision.name, "first": first, "last": last, "handle": handle })
    };
    let mut shown = chunk.clone();
    shown.tokens = counter.count(&content);
    shown.content = content;
    shown.metadata.insert("truncated".to_owned(), json!(true));
    shown.metadata.insert("fidelity".to_owned(), json!(fidelity.as_str()));
    shown.metadata.insert("original_tokens".to_owned(), json!(chunk.tokens));
    shown.metadata.insert("original_lines".to_owned(), json!(lines));
    shown.metadata.insert("elisions".to_owned(), rendered.elisions.iter().map(elision).collect());
    shown
}

/// The longest note that a chunk with so many bodies can get, with the line breaks around it.
fn longest_note(chunk: &ContextChunk, bodies: usize) -> String {
    let lines = chunk.content.lines().count();
    let what = format!("{} bodies", 4 * bodies + 1);
    format!("\n{}\n", commented(chunk, said(&what, lines, lines, handle_base(chunk).as_deref())))
}

fn commented(chunk: &ContextChunk, note: String) -> String {
    match chunk.language().and_then(language_named) {
        Some(language) => language.comment(&note),
        None => note,
    }
}

fn note(elisions: &[Elision], cut: usize, lines: usize, handle: Option<&str>) -> String {
    let bodies = elisions.iter().filter(|elision| !elision.name.is_empty()).count();
    let what = match (bodies, elisions.len()) {
        (0, gaps) => format!("{gaps} parts"),
        (bodies, _) => format!("{bodies} bodies"),
    };
    said(&what, cut, lines, handle)
}

fn said(what: &str, cut: usize, lines: usize, handle: Option<&str>) -> String {
    match handle {
        Some(handle) => {
            format!(
                "truncated: {what}, {cut} of {lines} lines left out; lattice context expand {handle}:FIRST-LAST|NAME"
            )
        }
        None => format!("truncated: {what}, {cut} of {lines} lines left out"),
    }
}

/// File and blob of a chunk, the beginning of every handle into it.
fn handle_base(chunk: &ContextChunk) -> Option<String> {
    let blob = chunk.metadata.get("blob")?.as_str()?;
    Some(format!("{}@{}", chunk.path(), blob.get(..10)?))
}

/// What is said about a chunk.
fn decision(
    rank: usize,
    scored: &ScoredChunk,
    shown: Option<&ContextChunk>,
    said: (Verdict, Fidelity, String),
) -> Decision {
    let (verdict, fidelity, reason) = said;
    Decision {
        source: scored.chunk.source.clone(),
        rank,
        parts: scored.parts,
        verdict,
        fidelity,
        tokens: shown.map_or(0, |shown| shown.tokens),
        original_tokens: scored.chunk.tokens,
        reason,
    }
}
