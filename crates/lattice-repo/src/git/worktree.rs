//! HEAD, index and files of one worktree, and what Git has in progress there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use lattice_model::event::HeadValue;
use lattice_model::id::Oid;
use lattice_model::name::{BranchName, RefName};
use lattice_model::plan::StageMode;
use lattice_model::snapshot::{GitOperation, Repository, StaleLock, WorkingCopy};
use lattice_model::time::Timestamp;

use super::error::GitError;
use super::manners::{ALL_NOTES, REWRITE_REF};
use super::process::{Call, Git};

/// What HEAD names, before anyone looked whether it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeadName {
    Ref(String),
    Commit(Oid),
    Unreadable(String),
}

/// How a rebase in the worktree ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RebaseEnd {
    Done,
    Paused,
}

impl HeadName {
    pub(crate) fn of(head: &HeadValue) -> Self {
        match head {
            HeadValue::Branch(branch) => Self::Ref(branch.branch_ref().to_string()),
            HeadValue::Detached(commit) => Self::Commit(*commit),
        }
    }
}

impl Git {
    pub(crate) fn head(&self, git_dir: &Path) -> Result<HeadName, GitError> {
        let path = git_dir.join("HEAD");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text.trim_end().to_owned(),
            Err(source) => return Err(GitError::Read { path, source }),
        };
        // A reftable repository keeps a HEAD file only so that older programs recognise it.
        if text == "ref: refs/heads/.invalid" {
            return self.head_from_git();
        }
        match (text.strip_prefix("ref: "), Oid::new(&text)) {
            (Some(name), _) => Ok(HeadName::Ref(name.trim().to_owned())),
            (None, Ok(commit)) => Ok(HeadName::Commit(commit)),
            (None, Err(_)) => Ok(HeadName::Unreadable(text)),
        }
    }

    fn head_from_git(&self) -> Result<HeadName, GitError> {
        let symbolic = self.call("symbolic-ref").args(["-q", "HEAD"]).finish()?;
        if symbolic.code == 0 {
            return Ok(HeadName::Ref(String::from_utf8_lossy(&symbolic.stdout).trim_end().to_owned()));
        }
        let commit = self.call("rev-parse").args(["--verify", "-q", "HEAD"]).line()?;
        Oid::new(&commit).map(HeadName::Commit).map_err(|_| GitError::unexpected("rev-parse", commit))
    }

    /// The branch that HEAD was on before, as far as its reflog says.
    pub(crate) fn branch_before(&self) -> Result<Option<BranchName>, GitError> {
        let asked = self.call("check-ref-format").args(["--branch", "@{-1}"]).finish()?;
        let name = BranchName::new(String::from_utf8_lossy(&asked.stdout).trim_end()).ok();
        let Some(name) = name.filter(|_| asked.code == 0) else { return Ok(None) };
        let found = self.call("rev-parse").args(["--verify", "-q", name.branch_ref().as_str()]).finish()?;
        Ok((found.code == 0).then_some(name))
    }

    /// Points HEAD elsewhere without touching index or files.
    pub(crate) fn set_head(&self, to: &HeadValue, reason: &str) -> Result<(), GitError> {
        let call = match to {
            HeadValue::Branch(branch) => {
                let name = branch.branch_ref().to_string();
                self.call("symbolic-ref").args(["-m", reason, "HEAD"]).arg(name)
            }
            HeadValue::Detached(commit) => {
                self.call("update-ref").args(["--no-deref", "-m", reason, "HEAD"]).arg(commit.to_string())
            }
        };
        call.run().map(drop)
    }

    /// As `move_files`, in an index alone.
    pub(crate) fn move_index(&self, index: &Path, from: Oid, to: Oid) -> Result<(), GitError> {
        self.call("read-tree").args(["-i", "-m"]).args(objects(&[from, to])).index(index).run().map(drop)
    }

    /// Carries what changed in the index between `base` and `theirs` over to `ours`, in the index alone.
    pub(crate) fn merge_index(&self, index: &Path, base: Oid, ours: Oid, theirs: Oid) -> Result<(), GitError> {
        let call = self.call("read-tree").args(["-i", "-m", "--aggressive"]).args(objects(&[base, ours, theirs]));
        call.index(index).run().map(drop)
    }

    /// Takes over what is known of the files, so that Git need not read them again.
    pub(crate) fn refresh_index(&self, index: &Path) -> Result<(), GitError> {
        // Exit code 1 says that files differ from the index, which is no failure.
        self.call("update-index").args(["-q", "--refresh"]).index(index).finish().map(drop)
    }

    /// Makes the index a tree, whatever the files are, keeping what is known of those that stay the same.
    pub(crate) fn read_index(&self, tree: Oid) -> Result<(), GitError> {
        self.call("read-tree").args(["-i", "-m"]).arg(tree.to_string()).run().map(drop)
    }

    /// Adds changes of the files to `index`.
    pub(crate) fn stage(&self, index: &Path, what: StageMode) -> Result<(), GitError> {
        let call = self.call("add").index(index);
        match what {
            StageMode::All => call.args(["--all", "--", ":/"]).run().map(drop),
            StageMode::Tracked => call.args(["--update", "--", ":/"]).run().map(drop),
            StageMode::Patch => call.args(["--patch", "--", ":/"]).on_terminal(),
        }
    }

    pub(crate) fn status(&self) -> WorkingCopy {
        let call = self.call("status").args(["--porcelain=v2", "-z", "--no-renames", "--untracked-files=normal"]);
        match call.env("GIT_OPTIONAL_LOCKS", "0").run() {
            Ok(stdout) => parse_status(&stdout),
            Err(error) => {
                let reason = error.stderr().filter(|text| !text.is_empty()).map(str::to_owned);
                WorkingCopy::Unknown { reason: reason.unwrap_or_else(|| error.to_string()) }
            }
        }
    }

    /// Rebases in the worktree with HEAD detached, so that no branch moves.
    pub(crate) fn rebase(&self, onto: Oid, fork: Oid, tip: Oid, git_dir: &Path) -> Result<RebaseEnd, GitError> {
        let options = [
            "--no-autostash",
            "--no-update-refs",
            "--no-rebase-merges",
            "--no-fork-point",
            "--empty=drop",
            "--reapply-cherry-picks",
            // The hook was asked before, for all branches.
            "--no-verify",
            "-q",
        ];
        let call = self.rebase_call()?.args(options).arg("--onto").args(objects(&[onto, fork, tip]));
        self.rebase_end(call.finish()?, git_dir)
    }

    /// Notes go along also where the user did not say which.
    fn rebase_call(&self) -> Result<Call<'_>, GitError> {
        let call = self.call("rebase");
        Ok(match self.option("notes.rewriteRef")? {
            Some(_) => call,
            None => call.env(REWRITE_REF, ALL_NOTES),
        })
    }

    pub(crate) fn continue_rebase(&self, git_dir: &Path) -> Result<RebaseEnd, GitError> {
        let finished = self.rebase_call()?.arg("--continue").finish()?;
        self.rebase_end(finished, git_dir)
    }

    /// The files that git resolved as they were resolved before, if the user has it remember.
    pub(crate) fn remembered(&self, unmerged: &[String], git_dir: &Path) -> Vec<String> {
        if !git_dir.join("MERGE_RR").exists() {
            return Vec::new();
        }
        let Ok(remaining) = self.call("rerere").arg("remaining").run() else { return Vec::new() };
        let remaining = String::from_utf8_lossy(&remaining);
        let resolved = |file: &&String| remaining.lines().all(|left| left != *file);
        unmerged.iter().filter(resolved).cloned().collect()
    }

    /// Goes on as long as git resolves and stages by itself what it resolved before, which users have to ask for.
    fn past_remembered(&self, mut end: RebaseEnd, git_dir: &Path) -> Result<RebaseEnd, GitError> {
        if end == RebaseEnd::Done || self.option("rerere.autoupdate")?.as_deref() != Some("true") {
            return Ok(end);
        }
        // Each round has to get somewhere: what stops for another reason than a conflict stops again.
        let mut before = None;
        while end == RebaseEnd::Paused {
            let at = self.call("rev-parse").args(["--verify", "-q", "HEAD"]).line()?;
            let clean = matches!(self.status(), WorkingCopy::Known { unmerged, .. } if unmerged.is_empty());
            if !clean || before.as_ref() == Some(&at) {
                break;
            }
            before = Some(at);
            let finished = self.rebase_call()?.arg("--continue").finish()?;
            end = self.rebase_stop(finished, git_dir)?;
        }
        Ok(end)
    }

    fn rebase_end(&self, finished: super::process::Finished, git_dir: &Path) -> Result<RebaseEnd, GitError> {
        let end = self.rebase_stop(finished, git_dir)?;
        self.past_remembered(end, git_dir)
    }

    fn rebase_stop(&self, finished: super::process::Finished, git_dir: &Path) -> Result<RebaseEnd, GitError> {
        if finished.code == 0 {
            return Ok(RebaseEnd::Done);
        }
        if rebasing(git_dir) {
            return Ok(RebaseEnd::Paused);
        }
        finished.check("rebase").map(|_| RebaseEnd::Done)
    }

    /// Removes the names for the commit in conflict and for what came of it, which git leaves behind after some rebases.
    /// Whether the index knows of conflicts that were resolved in it.
    pub(crate) fn has_resolved(&self) -> Result<bool, GitError> {
        Ok(!self.call("ls-files").args(["--resolve-undo", "-z", "--", ":/"]).run()?.is_empty())
    }

    /// The commit that a rebase has stopped at.
    pub(crate) fn rebase_head(&self) -> Result<Option<Oid>, GitError> {
        let found = self.call("rev-parse").args(["--verify", "-q", "REBASE_HEAD"]).finish()?;
        Ok((found.code == 0).then(|| Oid::from_hex(found.stdout.trim_ascii_end())).flatten())
    }

    pub(crate) fn forget_rebase_head(&self, git_dir: &Path) -> Result<(), GitError> {
        for name in ["REBASE_HEAD", "AUTO_MERGE"] {
            if git_dir.join(name).exists() {
                self.call("update-ref").args(["--no-deref", "-d", name]).run()?;
            }
        }
        Ok(())
    }

    /// Gives a rebase up where it stands, with the files of HEAD.
    ///
    /// `rebase --abort` would go by way of the branch that is rebased, and stop at files of the user that are only in the
    /// way there.
    pub(crate) fn abort_rebase(&self, git_dir: &Path) -> Result<(), GitError> {
        self.call("reset").args(["--quiet", "--hard"]).run()?;
        if git_dir.join("MERGE_RR").exists() {
            self.call("rerere").arg("clear").run()?;
        }
        self.call("rebase").arg("--quit").run().map(drop)
    }

    /// What Git has in progress in this worktree.
    pub(crate) fn operation(&self, repository: &Repository) -> Result<Option<GitOperation>, GitError> {
        let has = |name: &str| repository.git_dir.join(name).exists();
        if has("rebase-merge") {
            return Ok(Some(GitOperation::Rebase));
        }
        if has("rebase-apply") {
            let mail = has("rebase-apply/applying");
            return Ok(Some(if mail { GitOperation::ApplyMailbox } else { GitOperation::Rebase }));
        }
        let files = [
            ("MERGE_HEAD", GitOperation::Merge),
            ("CHERRY_PICK_HEAD", GitOperation::CherryPick),
            ("REVERT_HEAD", GitOperation::Revert),
            ("BISECT_LOG", GitOperation::Bisect),
        ];
        if let Some((_, operation)) = files.into_iter().find(|(name, _)| has(name)) {
            return Ok(Some(operation));
        }
        if repository.common_dir.join("reftable").exists() {
            for (name, operation) in &files[1..3] {
                if self.call("rev-parse").args(["--verify", "-q", name]).finish()?.code == 0 {
                    return Ok(Some(*operation));
                }
            }
        }
        Ok(None)
    }
}

