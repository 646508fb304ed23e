//! The executor: the only code that changes a repository, and only as a plan says.
//!
//! Objects are made first and change nothing that anyone can see. Then refs, files, HEAD and
//! configuration move, with every value known and written to the journal, so that whatever
//! happens in between can be finished or reversed.

mod absorb;
mod conflicts;
mod derive;
mod error;
mod followers;
mod keep;
mod orphans;
mod pause;
mod prepare;
mod produce;
mod recover;
mod remote;
mod rewriting;
mod rewritten;
mod settle;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::thread;

use lattice_model::event::{Category, Detail, Event, Origin, RefChange};
use lattice_model::id::{Oid, OpId};
use lattice_model::name::BranchName;
use lattice_model::plan::{NewValue, Plan, Step};
use lattice_model::settings::Settings;
use lattice_model::snapshot::{Holder, OpPhase, OpState, Snapshot, WorkingCopy};
use lattice_model::time::Timestamp;

use crate::defect::Defect;
use crate::durable;
use crate::format;
use crate::format::journal::{Dropped, Journal, WorktreeBefore};
use crate::git::manners::{Manners, NotesMode};
use crate::git::picker::Picker;
use crate::git::transaction::{RefEdit, RefSession};
use crate::git::worktree::HeadName;
use crate::git::{Git, GitError};
use crate::ledger::{NewEvent, last_event};
use crate::lock::Lock;
use crate::{Repo, verify};

pub use conflicts::{Conflict, Foresight};
use error::io_error;
pub use error::{DeriveError, ExecuteError};
pub(crate) use keep::KEEP;
pub use recover::Aborted;

/// A plan with everything that is no part of it.
#[derive(Debug, Clone)]
pub struct OperationRequest {
    pub plan: Plan,
    pub op: OpId,
    pub now: Timestamp,
    pub origin: Origin,
    /// The operation that is reversed, or the fixes that are applied.
    pub detail: Detail,
}

/// How an execution ended, where it did not fail.
#[derive(Debug, Clone)]
pub enum Executed {
    Done { op: OpId, plan: Box<Plan>, refs: Vec<RefChange>, dropped: Vec<Dropped> },
    Paused(Paused),
}

/// A conflict that waits for the user.
#[derive(Debug, Clone)]
pub struct Paused {
    pub op: OpId,
    pub command: String,
    pub branch: BranchName,
    pub files: Vec<String>,
    /// Those of the files that git resolved as the user did before.
    pub remembered: Vec<String>,
}

/// One operation under way.
pub(crate) struct Executor<'a> {
    repo: &'a Repo,
    git: Git,
    journal: Journal,
    settings: Settings,
    now: Timestamp,
    /// Commits that were computed here; those that git does not know yet go into the pack of the operation.
    picker: Picker,
    /// Whether git made objects that are not flushed yet.
    made_by_git: bool,
    committer: Option<String>,
    /// What the user's configuration says about rewriting, once it was asked.
    manners: Option<Manners>,
    notes: NotesMode,
    /// What is left out because it does not apply.
    conflicts: Vec<Conflict>,
    /// One process moves all refs of the operation, in several transactions.
    session: RefCell<Option<RefSession>>,
}

/// A file that says how far the operation is.
struct OwnFile {
    path: PathBuf,
    text: String,
    what: &'static str,
}

impl OwnFile {
    fn write(&self) -> Result<(), ExecuteError> {
        durable::write(&self.path, self.text.as_bytes()).map_err(io_error(self.what))
    }
}

impl Repo {
    /// Carries out a plan that was made from `snapshot`.
    pub fn execute(
        &self,
        _lock: &Lock,
        snapshot: &Snapshot,
        request: OperationRequest,
    ) -> Result<Executed, ExecuteError> {
        let begun = Journal::new(snapshot, request.plan, (request.op, request.now.clone()));
        let journal = Journal { origin: request.origin, detail: request.detail, ..begun };
        let mut executor = Executor::new(self, journal, snapshot.settings.clone(), request.now);
        executor.run_or_abort()
    }
}

