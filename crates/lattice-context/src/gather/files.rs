//! Files as chunks: one per file, or several where a file is large.

use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{CONCURRENT_READS, Gathered, facts, skipped};
use crate::chunk::{ChunkType, ContextChunk, ContextPriority};
use crate::compress::split::split;
use crate::index::blob_id;
use crate::language::{language_named, language_of};
use crate::retrieve::files::FileKind;
use crate::text::line_starts;
use crate::workspace::{Cut, FILE_LIMIT, Skip, Workspace};

/// Globs as Git writes them: `*` stays within a folder, `**` does not, and a pattern without `/` fits anywhere.
#[derive(Debug, Clone)]
pub struct Patterns(GlobSet);

impl Patterns {
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
            let build = |text: &str| GlobBuilder::new(text).literal_separator(true).build();
            set.add(build(pattern)?);
            // A folder stands for everything in it.
            set.add(build(&format!("{pattern}/**"))?);
            if !pattern.contains('/') {
                set.add(build(&format!("**/{pattern}"))?);
            }
        }
        Ok(Self(set.build()?))
    }

    pub fn fits(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

pub(super) async fn gather(workspace: &Arc<Workspace>, patterns: &[String], max_files: usize) -> Gathered {
    let wanted = match Patterns::new(patterns) {
        Ok(wanted) => wanted,
        Err(error) => return Gathered::nothing(format!("no file was gathered: {error}")),
    };
    let listing = Arc::clone(workspace);
    let entries = tokio::task::spawn_blocking(move || listing.entries().map(<[_]>::to_vec)).await;
    let entries = match entries {
        Ok(Ok(entries)) => entries,
        Ok(Err(error)) => return Gathered::nothing(format!("no file was gathered: {error}")),
        Err(error) => return Gathered::nothing(format!("no file was gathered: {error}")),
    };
    let mut paths: Vec<String> = entries.into_iter().map(|entry| entry.path).filter(|path| wanted.fits(path)).collect();
    for pattern in patterns {
        // A path that is named is wanted even if Git ignores it.
        if let Ok(path) = workspace.resolve(pattern)
            && !paths.contains(&path)
            && workspace.open_file(&path).is_ok()
        {
            paths.push(path);
        }
    }
    paths.sort();
    read_all(workspace, paths, max_files).await
}

/// Reads files beside each other until `max_files` of them are text; the result has the order of the paths.
async fn read_all(workspace: &Arc<Workspace>, paths: Vec<String>, max_files: usize) -> Gathered {
    let mut gathered = Gathered::default();
    let room = Arc::new(Semaphore::new(CONCURRENT_READS));
    let mut paths = paths.into_iter();
    while gathered.chunks.len() < max_files {
        let batch: Vec<String> = paths.by_ref().take(max_files - gathered.chunks.len()).collect();
        if batch.is_empty() {
            break;
        }
        let mut reads = JoinSet::new();
        for (number, path) in batch.into_iter().enumerate() {
            let (workspace, room) = (Arc::clone(workspace), Arc::clone(&room));
            reads.spawn(async move {
                let _permit = room.acquire().await;
                let named = path.clone();
                let read = tokio::task::spawn_blocking(move || file_chunk(&workspace, &path, priority_of(&path))).await;
                (number, named, read)
            });
        }
        let mut done = reads.join_all().await;
        done.sort_by_key(|(number, ..)| *number);
        for (_, path, read) in done {
            match read {
                Ok(Ok(chunk)) => gathered.chunks.push(chunk),
                Ok(Err(Skip::Binary)) => {}
                Ok(Err(skip)) => gathered.warnings.push(skipped(&path, &skip)),
                Err(error) => gathered.warnings.push(format!("{path} was left out: {error}")),
            }
        }
    }
    gathered
}

/// A file as one chunk.
pub fn file_chunk(workspace: &Workspace, path: &str, priority: ContextPriority) -> Result<ContextChunk, Skip> {
    let file = workspace.read(path, FILE_LIMIT)?;
    let language = language_of(path);
    let mut metadata = facts(language.map(|language| language.name), &file.modified);
    metadata.insert("path".to_owned(), json!(path));
    metadata.insert("lines".to_owned(), json!(file.lines));
    metadata.insert("blob".to_owned(), json!(blob_id(file.text.as_bytes()).to_string()));
    if file.cut == Cut::Beginning {
        metadata.insert("truncated".to_owned(), json!(true));
    }
    let tokens = workspace.counter.count(&file.text);
    Ok(ContextChunk {
        content: file.text,
        source: path.to_owned(),
        chunk_type: ChunkType::File,
        priority,
        tokens,
        metadata,
    })
}

/// A large file as several chunks that begin at top-level items; their contents together are the file.
pub fn part_chunks(workspace: &Workspace, chunk: ContextChunk, most_tokens: usize) -> Vec<ContextChunk> {
    if chunk.tokens <= most_tokens || most_tokens == 0 {
        return vec![chunk];
    }
    let lines = chunk.content.lines().count();
    let most_lines = (lines * most_tokens / chunk.tokens / 2).max(20);
    let language = chunk.language().and_then(language_named);
    let outline = language.and_then(|language| workspace.outlines().of(language, &chunk.content));
    let ranges = split(outline.as_deref(), &chunk.content, most_lines);
    if ranges.len() < 2 {
        return vec![chunk];
    }
    let path = chunk.source.clone();
    let starts = line_starts(&chunk.content);
    let part = |range: &std::ops::Range<usize>| {
        let content = chunk.content[starts[range.start]..starts[range.end]].to_owned();
        let mut metadata = chunk.metadata.clone();
        metadata.insert("first_line".to_owned(), json!(range.start + 1));
        metadata.insert("last_line".to_owned(), json!(range.end));
        let tokens = workspace.counter.count(&content);
        let source = format!("{path}:{}-{}", range.start + 1, range.end);
        ContextChunk {
            content,
            source,
            tokens,
            metadata,
            chunk_type: chunk.chunk_type.clone(),
            priority: chunk.priority,
        }
    };
    ranges.iter().map(part).collect()
}

/// What a file matters by its kind alone.
pub fn priority_of(path: &str) -> ContextPriority {
    match FileKind::of(path) {
        FileKind::Source | FileKind::Test | FileKind::Config => ContextPriority::Medium,
        FileKind::Docs | FileKind::Fixture | FileKind::Data => ContextPriority::Low,
        FileKind::Generated => ContextPriority::Minimal,
    }
}

/// What a chunk's metadata says of its relevance.
pub(crate) fn set_relevance(chunk: &mut ContextChunk, relevance: f64) {
    // Rounded, so that the last bits of a sum cannot change a byte of the output.
    let rounded = (relevance.clamp(0.0, 1.0) * 1e4).round() / 1e4;
    chunk.metadata.insert("relevance".to_owned(), Value::from(rounded));
}