/// All worktrees: the directory that git has for each, and its files.
fn worktrees(common_dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let linked = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| {
        let pointer = fs::read_to_string(entry.path().join("gitdir")).ok()?;
        Some((entry.path(), Path::new(pointer.trim_end()).parent()?.to_owned()))
    });
    let main = common_dir.parent().filter(|_| common_dir.ends_with(".git"));
    let main = main.map(|work_dir| (common_dir.to_owned(), work_dir.to_owned()));
    linked.chain(main).collect()
}

/// The directory that git has for the worktree at a path.
pub(crate) fn git_dir_at(common_dir: &Path, work_dir: &Path) -> Option<PathBuf> {
    let same = |path: &Path| path == work_dir || fs::canonicalize(path).is_ok_and(|path| path == work_dir);
    worktrees(common_dir).into_iter().find(|(_, path)| same(path)).map(|(git_dir, _)| git_dir)
}

/// Branches that a rebase of Git's has taken off HEAD and will move when it ends, with their worktrees.
pub(crate) fn rebased_branches(common_dir: &Path) -> Vec<(BranchName, PathBuf)> {
    let mut branches = Vec::new();
    for (git_dir, work_dir) in worktrees(common_dir) {
        for state in ["rebase-merge/head-name", "rebase-apply/head-name"] {
            let name = fs::read_to_string(git_dir.join(state)).unwrap_or_default();
            let branch = RefName::new(name.trim_end()).ok().and_then(|name| name.as_branch());
            branches.extend(branch.map(|branch| (branch, work_dir.clone())));
        }
    }
    branches
}

