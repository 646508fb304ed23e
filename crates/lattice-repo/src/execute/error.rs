//! Why an execution failed, and whether that left anything to finish or reverse.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use lattice_model::id::Oid;
use lattice_model::name::{BranchName, RefName};

use crate::git::GitError;
use crate::scan::ScanError;

#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{name} changed while the operation was running")]
    RefMoved { name: RefName, expected: Option<Oid>, found: Option<Oid> },
    #[error("git moved refs by itself while it was only asked to compute")]
    GitMovedRefs { names: Vec<RefName> },
    #[error("lattice/config.toml changed while the operation was running")]
    ConfigChanged,
    #[error("{branch} was checked out in {} meanwhile", path.display())]
    Occupied { branch: BranchName, path: PathBuf },
    #[error("branches cannot move: {}", told(held))]
    HeldBack { held: BTreeMap<BranchName, String> },
    #[error("rebasing {branch} runs into a conflict, which needs a working tree without uncommitted changes")]
    NeedsCleanTree { branch: BranchName },
    #[error("what is staged does not apply to {branch}")]
    StagedDoesNotApply { branch: BranchName },
    #[error("nothing is left to commit")]
    NothingPicked,
    #[error("a hook left nothing of the message")]
    MessageEmptied,
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error("uncommitted changes are in the way")]
    FilesInTheWay { detail: String },
    #[error("files are in conflict")]
    Unmerged { files: Vec<String> },
    #[error("others keep writing to the ledger")]
    LedgerBusy,
    #[error("HEAD names no commit")]
    NoHead,
    #[error("could not {what}")]
    Io { what: &'static str, source: io::Error },
    #[error("the result could not be read back")]
    Rescan(#[source] ScanError),
    #[error("the result is not what the plan says")]
    NotVerified { problems: Vec<String> },
    #[error("refs and files could not be brought to where the plan says")]
    Incomplete { source: Box<ExecuteError> },
    #[error("no operation is in progress")]
    NothingInProgress,
    #[error("process {pid} of the operation is still running")]
    StillRunning { pid: u32 },
    #[error("the operation was begun in {}", path.display())]
    WrongWorktree { path: PathBuf },
    #[error("the journal of the operation cannot be used: {reason}")]
    JournalUnusable { reason: String },
    #[error("conflicts are not resolved yet")]
    Unresolved { files: Vec<String> },
    #[error("conflict markers are left in files")]
    MarkersLeft { files: Vec<String> },
    #[error("files in conflict are as the conflict left them")]
    Untouched { files: Vec<String> },
    #[error("nothing is left of {} ({subject})", commit.short())]
    NothingResolved { commit: Oid, subject: String },
    #[error("changes are not staged, so the rebase cannot go on")]
    NotStaged { files: Vec<String> },
    #[error("the rebase was ended by other means before it was done, or HEAD is not on top of the new base")]
    RebaseGone { expected: Oid },
}

/// Why a commit could not be made of the changes of others.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    #[error("nothing would be left for a commit of {branch}")]
    NothingLeft { branch: BranchName },
    #[error("the trunk holds nothing of {commit} that could be taken back")]
    NothingToRevert { commit: Oid },
    #[error("{commit} cannot be taken back by itself")]
    RevertConflicts { commit: Oid },
    #[error("what was made of {path} is not what is staged")]
    DoesNotFit { path: String },
    #[error("{branch} changes lines beside those that would be absorbed")]
    AbsorbConflicts { branch: BranchName },
    #[error("the lines of {path} are not where the plan has them")]
    LinesMoved { path: String },
    #[error("{commit} has not exactly one parent")]
    NotLinear { commit: Oid },
}

impl ExecuteError {
    /// Whether refs, files and HEAD are as before, so that no marker is needed.
    pub(crate) fn leaves_nothing(&self) -> bool {
        match self {
            Self::Git(_)
            | Self::RefMoved { .. }
            | Self::GitMovedRefs { .. }
            | Self::ConfigChanged
            | Self::Occupied { .. }
            | Self::HeldBack { .. }
            | Self::NeedsCleanTree { .. }
            | Self::StagedDoesNotApply { .. }
            | Self::NothingPicked
            | Self::MessageEmptied
            | Self::Derive(_)
            | Self::FilesInTheWay { .. }
            | Self::Unmerged { .. }
            | Self::LedgerBusy
            | Self::NoHead
            | Self::Io { .. } => true,
            Self::Rescan(_)
            | Self::NotVerified { .. }
            | Self::Incomplete { .. }
            | Self::NothingInProgress
            | Self::StillRunning { .. }
            | Self::WrongWorktree { .. }
            | Self::JournalUnusable { .. }
            | Self::Unresolved { .. }
            | Self::MarkersLeft { .. }
            | Self::Untouched { .. }
            | Self::NothingResolved { .. }
            | Self::NotStaged { .. }
            | Self::RebaseGone { .. } => false,
        }
    }

    /// Whether git was killed, so that it could not tidy up after itself.
    pub(crate) fn is_death_of_git(&self) -> bool {
        matches!(self, Self::Git(GitError::Killed { .. } | GitError::Pipe { .. }))
    }

    /// States that something is visible already.
    pub(crate) fn incomplete(self) -> Self {
        Self::Incomplete { source: Box::new(self) }
    }
}

/// Each branch with its reason.
fn told(held: &BTreeMap<BranchName, String>) -> String {
    let told: Vec<_> = held.iter().map(|(branch, reason)| format!("{branch} ({reason})")).collect();
    told.join(", ")
}

pub(crate) fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> ExecuteError {
    move |source| ExecuteError::Io { what, source }
}
