//! Defects that tests switch on, one at a time, to see that they are found. A release build has none of them.

use crate::git::Git;

/// Names the defect to have, in the environment of a debug build.
const SWITCH: &str = "LATTICE_DEFECT";

/// Something that the program could do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Refs move whatever their values are by then.
    ExpectedValuesIgnored,
    /// Of all rewritten branches only the lowest moves.
    OneLevel,
    /// Undo puts metadata back and branches not.
    UndoOfMetadataOnly,
    /// Everyone has the lock.
    LockIgnored,
    /// Nothing says that an operation is in progress.
    MarkerMissing,
    /// The journal does not learn what is about to move.
    JournalStale,
    /// Branches move and files stay.
    FilesStay,
    /// Nothing keeps what is replaced alive.
    NothingKept,
    /// The newest commit of a rewritten branch is left out.
    CommitDropped,
    /// Metadata that cannot be read is taken for none.
    UnreadableIgnored,
    /// Success is recorded twice.
    RecordedTwice,
    /// Any worktree may end an operation.
    AnyWorktree,
    /// What others pushed is taken for ours.
    StrangersAreOurs,
    /// Every branch has landed.
    LandedTooSoon,
    /// Something that cannot happen happens.
    Panic,
}

impl Defect {
    fn name(self) -> &'static str {
        match self {
            Self::ExpectedValuesIgnored => "expected-values-ignored",
            Self::OneLevel => "one-level",
            Self::UndoOfMetadataOnly => "undo-of-metadata-only",
            Self::LockIgnored => "lock-ignored",
            Self::MarkerMissing => "marker-missing",
            Self::JournalStale => "journal-stale",
            Self::FilesStay => "files-stay",
            Self::NothingKept => "nothing-kept",
            Self::CommitDropped => "commit-dropped",
            Self::UnreadableIgnored => "unreadable-ignored",
            Self::RecordedTwice => "recorded-twice",
            Self::AnyWorktree => "any-worktree",
            Self::StrangersAreOurs => "strangers-are-ours",
            Self::LandedTooSoon => "landed-too-soon",
            Self::Panic => "panic",
        }
    }
}

impl Git {
    /// Whether a test wants this defect.
    pub(crate) fn has(&self, defect: Defect) -> bool {
        cfg!(debug_assertions) && self.variable(SWITCH).is_some_and(|name| name == defect.name())
    }
}