impl<'a> Executor<'a> {
    fn new(repo: &'a Repo, journal: Journal, settings: Settings, now: Timestamp) -> Self {
        let git = repo.git.with_hooks(journal.plan.hooks).inside(&journal.op_id, &settings);
        let picker = Picker::new(&repo.paths.common_dir);
        let made_by_git = journal.paused;
        Self {
            repo,
            git,
            journal,
            settings,
            now,
            picker,
            made_by_git,
            committer: None,
            manners: None,
            notes: NotesMode::Configured,
            conflicts: Vec::new(),
            session: RefCell::new(None),
        }
    }

    /// Runs what is left of the operation; what fails before anything is visible leaves no trace but evidence.
    fn run_or_abort(&mut self) -> Result<Executed, ExecuteError> {
        match self.run() {
            Err(error) if error.leaves_nothing() => {
                if error.is_death_of_git() {
                    // Nobody else would remove its locks.
                    self.let_go_of_refs();
                    self.settle_remains()?;
                }
                if matches!(error, ExecuteError::HeldBack { .. }) {
                    // It is tried again without that branch; nothing came to an end.
                    self.clean_up()?;
                    return Err(error);
                }
                self.give_up(&error)?;
                Err(error)
            }
            outcome => outcome,
        }
    }

    fn run(&mut self) -> Result<Executed, ExecuteError> {
        if self.journal.worktree.is_none() {
            self.begin()?;
        }
        if let Some(paused) = self.produce()? {
            return Ok(Executed::Paused(paused));
        }
        if self.journal.paused {
            // A journal that names commits may be read by another process; these have to exist by then.
            self.picker.flush(&self.git)?;
        }
        self.prepare()?;
        self.apply()?;
        self.finish()
    }

    /// Writes journal and marker, and notes what the worktree looks like.
    fn begin(&mut self) -> Result<(), ExecuteError> {
        self.set_stale_marker_aside()?;
        if self.journal.plan.steps.iter().any(|step| matches!(step, Step::RemoveLock { .. })) {
            // One of them may be in the way of everything else.
            self.journal_file().write()?;
            self.marker_file(OpPhase::Executing).write()?;
            self.remove_locks()?;
            self.journal.worktree = self.read_worktree()?;
            return Ok(());
        }
        let (journal, marker) = (self.journal_file(), self.marker_file(OpPhase::Executing));
        let rewrites = self.journal.plan.steps.iter().any(|step| matches!(step, Step::Rewrite { .. }));
        let moves = self.journal.plan.steps.iter().any(rewritten::has_manners);
        // The files wait for the disk; who commits can be asked meanwhile. Nothing may make objects before the marker
        // is there: after a power cut it is what has their remains cleared away.
        let written = thread::scope(|scope| {
            let marks = !self.git.has(Defect::MarkerMissing);
            let writing =
                scope.spawn(move || journal.write().and_then(|()| if marks { marker.write() } else { Ok(()) }));
            // If git knows no committer, it says so where one is needed.
            self.committer = rewrites.then(|| self.git.committer().ok()).flatten();
            self.manners = moves.then(|| self.git.manners(&self.repo.paths.common_dir).ok()).flatten();
            writing.join().expect("bug: writing does not panic")
        });
        written?;
        self.journal.worktree = self.read_worktree()?;
        self.ask_before_rewriting()
    }

