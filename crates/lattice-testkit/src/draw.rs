//! Reads a drawing of a stack: `main <- api(2) <- ui*; main <- docs!`.

use std::collections::{BTreeMap, BTreeSet};

/// A drawing: branches with every parent before its children, the trunk first.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) branches: Vec<Branch>,
}

/// One name of a drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) commits: Option<u32>,
    pub(crate) frozen: bool,
    pub(crate) checked_out: bool,
}

impl Drawing {
    /// Reads a drawing, or panics and says what is wrong with it.
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        let mut found = Vec::new();
        for chain in text.split([';', '\n']).map(str::trim).filter(|chain| !chain.is_empty()) {
            add_chain(&mut found, chain);
        }
        let drawing = Self { branches: parents_first(&found) };
        let marked = found.iter().filter(|branch| branch.checked_out).count();
        assert!(marked <= 1, "more than one branch of {text:?} is marked with *");
        assert!(!drawing.trunk().frozen, "the trunk of {text:?} cannot be frozen");
        assert!(drawing.trunk().commits != Some(0), "the trunk of {text:?} needs a commit");
        drawing
    }

    /// The one branch without a parent.
    pub(crate) fn trunk(&self) -> &Branch {
        &self.branches[0]
    }

    /// The branch to check out: the marked one, else the trunk.
    pub(crate) fn head(&self) -> &Branch {
        let marked = self.branches.iter().find(|branch| branch.checked_out);
        marked.unwrap_or(self.trunk())
    }
}

#[track_caller]
fn add_chain(found: &mut Vec<Branch>, chain: &str) {
    let mut parent = None;
    for text in chain.split("<-") {
        let mut branch = parse_branch(text.trim());
        branch.parent = parent;
        parent = Some(branch.name.clone());
        merge(found, branch);
    }
}

/// Reads a name with its marks, which may stand in any order.
#[track_caller]
fn parse_branch(text: &str) -> Branch {
    let mut branch = Branch::default();
    let mut rest = text;
    loop {
        if let Some(shorter) = rest.strip_suffix('*') {
            branch.checked_out = true;
            rest = shorter;
        } else if let Some(shorter) = rest.strip_suffix('!') {
            branch.frozen = true;
            rest = shorter;
        } else if let Some((name, count)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
            let count = count.parse().unwrap_or_else(|_| panic!("no number of commits: {text:?}"));
            branch.commits = Some(count);
            rest = name;
        } else {
            break;
        }
    }
    let plain = !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c == '"');
    assert!(plain, "not a branch of a drawing: {text:?}");
    branch.name = rest.to_owned();
    branch
}

/// Adds what one more mention of a name says about it.
#[track_caller]
fn merge(found: &mut Vec<Branch>, mention: Branch) {
    let Some(known) = found.iter_mut().find(|known| known.name == mention.name) else {
        found.push(mention);
        return;
    };
    let name = &known.name;
    if let (Some(one), Some(other)) = (&known.parent, &mention.parent) {
        assert!(one == other, "{name} is drawn on {one} and on {other}");
    }
    if let (Some(one), Some(other)) = (known.commits, mention.commits) {
        assert!(one == other, "{name} is drawn with {one} and with {other} commits");
    }
    known.parent = known.parent.take().or(mention.parent);
    known.commits = known.commits.or(mention.commits);
    known.frozen |= mention.frozen;
    known.checked_out |= mention.checked_out;
}

/// Orders branches so that each comes after its parent, else as they were drawn.
#[track_caller]
fn parents_first(found: &[Branch]) -> Vec<Branch> {
    let roots = found.iter().filter(|branch| branch.parent.is_none());
    let roots: Vec<&str> = roots.map(|branch| branch.name.as_str()).collect();
    assert!(roots.len() == 1, "a drawing needs one trunk, this one has {roots:?}");
    let mut children: BTreeMap<&str, Vec<&Branch>> = BTreeMap::new();
    for branch in found {
        if let Some(parent) = &branch.parent {
            children.entry(parent).or_default().push(branch);
        }
    }
    let mut ordered: Vec<Branch> = found.iter().filter(|branch| branch.parent.is_none()).cloned().collect();
    let mut next = 0;
    while next < ordered.len() {
        let below = children.remove(ordered[next].name.as_str()).unwrap_or_default();
        ordered.extend(below.into_iter().cloned());
        next += 1;
    }
    let reached: BTreeSet<&str> = ordered.iter().map(|branch| branch.name.as_str()).collect();
    let lost: Vec<&str> = found.iter().map(|branch| branch.name.as_str()).collect();
    let lost: Vec<&&str> = lost.iter().filter(|name| !reached.contains(*name)).collect();
    assert!(lost.is_empty(), "drawn in a circle: {lost:?}");
    ordered
}

#[cfg(test)]
mod tests;
