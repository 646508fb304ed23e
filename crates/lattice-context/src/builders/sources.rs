//! Files as the builders show them: whole if short, else windows; absence and binaries on record.

use lattice_repo::Beginning;

use super::metadata::TruncationMetadata;
use super::window;
use crate::secrets;
use crate::text::{Decoded, decode};
use crate::workspace::{Skip, Workspace};

/// What a section holds at most.
pub(super) const SECTION_LIMIT: u64 = 8 << 20;

/// Files of this many lines and more are cut.
const LONG_FILE: usize = 500;

/// A section of files in the making, with room for so many bytes.
pub(super) struct Sources<'a> {
    pub(super) name: &'static str,
    pub(super) metadata: &'a mut TruncationMetadata,
    pub(super) files: super::ContextDict,
    pub(super) left: u64,
}

impl<'a> Sources<'a> {
    pub(super) fn new(name: &'static str, metadata: &'a mut TruncationMetadata) -> Self {
        Self { name, metadata, files: super::ContextDict::default(), left: SECTION_LIMIT }
    }

    /// Adds a file by the rule for long files: those of 500 lines and more keep 499, around `targets` first.
    pub(super) fn add(&mut self, path: &str, content: Beginning, targets: &[usize]) {
        let total = content.lines;
        let Some(text) = self.text(path, content) else { return };
        let lines = usize::try_from(total).unwrap_or(usize::MAX);
        let most = if lines < LONG_FILE { LONG_FILE } else { LONG_FILE - 1 };
        let cut = window::truncate(&text, most, targets);
        self.put(path, cut.content, total, cut.kept_lines);
    }

    /// Adds the ten lines around each target.
    pub(super) fn add_windows(&mut self, path: &str, content: Beginning, targets: &[usize]) {
        let total = content.lines;
        let Some(text) = self.text(path, content) else { return };
        let lines = text.split_inclusive('\n').count();
        let most = window::windows(targets, lines).iter().map(std::ops::Range::len).sum();
        let cut = window::truncate(&text, most, targets);
        self.put(path, cut.content, total, cut.kept_lines);
    }

    pub(super) fn absent(&mut self, path: &str) {
        self.metadata.missing.push(path.to_owned());
        self.files.insert(path, "");
    }

    fn text(&mut self, path: &str, content: Beginning) -> Option<String> {
        match decode(content.bytes) {
            Decoded::Text(text) => Some(text),
            Decoded::Binary => {
                self.metadata.skipped_binary.push(path.to_owned());
                None
            }
        }
    }

    fn put(&mut self, path: &str, mut content: String, lines: u64, mut kept: u64) {
        if content.len() as u64 > self.left {
            let room = usize::try_from(self.left).unwrap_or(usize::MAX);
            content = crate::text::at_most(&content, room).to_owned();
            kept = kept.min(content.bytes().filter(|byte| *byte == b'\n').count() as u64);
        }
        self.left -= content.len() as u64;
        self.metadata.warnings.extend(secrets::warnings(path, &content));
        self.metadata.section(self.name, lines, kept);
        self.files.insert(path, content);
    }
}

/// A file of the workspace as one section; missing or binary ones are empty, with the reason on record.
pub(super) fn text_section(workspace: &Workspace, name: &str, path: &str, metadata: &mut TruncationMetadata) -> String {
    match workspace.read_bytes(path, SECTION_LIMIT) {
        Ok((content, _)) => {
            let (total, is_cut) = (content.lines, content.total_bytes > SECTION_LIMIT);
            match decode(content.bytes) {
                Decoded::Text(text) => {
                    let kept = if is_cut { text.bytes().filter(|byte| *byte == b'\n').count() as u64 } else { total };
                    metadata.section(name, total, kept);
                    metadata.warnings.extend(secrets::warnings(path, &text));
                    text
                }
                Decoded::Binary => {
                    metadata.skipped_binary.push(path.to_owned());
                    String::new()
                }
            }
        }
        Err(skip) => {
            note_absence(path, &skip, metadata);
            String::new()
        }
    }
}

pub(super) fn note_absence(path: &str, skip: &Skip, metadata: &mut TruncationMetadata) {
    metadata.missing.push(path.to_owned());
    if *skip != Skip::Missing {
        metadata.warnings.push(format!("{path} was left out: {skip}"));
    }
}

/// `CLAUDE.md`, else `AGENTS.md`; both with their names where there are both.
pub(super) fn conventions(workspace: &Workspace, metadata: &mut TruncationMetadata) -> String {
    let found: Vec<&str> =
        ["CLAUDE.md", "AGENTS.md"].into_iter().filter(|path| workspace.open_file(path).is_ok()).collect();
    match found[..] {
        [] => {
            metadata.warnings.push("there is no CLAUDE.md and no AGENTS.md: conventions are empty".to_owned());
            String::new()
        }
        [only] => text_section(workspace, "conventions", only, metadata),
        _ => {
            let part = |path: &&str| format!("# {path}\n\n{}", text_section(workspace, "conventions", path, metadata));
            let parts: Vec<String> = found.iter().map(part).collect();
            parts.join("\n")
        }
    }
}
