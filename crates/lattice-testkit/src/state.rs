//! A comparable reading of a repository and its working tree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::repo::TestRepo;

/// Files of a git directory that exist only while an operation is under way.
const OPERATIONS: [&str; 9] = [
    "AUTO_MERGE",
    "BISECT_LOG",
    "CHERRY_PICK_HEAD",
    "MERGE_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
    "rebase-apply",
    "rebase-merge",
    "sequencer",
];

/// Everything that a command may have changed: refs (except Lattice's own records), HEAD, index, status, operations
/// in progress, lock files, working tree, and the configuration of Lattice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoState {
    /// One entry per fact, such as `ref refs/heads/main` or `file README`.
    pub facts: BTreeMap<String, Vec<u8>>,
}

/// Panics with the differences, and only those, if two states are not the same.
#[track_caller]
pub fn assert_same(before: &RepoState, after: &RepoState) {
    let differences = before.differences(after);
    assert!(differences.is_empty(), "the repository is not as it was:\n{}", differences.join("\n"));
}

impl RepoState {
    /// Reads the state of the worktree that `repo` is.
    #[track_caller]
    pub(crate) fn of(repo: &TestRepo) -> Self {
        let mut state = Self { facts: BTreeMap::new() };
        state.read_refs(repo);
        state.read_operations(&repo.git_dir());
        state.read_locks(&repo.common_dir(), "");
        if let Ok(config) = fs::read(repo.lattice_dir().join("config.toml")) {
            state.add("lattice config.toml", config);
        }
        if !repo.is_bare() {
            state.read_index(repo);
            state.read_files(repo.dir(), "");
        }
        state
    }

    /// The facts that differ, one line each.
    pub fn differences(&self, after: &Self) -> Vec<String> {
        let names = self.facts.keys().chain(after.facts.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        names.into_iter().filter_map(|name| self.difference(after, name)).collect()
    }

    fn difference(&self, after: &Self, name: &str) -> Option<String> {
        match (self.facts.get(name), after.facts.get(name)) {
            (Some(old), None) => Some(format!("- {name}: {}", shown(old))),
            (None, Some(new)) => Some(format!("+ {name}: {}", shown(new))),
            (Some(old), Some(new)) if old != new => Some(format!("~ {name}: {} -> {}", shown(old), shown(new))),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    fn add(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) {
        self.facts.insert(name.into(), value.into());
    }

    #[track_caller]
    fn read_refs(&mut self, repo: &TestRepo) {
        let text = repo.git(&["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
        let lines = text.lines().filter(|line| !line.starts_with("refs/lattice/"));
        for (name, value) in lines.filter_map(|line| line.split_once(' ')) {
            self.add(format!("ref {name}"), value.trim_end());
        }
        let symbolic = repo.try_git(&["symbolic-ref", "--quiet", "HEAD"]);
        let head = symbolic.unwrap_or_else(|_| repo.rev("HEAD"));
        self.add("HEAD", head);
    }

    fn read_operations(&mut self, git_dir: &Path) {
        for name in OPERATIONS.iter().filter(|name| git_dir.join(name).exists()) {
            self.add(format!("operation {name}"), "");
        }
    }

    /// Finds lock files that a process left behind, which block every later git command.
    fn read_locks(&mut self, dir: &Path, below: &str) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = format!("{below}{}", entry.path().file_name().unwrap_or_default().as_bytes().escape_ascii());
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && name != "objects" {
                self.read_locks(&entry.path(), &format!("{name}/"));
            } else if name.ends_with(".lock") {
                self.add(format!("lock {name}"), "");
            }
        }
    }

    #[track_caller]
    fn read_index(&mut self, repo: &TestRepo) {
        let index = repo.git_with_input(&["ls-files", "-z", "--stage", "-v"], b"");
        for entry in index.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let tab = entry.iter().position(|byte| *byte == b'\t').expect("a path follows a tab");
            let (value, path) = entry.split_at(tab);
            // A path in conflict has up to three stages, each of them a fact.
            let stage = char::from(value[tab - 1]);
            self.add(format!("index {}:{stage}", path[1..].escape_ascii()), value);
        }
        let args = ["status", "--porcelain=v2", "-z", "--untracked-files=all"];
        let status = repo.git_with_input(&args, b"");
        for entry in status.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            self.add(format!("status {}", entry.escape_ascii()), "");
        }
    }

    fn read_files(&mut self, dir: &Path, below: &str) {
        let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("cannot list {}: {error}", dir.display()));
        for entry in entries.map(|entry| entry.expect("the directory can be listed")) {
            let name = format!("{below}{}", entry.file_name().as_bytes().escape_ascii());
            if name == ".git" {
                continue;
            }
            self.read_file(&entry, &name);
        }
    }

    fn read_file(&mut self, entry: &fs::DirEntry, name: &str) {
        let path = entry.path();
        let metadata = entry.metadata().expect("the entry was just listed");
        if metadata.is_dir() {
            self.add(format!("directory {name}"), "");
            self.read_files(&path, &format!("{name}/"));
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).expect("it is a link");
            self.add(format!("link {name}"), target.as_os_str().as_bytes());
        } else if metadata.is_file() {
            let content = fs::read(&path).unwrap_or_else(|error| panic!("cannot read {name}: {error}"));
            self.add(format!("file {name}"), content);
            self.add(format!("mode {name}"), format!("{:o}", metadata.permissions().mode() & 0o777));
        } else {
            self.add(format!("special {name}"), "");
        }
    }
}

/// A value for people: escaped, and not longer than a line or two.
fn shown(value: &[u8]) -> String {
    const LIMIT: usize = 160;
    let head = value[..value.len().min(LIMIT)].escape_ascii();
    match value.len() {
        0..=LIMIT => format!("\"{head}\""),
        more => format!("\"{head}\"... ({more} bytes)"),
    }
}
