//! A repository in a temporary directory, looked at and changed with plain git.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::Value;

use crate::env::Sandbox;
use crate::git_versions;
use crate::metadata::{METADATA_PREFIX, metadata_ref};
use crate::setup::Setup;
use crate::state::RepoState;

/// Git commands that make commits or tags, and therefore need a date of their own.
const DATED: [&str; 12] = [
    "am",
    "cherry-pick",
    "commit",
    "commit-tree",
    "merge",
    "notes",
    "pull",
    "rebase",
    "replay",
    "revert",
    "stash",
    "tag",
];

/// A working tree (or bare repository) of a sandbox; clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct TestRepo {
    sandbox: Arc<Sandbox>,
    dir: PathBuf,
}

/// A git command that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitFailure {
    /// The exit code, unless a signal ended git.
    pub code: Option<i32>,
    /// What git said.
    pub stderr: String,
}

impl TestRepo {
    /// Makes a repository with one commit, which adds README, on `main`; Lattice is not set up in it.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "making a repository is no default value")]
    pub fn new() -> Self {
        Setup::default().init()
    }

    /// Like [`TestRepo::new`] with another object format.
    #[track_caller]
    pub fn with_format(format: &str) -> Self {
        Setup::default().object_format(format).init()
    }

    /// Like [`TestRepo::new`] with refs in a reftable; none when git is older than 2.45.
    #[track_caller]
    pub fn reftable() -> Option<Self> {
        let knows_it = git_versions::version_of(&git_versions::first_in_path()) >= (2, 45);
        knows_it.then(|| Setup::default().ref_format("reftable").init())
    }

    /// Like [`TestRepo::new`] without a working tree.
    #[track_caller]
    pub fn bare() -> Self {
        Setup::default().bare().init()
    }

    /// Makes the repository of a drawing; see [`Setup::draw`].
    #[track_caller]
    pub fn draw(drawing: &str) -> Self {
        Setup::default().draw(drawing)
    }

    /// A handle to another directory in the same sandbox, such as a clone.
    pub fn beside(&self, dir: &Path) -> Self {
        Self::handle(Arc::clone(&self.sandbox), dir.to_owned())
    }

    /// Adds a worktree `name` beside the repository, with `branch` checked out.
    #[track_caller]
    pub fn worktree(&self, name: &str, branch: &str) -> Self {
        let dir = self.dir.parent().expect("the repository has a parent").join(name);
        self.git(&["worktree", "add", "--quiet", text_of(&dir), branch]);
        self.beside(&dir)
    }

