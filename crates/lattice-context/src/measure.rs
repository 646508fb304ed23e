//! Tokens of every file below a folder.

use std::collections::{BTreeMap, HashMap};

use lattice_repo::{publish_cache_file, read_own_file};

use crate::parallel::parallel;
use crate::text::{Decoded, decode};
use crate::workspace::{Entry, FILE_LIMIT, Workspace, WorkspaceError};

/// The cache of counts is not read if it is larger.
const CACHE_LIMIT: u64 = 64 << 20;

/// Tokens by path. Files that are no text are left out; counts of contents that Git knows are kept.
pub fn measure(workspace: &Workspace, below: &str, threads: usize) -> Result<BTreeMap<String, usize>, WorkspaceError> {
    let below = below.trim_end_matches('/');
    let inside = |path: &str| {
        below.is_empty() || path == below || path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'))
    };
    let entries: Vec<&Entry> = workspace.entries()?.iter().filter(|entry| inside(&entry.path)).collect();
    let cache = workspace.cache_dir().map(|cache| cache.join(format!("tokens-1-{}", workspace.counter.name())));
    let known = cache.as_deref().map(read_counts).unwrap_or_default();
    let counted: Vec<Option<usize>> = parallel(threads, &entries, |entry| {
        let cached = entry.blob.and_then(|blob| known.get(&blob.to_string()).copied());
        cached.unwrap_or_else(|| count(workspace, &entry.path))
    });
    let is_fresh = |entry: &&Entry| entry.blob.is_some_and(|blob| !known.contains_key(&blob.to_string()));
    let fresh = entries.iter().any(is_fresh);
    if let Some(cache) = cache.filter(|_| fresh) {
        let mut all: BTreeMap<String, Option<usize>> = known.into_iter().collect();
        let new = entries.iter().zip(&counted).filter_map(|(entry, tokens)| Some((entry.blob?.to_string(), *tokens)));
        all.extend(new);
        // A cache that cannot be written only costs time.
        let _ = publish_cache_file(&cache, written(&all).as_bytes());
    }
    workspace.keep_listing(&[]);
    Ok(entries.iter().zip(counted).filter_map(|(entry, tokens)| Some((entry.path.clone(), tokens?))).collect())
}

fn count(workspace: &Workspace, path: &str) -> Option<usize> {
    let (beginning, _) = workspace.read_bytes(path, FILE_LIMIT).ok()?;
    match decode(beginning.bytes) {
        Decoded::Text(text) => Some(workspace.counter.count(&text)),
        Decoded::Binary => None,
    }
}

fn written(counts: &BTreeMap<String, Option<usize>>) -> String {
    let line = |(blob, tokens): (&String, &Option<usize>)| match tokens {
        Some(tokens) => format!("{blob} {tokens}\n"),
        None => format!("{blob} -\n"),
    };
    let body: String = counts.iter().map(line).collect();
    format!("{body}end {}\n", counts.len())
}

/// A file that was cut off has another number at its end, and counts as none.
fn read_counts(path: &std::path::Path) -> HashMap<String, Option<usize>> {
    let read = || {
        let text = String::from_utf8(read_own_file(path, CACHE_LIMIT).ok()??).ok()?;
        let (body, end) = text.trim_end().rsplit_once('\n')?;
        let counts: HashMap<String, Option<usize>> = body
            .lines()
            .map(|line| {
                let (blob, tokens) = line.split_once(' ')?;
                let tokens = if tokens == "-" { None } else { Some(tokens.parse().ok()?) };
                Some((blob.to_owned(), tokens))
            })
            .collect::<Option<_>>()?;
        (end == format!("end {}", counts.len())).then_some(counts)
    };
    read().unwrap_or_default()
}
