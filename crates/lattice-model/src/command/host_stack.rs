//! Stacks that a host keeps itself: which pull requests are to be one, and what has to be done for it.

use crate::host::{HostAction, HostStack, HostStacks};
use crate::name::BranchName;
use crate::snapshot::Snapshot;

/// Branches that stand on each other, lowest first, with the numbers of those pull requests that there are already.
#[derive(Debug, Default)]
pub(super) struct Chain {
    branches: Vec<BranchName>,
    numbers: Vec<Option<u64>>,
}

/// How what is wanted relates to what the host keeps.
enum Difference {
    None,
    /// The lowest so many are one already.
    Above(u64, usize),
    Other(u64),
    Nothing,
}

impl Chain {
    /// The part of a stack that is a line: a host keeps no trees. `pull` is the number of a pull request, if it is there
    /// or is going to be.
    pub(super) fn from_the_bottom(
        snapshot: &Snapshot,
        start: &BranchName,
        pull: impl Fn(&BranchName) -> Option<Option<u64>>,
    ) -> Self {
        let graph = snapshot.graph();
        let mut chain = Self::default();
        let mut next = graph.downstack(start).into_iter().next().or_else(|| Some(start.clone()));
        while let Some(branch) = next.take() {
            let Some(number) = pull(&branch) else { break };
            let above: Vec<_> = graph.children(&branch).filter(|child| pull(child).is_some()).cloned().collect();
            next = <[BranchName; 1]>::try_from(above).ok().map(|[only]| only);
            chain.branches.push(branch);
            chain.numbers.push(number);
        }
        chain
    }

    /// Whether the host itself shows exactly these branches as one stack, now or once this is carried out.
    pub(super) fn shows(&self, stacks: &HostStacks, branches: &[BranchName]) -> bool {
        matches!(stacks, HostStacks::Kept(_)) && branches.len() > 1 && self.branches == branches
    }

    /// What has to be asked of the host, around what is asked for the pull requests themselves.
    pub(super) fn around(self, stacks: &HostStacks, actions: Vec<HostAction>) -> Vec<HostAction> {
        let opens = actions.iter().any(|action| matches!(action, HostAction::OpenPull { .. }));
        let difference = match stacks {
            HostStacks::NotKept => Difference::None,
            HostStacks::NotAsked if !opens => Difference::None,
            HostStacks::NotAsked | HostStacks::Kept(None) => Difference::Nothing,
            HostStacks::Kept(Some(stack)) => self.difference(stack),
        };
        let (unstack, onto) = match difference {
            Difference::None => return actions,
            Difference::Above(number, at) => (None, Some((number, at))),
            Difference::Other(number) => (Some(HostAction::Unstack { stack: number }), None),
            Difference::Nothing => (None, None),
        };
        let stack = (self.branches.len() > 1).then_some(HostAction::Stack { branches: self.branches, onto });
        // Out of the old stack before bases change, and into the new one once all are open; the list comes last, for it
        // is only needed where the host keeps none.
        let (lists, others): (Vec<_>, Vec<_>) =
            actions.into_iter().partition(|action| matches!(action, HostAction::Overview { .. }));
        unstack.into_iter().chain(others).chain(stack).chain(lists).collect()
    }

    fn difference(&self, stack: &HostStack) -> Difference {
        let shared = self.numbers.iter().zip(&stack.pulls).take_while(|(own, kept)| **own == Some(**kept)).count();
        match (shared == self.numbers.len(), shared == stack.pulls.len()) {
            // Somebody else's pull requests on top are none of ours.
            (true, _) => Difference::None,
            (false, true) if shared > 0 => Difference::Above(stack.number, shared),
            (false, _) => Difference::Other(stack.number),
        }
    }
}