    /// Whether the plan concerns HEAD, index or files of this worktree.
    fn needs_worktree(&self) -> Result<bool, ExecuteError> {
        if self.repo.paths.work_dir.is_none() {
            return Ok(false);
        }
        let head = self.git.head(&self.repo.paths.git_dir)?;
        let on_head =
            |branch: &BranchName| matches!(&head, HeadName::Ref(name) if *name == branch.branch_ref().as_str());
        Ok(self.journal.plan.steps.iter().any(|step| match step {
            Step::Stage { .. } | Step::Commit { .. } | Step::Switch { .. } | Step::RestoreWorktree { .. } => true,
            Step::Rewrite { .. } | Step::Derive { .. } | Step::LeaveFiles { .. } | Step::Fixup { .. } => true,
            Step::SetRef { name, .. } => name.as_branch().is_some_and(|branch| on_head(&branch)),
            Step::WriteConfig { .. }
            | Step::SetMetadata { .. }
            | Step::MoveOptions { .. }
            | Step::Guard { .. }
            | Step::RemoveOpState
            | Step::RemoveLock { .. }
            | Step::Verify
            | Step::Fetch { .. }
            | Step::Push { .. }
            | Step::Host { .. } => false,
        }))
    }

    /// What HEAD, index and files are, if the plan concerns them.
    fn read_worktree(&self) -> Result<Option<WorktreeBefore>, ExecuteError> {
        if !self.needs_worktree()? {
            return Ok(None);
        }
        let (head, commit) = self.head_commit()?;
        let own = self.own_index();
        let theirs = crate::git::worktree::index_path(&self.repo.paths.git_dir);
        if theirs.exists() {
            let folder = own.parent().unwrap_or(&own);
            durable::create_folder(folder).map_err(io_error("create the folder of the operation"))?;
            copy_index(&theirs, &own).map_err(io_error("copy the index"))?;
        }
        let index = self.git.write_tree(Some(&own)).map_err(|error| self.unmerged(error))?;
        let files = self.repo.with_objects(|objects| objects.tree_of(commit))?;
        Ok(Some(WorktreeBefore { head, commit, index, files }))
    }

    /// An index with conflicts has no tree; that is the user's to resolve and no failure of git.
    fn unmerged(&self, error: GitError) -> ExecuteError {
        match self.git.status() {
            WorkingCopy::Known { unmerged, .. } if !unmerged.is_empty() => ExecuteError::Unmerged { files: unmerged },
            _ => error.into(),
        }
    }

    /// Says that an operation is in progress.
    fn write_marker(&self, phase: OpPhase) -> Result<(), ExecuteError> {
        self.marker_file(phase).write()
    }

    fn marker_file(&self, phase: OpPhase) -> OwnFile {
        let touched = self.journal.plan.touched_refs().into_iter().map(|touched| RefChange {
            name: touched.name,
            old: touched.old,
            new: match touched.new {
                NewValue::Known(value) => value,
                NewValue::AfterExecution => None,
            },
        });
        let state = OpState {
            op: self.journal.op_id.clone(),
            command: self.journal.plan.command.clone(),
            phase,
            plan: self.journal.plan.digest(),
            touched: touched.collect(),
            origin_git_dir: self.repo.paths.git_dir.clone(),
            origin_work_dir: self.repo.paths.work_dir.clone(),
            holder: Holder::Alive,
        };
        OwnFile { path: self.repo.op_state_path(), text: format::op_state::render(&state), what: "write the marker" }
    }

    fn write_journal(&self) -> Result<(), ExecuteError> {
        self.journal_file().write()
    }

    fn journal_file(&self) -> OwnFile {
        OwnFile { path: self.journal_path(), text: format::journal::render(&self.journal), what: "write the journal" }
    }

    fn journal_path(&self) -> PathBuf {
        self.repo.lattice_dir().join("ops").join(format!("{}.json", self.journal.op_id))
    }

    /// The operation's copy of the index; the worktree's own stays as it is until the end.
    fn own_index(&self) -> PathBuf {
        self.repo.lattice_dir().join("ops").join(format!("{}.index", self.journal.op_id))
    }

