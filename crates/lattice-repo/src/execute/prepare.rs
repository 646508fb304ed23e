//! Turns results into values: every ref, file and record that the rest of the execution needs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lattice_model::branch::{BranchMetadataV1, FreezeScope, FreezeState};
use lattice_model::event::{Category, ConfigChange, Event, HeadValue, RefChange, WorktreeChange};
use lattice_model::id::{ContentDigest, Oid};
use lattice_model::name::{BranchName, RefName};
use lattice_model::plan::{Expected, FreezeDraft, MetadataDraft, NewValue, Step};
use lattice_model::snapshot::LedgerReading;

use crate::defect::Defect;
use crate::fingerprint::Covered;
use crate::format;
use crate::format::journal::{Edit, FileMove, IndexAfter, Prepared, WorktreeBefore};
use crate::git::GitError;
use crate::git::pack::{Entry, NewCommit, Pack, blob_id};
use crate::ledger::{NewEvent, below_next, last_event, tip_of};
use crate::scan::RefsRead;

use super::error::io_error;
use super::{ExecuteError, Executor};

/// The part of an execution that is neither a ref nor an object.
struct Place {
    head: Option<HeadValue>,
    files: Option<FileMove>,
    index: IndexAfter,
    change: Option<WorktreeChange>,
}

/// What the record of a finished operation says.
struct Closing<'a> {
    covered: &'a Covered,
    edits: &'a [Edit],
    config: &'a Option<ConfigChange>,
    place: &'a Place,
}

/// The commits that record an operation.
struct Records {
    intent: Option<Oid>,
    committed: Oid,
    seq: u64,
}

