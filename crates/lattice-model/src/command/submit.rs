//! `submit`: pushes what changed and opens or updates the pull requests of a stack.

use crate::branch::{PrState, PrStatus};
use crate::capability::Capability;
use crate::doctor::host;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::host::{Draft, ForgeKind, HostAction, HostFacts, OverviewPlace, Pull, PullState, RemoteReading};
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::BranchName;
use crate::overview;
use crate::plan::{Expected, Hooks, Kept, Plan, PushUpdate, Step};
use crate::snapshot::Snapshot;

use super::host_stack::Chain;
use super::scope;

/// What every command needs that changes something on a host.
pub(super) const HOSTED: &[Capability] = &[
    Capability::RepoOpen,
    Capability::TrunkKnown,
    Capability::NoLatticeOpInProgress,
    Capability::NoExternalGitOpInProgress,
    Capability::MetadataReadable,
    Capability::GraphValid,
    Capability::ScopeResolved,
    Capability::FrozenPolicySatisfied,
    Capability::WorkingDirectoryAvailable,
    Capability::HistoryComplete,
    Capability::BranchesFree,
    Capability::RefsWritable,
    Capability::RemoteResolved,
    Capability::AuthAvailable,
    Capability::RepoAuthorized,
];

#[derive(Debug, Clone)]
pub struct Submit {
    /// The current branch if absent.
    pub branch: Option<BranchName>,
    pub reach: SubmitReach,
    /// What pull requests are to be; new ones are ready and others stay as they are if absent.
    pub draft: Option<Draft>,
    pub overwrite: Overwrite,
    pub open: Open,
    pub refresh: Refresh,
    pub reviewers: Vec<String>,
    pub overview: OverviewPlace,
    pub hooks: Hooks,
    pub host: HostFacts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitReach {
    /// The branch and everything below it.
    Downstack,
    Stack,
    /// The branch alone; what it stands on must be on the remote already.
    Alone,
}

/// What becomes of commits that only the remote has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    Never,
    RemoteCommits,
}

/// Whether branches without a pull request get one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Missing,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    Changed,
    All,
}

impl Submit {
    fn start(&self, snapshot: &Snapshot) -> Result<BranchName, Issue> {
        scope::tracked(snapshot, self.branch.as_ref())
    }

    /// The branches to submit, parents first.
    pub fn branches(&self, snapshot: &Snapshot) -> Vec<BranchName> {
        let Ok(start) = self.start(snapshot) else { return Vec::new() };
        match self.reach {
            SubmitReach::Downstack => {
                let mut branches = snapshot.graph().downstack(&start);
                branches.push(start);
                branches
            }
            SubmitReach::Stack => whole_stack(snapshot, &start),
            SubmitReach::Alone => vec![start],
        }
    }

    fn push(&self, snapshot: &Snapshot, branch: &BranchName) -> Result<Option<PushUpdate>, Refusal> {
        let tip = tip(snapshot, branch);
        let there = self.host.heads.get(branch).copied();
        if there == Some(tip) {
            return Ok(None);
        }
        if let Some(there) = there.filter(|_| !self.host.ours.contains(branch) && self.overwrite == Overwrite::Never) {
            return Err(Refusal::new(
                "remote-has-more",
                format!(
                    "`{branch}` on the remote is at {}, which you never had here; pushing would lose it",
                    there.short()
                ),
            )
            .hint(format!("lattice get {} takes those commits in, unless you have others there", branch.word()))
            .hint(scope::keep_both(snapshot, branch))
            .hint("--force replaces them"));
        }
        Ok(Some(PushUpdate { branch: branch.clone(), expected: Expected::from_option(there), to: Some(tip) }))
    }

    /// A pull request needs its base on the remote: there already, or pushed with it.
    fn check_base(&self, snapshot: &Snapshot, parent: &BranchName, updates: &[PushUpdate]) -> Result<(), Refusal> {
        let is_trunk = snapshot.is_trunk(parent);
        let comes_along = updates.iter().any(|update| update.branch == *parent);
        if is_trunk || comes_along || self.host.heads.contains_key(parent) {
            return Ok(());
        }
        let message = format!("`{parent}`, which it stands on, is not on the remote");
        let refusal = Refusal::new("base-not-on-remote", message);
        Err(match self.reason_to_keep(snapshot, parent) {
            Some(reason) => refusal
                .hint(format!("`{parent}` is not submitted: {reason}; lattice move puts what stands on it elsewhere")),
            None => refusal.hint(format!("lattice checkout {}, then lattice submit", parent.word())),
        })
    }

    /// What the host has to do for one branch.
    fn actions(&self, branch: &BranchName, parent: &BranchName) -> Vec<HostAction> {
        let known = self.host.pulls.get(branch).filter(|pull| pull.state == PullState::Open);
        let mut actions = Vec::new();
        match (known, self.open) {
            (Some(pull), _) => {
                let base = (pull.base != parent.as_str()).then(|| parent.clone());
                let draft = self.draft.filter(|wanted| *wanted != pull.draft);
                if base.is_some() || draft.is_some() || self.refresh == Refresh::All {
                    actions.push(HostAction::UpdatePull { number: pull.number, head: branch.clone(), base, draft });
                }
            }
            (None, Open::Missing) => {
                let text = self.host.texts.get(branch);
                actions.push(HostAction::OpenPull {
                    head: branch.clone(),
                    base: parent.clone(),
                    title: text.map_or_else(|| branch.to_string(), |text| text.title.clone()),
                    body: text.map(|text| text.body.clone()).unwrap_or_default(),
                    draft: self.draft.unwrap_or(Draft::Ready),
                });
            }
            (None, Open::None) => {}
        }
        let opened = actions.iter().any(|action| matches!(action, HostAction::OpenPull { .. }));
        if !self.reviewers.is_empty() && (opened || known.is_some()) {
            let reviewers = self.reviewers.clone();
            actions.push(HostAction::RequestReviewers { head: branch.clone(), reviewers });
        }
        actions
    }

