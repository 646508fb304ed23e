//! Writes many objects with one process.

use std::path::Path;

use lattice_model::id::Oid;

use super::error::GitError;
use super::process::Git;

const COMMAND: &str = "fast-import";

/// Objects to be written. No ref is created or moved.
pub(crate) struct Import {
    stream: Vec<u8>,
    marks: usize,
    scratch: Vec<String>,
    hex_len: usize,
}

/// An object of this import, known by number until it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

/// The ids of what was written.
pub(crate) struct Written(Vec<Oid>);

/// A commit for Lattice's own use.
pub(crate) struct NewCommit<'a> {
    pub(crate) message: &'a str,
    pub(crate) seconds: i64,
    pub(crate) parents: Vec<Source>,
    pub(crate) tree: NewTree,
}

pub(crate) enum NewTree {
    /// That of the first parent.
    Inherit,
    Entries(Vec<(String, Entry)>),
}

pub(crate) enum Entry {
    Blob(Source),
    Tree(Oid),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Existing(Oid),
    New(Mark),
}

impl Import {
    /// An import into a repository whose ids have `hex_len` digits.
    pub(crate) fn new(hex_len: usize) -> Self {
        Self { stream: Vec::new(), marks: 0, scratch: Vec::new(), hex_len }
    }

    pub(crate) fn blob(&mut self, content: &[u8]) -> Mark {
        let mark = self.next_mark();
        self.line(&format!("blob\nmark :{}", mark.0));
        self.data(content);
        mark
    }

    pub(crate) fn commit(&mut self, commit: NewCommit<'_>) -> Mark {
        let mark = self.next_mark();
        // A commit needs a ref while the import runs; it is dropped again before the end.
        let name = format!("refs/lattice/import/{}", mark.0);
        self.line(&format!("commit {name}\nmark :{}", mark.0));
        self.scratch.push(name);
        self.line(&format!("committer Lattice <lattice@localhost> {} +0000", commit.seconds));
        self.data(commit.message.as_bytes());
        for (at, parent) in commit.parents.iter().enumerate() {
            let verb = if at == 0 { "from" } else { "merge" };
            self.line(&format!("{verb} {}", source(*parent)));
        }
        if let NewTree::Entries(entries) = commit.tree {
            self.line("deleteall");
            for (path, entry) in entries {
                match entry {
                    Entry::Blob(blob) => self.line(&format!("M 100644 {} {path}", source(blob))),
                    Entry::Tree(tree) => self.line(&format!("M 040000 {tree} {path}")),
                }
            }
        }
        self.line("");
        mark
    }

    /// Writes everything. `marks_file` is a path that the process may use.
    pub(crate) fn write(mut self, git: &Git, marks_file: &Path) -> Result<Written, GitError> {
        for name in std::mem::take(&mut self.scratch) {
            let nothing = "0".repeat(self.hex_len);
            self.line(&format!("reset {name}\nfrom {nothing}\n"));
        }
        self.line("done");
        let mut option = std::ffi::OsString::from("--export-marks=");
        option.push(marks_file);
        git.call(COMMAND).args(["--done", "--quiet"]).arg(option).stdin(self.stream).run()?;
        let text = std::fs::read_to_string(marks_file)
            .map_err(|source| GitError::Read { path: marks_file.to_owned(), source })?;
        // The file has served its purpose; one that stays behind is overwritten by the next import.
        let _ = std::fs::remove_file(marks_file);
        let mut written = vec![None; self.marks];
        for line in text.lines() {
            let parsed = line.strip_prefix(':').and_then(|line| line.split_once(' '));
            let parsed = parsed.and_then(|(mark, oid)| Some((mark.parse::<usize>().ok()?, Oid::new(oid).ok()?)));
            let (mark, oid) = parsed.ok_or_else(|| GitError::unexpected(COMMAND, "marks in another form"))?;
            written[mark - 1] = Some(oid);
        }
        let all: Option<Vec<_>> = written.into_iter().collect();
        all.map(Written).ok_or_else(|| GitError::unexpected(COMMAND, "too few marks"))
    }

    fn next_mark(&mut self) -> Mark {
        self.marks += 1;
        Mark(self.marks)
    }

    fn line(&mut self, text: &str) {
        self.stream.extend_from_slice(text.as_bytes());
        self.stream.push(b'\n');
    }

    fn data(&mut self, content: &[u8]) {
        self.line(&format!("data {}", content.len()));
        self.stream.extend_from_slice(content);
        self.stream.push(b'\n');
    }
}

impl Written {
    pub(crate) fn get(&self, mark: Mark) -> Oid {
        self.0[mark.0 - 1]
    }
}

fn source(source: Source) -> String {
    match source {
        Source::Existing(oid) => oid.to_string(),
        Source::New(mark) => format!(":{}", mark.0),
    }
}
