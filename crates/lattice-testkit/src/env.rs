//! The environment in which git and the program run in tests.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::git_versions;

/// 2026-01-01T00:00:00Z, the date of the first commit of every repository.
const FIRST_COMMIT_EPOCH: u64 = 1_767_225_600;
/// 03:04:05 on 2026-01-02, the clock of the first run of the program.
const FIRST_RUN_SECOND: u32 = 3 * 3600 + 4 * 60 + 5;

const GIT_CONFIG: &str = "\
[user]
\tname = Ada Tester
\temail = ada@example.invalid
[init]
\tdefaultBranch = main
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
\tmergeConflict = false
\tskippedCherryPicks = false
\tstatusHints = false
\taddEmptyPathspec = false
\tforceDeleteBranch = false
\tsetUpstreamFailure = false
\tsequencerInUse = false
";

/// A temporary directory with an empty home, a Git configuration, and the counters that stand in for clocks.
///
/// Handles to the same repository share one sandbox, so that dates and seeds never repeat within a test.
#[derive(Debug)]
pub struct Sandbox {
    root: PathBuf,
    git: PathBuf,
    forced_git: Option<PathBuf>,
    commits: AtomicU32,
    runs: AtomicU32,
    _temp: TempDir,
}

impl Sandbox {
    /// Makes a sandbox that uses `git`, or the first git in `PATH`.
    ///
    /// A named git is also handed to the program as `LATTICE_GIT`.
    pub fn new(git: Option<PathBuf>) -> Self {
        let temp =
            tempfile::Builder::new().prefix("lattice-test-").tempdir().expect("the temporary directory can be written");
        let root = temp.path().canonicalize().expect("it was just made");
        for dir in ["home/.config", "tmp"] {
            fs::create_dir_all(root.join(dir)).expect("the sandbox can be written");
        }
        fs::write(root.join("gitconfig"), GIT_CONFIG).expect("the sandbox can be written");
        Self {
            root,
            git: git.clone().unwrap_or_else(git_versions::first_in_path),
            forced_git: git,
            commits: AtomicU32::new(0),
            runs: AtomicU32::new(0),
            _temp: temp,
        }
    }

    /// The directory that holds everything of this test.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git that the kit itself runs.
    pub fn git(&self) -> &Path {
        &self.git
    }

    /// Replaces the whole environment of `command` by the hermetic one.
    pub fn apply(&self, command: &mut Command) {
        command.env_clear().envs(self.variables());
    }

    /// The hermetic environment at the present state of the counters.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let date = OsString::from(format!("@{} +0000", self.commit_epoch()));
        let runs = self.runs.load(Ordering::SeqCst);
        let mut variables = vec![
            ("PATH", std::env::var_os("PATH").expect("tests need PATH to find git")),
            ("HOME", self.root.join("home").into()),
            ("XDG_CONFIG_HOME", self.root.join("home/.config").into()),
            ("TMPDIR", self.root.join("tmp").into()),
            ("LC_ALL", "C".into()),
            ("TZ", "UTC".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", self.root.join("gitconfig").into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_AUTHOR_DATE", date.clone()),
            ("GIT_COMMITTER_DATE", date),
            ("LATTICE_NOW", clock(runs).into()),
            ("LATTICE_SEED", runs.to_string().into()),
        ];
        variables.extend(self.forced_git.iter().map(|git| ("LATTICE_GIT", git.into())));
        variables
    }

    /// Moves the commit date on by a minute and returns it in seconds.
    pub fn tick_commit(&self) -> u64 {
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.commit_epoch()
    }

    /// Moves clock, seed and commit date on, for one more run of the program.
    pub fn tick_run(&self) {
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.tick_commit();
    }

    fn commit_epoch(&self) -> u64 {
        // The counter is moved before the first commit is made, which is to have the first date.
        let minutes = self.commits.load(Ordering::SeqCst).saturating_sub(1);
        FIRST_COMMIT_EPOCH + 60 * u64::from(minutes)
    }
}

/// The clock of the `run`-th run, one second after the other.
fn clock(run: u32) -> String {
    let seconds = FIRST_RUN_SECOND + run.saturating_sub(1);
    let day = 2 + seconds / 86_400;
    assert!(day <= 31, "a test that runs the program a million times needs a calendar");
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests;
