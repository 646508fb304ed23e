//! What may happen to a repository, as data: a list of actions can be replayed, cut down and written down.

use std::fmt;

/// One thing that happens. The numbers are read relative to what is there, so every list of actions makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) kind: Kind,
    pub(crate) place: u8,
    pub(crate) a: u8,
    pub(crate) b: u8,
}

macro_rules! kinds {
    ($($kind:ident $name:literal $weight:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Kind { $($kind,)* }

        /// Every kind with its name and how often it comes.
        const KINDS: &[(Kind, &str, u64)] = &[$((Kind::$kind, $name, $weight),)*];
    };
}

kinds! {
    // Commands of Lattice.
    Create "create" 8,
    CreateAll "create-all" 6,
    Insert "insert" 2,
    Modify "modify" 6,
    ModifyCommit "modify-commit" 6,
    Restack "restack" 9,
    Move "move" 5,
    Reorder "reorder" 5,
    SplitCommit "split-by-commit" 3,
    SplitFile "split-by-file" 3,
    Squash "squash" 3,
    Fold "fold" 3,
    FoldKeep "fold-keep" 3,
    Pop "pop" 2,
    Delete "delete" 3,
    Rename "rename" 3,
    Revert "revert" 1,
    Absorb "absorb" 5,
    Freeze "freeze" 2,
    Unfreeze "unfreeze" 3,
    Track "track" 5,
    Untrack "untrack" 1,
    Checkout "checkout" 5,
    Step "up-or-down" 3,
    Undo "undo" 5,
    Redo "redo" 3,
    Continue "continue" 2,
    Abort "abort" 1,
    Look "look" 3,
    Doctor "doctor" 3,
    Fix "fix" 9,
    Race "race" 5,
    // A person or a tool with plain git and an editor.
    Edit "edit" 14,
    Stage "stage" 4,
    Remove "remove-file" 1,
    Clean "clean" 6,
    GitCommit "git-commit" 7,
    GitAmend "git-amend" 3,
    GitReset "git-reset" 2,
    GitRename "git-rename" 1,
    GitDelete "git-delete" 1,
    GitRebase "git-rebase" 2,
    GitMerge "git-merge" 1,
    GitCheckout "git-checkout" 4,
    GitUpdateRef "git-update-ref" 1,
    GitPack "git-pack-refs" 1,
    GitCollect "git-gc" 1,
    WorktreeAdd "worktree-add" 2,
    WorktreeRemove "worktree-remove" 1,
    MetadataGarbage "metadata-garbage" 1,
    MetadataDelete "metadata-delete" 1,
    MetadataParent "metadata-parent" 1,
    MetadataBase "metadata-base" 1,
    MarkerGarbage "marker-garbage" 1,
}

impl Action {
    /// The action that these bits stand for.
    pub(crate) fn from_bits(bits: u64) -> Self {
        let total: u64 = KINDS.iter().map(|(_, _, weight)| weight).sum();
        let mut left = (bits >> 32) % total;
        let picked = KINDS.iter().find(|(_, _, weight)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        let (kind, _, _) = picked.expect("the weights add up to the total");
        let [place, a, b, ..] = bits.to_le_bytes();
        Self { kind: *kind, place, a, b }
    }

    /// Reads what `Display` writes.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let (kind, _, _) = KINDS.iter().find(|(_, known, _)| *known == name)?;
        let mut number = || words.next()?.parse().ok();
        Some(Self { kind: *kind, place: number()?, a: number()?, b: number()? })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name, _) = KINDS.iter().find(|(kind, _, _)| *kind == self.kind).expect("every kind has a name");
        write!(f, "{name} {} {} {}", self.place, self.a, self.b)
    }
}

/// Numbers that follow from a seed alone.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("it is below a size")
    }
}

/// The actions of one seed.
pub(crate) fn actions(seed: u64, count: usize) -> Vec<Action> {
    let mut random = Random::new(seed);
    (0..count).map(|_| Action::from_bits(random.next())).collect()
}
