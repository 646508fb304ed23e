//! `build_review_context`: what a branch changes.

use std::collections::BTreeMap;

use lattice_repo::{Change, ChangedFile, DiffRange};
use serde_json::json;

use super::sources::{SECTION_LIMIT, Sources, conventions};
use super::{BuildError, ContextDict, TruncationMetadata};
use crate::git::{DiffStats, GitOperationError, GitOperations};
use crate::secrets;
use crate::workspace::Workspace;

/// Changed lines of one file that are remembered.
const MOST_TARGETS: usize = 2000;

/// The diff of HEAD against where it left `base_branch`, the changed files, the conventions and the numbers.
pub fn build_review_context(workspace: &Workspace, base_branch: &str) -> Result<ContextDict, BuildError> {
    let git = GitOperations::new(workspace.reader().ok_or(BuildError::NoRepository)?);
    let range = range(&git, base_branch)?;
    let mut metadata = TruncationMetadata::default();
    let files = git.reader().changed_files(range)?;
    let mut touched = Touched::default();
    let diff = git.reader().diff(range, SECTION_LIMIT, |line| touched.see(line))?;
    let is_cut = diff.total_bytes > SECTION_LIMIT;
    let text = crate::text::lossy(diff.bytes);
    let kept = if is_cut { text.bytes().filter(|byte| *byte == b'\n').count() as u64 } else { diff.lines };
    metadata.section("diff", diff.lines, kept);
    metadata.warnings.extend(secrets::warnings("diff", &text));
    let mut context = ContextDict::default();
    context.insert("diff", text);
    context.insert("changed_files", changed_files(&git, &files, &touched, &mut metadata)?);
    context.insert("conventions", conventions(workspace, &mut metadata));
    context.insert("stats", json!(DiffStats::of(&files)));
    Ok(metadata.complete(context))
}

fn range(git: &GitOperations<'_>, base: &str) -> Result<DiffRange, BuildError> {
    let commit = |name: &str| -> Result<_, BuildError> {
        let found = git.reader().resolve(name)?;
        found.ok_or_else(|| GitOperationError::UnknownName(name.to_owned()).into())
    };
    let (base, head) = (commit(base)?, commit("HEAD")?);
    // Histories without a common commit are compared as they are.
    let from = git.reader().merge_base(base, head)?.unwrap_or(base);
    Ok(DiffRange::Between(from, head))
}

fn changed_files(
    git: &GitOperations<'_>,
    files: &[ChangedFile],
    touched: &Touched,
    metadata: &mut TruncationMetadata,
) -> Result<ContextDict, BuildError> {
    let mut sources = Sources::new("changed_files", metadata);
    for (number, file) in files.iter().enumerate() {
        let path = String::from_utf8_lossy(&file.path).into_owned();
        match (file.change, file.blob) {
            (Change::Deleted, _) => sources.absent(&path),
            (Change::NoFile, _) | (Change::Written, None) => {
                sources.metadata.warnings.push(format!("{path} is no file with text"));
            }
            (Change::Written, Some(_)) if file.lines.is_none() => sources.metadata.skipped_binary.push(path),
            (Change::Written, Some(blob)) => {
                let content = git.reader().blob(blob, sources.left)?;
                let targets = touched.lines.get(&number).map(Vec::as_slice).unwrap_or_default();
                sources.add(&path, content, targets);
            }
        }
    }
    Ok(sources.files)
}

/// The lines that a diff adds, by the number of the file in it.
#[derive(Default)]
struct Touched {
    lines: BTreeMap<usize, Vec<usize>>,
    file: Option<usize>,
    next: usize,
    /// Lines of the hunk that are still to come: of the old file and of the new one.
    left: (usize, usize),
}

impl Touched {
    fn see(&mut self, line: &[u8]) {
        if self.left != (0, 0) {
            return self.inside(line);
        }
        if line.starts_with(b"diff --git ") {
            self.file = Some(self.file.map_or(0, |file| file + 1));
        } else if let Some((old, new)) = hunk(line) {
            self.next = new.0;
            self.left = (old, new.1);
        }
    }

    fn inside(&mut self, line: &[u8]) {
        match line.first() {
            Some(b'+') => {
                let lines = self.lines.entry(self.file.unwrap_or(0)).or_default();
                if lines.len() < MOST_TARGETS {
                    lines.push(self.next);
                }
                self.next += 1;
                self.left.1 = self.left.1.saturating_sub(1);
            }
            Some(b'-') => self.left.0 = self.left.0.saturating_sub(1),
            Some(b'\\') => {}
            Some(_) | None => {
                self.next += 1;
                self.left = (self.left.0.saturating_sub(1), self.left.1.saturating_sub(1));
            }
        }
    }
}

/// `@@ -1,2 +3,4 @@`: how many old lines, and where and how many new ones.
fn hunk(line: &[u8]) -> Option<(usize, (usize, usize))> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@ -")?.split(|byte| *byte == b'@').next()?).ok()?;
    let (old, new) = text.trim().split_once(" +")?;
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    let start = new.split(',').next()?.parse().ok()?;
    Some((count(old)?, (start, count(new)?)))
}
