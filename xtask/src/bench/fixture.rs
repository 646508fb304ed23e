//! Repositories to measure in: a linear stack over a tree of many files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// How large a repository is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) branches: usize,
    pub(super) commits: usize,
    pub(super) files: usize,
}

/// A repository with a tracked stack; the top branch is checked out.
pub(super) struct Fixture {
    pub(super) path: PathBuf,
    pub(super) size: Size,
    moves: usize,
}

impl Fixture {
    pub(super) fn new(parent: &Path, name: &str, size: Size) -> Result<Self, Failure> {
        let path = parent.join(name);
        let mut fixture = Self { path, size, moves: 0 };
        std::fs::create_dir_all(&fixture.path).map_err(|cause| fixture.failed(cause))?;
        fixture.git(&["init", "-q", "-b", "main"])?;
        for (key, value) in [("user.name", "Bench"), ("user.email", "bench@example.invalid"), ("gc.auto", "0")] {
            fixture.git(&["config", key, value])?;
        }
        fixture.import(&fixture.history())?;
        fixture.track()?;
        fixture.git(&["pack-refs", "--all"])?;
        fixture.git(&["repack", "-adq"])?;
        fixture.git(&["checkout", "-q", &branch(size.branches - 1)])?;
        fixture.move_trunk()?;
        Ok(fixture)
    }

    /// The names of the branches, bottom first.
    pub(super) fn branches(&self) -> Vec<String> {
        (0..self.size.branches).map(branch).collect()
    }

    fn history(&self) -> String {
        let mut stream = String::from(
            "commit refs/heads/main\nmark :1\ncommitter Bench <b@example.invalid> 1700000000 +0000\ndata 4\nbase\n",
        );
        for file in 0..self.size.files {
            let text = format!("line of file {file}\n").repeat(20);
            stream.push_str(&format!("M 100644 inline d{}/f{file}.txt\ndata {}\n{text}\n", file / 100, text.len()));
        }
        let mut mark = 1;
        for number in 0..self.size.branches {
            for commit in 0..self.size.commits {
                let text = format!("branch {number} commit {commit}\n");
                let (below, seconds) = (mark, 1_700_000_000 + mark);
                mark += 1;
                stream.push_str(&format!(
                    "commit refs/heads/{}\nmark :{mark}\ncommitter Bench <b@example.invalid> {seconds} +0000\ndata {}\n{text}from :{below}\nM 100644 inline {}-{commit}.txt\ndata {}\n{text}\n",
                    branch(number), text.len(), branch(number), text.len(),
                ));
            }
        }
        stream
    }

    /// Metadata and configuration, as `lattice track` writes them.
    fn track(&self) -> Result<(), Failure> {
        let tips = self.answer(&["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"])?;
        let tips: std::collections::BTreeMap<_, _> = tips.lines().filter_map(|line| line.split_once(' ')).collect();
        let mut stream = String::new();
        let mut edits = String::new();
        let mut parent = "main".to_owned();
        let marks = self.path.join(".git/bench-marks");
        for (at, name) in self.branches().iter().enumerate() {
            let kind = if parent == "main" { "trunk" } else { "branch" };
            let base = tips[parent.as_str()];
            let text = format!(
                r#"{{"kind":"lattice.branch-metadata","schema_version":1,"branch":{{"name":"{name}"}},"parent":{{"kind":"{kind}","name":"{parent}"}},"base":{{"oid":"{base}"}},"freeze":{{"state":"unfrozen"}},"pr":{{"state":"none"}},"timestamps":{{"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}}}}"#
            );
            stream.push_str(&format!("blob\nmark :{}\ndata {}\n{text}\n", at + 1, text.len()));
            parent.clone_from(name);
        }
        let option = format!("--export-marks={}", marks.display());
        self.feed(&["fast-import", "--quiet", &option], &stream)?;
        for line in crate::read(&marks)?.lines() {
            let (mark, oid) = line.split_once(' ').expect("marks have two words");
            let at: usize = mark[1..].parse().expect("marks are numbers");
            edits.push_str(&format!("create refs/branch-metadata/{} {oid}\n", branch(at - 1)));
        }
        self.feed(&["update-ref", "--stdin"], &edits)?;
        let folder = self.path.join(".git/lattice");
        std::fs::create_dir_all(&folder).map_err(|cause| self.failed(cause))?;
        write(&folder.join("config.toml"), "[trunk]\nbranch = \"main\"\n")
    }

    /// One more commit on the trunk, without touching the working tree.
    pub(super) fn move_trunk(&mut self) -> Result<(), Failure> {
        self.moves += 1;
        let text = format!("trunk {}\n", self.moves);
        let stream = format!(
            "commit refs/heads/main\ncommitter Bench <b@example.invalid> {} +0000\ndata {}\n{text}from refs/heads/main^0\nM 100644 inline trunk.txt\ndata {}\n{text}\n",
            1_710_000_000 + self.moves,
            text.len(),
            text.len(),
        );
        self.import(&stream)
    }

    fn import(&self, stream: &str) -> Result<(), Failure> {
        self.feed(&["fast-import", "--quiet"], stream)
    }

    pub(super) fn git(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.feed(arguments, "")
    }

    pub(super) fn answer(&self, arguments: &[&str]) -> Result<String, Failure> {
        let output =
            self.command("git").args(arguments).stdin(Stdio::null()).output().map_err(|cause| self.failed(cause))?;
        check(output.status, arguments)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(super) fn feed(&self, arguments: &[&str], input: &str) -> Result<(), Failure> {
        let child = self.command("git").args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = child.map_err(|cause| self.failed(cause))?;
        child.stdin.take().expect("piped").write_all(input.as_bytes()).map_err(|cause| self.failed(cause))?;
        check(child.wait().map_err(|cause| self.failed(cause))?, arguments)
    }

    /// Runs a program in the repository, with its output thrown away.
    pub(super) fn run(&self, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), Failure> {
        let mut command = self.command(program);
        let command = command.args(arguments).envs(environment.iter().copied());
        let status = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|cause| self.failed(cause))?;
        check(status, arguments)
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark starts what it measures")]
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    /// Removes what an earlier look kept.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        match std::fs::remove_dir_all(self.path.join(".git/lattice/cache")) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(self.failed(cause)),
            _ => Ok(()),
        }
    }

    fn failed(&self, cause: std::io::Error) -> Failure {
        Failure::File { path: self.path.clone(), cause }
    }
}

pub(super) fn branch(number: usize) -> String {
    format!("b{number:04}")
}

#[expect(clippy::disallowed_methods, reason = "scratch files of a benchmark")]
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|cause| Failure::File { path: path.to_owned(), cause })
}

fn check(status: std::process::ExitStatus, arguments: &[&str]) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure::Step { command: arguments.join(" "), code })
}