    /// Where commands run: the working tree, or the bare repository.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The environment this repository lives in.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Runs git and returns its output without the last newline; panics with stderr when it fails.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.try_git(args).unwrap_or_else(|failure| panic_for(args, &failure))
    }

    /// Like [`TestRepo::git`], for commands that may fail.
    #[track_caller]
    pub fn try_git(&self, args: &[&str]) -> Result<String, GitFailure> {
        let bytes = self.run_git(args, b"")?;
        let text = String::from_utf8(bytes).expect("the output of git is text; else use git_with_input");
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Runs git with bytes on stdin and returns the bytes of its output.
    #[track_caller]
    pub fn git_with_input(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        self.run_git(args, input).unwrap_or_else(|failure| panic_for(args, &failure))
    }

    /// Writes, adds and commits one file on the branch that is checked out; returns the commit.
    #[track_caller]
    pub fn commit_file(&self, path: &str, content: impl AsRef<[u8]>, message: &str) -> String {
        self.write(path, content);
        self.git(&["add", "--force", "--", path]);
        self.git(&["commit", "--quiet", "--message", message]);
        self.rev("HEAD")
    }

    /// Writes a file of the working tree and the directories above it.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        write_file(&self.dir.join(path), content.as_ref());
    }

    /// The text of a file of the working tree.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.dir.join(path)).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
    }

    /// The object that a name stands for.
    #[track_caller]
    pub fn rev(&self, name: &str) -> String {
        self.git(&["rev-parse", "--verify", "--end-of-options", name])
    }

    /// Every ref with its object.
    #[track_caller]
    pub fn refs(&self) -> BTreeMap<String, String> {
        let text = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        pairs.map(|(name, oid)| (name.to_owned(), oid.to_owned())).collect()
    }

    /// Local branches by name, with their tips.
    #[track_caller]
    pub fn branch_refs(&self) -> BTreeMap<String, String> {
        self.refs_below("refs/heads/")
    }

    /// Tracked branches by name, with their metadata blobs.
    #[track_caller]
    pub fn metadata_refs(&self) -> BTreeMap<String, String> {
        self.refs_below(METADATA_PREFIX)
    }

    /// The refs under a prefix, which is cut off.
    #[track_caller]
    pub fn refs_below(&self, prefix: &str) -> BTreeMap<String, String> {
        let below = |(name, oid): (String, String)| Some((name.strip_prefix(prefix)?.to_owned(), oid));
        self.refs().into_iter().filter_map(below).collect()
    }

    /// The metadata document of a branch.
    #[track_caller]
    pub fn metadata(&self, branch: &str) -> Value {
        let text = self.git(&["cat-file", "blob", &metadata_ref(branch)]);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("metadata of {branch}: {error}\n{text}"))
    }

    /// Puts any bytes where the metadata of a branch belongs.
    #[track_caller]
    pub fn set_metadata_raw(&self, branch: &str, bytes: &[u8]) {
        let oid = self.git_with_input(&["hash-object", "-w", "--stdin"], bytes);
        let oid = String::from_utf8(oid).expect("object ids are text");
        self.git(&["update-ref", &metadata_ref(branch), oid.trim()]);
    }

    /// The records of the ledger, newest first; none if there is no ledger.
    #[track_caller]
    pub fn ledger(&self) -> Vec<Value> {
        const LEDGER: &str = "refs/lattice/event-log";
        if self.try_git(&["rev-parse", "--quiet", "--verify", LEDGER]).is_err() {
            return Vec::new();
        }
        let text = self.git(&["log", "-z", "--first-parent", "--format=%B", LEDGER]);
        let records = text.split('\0').filter(|record| !record.trim().is_empty());
        let parse = |record| serde_json::from_str(record).unwrap_or_else(|error| panic!("{error} in {record}"));
        records.map(parse).collect()
    }

    /// The directory that all worktrees share. Tests ask for it so often that no git is started to find it.
    #[track_caller]
    pub fn common_dir(&self) -> PathBuf {
        let own = self.git_dir();
        match fs::read_to_string(own.join("commondir")) {
            Ok(text) => resolved(&own.join(text.trim_end())),
            Err(_) => own,
        }
    }

    /// The directory of this worktree alone: HEAD, index, operations in progress.
    #[track_caller]
    pub fn git_dir(&self) -> PathBuf {
        let inside = self.dir.join(".git");
        if self.is_bare() {
            return self.dir.clone();
        }
        match fs::read_to_string(&inside) {
            Ok(text) => resolved(&self.dir.join(text.trim_end().trim_start_matches("gitdir: "))),
            Err(_) => inside,
        }
    }

    /// Whether this is a repository without a working tree.
    pub fn is_bare(&self) -> bool {
        !self.dir.join(".git").exists()
    }

    /// Where Lattice keeps its own files.
    #[track_caller]
    pub fn lattice_dir(&self) -> PathBuf {
        self.common_dir().join("lattice")
    }

    /// The marker of an operation in progress.
    #[track_caller]
    pub fn op_state_path(&self) -> PathBuf {
        self.lattice_dir().join("op-state.json")
    }

    /// Replaces the configuration of Lattice in this repository.
    #[track_caller]
    pub fn write_config(&self, toml: &str) {
        write_file(&self.lattice_dir().join("config.toml"), toml.as_bytes());
    }

    /// Everything about this worktree that a command may have changed, for [`crate::assert_same`].
    #[track_caller]
    pub fn state(&self) -> RepoState {
        RepoState::of(self)
    }

    pub(crate) fn handle(sandbox: Arc<Sandbox>, dir: PathBuf) -> Self {
        Self { sandbox, dir }
    }

    #[track_caller]
    fn run_git(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, GitFailure> {
        if args.iter().any(|arg| DATED.contains(arg)) {
            self.sandbox.tick_commit();
        }
        let output = self.start_git(args, input);
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(GitFailure { code: output.status.code(), stderr: String::from_utf8_lossy(&output.stderr).into_owned() })
    }

    #[track_caller]
    fn start_git(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new(self.sandbox.git());
        self.sandbox.apply(&mut command);
        // An editor would wait for nobody, and looking must not refresh the index.
        command.env("GIT_EDITOR", "true").env("GIT_OPTIONAL_LOCKS", "0");
        command.args(args).current_dir(&self.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("git does not start: {error}"));
        let mut stdin = child.stdin.take().expect("stdin is piped");
        std::thread::scope(|scope| {
            // Git may end before it has read everything; its exit code tells.
            scope.spawn(move || stdin.write_all(input).ok());
            child.wait_with_output().expect("git can be waited for")
        })
    }
}

#[track_caller]
fn panic_for<T>(args: &[&str], failure: &GitFailure) -> T {
    panic!("git {} ended with {:?}:\n{}", args.join(" "), failure.code, failure.stderr)
}

#[track_caller]
fn write_file(path: &Path, content: &[u8]) {
    let parent = path.parent().expect("a file lies in a directory");
    fs::create_dir_all(parent).unwrap_or_else(|error| panic!("cannot make {}: {error}", parent.display()));
    fs::write(path, content).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// A path without `..` in it, as git tells it.
#[track_caller]
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|error| panic!("no {}: {error}", path.display()))
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("the kit chooses its paths, and they are text")
}
