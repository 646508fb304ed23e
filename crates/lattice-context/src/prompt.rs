//! From an envelope to the prompt. A pure function of the envelope.

use crate::chunk::{ChunkType, ContextChunk};
use crate::task::TaskEnvelope;

/// The first line of every prompt.
pub const HEADER: &str = "Here is the relevant context for your task:";

/// The prompt: header, structure, files, dependencies and the rest, request, instructions.
pub fn build_prompt(envelope: &TaskEnvelope) -> String {
    let chunks = &envelope.context.chunks;
    let mut prompt = format!("{HEADER}\n");
    for chunk in chunks.iter().filter(|chunk| chunk.chunk_type == ChunkType::Structure) {
        prompt.push_str(&block(chunk));
    }
    for chunk in chunks.iter().filter(|chunk| chunk.chunk_type == ChunkType::File) {
        prompt.push_str(&block(chunk));
    }
    for kind in additional_types(chunks) {
        prompt.push_str(&heading(&kind));
        for chunk in chunks.iter().filter(|chunk| chunk.chunk_type == kind) {
            prompt.push_str(&block(chunk));
        }
    }
    prompt.push_str(&frame(envelope));
    prompt
}

/// What the prompt has without any chunk.
pub fn bare(envelope: &TaskEnvelope) -> String {
    format!("{HEADER}\n{}", frame(envelope))
}

/// A chunk as it stands in the prompt, without the heading that it shares with its type.
pub fn block(chunk: &ContextChunk) -> String {
    match chunk.chunk_type {
        ChunkType::Structure => format!("\n## Project Structure\n{}\n", chunk.content.trim_end()),
        ChunkType::File => fenced(chunk, &chunk.content),
        ChunkType::Dependency | ChunkType::History | ChunkType::Other(_) => format!("{}\n", chunk.content.trim_end()),
    }
}

/// What is around the content of a chunk, with a fence that holds all of it.
pub(crate) fn surroundings(chunk: &ContextChunk) -> String {
    match chunk.chunk_type {
        ChunkType::File => fenced(chunk, ""),
        ChunkType::Structure => "\n## Project Structure\n\n".to_owned(),
        ChunkType::Dependency | ChunkType::History | ChunkType::Other(_) => "\n".to_owned(),
    }
}

fn fenced(chunk: &ContextChunk, content: &str) -> String {
    let fence = fence(&chunk.content);
    let language = chunk.language().unwrap_or_default();
    let end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    format!("\n## {}\n{fence}{language}\n{content}{end}{fence}\n", shown(&chunk.source))
}

/// The heading that chunks of one type share; files and the structure have their own.
pub fn heading(kind: &ChunkType) -> String {
    match kind {
        ChunkType::Structure | ChunkType::File => String::new(),
        ChunkType::Dependency => "\n## Dependencies\n".to_owned(),
        ChunkType::History => "\n## History\n".to_owned(),
        ChunkType::Other(name) => format!("\n## {}\n", title(name)),
    }
}

fn frame(envelope: &TaskEnvelope) -> String {
    let task = envelope.task_type;
    format!("\n---\n## Request\n{}\n\nAs a {task} task, please {}.\n", envelope.user_request, task.instructions())
}

/// Dependencies first, then the others in the order of their names.
fn additional_types(chunks: &[ContextChunk]) -> Vec<ChunkType> {
    let mut kinds: Vec<ChunkType> = chunks.iter().map(|chunk| chunk.chunk_type.clone()).collect();
    kinds.retain(|kind| !matches!(kind, ChunkType::Structure | ChunkType::File));
    kinds.sort();
    kinds.dedup();
    kinds
}

/// `api_spec` is `Api Spec`.
fn title(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    let words: Vec<String> = name.split(['_', '-', ' ']).filter(|part| !part.is_empty()).map(word).collect();
    shown(&words.join(" "))
}

/// A fence that the content cannot close: one backquote more than the longest run in it, and at least three.
pub(crate) fn fence(content: &str) -> String {
    let (mut longest, mut current, mut last) = (0, 0, None);
    for at in memchr::memchr_iter(b'`', content.as_bytes()) {
        current = if last.is_some_and(|last| last + 1 == at) { current + 1 } else { 1 };
        longest = longest.max(current);
        last = Some(at);
    }
    "`".repeat(if longest < 3 { 3 } else { longest + 1 })
}

/// A name that cannot end its line.
fn shown(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}
