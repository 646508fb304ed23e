//! Where branches stand: their own commits, their fork point, and what their recorded base is worth.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::Oid;

/// The commits that are reachable from tracked branches and not from the trunk, with their parents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    parents: BTreeMap<Oid, Vec<Oid>>,
    /// Answers that the commits above cannot give: whether the first is an ancestor of the second.
    ancestry: BTreeMap<(Oid, Oid), Ancestry>,
}

/// Whether one commit is an ancestor of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ancestry {
    Ancestor,
    NotAncestor,
    /// The alleged ancestor is no commit of this repository.
    Missing,
}

/// Where one branch stands relative to its parent and its recorded base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Reachable from the tip and from neither base nor parent, newest first.
    pub commits: Vec<Oid>,
    /// Those of `commits` that have more than one parent.
    pub merges: Vec<Oid>,
    /// The commit below the lowest own commit, where there is exactly one.
    pub fork: Option<Oid>,
    /// `None` when only Git can tell; a scan asks it for each such pair.
    pub base: Option<Ancestry>,
}

impl History {
    pub fn new(parents: BTreeMap<Oid, Vec<Oid>>) -> Self {
        Self { parents, ancestry: BTreeMap::new() }
    }

    /// Adds what Git said about pairs that `position` could not settle.
    pub fn with_ancestry(mut self, answers: BTreeMap<(Oid, Oid), Ancestry>) -> Self {
        self.ancestry = answers;
        self
    }

    /// The parents of a commit of this history.
    pub fn parents(&self, commit: &Oid) -> Option<&[Oid]> {
        self.parents.get(commit).map(Vec::as_slice)
    }

    /// Where a branch at `tip` stands that was recorded to have left its parent at `base`.
    pub fn position(&self, tip: Oid, base: Oid, parent_tip: Option<Oid>) -> Position {
        let mut commits = Vec::new();
        let mut current = Some(tip);
        while let Some(commit) = current.filter(|commit| *commit != base && Some(*commit) != parent_tip) {
            match self.parents.get(&commit).map(Vec::as_slice) {
                None => break,
                Some([]) => current = None,
                Some([parent]) => current = Some(*parent),
                Some(_) => return self.position_with_merges(tip, base, parent_tip),
            }
            commits.push(commit);
        }
        let base = self.base_state(tip, base, current);
        Position { commits, merges: Vec::new(), fork: current, base }
    }

    /// Whether the linear walk that ended at `end` settles that `base` is below `tip`.
    fn base_state(&self, tip: Oid, base: Oid, end: Option<Oid>) -> Option<Ancestry> {
        if end == Some(base) {
            return Some(Ancestry::Ancestor);
        }
        if let Some(known) = self.ancestry.get(&(base, tip)) {
            return Some(*known);
        }
        // The walk ended at the parent's tip: the base may be further down, in commits we know.
        let below = end.map(|end| self.reachable(end)).unwrap_or_default();
        if below.contains(&base) {
            return Some(Ancestry::Ancestor);
        }
        if self.parents.contains_key(&base) {
            return Some(Ancestry::NotAncestor);
        }
        None
    }

    fn position_with_merges(&self, tip: Oid, base: Oid, parent_tip: Option<Oid>) -> Position {
        let mut excluded = self.reachable(base);
        excluded.extend(parent_tip.map(|parent| self.reachable(parent)).unwrap_or_default());
        let all = self.reachable(tip);
        let mut commits = Vec::new();
        let mut below = BTreeSet::new();
        for commit in &all {
            match self.parents.get(commit) {
                Some(parents) if !excluded.contains(commit) => {
                    commits.push(*commit);
                    below.extend(parents.iter().filter(|p| excluded.contains(p) || !self.parents.contains_key(p)));
                }
                _ => {}
            }
        }
        let merges = commits.iter().filter(|c| self.parents[*c].len() > 1).copied().collect();
        let base = if all.contains(&base) {
            Some(Ancestry::Ancestor)
        } else if let Some(known) = self.ancestry.get(&(base, tip)) {
            Some(*known)
        } else if self.parents.contains_key(&base) {
            Some(Ancestry::NotAncestor)
        } else {
            None
        };
        let fork = if below.len() == 1 { below.first().copied() } else { None };
        Position { commits, merges, fork, base }
    }

    /// Whether `ancestor` is seen below `tip` in the commits of this history or as their parent.
    pub fn contains(&self, ancestor: Oid, tip: Oid) -> bool {
        let mut current = tip;
        // Linear stacks are the rule; the set below is only built where a merge is met.
        loop {
            if current == ancestor {
                return true;
            }
            match self.parents.get(&current).map(Vec::as_slice) {
                Some([parent]) => current = *parent,
                Some([]) | None => return false,
                Some(_) => return self.reachable(current).contains(&ancestor),
            }
        }
    }

    /// `from`, everything below it in this history, and the first commits outside of it.
    fn reachable(&self, from: Oid) -> BTreeSet<Oid> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(commit) = waiting.pop() {
            if seen.insert(commit) {
                waiting.extend(self.parents.get(&commit).into_iter().flatten());
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Ancestry, History, Oid};

    fn oid(n: u8) -> Oid {
        Oid::new(&format!("{n:02x}").repeat(20)).expect("forty digits")
    }

    fn history(edges: &[(u8, &[u8])]) -> History {
        History::new(edges.iter().map(|(c, p)| (oid(*c), p.iter().map(|p| oid(*p)).collect())).collect())
    }

    // Trunk is 1 <- 2 <- 3 (outside), branch a is 10, 11 on 1, branch b is 20 on 11.
    fn stack() -> History {
        history(&[(10, &[1]), (11, &[10]), (20, &[11])])
    }

    #[test]
    fn a_healthy_branch_counts_its_own_commits_down_to_its_base() {
        let position = stack().position(oid(11), oid(1), Some(oid(3)));
        assert_eq!((position.commits.len(), position.fork, position.base), (2, Some(oid(1)), Some(Ancestry::Ancestor)));
        let position = stack().position(oid(20), oid(11), Some(oid(11)));
        assert_eq!((position.commits, position.fork), (vec![oid(20)], Some(oid(11))));
    }

    #[test]
    fn a_base_outside_the_known_commits_is_left_to_git() {
        let unsettled = stack().position(oid(11), oid(7), Some(oid(3)));
        assert_eq!(unsettled.base, None, "7 may or may not be below 1");
        let answers = BTreeMap::from([((oid(7), oid(11)), Ancestry::NotAncestor)]);
        let settled = stack().with_ancestry(answers).position(oid(11), oid(7), Some(oid(3)));
        assert_eq!(settled.base, Some(Ancestry::NotAncestor));
    }

    #[test]
    fn a_base_on_another_branch_is_no_ancestor() {
        let position = stack().position(oid(11), oid(20), Some(oid(3)));
        assert_eq!(position.base, Some(Ancestry::NotAncestor));
    }

    #[test]
    fn merges_are_counted_and_named() {
        let history = history(&[(10, &[1]), (11, &[1]), (12, &[10, 11])]);
        let position = history.position(oid(12), oid(1), Some(oid(1)));
        assert_eq!((position.commits.len(), position.merges, position.fork), (3, vec![oid(12)], Some(oid(1))));
    }
}