    /// Removes files of the operation beside its copy of the index, as far as they are there.
    fn remove_own_files(&self, endings: &[&str]) {
        for ending in endings {
            let _ = std::fs::remove_file(self.own_index().with_extension(ending));
        }
    }

    fn reason(&self) -> String {
        format!("lattice {}: {}", self.journal.plan.command, self.journal.op_id)
    }

    fn hex_len(&self) -> usize {
        self.repo.hex_len()
    }

    /// Applies all edits or none.
    fn transact(&self, edits: &[RefEdit]) -> Result<(), GitError> {
        self.with_session(|session| session.apply(edits))
    }

    /// Asks the process that moves refs.
    fn with_session(&self, ask: impl FnOnce(&mut RefSession) -> Result<(), GitError>) -> Result<(), GitError> {
        let mut slot = self.session.borrow_mut();
        let mut session = match slot.take() {
            Some(session) => session,
            None => self.git.ref_session(&self.reason(), &self.repo.paths)?,
        };
        ask(&mut session)?;
        // Only a session that did what it was told is asked again.
        *slot = Some(session);
        Ok(())
    }

    fn head_commit(&self) -> Result<(lattice_model::event::HeadValue, Oid), ExecuteError> {
        use lattice_model::event::HeadValue;
        match self.git.head(&self.repo.paths.git_dir)? {
            HeadName::Commit(commit) => Ok((HeadValue::Detached(commit), commit)),
            HeadName::Ref(name) => {
                let branch = lattice_model::name::RefName::new(name.clone()).ok().and_then(|name| name.as_branch());
                let branch = branch.ok_or(ExecuteError::NoHead)?;
                let mut found = self.repo.with_objects(|objects| objects.info(&[name]))?;
                let info = found.pop().flatten().ok_or(ExecuteError::NoHead)?;
                Ok((HeadValue::Branch(branch), info.oid))
            }
            HeadName::Unreadable(_) => Err(ExecuteError::NoHead),
        }
    }

    /// Checks the result, records it, and removes every trace of being in progress.
    fn finish(&mut self) -> Result<Executed, ExecuteError> {
        let prepared = self.journal.prepared.clone().expect("bug: only what is prepared is finished");
        let scan = verify::scan_request(&self.settings, &self.now);
        // Flushing waits for the disk and scanning for git; neither needs the other.
        let folder = self.repo.paths.common_dir.clone();
        let (flushed, snapshot) = thread::scope(|scope| {
            let flush = scope.spawn(move || durable::sync_file_system(&folder));
            let snapshot = self.repo.scan(&scan);
            (flush.join().expect("bug: flushing does not panic"), snapshot)
        });
        flushed.map_err(io_error("flush to disk"))?;
        let snapshot = snapshot.map_err(ExecuteError::Rescan)?;
        let problems = verify::problems(&snapshot, &self.journal, &prepared);
        if !problems.is_empty() {
            return Err(ExecuteError::NotVerified { problems });
        }
        self.copy_notes();
        self.record_committed(&prepared)?;
        // Whatever stands in the way of tidying up can wait until the next time.
        let _ = self.prune_keeps(prepared.seq);
        self.clean_up()?;
        // Hooks may report; by now they cannot change whether the operation happened.
        self.run_post_commit();
        self.run_post_checkout();
        self.run_post_rewrite();
        let refs =
            prepared.edits.iter().map(|edit| RefChange { name: edit.name.clone(), old: edit.old, new: edit.new });
        let (plan, dropped) = (Box::new(self.journal.plan.clone()), self.journal.dropped.clone());
        Ok(Executed::Done { op: self.journal.op_id.clone(), plan, refs: refs.collect(), dropped })
    }

    fn run_post_commit(&self) {
        let commits = self.journal.plan.steps.iter().any(|step| matches!(step, Step::Commit { .. }));
        if commits {
            let index = crate::git::worktree::index_path(&self.repo.paths.git_dir);
            let _ = self.git.run_hook("post-commit", &[], &index);
        }
    }

