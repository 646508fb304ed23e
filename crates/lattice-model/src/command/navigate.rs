//! `checkout`, `up`, `down`, `top`, `bottom`: move around in a stack.

use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, Plan, Step};
use crate::snapshot::Snapshot;

use super::scope;

#[derive(Debug, Clone)]
pub struct Navigate {
    pub to: Destination,
}

#[derive(Debug, Clone)]
pub enum Destination {
    Branch(BranchName),
    /// So many levels up; at a fork, towards this branch.
    Up {
        levels: usize,
        towards: Option<BranchName>,
    },
    Down {
        levels: usize,
    },
    Top {
        towards: Option<BranchName>,
    },
    Bottom,
}

impl Command for Navigate {
    const NAME: &'static str = "checkout";
    const REQUIRES: &'static [Capability] = &[
        Capability::RepoOpen,
        Capability::NoLatticeOpInProgress,
        Capability::NoExternalGitOpInProgress,
        Capability::ScopeResolved,
        Capability::WorkingDirectoryAvailable,
        Capability::BranchesFree,
        Capability::RefsWritable,
    ];

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        let target = match &self.to {
            Destination::Branch(branch) => match scope::named_or_current(snapshot, Some(branch)) {
                Ok(branch) => branch,
                Err(issue) => return vec![issue],
            },
            Destination::Up { .. } | Destination::Down { .. } | Destination::Top { .. } | Destination::Bottom => {
                if let Err(issue) = scope::named_or_current(snapshot, None) {
                    return vec![issue];
                }
                match self.target(snapshot) {
                    Ok(branch) => branch,
                    Err(_) => return Vec::new(),
                }
            }
        };
        scope::occupied(snapshot, [&target])
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let target = self.target(snapshot)?;
        let plan = Plan::new(Self::NAME, Hooks::Run);
        if snapshot.head.branch() == Some(&target) {
            return Ok(plan.verified());
        }
        let expected = Expected::from_option(snapshot.tip(&target));
        Ok(plan
            .then(Step::Guard { name: target.branch_ref(), expected })
            .then(Step::Switch { to: HeadValue::Branch(target) })
            .verified())
    }
}

impl Navigate {
    /// The branch that the request leads to.
    pub fn target(&self, snapshot: &Snapshot) -> Result<BranchName, Refusal> {
        let current = snapshot.head.branch();
        let current = || current.cloned().ok_or_else(|| Refusal::new("no-current-branch", "HEAD is on no branch"));
        match &self.to {
            Destination::Branch(branch) => Ok(branch.clone()),
            Destination::Up { levels, towards } => climb(snapshot, current()?, *levels, towards.as_ref()),
            Destination::Top { towards } => climb(snapshot, current()?, usize::MAX, towards.as_ref()),
            Destination::Down { levels } => descend(snapshot, current()?, *levels),
            Destination::Bottom => {
                let current = current()?;
                let below = snapshot.graph().downstack(&current);
                if below.is_empty() && !snapshot.is_tracked(&current) {
                    return Err(Refusal::new("no-stack", format!("`{current}` is in no stack"))
                        .hint("lattice up goes to a branch that stands on it"));
                }
                Ok(below.first().cloned().unwrap_or(current))
            }
        }
    }
}

fn climb(
    snapshot: &Snapshot,
    from: BranchName,
    levels: usize,
    towards: Option<&BranchName>,
) -> Result<BranchName, Refusal> {
    let graph = snapshot.graph();
    if let Some(to) = towards.filter(|to| !graph.upstack(&from).contains(to)) {
        return Err(Refusal::new("not-above", format!("`{to}` does not stand on `{from}`"))
            .hint(format!("lattice checkout {to} goes to any branch")));
    }
    let mut current = from.clone();
    let mut seen = std::collections::BTreeSet::from([current.clone()]);
    for _ in 0..levels {
        let children: Vec<_> = graph.children(&current).collect();
        let leads = |child: &&&BranchName| {
            Some(**child) == towards || towards.is_some_and(|to| graph.upstack(child).contains(to))
        };
        let next = match children.as_slice() {
            [] => break,
            [only] => *only,
            several => match several.iter().find(leads) {
                Some(child) => *child,
                None => return Err(ambiguous(&current, several)),
            },
        };
        if !seen.insert(next.clone()) {
            break;
        }
        current = next.clone();
    }
    if current == from {
        return Err(Refusal::new("at-the-top", format!("nothing stands on `{from}`")));
    }
    Ok(current)
}

fn ambiguous(at: &BranchName, children: &[&BranchName]) -> Refusal {
    let names: Vec<_> = children.iter().map(|child| child.as_str()).collect();
    Refusal::new("ambiguous", format!("several branches stand on `{at}`: {}", names.join(", ")))
        .hint(format!("say which way: --to {}", children[0].word()))
}

fn descend(snapshot: &Snapshot, from: BranchName, levels: usize) -> Result<BranchName, Refusal> {
    let graph = snapshot.graph();
    let mut current = from.clone();
    let mut seen = std::collections::BTreeSet::from([current.clone()]);
    for _ in 0..levels {
        match graph.parent(&current) {
            Some(parent) if snapshot.tip(parent).is_some() && seen.insert(parent.clone()) => current = parent.clone(),
            Some(_) | None => break,
        }
    }
    if current == from {
        return Err(Refusal::new("at-the-bottom", format!("`{from}` stands on nothing that is tracked")));
    }
    Ok(current)
}