impl Executor<'_> {
    /// Writes all objects that are still missing, and knows then what is about to move.
    pub(super) fn prepare(&mut self) -> Result<(), ExecuteError> {
        let read = self.repo.read_refs()?;
        self.check_expectations(&read)?;
        self.check_occupancy(&read)?;
        let config = self.config_change()?;
        let (edits, documents) = self.edits()?;
        let ledger = self.repo.read_ledger_tip(read.ledger)?;
        let followers = self.followers(&read, &edits)?;
        let place = self.place_after(&edits)?;
        let mut pack = self.picker.take();
        for document in &documents {
            pack.blob(document);
        }
        let covered = self.covered_after(&read, &edits, config.as_ref());
        let closing = Closing { covered: &covered, edits: &edits, config: &config, place: &place };
        let records = self.records(&mut pack, &ledger, &closing);
        let keep = self.keep_commit(&mut pack, &edits, records.committed)?;
        pack.write(&self.git, &self.repo.paths.common_dir)?;
        self.try_followers(&followers)?;
        let staged = self.journal.worktree.as_ref().is_some_and(|worktree| worktree.index != worktree.files);
        if self.made_by_git || staged {
            // The journal must not name what a power cut would take away.
            self.flush()?;
        }
        let tip = tip_of(&ledger);
        self.journal.prepared = Some(Prepared {
            edits,
            head_after: place.head,
            files: place.files,
            followers,
            index: place.index,
            config,
            after: covered.fingerprint(),
            seq: records.seq,
            ledger_before: tip,
            intent: records.intent.or(tip).unwrap_or(records.committed),
            committed: records.committed,
            keep,
        });
        Ok(())
    }

    /// Every ref that the plan names must have the value that the plan was made for.
    fn check_expectations(&self, read: &RefsRead) -> Result<(), ExecuteError> {
        if self.git.has(Defect::ExpectedValuesIgnored) {
            return Ok(());
        }
        let check = |name: &RefName, expected: Expected| {
            let found = read.refs.get(name).copied();
            let ledger = name.as_str() == crate::ledger::LEDGER;
            if ledger || found == expected.value() {
                return Ok(());
            }
            Err(ExecuteError::RefMoved { name: name.clone(), expected: expected.value(), found })
        };
        for step in &self.journal.plan.steps {
            if let Some((name, expected, _)) = step.touches() {
                check(&name, expected)?;
            }
            if let Step::Guard { name, expected } = step {
                check(name, *expected)?;
            }
        }
        Ok(())
    }

    /// Occupancy is read again here: since the scan, another worktree may have checked a branch
    /// out, and moving it then would show that worktree edits nobody made.
    fn check_occupancy(&self, read: &RefsRead) -> Result<(), ExecuteError> {
        let here = self.repo.paths.work_dir.as_deref();
        let elsewhere = |branch: &BranchName| read.worktrees.get(branch).filter(|path| Some(path.as_path()) != here);
        let occupied = |branch, path: &PathBuf| Err(ExecuteError::Occupied { branch, path: path.clone() });
        for touched in self.journal.plan.touched_refs() {
            let Some(branch) = touched.name.as_branch() else { continue };
            // Where a branch only moves, the worktree that had it when the plan was made follows.
            let follows = touched.new != NewValue::Known(None);
            let known = self.journal.checked_out.get(&branch).filter(|_| follows);
            if let Some(path) = elsewhere(&branch).filter(|path| known != Some(path)) {
                return occupied(branch, path);
            }
        }
        for branch in self.journal.plan.steps.iter().filter_map(Step::head) {
            if let Some(path) = elsewhere(branch) {
                return occupied(branch.clone(), path);
            }
        }
        Ok(())
    }

    fn config_change(&self) -> Result<Option<ConfigChange>, ExecuteError> {
        let step = self.journal.plan.steps.iter().find_map(|step| match step {
            Step::WriteConfig { expected, content, .. } => Some((expected, content)),
            _ => None,
        });
        let Some((expected, content)) = step else { return Ok(None) };
        let path = self.repo.config_path();
        let found = crate::durable::read(&path, format::config::SIZE_LIMIT).unwrap_or(None);
        let digest = found.as_deref().map(ContentDigest::of);
        // A file that could not even be read has the digest of nothing.
        let unreadable = found.is_none() && path.symlink_metadata().is_ok();
        if !unreadable && digest != *expected {
            return Err(ExecuteError::ConfigChanged);
        }
        let old = found.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(Some(ConfigChange { old, new: content.clone() }))
    }

    /// All ref changes, and the documents of metadata that some of them point to.
    fn edits(&self) -> Result<(Vec<Edit>, Vec<Vec<u8>>), ExecuteError> {
        let (mut edits, mut documents) = (Vec::new(), Vec::new());
        for step in &self.journal.plan.steps {
            let (name, old, new) = match step {
                Step::Commit { branch, expected, .. } | Step::Derive { branch, expected, .. } => {
                    (branch.branch_ref(), expected.value(), Some(self.journal.tips[branch]))
                }
                Step::Rewrite { branch, tip, .. } => (branch.branch_ref(), Some(*tip), Some(self.journal.tips[branch])),
                Step::SetRef { name, expected, to } => {
                    let new = to.as_ref().map(|place| self.place(place)).transpose()?;
                    (name.clone(), expected.value(), new)
                }
                Step::SetMetadata { branch, expected, document } => {
                    let metadata = self.metadata(branch, document)?;
                    let document = format::metadata::render(&metadata);
                    let id = blob_id(&document, self.hex_len());
                    documents.push(document);
                    (branch.metadata_ref(), expected.value(), Some(id))
                }
                Step::WriteConfig { .. }
                | Step::Stage { .. }
                | Step::MoveOptions { .. }
                | Step::Guard { .. }
                | Step::Switch { .. }
                | Step::LeaveFiles { .. }
                | Step::Fixup { .. }
                | Step::RestoreWorktree { .. }
                | Step::RemoveOpState
                | Step::RemoveLock { .. }
                | Step::Verify
                | Step::Fetch { .. }
                | Step::Push { .. }
                | Step::Host { .. } => continue,
            };
            edits.push(Edit { name, old, new });
        }
        self.spoil(&mut edits);
        Ok((edits, documents))
    }

    /// Leaves out what a defect leaves out.
    fn spoil(&self, edits: &mut Vec<Edit>) {
        if self.git.has(Defect::UndoOfMetadataOnly) && self.journal.plan.command == "undo" {
            edits.retain(|edit| edit.name.as_branch().is_none());
        }
        if self.git.has(Defect::OneLevel) {
            let rewritten =
                |step: &Step| if let Step::Rewrite { branch, .. } = step { Some(branch.clone()) } else { None };
            let higher: Vec<_> = self.journal.plan.steps.iter().filter_map(rewritten).skip(1).collect();
            edits.retain(|edit| edit.name.as_branch().is_none_or(|branch| !higher.contains(&branch)));
        }
    }

    fn metadata(&self, branch: &BranchName, draft: &MetadataDraft) -> Result<BranchMetadataV1, ExecuteError> {
        let freeze = match &draft.freeze {
            FreezeDraft::Keep(state) => state.clone(),
            FreezeDraft::FreezeNow { reason } => FreezeState::Frozen {
                scope: FreezeScope::DownstackInclusive,
                reason: reason.clone(),
                frozen_at: self.now.clone(),
            },
        };
        Ok(BranchMetadataV1 {
            name: branch.clone(),
            parent: draft.parent.clone(),
            base: self.place(&draft.base)?,
            freeze,
            pr: draft.pr.clone(),
            created_at: draft.created_at.clone().unwrap_or_else(|| self.now.clone()),
            updated_at: self.now.clone(),
        })
    }

    /// Where HEAD, index and files of this worktree end up.
    fn place_after(&mut self, edits: &[Edit]) -> Result<Place, ExecuteError> {
        let Some(before) = &self.journal.worktree else {
            return Ok(Place { head: None, files: None, index: IndexAfter::Stays, change: None });
        };
        let undo = self.journal.plan.steps.iter().find_map(|step| match step {
            Step::RestoreWorktree { head, files_from, files_to, index_from, index_to } => {
                Some((head.clone(), *files_from, *files_to, *index_from, *index_to))
            }
            _ => None,
        });
        if let Some((head, from, to, index_from, index_to)) = undo {
            let restored = self.carried_index(index_from, index_to)?;
            let commit = self.commit_at(&head, edits)?;
            return self.place_at((head, commit), FileMove { from, to }, IndexAfter::Restored(restored));
        }
        let leaves = self.journal.plan.steps.iter().find_map(|step| match step {
            Step::LeaveFiles { to } => Some(to.clone()),
            _ => None,
        });
        if let Some(head) = leaves {
            // A conflict took the files along; they come back to what is to be left.
            let files = FileMove { from: self.files_now(before)?, to: before.files };
            let index = if self.journal.paused { IndexAfter::Restored(before.index) } else { IndexAfter::Stays };
            let commit = self.commit_at(&head, edits)?;
            return self.place_at((head, commit), files, index);
        }
        let switch = self.journal.plan.steps.iter().find_map(|step| match step {
            Step::Switch { to } => Some(to.clone()),
            _ => None,
        });
        let head = switch.unwrap_or_else(|| before.head.clone());
        let commit = self.commit_at(&head, edits)?;
        let to = self.repo.with_objects(|objects| self.picker.tree_of(objects, commit))?;
        let files = FileMove { from: self.files_now(before)?, to };
        let commits = self.journal.plan.steps.iter().any(|step| matches!(step, Step::Commit { .. }));
        // After a conflict the index is that of the rebase, and follows the files.
        let index = if commits && !self.journal.paused { IndexAfter::Installed } else { IndexAfter::Stays };
        self.place_at((head, commit), files, index)
    }

    /// The tree that the files stand for now: after a conflict that of the commit it ended on.
    fn files_now(&self, before: &WorktreeBefore) -> Result<Oid, ExecuteError> {
        if !self.journal.paused {
            return Ok(before.files);
        }
        let (_, commit) = self.head_commit()?;
        Ok(self.repo.with_objects(|objects| objects.tree_of(commit))?)
    }

    fn place_at(
        &mut self,
        (head, commit): (HeadValue, Oid),
        files: FileMove,
        index: IndexAfter,
    ) -> Result<Place, ExecuteError> {
        let before = self.journal.worktree.clone().expect("bug: only a worktree has a place");
        let index_after = match index {
            IndexAfter::Restored(tree) => tree,
            IndexAfter::Installed => files.to,
            IndexAfter::Stays if self.journal.paused || before.index == before.files => files.to,
            IndexAfter::Stays if files.from == files.to => before.index,
            IndexAfter::Stays => self.index_carried_along(files)?,
        };
        let change = WorktreeChange {
            git_dir: self.repo.paths.git_dir.display().to_string(),
            head_before: before.head,
            head_after: head.clone(),
            commit_before: Some(before.commit),
            commit_after: Some(commit),
            files_from: Some(if self.journal.paused { before.files } else { files.from }),
            files_to: Some(files.to),
            index_before: Some(before.index),
            index_after: Some(index_after),
        };
        Ok(Place { head: Some(head), files: Some(files), index, change: Some(change) })
    }

    /// What the index will be when staged changes move along with the files, tried out on our copy.
    fn index_carried_along(&mut self, files: FileMove) -> Result<Oid, ExecuteError> {
        let own = self.own_index();
        self.picker.flush(&self.git)?;
        self.made_by_git = true;
        let carried = self.git.move_index(&own, files.from, files.to).and_then(|()| self.git.write_tree(Some(&own)));
        carried.map_err(|error| match error {
            GitError::Failed { stderr, .. } => ExecuteError::FilesInTheWay { detail: stderr.trim().to_owned() },
            other => other.into(),
        })
    }

    /// The commit that HEAD stands for after the plan.
    fn commit_at(&self, head: &HeadValue, edits: &[Edit]) -> Result<Oid, ExecuteError> {
        let branch = match head {
            HeadValue::Detached(commit) => return Ok(*commit),
            HeadValue::Branch(branch) => branch,
        };
        let name = branch.branch_ref();
        if let Some(edit) = edits.iter().find(|edit| edit.name == name) {
            return edit.new.ok_or(ExecuteError::NoHead);
        }
        let read = self.repo.read_refs()?;
        read.refs.get(&name).copied().ok_or(ExecuteError::NoHead)
    }

    /// The index that an operation found, with what the user staged since carried over.
    fn carried_index(&mut self, left: Oid, found: Oid) -> Result<Oid, ExecuteError> {
        let own = self.own_index();
        let now = self.git.write_tree(Some(&own))?;
        if now == left {
            return Ok(found);
        }
        self.made_by_git = true;
        let in_the_way = |error: crate::git::GitError| ExecuteError::FilesInTheWay {
            detail: format!("what is staged cannot be carried over: {}", error.stderr().unwrap_or_default()),
        };
        let _ = std::fs::remove_file(&own);
        self.git.merge_index(&own, left, found, now).map_err(in_the_way)?;
        self.git.write_tree(Some(&own)).map_err(in_the_way)
    }

    fn covered_after(&self, read: &RefsRead, edits: &[Edit], config: Option<&ConfigChange>) -> Covered {
        let mut refs: BTreeMap<RefName, Oid> = read.refs.clone();
        for edit in edits {
            match edit.new {
                Some(oid) => refs.insert(edit.name.clone(), oid),
                None => refs.remove(&edit.name),
            };
        }
        let mut settings = self.settings.clone();
        let digest = match config {
            None => self.repo.read_config(&mut settings).digest().cloned(),
            Some(change) => {
                settings.trunk = None;
                change
                    .new
                    .as_ref()
                    .and_then(|text| format::config::parse(text.as_bytes(), &mut settings).digest().cloned())
            }
        };
        Covered::new(&refs, settings.trunk.as_ref(), digest)
    }

    /// The commits of the ledger: what was observed and what is intended, unless that was recorded
    /// before, and what was done.
    fn records(&self, pack: &mut Pack, ledger: &LedgerReading, closing: &Closing<'_>) -> Records {
        let mut chain = Chain {
            parent: below_next(ledger),
            last: last_event(ledger).cloned(),
            tree: match ledger {
                LedgerReading::Tip { tree, .. } => *tree,
                LedgerReading::Absent | LedgerReading::Damaged { .. } => pack.tree(Vec::new()),
            },
            seconds: self.now.unix_seconds(),
        };
        let mut intent = None;
        if !self.journal.intent_recorded {
            if let Some(divergence) = self.unrecorded_divergence(chain.last.as_ref()) {
                chain.add(pack, divergence);
            }
            intent = Some(chain.add(pack, self.event(Category::IntentRecorded)));
        }
        let refs = pack.blob(closing.covered.text().as_bytes());
        chain.tree = pack.tree(vec![("refs".to_owned(), Entry::Blob(refs))]);
        let mut committed = None;
        for category in self.closing_events() {
            let mut event = self.event(category);
            let change = |e: &Edit| RefChange { name: e.name.clone(), old: e.old, new: e.new };
            event.refs = closing.edits.iter().map(change).collect();
            event.after = Some(closing.covered.fingerprint());
            event.detail.worktree = closing.place.change.clone();
            event.detail.config = closing.config.clone();
            committed = Some(chain.add(pack, event));
        }
        let committed = committed.expect("bug: every operation closes with an event");
        Records { intent, committed, seq: chain.last.map_or(0, |event| event.seq) }
    }

    /// The events that end a successful operation.
    fn closing_events(&self) -> Vec<Category> {
        match self.journal.origin {
            lattice_model::event::Origin::User | lattice_model::event::Origin::Sprite(_) => vec![Category::Committed],
            lattice_model::event::Origin::Doctor => vec![Category::Committed, Category::DoctorApplied],
        }
    }

    pub(super) fn flush(&self) -> Result<(), ExecuteError> {
        crate::durable::sync_file_system(&self.repo.paths.common_dir).map_err(io_error("flush to disk"))
    }
}

/// The end of the ledger while records are added to it.
struct Chain {
    parent: Option<Oid>,
    last: Option<Event>,
    tree: Oid,
    seconds: i64,
}

impl Chain {
    fn add(&mut self, pack: &mut Pack, event: NewEvent) -> Oid {
        let event = event.following(self.last.as_ref());
        let message = format::event::render(&event);
        let parents = self.parent.into_iter().collect();
        let commit = pack.commit(&NewCommit { message: &message, seconds: self.seconds, parents, tree: self.tree });
        (self.parent, self.last) = (Some(commit), Some(event));
        commit
    }
}
