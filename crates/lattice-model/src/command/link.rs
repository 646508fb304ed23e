//! Cached links to pull requests: kept up to date after the host answered, or forgotten with `unlink`.

use std::collections::BTreeMap;

use crate::branch::PrState;
use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Hooks, Plan, Step};
use crate::snapshot::Snapshot;

use super::freeze::METADATA_ONLY;
use super::rewrite::{draft_of, expected_metadata};
use super::scope;

/// Writes what a host said of pull requests into the cached part of metadata. The end of another command.
#[derive(Debug, Clone)]
pub struct Relink {
    pub command: &'static str,
    pub links: BTreeMap<BranchName, PrState>,
}

/// Forgets the pull request of a branch. On the host nothing changes.
#[derive(Debug, Clone)]
pub struct Unlink {
    pub branch: Option<BranchName>,
}

impl Command for Relink {
    const NAME: &'static str = "relink";
    const REQUIRES: &'static [Capability] = METADATA_ONLY;

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let tracked = self.links.iter().filter(|(branch, _)| snapshot.is_tracked(branch));
        let steps = tracked.filter_map(|(branch, link)| relink(snapshot, branch, link));
        let mut plan = Plan::new(self.command, Hooks::Run);
        plan.steps.extend(steps);
        Ok(plan.verified())
    }
}

impl Command for Unlink {
    const NAME: &'static str = "unlink";
    const REQUIRES: &'static [Capability] = METADATA_ONLY;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        scope::tracked(snapshot, self.branch.as_ref()).err().into_iter().collect()
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let branch = scope::tracked(snapshot, self.branch.as_ref()).expect("bug: the gate resolved the scope");
        let mut plan = Plan::new(Self::NAME, Hooks::Run);
        plan.steps.extend(relink(snapshot, &branch, &PrState::None {}));
        Ok(plan.verified())
    }
}

/// The step that changes the link of a branch, if it is another one.
pub(super) fn relink(snapshot: &Snapshot, branch: &BranchName, link: &PrState) -> Option<Step> {
    let (metadata, _) = snapshot.metadata_of(branch)?;
    if metadata.pr == *link {
        return None;
    }
    let mut document = draft_of(metadata);
    document.pr = link.clone();
    Some(Step::SetMetadata { branch: branch.clone(), expected: expected_metadata(snapshot, branch), document })
}
