//! The folders and files of a workspace as a tree.

use std::collections::BTreeMap;

use super::{Gathered, chunk};
use crate::chunk::{ChunkType, ContextPriority};
use crate::workspace::Workspace;

/// A folder with more entries than this is cut.
const MOST_ENTRIES: usize = 60;

/// A folder with what is in it, at every depth.
#[derive(Default)]
pub(crate) struct Folder<'a> {
    folders: BTreeMap<&'a str, Folder<'a>>,
    files: Vec<&'a str>,
}

pub(super) fn gather(workspace: &Workspace, depth: usize) -> Gathered {
    match workspace.entries() {
        Ok(entries) => {
            let content = Folder::of(entries.iter().map(|entry| entry.path.as_str())).tree(depth);
            Gathered::one(chunk(workspace, content, "workspace", ChunkType::Structure, ContextPriority::Medium))
        }
        Err(error) => Gathered::nothing(format!("the structure is missing: {error}")),
    }
}

impl<'a> Folder<'a> {
    pub(crate) fn of(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut root = Self::default();
        for path in paths {
            let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
            let parts = folders.split('/').filter(|part| !part.is_empty());
            parts.fold(&mut root, |folder, part| folder.folders.entry(part).or_default()).files.push(name);
        }
        root
    }

    /// Folders first, then files, down to `depth`; what lies deeper is counted.
    pub(crate) fn tree(&self, depth: usize) -> String {
        let mut text = String::new();
        self.write(&mut text, 0, depth);
        text
    }

    fn write(&self, text: &mut String, level: usize, depth: usize) {
        let indent = "  ".repeat(level);
        if level >= depth {
            return;
        }
        for (name, folder) in self.folders.iter().take(MOST_ENTRIES) {
            let inside = if level + 1 >= depth { format!(" ({} files)", folder.count()) } else { String::new() };
            text.push_str(&format!("{indent}{}/{inside}\n", printable(name)));
            folder.write(text, level + 1, depth);
        }
        for name in self.files.iter().take(MOST_ENTRIES) {
            text.push_str(&format!("{indent}{}\n", printable(name)));
        }
        let more = self.folders.len().saturating_sub(MOST_ENTRIES) + self.files.len().saturating_sub(MOST_ENTRIES);
        if more > 0 {
            text.push_str(&format!("{indent}... ({more} more)\n"));
        }
    }

    fn count(&self) -> usize {
        self.files.len() + self.folders.values().map(Self::count).sum::<usize>()
    }
}

fn printable(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}
