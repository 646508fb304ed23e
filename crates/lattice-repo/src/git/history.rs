//! Reads ancestry: commits with their parents, merge bases, ancestor questions.

use std::collections::{BTreeMap, BTreeSet};

use lattice_model::history::Ancestry;
use lattice_model::id::Oid;

use super::error::GitError;
use super::process::{Git, Started};

const WALK: &str = "rev-list";

/// A git that waits to be told where a walk begins.
pub(crate) struct Walk(Started);

impl Walk {
    /// As `Git::parents_of`.
    pub(crate) fn parents_of(
        self,
        tips: impl IntoIterator<Item = Oid>,
        trunk: Option<Oid>,
    ) -> Result<BTreeMap<Oid, Vec<Oid>>, GitError> {
        let mut input = String::new();
        for tip in tips {
            input.push_str(&format!("{tip}\n"));
        }
        if input.is_empty() {
            // Git calls that a mistake, and has nothing to tell.
            return self.0.finish(None).map(|_| BTreeMap::new());
        }
        if let Some(trunk) = trunk {
            input.push_str(&format!("^{trunk}\n"));
        }
        let stdout = self.0.finish(Some(input.into_bytes()))?.check(WALK)?;
        let mut parents = BTreeMap::new();
        for line in stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let ids: Option<Vec<_>> = line.split(|byte| *byte == b' ').map(Oid::from_hex).collect();
            let ids = ids.ok_or_else(|| GitError::unexpected(WALK, "a line that holds no ids"))?;
            parents.insert(ids[0], ids[1..].to_vec());
        }
        Ok(parents)
    }
}

impl Git {
    /// The commits that are reachable from `tips` and not from `trunk`, with their parents.
    pub(crate) fn parents_of(
        &self,
        tips: impl IntoIterator<Item = Oid>,
        trunk: Option<Oid>,
    ) -> Result<BTreeMap<Oid, Vec<Oid>>, GitError> {
        self.start_walk()?.parents_of(tips, trunk)
    }

    /// A walk that is told later where to begin.
    pub(crate) fn start_walk(&self) -> Result<Walk, GitError> {
        Ok(Walk(self.call(WALK).args(["--parents", "--stdin"]).start()?))
    }

    /// Whether `ancestor`, which exists, is an ancestor of `tip`.
    pub(crate) fn ancestry(&self, ancestor: Oid, tip: Oid) -> Result<Ancestry, GitError> {
        const COMMAND: &str = "merge-base";
        let arguments = ["--is-ancestor".to_owned(), ancestor.to_string(), tip.to_string()];
        let finished = self.call(COMMAND).args(arguments).finish()?;
        match finished.code {
            0 => Ok(Ancestry::Ancestor),
            1 => Ok(Ancestry::NotAncestor),
            _ => finished.check(COMMAND).map(|_| Ancestry::NotAncestor),
        }
    }

    /// The best common ancestor, `None` for unrelated histories.
    pub(crate) fn merge_base(&self, one: Oid, other: Oid) -> Result<Option<Oid>, GitError> {
        const COMMAND: &str = "merge-base";
        let finished = self.call(COMMAND).args([one.to_string(), other.to_string()]).finish()?;
        if finished.code == 1 {
            return Ok(None);
        }
        let stdout = finished.check(COMMAND)?;
        let first = stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Oid::from_hex(first).map(Some).ok_or_else(|| GitError::unexpected(COMMAND, "no id"))
    }

    /// Those of `tips` that are `tip` or below it and above all others of them.
    pub(crate) fn nearest_below(&self, tip: Oid, tips: &[Oid]) -> Result<Vec<Oid>, GitError> {
        const COMMAND: &str = "merge-base";
        let merged = self.call("for-each-ref").arg(format!("--merged={tip}")).arg("--format=%(objectname)");
        let merged = merged.arg("refs/heads/").run()?;
        let merged: BTreeSet<_> = merged.split(|byte| *byte == b'\n').filter_map(Oid::from_hex).collect();
        let below: BTreeSet<_> = tips.iter().filter(|tip| merged.contains(tip)).map(Oid::to_string).collect();
        if below.len() < 2 {
            return Ok(below.iter().filter_map(|tip| Oid::new(tip).ok()).collect());
        }
        let stdout = self.call(COMMAND).arg("--independent").args(below).run()?;
        Ok(stdout.split(|byte| *byte == b'\n').filter_map(Oid::from_hex).collect())
    }
}

/// A commit with its message.
pub(crate) struct Record {
    pub(crate) commit: Oid,
    pub(crate) parents: usize,
    pub(crate) message: Vec<u8>,
}

impl Git {
    /// The chain from `tip` along first parents, newest first.
    pub(crate) fn messages(&self, tip: Oid, limit: Option<usize>) -> Result<Vec<Record>, GitError> {
        const COMMAND: &str = "log";
        let mut call = self.call(COMMAND).args(["-z", "--first-parent", "--no-show-signature", "--encoding=UTF-8"]);
        call = call.arg("--format=tformat:%H %P%n%B");
        if let Some(limit) = limit {
            call = call.arg(format!("--max-count={limit}"));
        }
        let stdout = call.arg(tip.to_string()).arg("--").run()?;
        let unexpected = || GitError::unexpected(COMMAND, "a record that is not in the format asked for");
        let mut records = Vec::new();
        for bytes in stdout.split(|byte| *byte == 0).filter(|bytes| !bytes.is_empty()) {
            let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(unexpected)?;
            let mut ids = bytes[..end].split(|byte| *byte == b' ').filter(|id| !id.is_empty());
            let commit = ids.next().and_then(Oid::from_hex).ok_or_else(unexpected)?;
            records.push(Record { commit, parents: ids.count(), message: bytes[end + 1..].to_owned() });
        }
        Ok(records)
    }

    /// The tree with nothing in it.
    pub(crate) fn empty_tree(&self) -> Result<Oid, GitError> {
        const COMMAND: &str = "mktree";
        let line = self.call(COMMAND).stdin(Vec::new()).line()?;
        Oid::new(&line).map_err(|_| GitError::unexpected(COMMAND, line))
    }
}
