//! The stack graph over ordered maps; cycles and missing parents are values, not panics.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::BranchName;

/// Tracked branches and their parents, with edges from child to parent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackGraph {
    trunk: Option<BranchName>,
    parents: BTreeMap<BranchName, BranchName>,
    children: BTreeMap<BranchName, BTreeSet<BranchName>>,
}

/// A way in which the graph does not describe stacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GraphProblem {
    /// Each branch is the parent of the one before it, and the first of the last.
    Cycle(Vec<BranchName>),
    MissingParent {
        branch: BranchName,
        parent: BranchName,
    },
    TrackedTrunk(BranchName),
}

impl StackGraph {
    pub fn new(trunk: Option<BranchName>, edges: impl IntoIterator<Item = (BranchName, BranchName)>) -> Self {
        let mut graph = Self { trunk, ..Self::default() };
        for (child, parent) in edges {
            graph.children.entry(parent.clone()).or_default().insert(child.clone());
            graph.parents.insert(child, parent);
        }
        graph
    }

    pub fn parent(&self, branch: &BranchName) -> Option<&BranchName> {
        self.parents.get(branch)
    }

    pub fn children(&self, branch: &BranchName) -> impl Iterator<Item = &BranchName> {
        self.children.get(branch).into_iter().flatten()
    }

    pub fn contains(&self, branch: &BranchName) -> bool {
        self.parents.contains_key(branch)
    }

    /// Everything above `branch`, parents before children, without `branch` itself.
    pub fn upstack(&self, branch: &BranchName) -> Vec<BranchName> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([branch.clone()]);
        let mut waiting: Vec<_> = self.children(branch).rev_sorted();
        while let Some(next) = waiting.pop() {
            if seen.insert(next.clone()) {
                waiting.extend(self.children(&next).rev_sorted());
                found.push(next);
            }
        }
        found
    }

    /// From the branch directly above the trunk up to the parent of `branch`, bottom first.
    pub fn downstack(&self, branch: &BranchName) -> Vec<BranchName> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([branch.clone()]);
        let mut current = branch;
        while let Some(parent) = self.parents.get(current) {
            if !self.contains(parent) || !seen.insert(parent.clone()) {
                break;
            }
            found.push(parent.clone());
            current = parent;
        }
        found.reverse();
        found
    }

    /// All tracked branches that lead to the trunk, parents before children.
    pub fn topological(&self) -> Vec<BranchName> {
        self.trunk.as_ref().map(|trunk| self.upstack(trunk)).unwrap_or_default()
    }

    /// All tracked branches, also those that stand on one that is not tracked, parents before children.
    pub fn all(&self) -> Vec<BranchName> {
        let roots: BTreeSet<_> = self.parents.values().filter(|parent| !self.parents.contains_key(*parent)).collect();
        roots.into_iter().flat_map(|root| self.upstack(root)).collect()
    }

    /// Everything that is wrong, given the local branches that exist.
    pub fn problems(&self, exists: impl Fn(&BranchName) -> bool) -> Vec<GraphProblem> {
        let mut problems = BTreeSet::new();
        for (branch, parent) in &self.parents {
            if Some(branch) == self.trunk.as_ref() {
                problems.insert(GraphProblem::TrackedTrunk(branch.clone()));
            }
            if !exists(parent) {
                problems.insert(GraphProblem::MissingParent { branch: branch.clone(), parent: parent.clone() });
            }
        }
        problems.extend(self.cycles().into_iter().map(GraphProblem::Cycle));
        problems.into_iter().collect()
    }

    /// Each cycle once, starting at its first branch by name.
    fn cycles(&self) -> BTreeSet<Vec<BranchName>> {
        let mut cycles = BTreeSet::new();
        let mut settled: BTreeSet<&BranchName> = BTreeSet::new();
        for start in self.parents.keys() {
            let mut path: Vec<&BranchName> = Vec::new();
            let mut on_path: BTreeMap<&BranchName, usize> = BTreeMap::new();
            let mut current = Some(start);
            while let Some(branch) = current.filter(|branch| !settled.contains(branch)) {
                if let Some(&at) = on_path.get(branch) {
                    cycles.insert(rotated(&path[at..]));
                    break;
                }
                on_path.insert(branch, path.len());
                path.push(branch);
                current = self.parents.get(branch);
            }
            settled.extend(path);
        }
        cycles
    }
}

fn rotated(cycle: &[&BranchName]) -> Vec<BranchName> {
    let first = cycle.iter().enumerate().min_by_key(|(_, name)| **name).map_or(0, |(at, _)| at);
    cycle[first..].iter().chain(&cycle[..first]).map(|name| (*name).clone()).collect()
}

trait RevSorted<'a> {
    fn rev_sorted(self) -> Vec<BranchName>;
}

impl<'a, I: Iterator<Item = &'a BranchName>> RevSorted<'a> for I {
    fn rev_sorted(self) -> Vec<BranchName> {
        let mut names: Vec<_> = self.cloned().collect();
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests;
