//! Gives changes of lines to the commits they belong to.

use std::collections::BTreeMap;

use lattice_model::event::HeadValue;
use lattice_model::id::Oid;
use lattice_model::plan::{Fixup, Step};

use crate::git::pack::blob_id;

use super::error::DeriveError;
use super::{ExecuteError, Executor};

impl Executor<'_> {
    /// Makes the trees that the amended commits have, before anything is applied to anything.
    pub(super) fn amend_commits(&mut self) -> Result<(), ExecuteError> {
        let mut files: BTreeMap<(Oid, String), Vec<Fixup>> = BTreeMap::new();
        for fixup in self.fixups() {
            files.entry((fixup.commit, fixup.path.clone())).or_default().push(fixup);
        }
        for ((commit, path), fixups) in files {
            let places = fixups.iter().map(|fixup| (fixup.at, fixup)).collect();
            let content = self.spliced(commit, &path, places)?;
            let (repo, picker) = (self.repo, &mut self.picker);
            let amended = repo.with_objects(|objects| picker.amend(objects, commit, &path, &content))?;
            amended.ok_or(DeriveError::DoesNotFit { path })?;
        }
        Ok(())
    }

    /// After all commits were made: the current branch has exactly the changes that were absorbed.
    pub(super) fn check_absorbed(&mut self) -> Result<(), ExecuteError> {
        let mut files: BTreeMap<String, Vec<Fixup>> = BTreeMap::new();
        for fixup in self.fixups() {
            files.entry(fixup.path.clone()).or_default().push(fixup);
        }
        let Some(worktree) = self.journal.worktree.clone().filter(|_| !files.is_empty()) else { return Ok(()) };
        let HeadValue::Branch(current) = &worktree.head else { return Ok(()) };
        let tip = self.journal.tips.get(current).copied().ok_or(ExecuteError::NoHead)?;
        for (path, fixups) in files {
            let places = fixups.iter().map(|fixup| (fixup.here, fixup)).collect();
            let expected = blob_id(&self.spliced(worktree.commit, &path, places)?, self.hex_len());
            let (repo, picker) = (self.repo, &mut self.picker);
            let found = repo.with_objects(|objects| {
                let tree = picker.tree_of(objects, tip)?;
                picker.file(objects, tree, &path)
            })?;
            if found != Some(expected) {
                return Err(DeriveError::DoesNotFit { path }.into());
            }
        }
        Ok(())
    }

    fn fixups(&self) -> Vec<Fixup> {
        let fixup = |step: &Step| if let Step::Fixup { fixup } = step { Some(fixup.clone()) } else { None };
        self.journal.plan.steps.iter().filter_map(fixup).collect()
    }

    /// A file of a commit with these changes, each at its line.
    fn spliced(&self, commit: Oid, path: &str, mut places: Vec<(usize, &Fixup)>) -> Result<Vec<u8>, ExecuteError> {
        let misfit = || DeriveError::DoesNotFit { path: path.to_owned() };
        let found = self.repo.with_objects(|objects| objects.contents(&[format!("{commit}:{path}")]))?;
        let content = found.into_iter().next().flatten().ok_or_else(misfit)?;
        let mut lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        // From the end, so that no change moves the place of another.
        places.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        for (at, fixup) in &places {
            let end = at + fixup.removed.len();
            let there = lines.get(*at..end).ok_or_else(misfit)?;
            if !there.iter().zip(&fixup.removed).all(|(line, removed)| *line == removed.as_bytes()) {
                return Err(misfit().into());
            }
            lines.splice(*at..end, fixup.added.iter().map(String::as_bytes));
        }
        Ok(lines.concat())
    }
}