    /// The list of the stack, where one of its pull requests does not show it as it is.
    fn overview(&self, snapshot: &Snapshot, actions: &[HostAction]) -> Option<HostAction> {
        let opens = |branch: &BranchName| {
            actions.iter().any(|action| matches!(action, HostAction::OpenPull { head, .. } if head == branch))
        };
        let open =
            |branch: &&BranchName| self.host.pulls.get(*branch).is_some_and(|pull| pull.state == PullState::Open);
        let start = self.start(snapshot).ok()?;
        let all = whole_stack(snapshot, &start);
        let stack: Vec<_> = all.iter().filter(|branch| opens(branch) || open(branch)).cloned().collect();
        let pulls: Vec<&Pull> = stack.iter().filter_map(|branch| self.host.pulls.get(branch)).collect();
        let complete = pulls.len() == stack.len() && !stack.iter().any(opens);
        let shown = complete && overview::is_shown(&pulls);
        if self.host_stack(snapshot, actions).shows(&self.host.stacks, &stack) {
            return None;
        }
        let wanted = match self.overview {
            OverviewPlace::Off => false,
            OverviewPlace::Body => !shown,
            // What a comment says is only known when it is read; it is written when something was opened.
            OverviewPlace::Comment => !complete,
        };
        (wanted && stack.len() > 1).then_some(HostAction::Overview { place: self.overview, stack })
    }
}

impl Command for Submit {
    const NAME: &'static str = "submit";
    const REQUIRES: &'static [Capability] = HOSTED;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let mut issues: Vec<_> = self.start(snapshot).err().into_iter().collect();
        issues.extend(host::issues(&self.host, &snapshot.settings.forge.github));
        issues
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let mut plan = Plan::new(Self::NAME, self.hooks);
        let (mut updates, mut actions) = (Vec::new(), Vec::new());
        for branch in self.branches(snapshot) {
            let (metadata, _) = snapshot.metadata_of(&branch).expect("bug: tracked branches have metadata");
            if let Some(reason) = self.reason_to_keep(snapshot, &branch) {
                plan.kept.push(Kept { branch, reason });
                continue;
            }
            plan.steps.push(Step::Guard { name: branch.branch_ref(), expected: Expected::At(tip(snapshot, &branch)) });
            self.host.check_public(&branch, metadata.parent.name())?;
            self.check_base(snapshot, metadata.parent.name(), &updates)?;
            updates.extend(self.push(snapshot, &branch)?);
            actions.extend(self.actions(&branch, metadata.parent.name()));
        }
        let host_stack = self.host_stack(snapshot, &actions);
        actions.extend(self.overview(snapshot, &actions));
        let actions = host_stack.around(&self.host.stacks, actions);
        let mut plan = plan.verified();
        if !updates.is_empty() {
            plan.steps.push(Step::Push { remote: self.host.remote.name().to_owned(), updates });
        }
        plan.steps.extend(actions.into_iter().map(|action| Step::Host { action }));
        Ok(plan)
    }
}

impl Submit {
    /// What the host is to keep as one stack: from the lowest branch up, until two stand on one.
    fn host_stack(&self, snapshot: &Snapshot, actions: &[HostAction]) -> Chain {
        let Ok(start) = self.start(snapshot) else { return Chain::default() };
        let opens = |branch: &BranchName| {
            actions.iter().any(|action| matches!(action, HostAction::OpenPull { head, .. } if head == branch))
        };
        let pull = |branch: &BranchName| {
            let known = self.host.pulls.get(branch).filter(|pull| pull.state == PullState::Open);
            known.map(|pull| Some(pull.number)).or_else(|| opens(branch).then_some(None))
        };
        Chain::from_the_bottom(snapshot, &start, pull)
    }

    fn reason_to_keep(&self, snapshot: &Snapshot, branch: &BranchName) -> Option<String> {
        let (metadata, _) = snapshot.metadata_of(branch)?;
        if metadata.freeze.is_frozen() {
            return Some("frozen".to_owned());
        }
        if snapshot.position(branch).is_some_and(|position| position.commits.is_empty()) {
            return Some("it has no commits of its own".to_owned());
        }
        let pull = self.host.pulls.get(branch)?;
        let landed = pull.state == PullState::Merged && pull.head_at == snapshot.tip(branch);
        landed.then(|| format!("#{} has landed; lattice sync tidies up", pull.number))
    }
}

/// Everything below and above a branch, parents first.
pub fn whole_stack(snapshot: &Snapshot, branch: &BranchName) -> Vec<BranchName> {
    let graph = snapshot.graph();
    let mut branches = graph.downstack(branch);
    branches.push(branch.clone());
    branches.extend(graph.upstack(branch));
    branches
}

/// The cached link to a pull request.
pub fn link_to(remote: &RemoteReading, pull: &Pull) -> PrState {
    let forge = match remote {
        RemoteReading::Resolved { forge, .. } => *forge,
        RemoteReading::Missing { .. } | RemoteReading::Unusable { .. } => ForgeKind::Git,
    };
    let is_draft = pull.draft == Draft::Draft;
    PrState::Linked {
        forge: forge.as_str().to_owned(),
        number: pull.number,
        url: pull.url.clone(),
        last_known: Some(PrStatus { state: pull.state.as_str().to_owned(), is_draft }),
    }
}

fn tip(snapshot: &Snapshot, branch: &BranchName) -> Oid {
    snapshot.tip(branch).expect("bug: tracked branches exist")
}
