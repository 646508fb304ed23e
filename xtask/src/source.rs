//! Rust sources cut into code, string literals and comments, so that rules can look at one of them alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

mod lexer;
#[cfg(test)]
mod tests;

/// One Rust file of the workspace.
#[derive(Debug)]
pub struct Source {
    /// Relative to the root of the workspace, with forward slashes.
    pub path: String,
    pub lines: Vec<Line>,
}

/// One line of a file, taken apart.
#[derive(Debug, Default)]
pub struct Line {
    /// Counted from one.
    pub number: usize,
    /// The code without comments and without what string and character literals hold.
    pub code: String,
    /// The code without comments, literals included.
    pub text: String,
    /// The comment with its slashes.
    pub comment: String,
    /// Whether the line is part of a test: of a test file or of an item under `#[cfg(test)]`.
    pub in_test: bool,
}

impl Source {
    #[must_use]
    pub fn new(path: &str, content: &str) -> Self {
        let mut lines = lexer::lines(content);
        if is_test_file(path) {
            lines.iter_mut().for_each(|line| line.in_test = true);
        } else {
            mark_test_items(&mut lines);
        }
        Self { path: path.to_owned(), lines }
    }

    /// The lines that are not part of a test.
    pub fn production(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.in_test)
    }
}

impl Line {
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.comment.is_empty()
    }
}

/// Reads all Rust files below `root` in the order of their paths.
pub fn rust_sources(root: &Path) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in files_below(root)? {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let content = crate::read(&path)?;
            sources.push(Source::new(&relative(root, &path), &content));
        }
    }
    Ok(sources)
}

/// All files below `root`, sorted; hidden and build folders are left out and links not followed.
pub fn files_below(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |cause| Failure::File { path: folder.clone(), cause };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_file() {
                files.push(entry.path());
            } else if kind.is_dir() && is_source_folder(&entry.file_name().to_string_lossy()) {
                folders.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The path of a file as messages and tables show it.
#[must_use]
pub fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn is_source_folder(name: &str) -> bool {
    name != "target" && !name.starts_with('.')
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
}

/// Marks each item under `#[cfg(test)]`: to its closing brace, or to its semicolon if it has no body.
fn mark_test_items(lines: &mut [Line]) {
    let mut open: Option<TestItem> = None;
    for line in lines {
        let mut code = line.code.as_str();
        if open.is_none() {
            let Some((_, rest)) = code.split_once("#[cfg(test)]") else {
                continue;
            };
            open = Some(TestItem::default());
            code = rest;
        }
        line.in_test = true;
        open = open.and_then(|item| item.after(code));
    }
}

/// How far the body of an item under `#[cfg(test)]` has been followed.
#[derive(Default)]
struct TestItem {
    depth: usize,
}

impl TestItem {
    /// The item after some more code, none once it has ended.
    fn after(mut self, code: &str) -> Option<Self> {
        for character in code.chars() {
            match character {
                '{' => self.depth += 1,
                '}' if self.depth <= 1 => return None,
                '}' => self.depth -= 1,
                ';' if self.depth == 0 => return None,
                _ => {}
            }
        }
        Some(self)
    }
}
