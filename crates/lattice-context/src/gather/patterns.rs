//! What recurs in a code base: its languages, and what most files bring in.

use std::collections::BTreeMap;

use super::chunk;
use crate::chunk::{ChunkType, ContextChunk, ContextPriority};
use crate::index::Index;
use crate::language::language_of;
use crate::retrieve::files::FileKind;
use crate::workspace::Workspace;

/// How many lines each list has at most.
const MOST: usize = 12;

/// Files whose imports are looked at.
const SAMPLE: usize = 2000;

/// Languages by files and lines, kinds of files, and the most common imports.
pub fn patterns(workspace: &Workspace, index: &Index) -> Option<ContextChunk> {
    let mut languages: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    let mut imports: BTreeMap<String, usize> = BTreeMap::new();
    let mut tests = 0;
    for (number, file) in index.files.iter().enumerate() {
        let Some(language) = language_of(&file.path) else { continue };
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let lines = index.facts(number).map_or(0, |facts| u64::from(facts.lines));
        let entry = languages.entry(language.name).or_default();
        *entry = (entry.0 + 1, entry.1 + lines);
        tests += usize::from(FileKind::of(&file.path) == FileKind::Test);
        if language.is_code() && (number as usize) < SAMPLE {
            for import in index.record(number).unwrap_or_default().imports {
                *imports.entry(import).or_default() += 1;
            }
        }
    }
    if languages.is_empty() {
        return None;
    }
    let mut text = String::from("Languages:\n");
    let mut by_lines: Vec<_> = languages.into_iter().collect();
    by_lines.sort_by_key(|(name, (_, lines))| (std::cmp::Reverse(*lines), *name));
    for (name, (files, lines)) in by_lines.into_iter().take(MOST) {
        text.push_str(&format!("- {name}: {files} files, {lines} lines\n"));
    }
    text.push_str(&format!("Test files: {tests}\n"));
    let mut common: Vec<_> = imports.into_iter().filter(|(_, count)| *count > 1).collect();
    common.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    if !common.is_empty() {
        text.push_str("Common imports:\n");
        for (import, count) in common.into_iter().take(MOST) {
            text.push_str(&format!("- {import}: {count} files\n"));
        }
    }
    let kind = ChunkType::Other("pattern".to_owned());
    Some(chunk(workspace, text, "workspace", kind, ContextPriority::Medium))
}
