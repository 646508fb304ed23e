//! Finds the repository around a directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lattice_model::snapshot::{Context, Repository};

use super::error::GitError;
use super::process::GitProgram;

/// Finds the repository that `directory` is in.
///
/// The common layouts are read directly, which saves a process in every command. Whatever is
/// unusual, and above all whatever belongs to somebody else, is left to git and its own checks.
pub(crate) fn discover(program: &GitProgram, directory: &Path) -> Result<Repository, GitError> {
    // The folders above `sub/..` or above a link are not those that the text of the path names.
    let real = fs::canonicalize(directory);
    let real = real.map_err(|source| GitError::Read { path: directory.to_owned(), source })?;
    match ordinary(&real) {
        Some(repository) => Ok(repository),
        None => asked(program, &real),
    }
}

fn ordinary(directory: &Path) -> Option<Repository> {
    let me = rustix::process::geteuid().as_raw();
    let owned = |path: &Path| fs::metadata(path).is_ok_and(|found| found.uid() == me);
    for work_dir in directory.ancestors() {
        let dot_git = work_dir.join(".git");
        let Ok(found) = fs::symlink_metadata(&dot_git) else {
            if work_dir.join("HEAD").exists() && work_dir.join("objects").exists() {
                return None;
            }
            continue;
        };
        if !owned(work_dir) || !owned(&dot_git) {
            return None;
        }
        if found.is_dir() {
            let plain = dot_git.join("HEAD").exists() && has_plain_config(&dot_git);
            return plain.then(|| Repository {
                context: Context::Normal,
                git_dir: dot_git.clone(),
                common_dir: dot_git.clone(),
                work_dir: Some(work_dir.to_owned()),
            });
        }
        return linked(work_dir, &dot_git).filter(|found| owned(&found.git_dir));
    }
    None
}

/// A linked worktree, whose `.git` is a file that names its git directory.
fn linked(work_dir: &Path, dot_git: &Path) -> Option<Repository> {
    let text = fs::read_to_string(dot_git).ok()?;
    let git_dir = PathBuf::from(text.strip_prefix("gitdir: ")?.trim_end());
    if !git_dir.is_absolute() {
        return None;
    }
    let common = fs::read_to_string(git_dir.join("commondir")).ok()?;
    let common_dir = fs::canonicalize(git_dir.join(common.trim_end())).ok()?;
    // The worktree must point back, or it was moved by hand.
    let back = fs::read_to_string(git_dir.join("gitdir")).ok()?;
    let genuine = Path::new(back.trim_end()) == dot_git && !git_dir.join("config.worktree").exists();
    genuine.then(|| Repository { context: Context::Worktree, git_dir, common_dir, work_dir: Some(work_dir.to_owned()) })
}

/// Whether the configuration leaves the working directory where it is.
fn has_plain_config(git_dir: &Path) -> bool {
    let Ok(text) = fs::read_to_string(git_dir.join("config")) else { return false };
    let lower = text.to_ascii_lowercase();
    let moves_files = lower.contains("worktree") || lower.contains("include");
    let bare = lower.lines().any(|line| line.trim_start().starts_with("bare") && !line.contains("false"));
    !moves_files && !bare
}

fn asked(program: &GitProgram, directory: &Path) -> Result<Repository, GitError> {
    let git = program.searching_from(directory);
    let call =
        git.call("rev-parse").args(["--path-format=absolute", "--is-bare-repository", "--git-dir", "--git-common-dir"]);
    let finished = call.finish()?;
    if finished.code != 0 {
        return Err(refusal(directory));
    }
    let text =
        String::from_utf8(finished.stdout).map_err(|_| GitError::unexpected("rev-parse", "a path that is no text"))?;
    let lines: Vec<_> = text.lines().collect();
    let [bare, git_dir, common_dir] = lines[..] else {
        return Err(GitError::unexpected("rev-parse", "another number of lines"));
    };
    let (git_dir, common_dir) = (PathBuf::from(git_dir), PathBuf::from(common_dir));
    if bare == "true" {
        return Ok(Repository { context: Context::Bare, git_dir, common_dir, work_dir: None });
    }
    let top = git.call("rev-parse").args(["--path-format=absolute", "--show-toplevel"]).finish()?;
    // Inside `.git` itself there is a repository and no top level: the folder above is meant.
    let work_dir = match top.code {
        0 => PathBuf::from(String::from_utf8_lossy(&top.stdout).trim_end_matches('\n')),
        _ => common_dir.parent().map(Path::to_owned).ok_or_else(|| GitError::NotARepository(directory.to_owned()))?,
    };
    let context = if git_dir == common_dir { Context::Normal } else { Context::Worktree };
    Ok(Repository { context, git_dir, common_dir, work_dir: Some(work_dir) })
}

/// Why git found nothing: there is nothing, or it belongs to somebody else.
fn refusal(directory: &Path) -> GitError {
    let me = rustix::process::geteuid().as_raw();
    let holds =
        |path: &&Path| path.join(".git").exists() || (path.join("HEAD").exists() && path.join("objects").exists());
    match directory.ancestors().find(holds) {
        Some(path) if fs::metadata(path).is_ok_and(|found| found.uid() != me) => GitError::NotTrusted(path.to_owned()),
        Some(_) | None => GitError::NotARepository(directory.to_owned()),
    }
}

/// How many digits object ids have, by the format that the configuration names.
pub(crate) fn hex_len(common_dir: &Path) -> usize {
    let text = fs::read_to_string(common_dir.join("config")).unwrap_or_default().to_ascii_lowercase();
    let sha256 = text.lines().any(|line| {
        let mut parts = line.split('=').map(str::trim);
        parts.next() == Some("objectformat") && parts.next() == Some("sha256")
    });
    if sha256 { 64 } else { 40 }
}