    /// Removes marker, journal and the copy of the index, the marker last but for nothing.
    fn clean_up(&self) -> Result<(), ExecuteError> {
        // A git that was killed while it wrote one of our copies leaves its lock.
        self.remove_own_files(&["index", "index.lock", "part", "part.lock"]);
        durable::remove(&self.repo.op_state_path()).map_err(io_error("remove the marker"))?;
        durable::remove(&self.journal_path()).map_err(io_error("remove the journal"))
    }

    /// Records that the operation came to nothing, and why.
    fn give_up(&self, error: &ExecuteError) -> Result<(), ExecuteError> {
        // Whatever stands in the way of recording must not hide the error itself.
        let _ = self.record_abort(&error.to_string());
        let _ = self.drop_kept();
        self.clean_up()
    }

    fn record_abort(&self, reason: &str) -> Result<(), ExecuteError> {
        if !self.journal.intent_recorded {
            self.record_intent_alone()?;
        }
        let mut event = self.event(Category::Aborted);
        event.detail.reason = Some(reason.to_owned());
        self.record(event)
    }

    /// Appends an event, after whatever others appended meanwhile.
    fn record(&self, event: NewEvent) -> Result<(), ExecuteError> {
        let tip = self.repo.ledger_tip()?;
        Ok(self.repo.append_while(|_| true, &tip, event)?)
    }

    /// The divergence that the scan saw, if the ledger does not have it yet.
    fn unrecorded_divergence(&self, last: Option<&Event>) -> Option<NewEvent> {
        let seen = self.journal.divergence.as_ref()?;
        if last.is_some_and(|last| last.observed.contains(&seen.current)) {
            return None;
        }
        Some(NewEvent {
            category: Category::DivergenceObserved,
            refs: seen.changes.clone(),
            before: seen.prior.clone(),
            after: Some(seen.current.clone()),
            plan: None,
            detail: Detail::default(),
            ..self.event(Category::DivergenceObserved)
        })
    }

    /// Records what is intended, apart from the objects of the operation, after what was observed.
    fn record_intent_alone(&self) -> Result<(), ExecuteError> {
        let tip = self.repo.ledger_tip()?;
        if let Some(divergence) = self.unrecorded_divergence(last_event(&tip)) {
            let due = |tip: &_| self.unrecorded_divergence(last_event(tip)).is_some();
            self.repo.append_while(due, &tip, divergence)?;
        }
        self.record(self.event(Category::IntentRecorded))
    }

    fn event(&self, category: Category) -> NewEvent {
        let refs = self.journal.plan.touched_refs().into_iter().map(|touched| RefChange {
            name: touched.name,
            old: touched.old,
            new: None,
        });
        NewEvent {
            category,
            op: self.journal.op_id.clone(),
            command: self.journal.plan.command.clone(),
            origin: self.journal.origin.clone(),
            at: self.now.clone(),
            refs: refs.collect(),
            before: self.journal.before.clone(),
            after: None,
            plan: Some(self.journal.plan.digest()),
            detail: self.journal.detail.clone(),
        }
    }

    /// A marker that cannot be read is in the way of its own repair.
    fn set_stale_marker_aside(&self) -> Result<(), ExecuteError> {
        let name = format!("op-state.damaged-{}", self.journal.op_id);
        // When the operation begins again after a kill, the marker is its own.
        let done = self.repo.lattice_dir().join(&name).symlink_metadata().is_ok();
        if self.journal.plan.steps.contains(&Step::RemoveOpState) && !done {
            durable::set_aside(&self.repo.op_state_path(), &name).map_err(io_error("set the marker aside"))?;
        }
        Ok(())
    }
}

/// Copies an index with its time: git looks again at files that are as old as the index, and a younger copy would hide a
/// change that came within the same moment.
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    std::fs::File::options().append(true).open(to)?.set_modified(from.metadata()?.modified()?)
}
