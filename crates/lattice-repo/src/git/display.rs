//! Reads for people: commits in one line, differences, what is wrong with the objects.

use lattice_model::id::Oid;

use super::error::GitError;
use super::process::Git;

/// A commit in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLine {
    pub commit: Oid,
    pub subject: String,
    pub author: String,
    /// The author's date with its zone, ISO 8601.
    pub date: String,
}

/// How a difference is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffShape {
    Patch,
    Stat,
}

impl Git {
    /// These commits, in this order.
    pub(crate) fn commit_lines(&self, ids: &[Oid]) -> Result<Vec<CommitLine>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let format = "--format=tformat:%H%n%s%n%an%n%aI";
        let arguments = ["--no-walk=unsorted", "-z", "--no-show-signature", "--encoding=UTF-8", format, "--stdin"];
        let stdout = self.call("log").args(arguments).stdin(input.into_bytes()).run()?;
        let text = String::from_utf8_lossy(&stdout);
        let line = |record: &str| {
            let mut fields = record.split('\n').map(str::to_owned);
            let commit = Oid::new(&fields.next()?).ok()?;
            Some(CommitLine { commit, subject: fields.next()?, author: fields.next()?, date: fields.next()? })
        };
        Ok(text.split('\0').filter_map(line).collect())
    }

    /// The difference between two commits, as Git prints it.
    pub(crate) fn diff(&self, from: Oid, to: Oid, shape: DiffShape) -> Result<String, GitError> {
        let option = match shape {
            DiffShape::Patch => "--patch",
            DiffShape::Stat => "--stat",
        };
        // Programs that the configuration names for diffs are for terminals, not for us.
        let arguments = ["--no-ext-diff", "--no-color", "--no-textconv", option];
        let call = self.call("diff").args(arguments).args([from.to_string(), to.to_string()]).arg("--");
        Ok(String::from_utf8_lossy(&call.run()?).into_owned())
    }

    /// What each commit after `from` changes up to `to`, as text whatever it is, with what is said about it.
    pub(crate) fn history_text(&self, from: Oid, to: Oid) -> Result<String, GitError> {
        let arguments =
            ["--patch", "--text", "--no-ext-diff", "--no-color", "--no-textconv", "--diff-merges=first-parent"];
        let call = self.call("log").args(arguments).arg(format!("{from}..{to}")).arg("--");
        Ok(String::from_utf8_lossy(&call.run()?).into_owned())
    }

    /// What `git fsck` has to say about connections between objects; empty if nothing.
    pub(crate) fn broken_objects(&self) -> Result<Vec<String>, GitError> {
        let arguments = ["--connectivity-only", "--no-dangling", "--no-progress"];
        let finished = self.call("fsck").args(arguments).finish()?;
        if finished.code == 0 {
            return Ok(Vec::new());
        }
        let text = String::from_utf8_lossy(&finished.stdout).into_owned() + &finished.stderr;
        Ok(text.lines().map(str::to_owned).collect())
    }
}
