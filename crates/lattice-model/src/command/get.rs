//! `get`: takes someone's branch in and tracks it.

use crate::branch::{FreezeState, Parent, PrState};
use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Expected, FreezeDraft, Hooks, MetadataDraft, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::rewrite::{draft_of, expected_metadata};
use super::scope;

#[derive(Debug, Clone)]
pub struct Get {
    pub branch: BranchName,
    /// Where the remote has it.
    pub at: Oid,
    pub relation: Relation,
    pub parent: BranchName,
    /// Where it left its parent.
    pub base: Oid,
    pub freeze: FreezeOnGet,
    pub replace: Replace,
    pub checkout: Checkout,
    pub link: Option<PrState>,
    pub hooks: Hooks,
}

/// Why a branch is frozen that somebody else works on.
pub const FETCHED: &str = "fetched with `lattice get`";

/// How the local branch of the same name relates to the one on the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Absent,
    /// The local one is the same or has more.
    Contains,
    Behind,
    Diverged,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeOnGet {
    Yes,
    No,
}

/// What becomes of local commits that the remote does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Never,
    LocalCommits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkout {
    Yes,
    No,
}

impl Command for Get {
    const NAME: &'static str = "get";
    const REQUIRES: &'static [Capability] = &[
        Capability::RepoOpen,
        Capability::TrunkKnown,
        Capability::NoLatticeOpInProgress,
        Capability::NoExternalGitOpInProgress,
        Capability::MetadataReadable,
        Capability::GraphValid,
        Capability::HistoryComplete,
        Capability::BranchesFree,
        Capability::RefsWritable,
    ];

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let moves = matches!(self.relation, Relation::Behind | Relation::Diverged);
        match self.checkout {
            Checkout::Yes => scope::occupied(snapshot, [&self.branch]),
            Checkout::No if moves => scope::out_of_reach(snapshot, &self.branch).into_iter().collect(),
            Checkout::No => Vec::new(),
        }
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let (trunk, _) = snapshot.trunk().expect("bug: the gate found the trunk");
        let mut plan = Plan::new(Self::NAME, self.hooks);
        let here = snapshot.tip(&self.branch);
        match (self.relation, self.replace) {
            (Relation::Contains, _) => {}
            (Relation::Diverged, Replace::Never) => {
                return Err(Refusal::new(
                    "diverged",
                    format!("`{}` has commits here that the remote does not have, and the reverse", self.branch),
                )
                .hint(scope::keep_both(snapshot, &self.branch))
                .hint("--force takes the remote's, and says what brings yours back"));
            }
            (Relation::Absent, _) => {
                scope::check_new_name(snapshot, &self.branch)?;
                plan.steps.push(self.moved(here));
            }
            (Relation::Behind, _) | (Relation::Diverged, Replace::LocalCommits) => plan.steps.push(self.moved(here)),
        }
        plan.steps.extend(self.metadata(snapshot, trunk));
        if self.checkout == Checkout::Yes && snapshot.head.branch() != Some(&self.branch) {
            plan.steps.push(Step::Switch { to: HeadValue::Branch(self.branch.clone()) });
        }
        Ok(plan.verified())
    }
}

impl Get {
    fn moved(&self, here: Option<Oid>) -> Step {
        let name = self.branch.branch_ref();
        Step::SetRef { name, expected: Expected::from_option(here), to: Some(Place::Object(self.at)) }
    }

    /// A branch that is tracked already keeps its place unless it was replaced.
    fn metadata(&self, snapshot: &Snapshot, trunk: &BranchName) -> Option<Step> {
        let known = snapshot.metadata_of(&self.branch).map(|(metadata, _)| metadata);
        let document = match known {
            Some(known) => {
                let mut document = draft_of(known);
                if matches!(self.relation, Relation::Behind | Relation::Diverged) {
                    (document.parent, document.base) = (Parent::of(&self.parent, trunk), Place::Object(self.base));
                }
                document.pr = self.link.clone().unwrap_or(document.pr);
                if self.freeze == FreezeOnGet::No && known.freeze.is_frozen() {
                    document.freeze = FreezeDraft::Keep(FreezeState::Unfrozen {});
                }
                if document == draft_of(known) {
                    return None;
                }
                document
            }
            None => MetadataDraft {
                parent: Parent::of(&self.parent, trunk),
                base: Place::Object(self.base),
                freeze: match self.freeze {
                    FreezeOnGet::Yes => FreezeDraft::FreezeNow { reason: Some(FETCHED.to_owned()) },
                    FreezeOnGet::No => FreezeDraft::Keep(FreezeState::Unfrozen {}),
                },
                pr: self.link.clone().unwrap_or(PrState::None {}),
                created_at: None,
            },
        };
        let expected = expected_metadata(snapshot, &self.branch);
        Some(Step::SetMetadata { branch: self.branch.clone(), expected, document })
    }
}
