//! `undo` and `redo`: reverse an operation, of which the ledger knows everything.

use crate::capability::Capability;
use crate::event::{Event, HeadValue, RefChange};
use crate::gate::{Command, ReadyContext, Refusal};
use crate::id::{ContentDigest, Oid};
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, OldFile, Place, Plan, Step};
use crate::snapshot::Snapshot;

#[derive(Debug, Clone)]
pub struct Undo {
    /// The `Committed` event of the operation.
    pub event: Event,
    pub direction: Direction,
    /// Operations that changed the same refs since, newest first.
    pub later: Vec<Event>,
}

/// `redo` is the undoing of an undo under another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Undo,
    Redo,
}

impl Command for Undo {
    const NAME: &'static str = "undo";
    const REQUIRES: &'static [Capability] = &[
        Capability::RepoOpen,
        Capability::NoLatticeOpInProgress,
        Capability::NoExternalGitOpInProgress,
        Capability::RefsWritable,
    ];

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let name = match self.direction {
            Direction::Undo => "undo",
            Direction::Redo => "redo",
        };
        self.check_values(snapshot)?;
        let mut plan = Plan::new(name, Hooks::Run);
        self.restore_config(snapshot, &mut plan)?;
        for change in &self.event.refs {
            let expected = Expected::from_option(change.new);
            let to = change.old.map(Place::Object);
            plan.steps.push(Step::SetRef { name: change.name.clone(), expected, to });
        }
        if let Some((from, to)) = self.renamed() {
            plan.steps.push(Step::MoveOptions { from: to, to: from });
        }
        self.restore_worktree(snapshot, &mut plan)?;
        Ok(plan.verified())
    }
}

impl Undo {
    /// The old and the new name, if the operation gave a branch another one.
    fn renamed(&self) -> Option<(BranchName, BranchName)> {
        let branches = self.event.refs.iter().filter_map(|change| Some((change.name.as_branch()?, change)));
        let (mut gone, mut made) = (Vec::new(), Vec::new());
        for (branch, change) in branches {
            match (change.old, change.new) {
                (Some(tip), None) => gone.push((branch, tip)),
                (None, Some(tip)) => made.push((branch, tip)),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        match (gone.as_slice(), made.as_slice()) {
            ([(from, left)], [(to, found)]) if left == found => Some((from.clone(), to.clone())),
            _ => None,
        }
    }

    /// Every ref must still have the value that the operation left.
    fn check_values(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        let moved: Vec<&RefChange> =
            self.event.refs.iter().filter(|change| current(snapshot, change) != change.new).collect();
        if moved.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = moved.iter().map(|change| change.name.as_str()).collect();
        let message =
            format!("`{}` changed these refs, and they changed again since: {}", self.event.command, names.join(", "));
        let mut refusal = Refusal::new("changed-since", message);
        let touches = |event: &&Event| event.refs.iter().any(|c| moved.iter().any(|m| m.name == c.name));
        for later in self.later.iter().filter(touches) {
            refusal = refusal.hint(format!("undo this first: lattice undo {} ({})", later.op, later.command));
        }
        if refusal.hints.is_empty() {
            refusal = refusal.hint("they were changed outside of Lattice; `lattice ops` shows what was observed");
        }
        Err(refusal)
    }

    fn restore_config(&self, snapshot: &Snapshot, plan: &mut Plan) -> Result<(), Refusal> {
        let Some(change) = &self.event.detail.config else { return Ok(()) };
        let left = change.new.as_ref().map(|text| ContentDigest::of(text.as_bytes()));
        if snapshot.config.digest() != left.as_ref() {
            return Err(Refusal::new("changed-since", "lattice/config.toml changed again since that operation"));
        }
        plan.steps.push(Step::WriteConfig { expected: left, content: change.old.clone(), old: OldFile::Recorded });
        Ok(())
    }

    fn restore_worktree(&self, snapshot: &Snapshot, plan: &mut Plan) -> Result<(), Refusal> {
        let Some(change) = &self.event.detail.worktree else { return Ok(()) };
        // A commit of what was staged moves the branch under files and index that stay; without
        // this step they would follow the branch back, and what was staged would be gone.
        let moves_head = match &change.head_after {
            HeadValue::Branch(branch) => self.event.refs.iter().any(|change| change.name == branch.branch_ref()),
            HeadValue::Detached(_) => false,
        };
        if !moves_head && !change.changed_something() {
            return Ok(());
        }
        if snapshot.repository.git_dir.display().to_string() != change.git_dir {
            return Err(Refusal::new("other-worktree", "that operation changed the files of another worktree")
                .hint(where_it_was(snapshot, &change.head_after)));
        }
        if snapshot.head.value().as_ref() != Some(&change.head_after) {
            return Err(Refusal::new("changed-since", "another branch was checked out since that operation")
                .hint("check the branch out again, then undo"));
        }
        self.check_head(snapshot, &change.head_after, change.commit_after)?;
        self.check_head(snapshot, &change.head_before, change.commit_before)?;
        let (Some(files_to), Some(files_from)) = (change.files_from, change.files_to) else { return Ok(()) };
        let (Some(index_to), Some(index_from)) = (change.index_before, change.index_after) else { return Ok(()) };
        let head = change.head_before.clone();
        plan.steps.push(Step::RestoreWorktree { head, files_from, files_to, index_from, index_to });
        Ok(())
    }

    /// A branch that HEAD was on, and that the operation did not change, must be where it was: files and index would
    /// otherwise be put on another commit than theirs.
    fn check_head(&self, snapshot: &Snapshot, head: &HeadValue, commit: Option<Oid>) -> Result<(), Refusal> {
        let HeadValue::Branch(branch) = head else { return Ok(()) };
        let changed_by_it = self.event.refs.iter().any(|change| change.name == branch.branch_ref());
        let what = match snapshot.tip(branch) {
            _ if changed_by_it => return Ok(()),
            None => "is gone",
            Some(tip) if commit.is_some_and(|commit| commit != tip) => "has moved",
            Some(_) => return Ok(()),
        };
        let message = format!("{branch} {what} since that operation, and HEAD was on it");
        Err(Refusal::new("changed-since", message).hint("lattice checkout <branch> goes where you want to be"))
    }
}

fn current(snapshot: &Snapshot, change: &RefChange) -> Option<Oid> {
    if let Some(branch) = change.name.as_branch() {
        return snapshot.tip(&branch);
    }
    let branch = change.name.as_metadata_of()?;
    snapshot.metadata.get(&branch).map(|reading| reading.oid)
}

/// Where an operation of another worktree can be undone.
fn where_it_was(snapshot: &Snapshot, head: &HeadValue) -> String {
    let HeadValue::Branch(branch) = head else { return "run it in that worktree".to_owned() };
    match snapshot.worktrees.get(branch).filter(|path| !snapshot.gone_worktrees.contains(*path)) {
        Some(path) => format!("run it there: lattice -C {} undo", path.display()),
        None => format!(
            "that worktree is gone or has another branch checked out now; git reflog {} shows where it was",
            branch.word()
        ),
    }
}