/// Whether a rebase is in progress.
pub(crate) fn rebasing(git_dir: &Path) -> bool {
    git_dir.join("rebase-merge").exists() || git_dir.join("rebase-apply").exists()
}

/// Whether a file has the lines that git puts around both sides of a conflict. What cannot be read has none.
pub(crate) fn has_markers(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let Some(file) = fs::File::open(path).ok().filter(|_| is_file) else { return false };
    let mut left: &[&[u8]] = &[b"<<<<<<< ", b"=======", b">>>>>>> "];
    for line in BufReader::new(file).split(b'\n').map_while(Result::ok) {
        if left.first().is_some_and(|marker| line.starts_with(marker)) {
            left = &left[1..];
        }
    }
    left.is_empty()
}

/// The worktree's own index.
pub(crate) fn index_path(git_dir: &Path) -> PathBuf {
    git_dir.join("index")
}

/// The message of a commit in the making; hooks know the file by this name.
pub(crate) fn message_path(git_dir: &Path) -> PathBuf {
    git_dir.join("COMMIT_EDITMSG")
}

pub(crate) fn is_shallow(common_dir: &Path) -> bool {
    fs::metadata(common_dir.join("shallow")).is_ok_and(|found| found.len() > 0)
}

/// Lock files that are older than any Git process needs them.
pub(crate) fn stale_locks(repository: &Repository, now: &Timestamp) -> Vec<StaleLock> {
    const GRACE_SECONDS: i64 = 10;
    let common = &repository.common_dir;
    let mut paths = vec![repository.git_dir.join("index.lock"), repository.git_dir.join("HEAD.lock")];
    paths.extend(["packed-refs.lock", "config.lock", "reftable/tables.list.lock"].map(|name| common.join(name)));
    for folder in ["refs/heads", "refs/branch-metadata", "refs/lattice"] {
        locks_below(&common.join(folder), &mut paths);
    }
    let age = |found: &fs::Metadata| {
        use std::os::unix::fs::MetadataExt;
        now.unix_seconds() - found.mtime()
    };
    let mut stale = Vec::new();
    for path in paths {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let age = age(&found);
        if age >= GRACE_SECONDS {
            let shown = path.strip_prefix(common).unwrap_or(&path).display().to_string();
            stale.push(StaleLock { path: shown, age_seconds: age.unsigned_abs(), size: found.len() });
        }
    }
    stale.sort_by(|a, b| a.path.cmp(&b.path));
    stale
}

/// Collects the lock files below a folder of refs.
fn locks_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                waiting.push(entry.path());
            } else if entry.file_name().as_encoded_bytes().ends_with(b".lock") {
                found.push(entry.path());
            }
        }
    }
}

fn parse_status(stdout: &[u8]) -> WorkingCopy {
    let (mut staged, mut unstaged, mut unmerged, mut untracked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for record in stdout.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let text = String::from_utf8_lossy(record);
        let path = |fields: usize| text.splitn(fields, ' ').last().unwrap_or_default().to_owned();
        match record[0] {
            b'1' => {
                let path = path(9);
                if record.get(2) != Some(&b'.') {
                    staged.push(path.clone());
                }
                if record.get(3) != Some(&b'.') {
                    unstaged.push(path);
                }
            }
            b'u' => unmerged.push(path(11)),
            b'?' => untracked.push(path(2)),
            _ => {}
        }
    }
    WorkingCopy::Known { staged, unstaged, unmerged, untracked }
}

pub(super) fn objects(ids: &[Oid]) -> Vec<String> {
    ids.iter().map(Oid::to_string).collect()
}
