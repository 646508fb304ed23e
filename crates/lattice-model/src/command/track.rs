//! `track` and `untrack`: start and stop tracking a branch.

use crate::branch::{FreezeState, Parent, PrState};
use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::id::Oid;
use crate::issue::{Issue, IssueKind, evidence};
use crate::name::BranchName;
use crate::plan::{Expected, FreezeDraft, Hooks, MetadataDraft, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::freeze::METADATA_ONLY;
use super::rewrite::{draft_of, expected_metadata};
use super::scope;

#[derive(Debug, Clone)]
pub struct Track {
    pub branch: Option<BranchName>,
    pub parent: BranchName,
    /// Where branch and parent meet, as Git says; `None` if they share no history.
    pub merge_base: Option<Oid>,
    pub retrack: Retrack,
    pub freeze: FreezeOnTrack,
}

/// Whether a branch that is tracked may get another parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retrack {
    Refuse,
    Allow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeOnTrack {
    No,
    Yes,
}

#[derive(Debug, Clone)]
pub struct Untrack {
    pub branch: Option<BranchName>,
    pub above: Above,
}

/// What happens to tracked branches above one that is no longer tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Above {
    Refuse,
    UntrackToo,
}

impl Command for Track {
    const NAME: &'static str = "track";
    const REQUIRES: &'static [Capability] = METADATA_ONLY;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        if let Err(issue) = scope::named_or_current(snapshot, self.branch.as_ref()) {
            return vec![issue];
        }
        let is_trunk = snapshot.is_trunk(&self.parent);
        if is_trunk || snapshot.is_tracked(&self.parent) {
            return Vec::new();
        }
        let summary = format!("`{}` cannot be a parent: it is neither the trunk nor tracked", self.parent);
        let facts = evidence([("parent", self.parent.to_string())]);
        vec![Issue::new(IssueKind::ScopeUnresolved, summary, facts).action(
            "track-parent",
            "track the parent first",
            format!("lattice track {} --parent <branch below>", self.parent.word()),
        )]
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::named_or_current(snapshot, self.branch.as_ref()).expect("bug: the gate resolved the scope");
        let trunk = snapshot.settings.trunk.clone().expect("bug: the gate requires a trunk");
        if branch == trunk {
            return Err(Refusal::new("trunk", format!("`{branch}` is the trunk and is never tracked")));
        }
        if branch == self.parent || snapshot.graph().upstack(&branch).contains(&self.parent) {
            return Err(Refusal::new(
                "cycle",
                format!("`{}` stands on `{branch}` and cannot be its parent", self.parent),
            ));
        }
        let tracked = snapshot.metadata_of(&branch);
        if tracked.is_some() && self.retrack == Retrack::Refuse {
            return Err(Refusal::new("already-tracked", format!("`{branch}` is tracked already"))
                .hint(format!("lattice move --source {} --onto {} rebases it", branch.word(), self.parent.word()))
                .hint("--force only writes the new parent"));
        }
        if tracked.is_none() {
            scope::check_room(snapshot.metadata.keys(), &branch)?;
        }
        let base = self.merge_base.ok_or_else(|| {
            Refusal::new("unrelated-history", format!("`{branch}` and `{}` share no history", self.parent))
        })?;
        let mut document = tracked.map_or_else(
            || MetadataDraft {
                parent: Parent::of(&self.parent, &trunk),
                base: Place::Object(base),
                freeze: FreezeDraft::Keep(FreezeState::Unfrozen {}),
                pr: PrState::None {},
                created_at: None,
            },
            |(metadata, _)| draft_of(metadata),
        );
        document.parent = Parent::of(&self.parent, &trunk);
        document.base = Place::Object(base);
        if self.freeze == FreezeOnTrack::Yes {
            document.freeze = FreezeDraft::FreezeNow { reason: None };
        }
        let expected = expected_metadata(snapshot, &branch);
        let guard = |branch: &BranchName| Step::Guard {
            name: branch.branch_ref(),
            expected: Expected::from_option(snapshot.tip(branch)),
        };
        Ok(Plan::new(Self::NAME, Hooks::Run)
            .then(Step::SetMetadata { branch: branch.clone(), expected, document })
            .then(guard(&branch))
            .then(guard(&self.parent))
            .verified())
    }
}

impl Command for Untrack {
    const NAME: &'static str = "untrack";
    const REQUIRES: &'static [Capability] = METADATA_ONLY;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        scope::tracked(snapshot, self.branch.as_ref()).err().into_iter().collect()
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::tracked(snapshot, self.branch.as_ref()).expect("bug: the gate resolved the scope");
        let above = snapshot.graph().upstack(&branch);
        if !above.is_empty() && self.above == Above::Refuse {
            let names: Vec<_> = above.iter().map(BranchName::as_str).collect();
            return Err(Refusal::new(
                "has-children",
                format!("tracked branches stand on `{branch}`: {}", names.join(", ")),
            )
            .hint("--force stops tracking them too")
            .hint(format!("or give them another parent: lattice move --source {} --onto <branch>", above[0].word())));
        }
        let mut plan = Plan::new(Self::NAME, Hooks::Run);
        for branch in std::iter::once(&branch).chain(&above) {
            let expected = expected_metadata(snapshot, branch);
            plan.steps.push(Step::SetRef { name: branch.metadata_ref(), expected, to: None });
        }
        Ok(plan.verified())
    }
}
