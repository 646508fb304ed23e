//! What rewriting commands share: moving everything above a change along with it.

use std::collections::{BTreeMap, BTreeSet};

use crate::branch::{BranchMetadataV1, Parent};
use crate::gate::Refusal;
use crate::history::Position;
use crate::id::Oid;
use crate::name::BranchName;
use crate::plan::{Expected, FreezeDraft, Kept, MetadataDraft, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::scope;

/// Why a branch is kept that its user froze.
pub(super) const FROZEN: &str = "frozen";

/// Builds the steps that bring branches onto their parents, parents before children.
pub(super) struct Rewriting<'a> {
    snapshot: &'a Snapshot,
    /// The tips that this plan changes, and the parents it changes.
    moving: BTreeSet<BranchName>,
    /// Branches that this plan makes, where their tips are known.
    made: BTreeMap<BranchName, Oid>,
    parents: BTreeMap<BranchName, Parent>,
    rewrites: Vec<Step>,
    metadata: Vec<Step>,
    guards: BTreeMap<BranchName, Oid>,
    kept: Vec<Kept>,
}

impl<'a> Rewriting<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            moving: BTreeSet::new(),
            made: BTreeMap::new(),
            parents: BTreeMap::new(),
            rewrites: Vec::new(),
            metadata: Vec::new(),
            guards: BTreeMap::new(),
            kept: Vec::new(),
        }
    }

    /// States that an earlier step of the plan gives this branch a new tip.
    pub(super) fn tip_changes(&mut self, branch: &BranchName) {
        self.moving.insert(branch.clone());
    }

    /// States that an earlier step of the plan makes this branch at a commit that exists.
    pub(super) fn made_at(&mut self, branch: &BranchName, tip: Oid) {
        self.made.insert(branch.clone(), tip);
    }

    /// States that the branch gets another parent.
    pub(super) fn parent_changes(&mut self, branch: &BranchName, parent: Parent) {
        self.parents.insert(branch.clone(), parent);
    }

    /// Brings one branch onto its parent; its parent, if it is rewritten at all, came before.
    pub(super) fn bring(&mut self, branch: &BranchName) -> Result<(), Refusal> {
        let snapshot = self.snapshot;
        let (metadata, _) = snapshot.metadata_of(branch).expect("bug: only tracked branches are brought along");
        let parent = self.parents.get(branch).unwrap_or(&metadata.parent).clone();
        let below = parent.name();
        let parent_moves = self.moving.contains(below);
        let made = self.made.get(below).copied();
        let parent_tip = made.or_else(|| snapshot.tip(below));
        let current = !parent_moves && parent == metadata.parent && parent_tip == Some(metadata.base);
        if current {
            return Ok(());
        }
        let held = snapshot.held.get(branch).cloned();
        if let Some(reason) = metadata.freeze.is_frozen().then(|| FROZEN.to_owned()).or(held) {
            let kept = Kept { branch: branch.clone(), reason };
            // On its old parent it may wait for a restack. Another parent is what the command is about.
            if self.parents.contains_key(branch) {
                return Err(scope::kept_in_the_way(&kept));
            }
            self.kept.push(kept);
            return Ok(());
        }
        let tip = snapshot.tip(branch).expect("bug: tracked branches exist");
        let onto = match parent_tip {
            _ if parent_moves => Place::TipOf(below.clone()),
            Some(at) => Place::Object(at),
            None => unreachable!("bug: the gate refuses missing parents"),
        };
        let position = snapshot.position(branch).expect("bug: tracked branches have a position");
        let stands_there = match onto {
            // Own commits that begin right there. That the place is somewhere below is not enough:
            // commits of a parent that is left or that shrank would become the branch's own.
            Place::Object(at) if position.merges.is_empty() => position.fork == Some(at),
            // A parent that was merged into the branch.
            Place::Object(at) => parent == metadata.parent && snapshot.history.contains(at, tip),
            Place::TipOf(_) => false,
        };
        if !stands_there {
            self.rewrite(branch, tip, position, onto.clone())?;
        }
        if let (Place::Object(at), None) = (&onto, made) {
            self.guards.insert(below.clone(), *at);
        }
        let mut document = draft_of(metadata);
        document.parent = parent;
        document.base = onto;
        let expected = expected_metadata(snapshot, branch);
        self.metadata.push(Step::SetMetadata { branch: branch.clone(), expected, document });
        Ok(())
    }

    fn rewrite(&mut self, branch: &BranchName, tip: Oid, position: Position, onto: Place) -> Result<(), Refusal> {
        if let Some(merge) = position.merges.first() {
            return Err(Refusal::new(
                "merge-commit",
                format!(
                    "`{branch}` contains the merge commit {}, which cannot be moved without flattening it",
                    merge.short()
                ),
            )
            .hint(format!("make the history of {branch} linear, or freeze it: lattice freeze {}", branch.word())));
        }
        let fork = position.fork.ok_or_else(|| {
            Refusal::new("unrelated-history", format!("`{branch}` shares no history with its parent"))
        })?;
        let commits = position.commits.into_iter().rev().collect();
        self.rewrites.push(Step::Rewrite { branch: branch.clone(), tip, fork, commits, onto });
        self.moving.insert(branch.clone());
        Ok(())
    }

    /// Appends what was collected: rewrites, metadata, and guards on parents that must stay.
    pub(super) fn finish(self, mut plan: Plan) -> Plan {
        let moving = self.moving;
        plan.steps.extend(self.rewrites);
        plan.steps.extend(self.metadata);
        let guards = self.guards.into_iter().filter(|(branch, _)| !moving.contains(branch));
        plan.steps
            .extend(guards.map(|(branch, at)| Step::Guard { name: branch.branch_ref(), expected: Expected::At(at) }));
        plan.kept.extend(self.kept);
        plan
    }
}

/// A draft that changes nothing.
pub fn draft_of(metadata: &BranchMetadataV1) -> MetadataDraft {
    MetadataDraft {
        parent: metadata.parent.clone(),
        base: Place::Object(metadata.base),
        freeze: FreezeDraft::Keep(metadata.freeze.clone()),
        pr: metadata.pr.clone(),
        created_at: Some(metadata.created_at.clone()),
    }
}

/// A draft with another parent and base.
pub fn reparented(metadata: &BranchMetadataV1, parent: Parent, base: Oid) -> MetadataDraft {
    MetadataDraft { parent, base: Place::Object(base), ..draft_of(metadata) }
}

/// The value that a branch's metadata ref had in the snapshot.
pub(super) fn expected_metadata(snapshot: &Snapshot, branch: &BranchName) -> Expected {
    Expected::from_option(snapshot.metadata.get(branch).map(|reading| reading.oid))
}
