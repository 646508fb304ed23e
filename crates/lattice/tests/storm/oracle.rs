//! What a command must leave, from the specification and from what was there before.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::world::{Change, Commit, Document, TRUNK, World};

/// What the stacks are to be after a command.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) branches: BTreeMap<String, Branch>,
    /// The branch that is checked out where the command ran.
    pub(crate) head: Option<String>,
    pub(crate) files: Files,
}

/// What the files of the worktree are to be where the command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// Byte for byte as before.
    Same,
    /// Those of the branch, with uncommitted changes as before.
    Follow,
    /// As before, with nothing left uncommitted.
    SameAndClean,
}

#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) parent: String,
    pub(crate) frozen: bool,
    pub(crate) state: State,
}

#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Neither tip nor base may change.
    Exact { tip: String, base: String },
    /// On the tip of its parent, with these commits.
    Brought(Vec<Sketch>),
    /// Still at this tip, and with a new base or parent.
    Stays { tip: String },
}

/// A commit that is to be there; `None` where its changes are not known.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    pub(crate) subject: String,
    /// Not known of a commit that is new.
    pub(crate) author: Option<String>,
    pub(crate) changes: Option<Rc<Commit>>,
}

impl Sketch {
    fn of(commit: &Rc<Commit>) -> Self {
        let changes = Some(Rc::clone(commit));
        Self { subject: commit.subject.clone(), author: Some(commit.author.clone()), changes }
    }
}

impl Expected {
    /// Nothing changes.
    pub(crate) fn same(world: &World, place: usize) -> Self {
        let exact = |branch: &&str| {
            let state = State::Exact {
                tip: world.tip(branch).expect("tracked branches exist").clone(),
                base: world.base(branch).expect("tracked branches have a base").to_owned(),
            };
            let parent = world.parent(branch).expect("tracked branches have a parent").to_owned();
            ((*branch).to_owned(), Branch { parent, frozen: world.is_frozen(branch), state })
        };
        let branches = world.tracked().iter().map(exact).collect();
        let head = world.places.get(place).and_then(|place| place.branch()).map(str::to_owned);
        Self { branches, head, files: Files::Follow }
    }

    /// The branch comes onto its parent, unless it is frozen.
    pub(crate) fn bring(&mut self, world: &World, branch: &str) {
        let own = world.own(branch).iter().map(Sketch::of).collect();
        if let Some(known) = self.branches.get_mut(branch).filter(|known| !known.frozen) {
            known.state = State::Brought(own);
        }
    }

    /// All come onto their parents. With a merge among its own commits a branch is only brought if it stands there already.
    pub(crate) fn bring_all<'a>(&mut self, world: &World, branches: impl IntoIterator<Item = &'a str>) {
        for branch in branches {
            if world.has_merge(branch) {
                self.stands(world, branch);
            } else {
                self.bring(world, branch);
            }
        }
    }

    /// The branch stays where it is, and is known to stand on its parent if it contains that.
    fn stands(&mut self, before: &World, branch: &str) {
        let Some(tip) = before.tip(branch) else { return };
        let contains = before.parent(branch).and_then(|parent| before.tip(parent));
        let contains = contains.is_some_and(|parent| before.reachable(tip).contains(parent.as_str()));
        if let Some(known) = self.branches.get_mut(branch).filter(|known| contains && !known.frozen) {
            known.state = State::Stays { tip: tip.clone() };
        }
    }

    /// The branch stays where it is.
    pub(crate) fn keep(&mut self, before: &World, branch: &str) {
        let was = before.tip(branch).zip(before.base(branch));
        if let (Some(known), Some((tip, base))) = (self.branches.get_mut(branch), was) {
            known.state = State::Exact { tip: tip.clone(), base: base.to_owned() };
        }
    }

    pub(crate) fn reparent(&mut self, branch: &str, parent: &str) {
        if let Some(known) = self.branches.get_mut(branch) {
            known.parent = parent.to_owned();
        }
    }

    /// The commits of a branch that is brought along.
    pub(crate) fn commits(&mut self, branch: &str) -> Option<&mut Vec<Sketch>> {
        match &mut self.branches.get_mut(branch)?.state {
            State::Brought(commits) => Some(commits),
            State::Exact { .. } | State::Stays { .. } => None,
        }
    }

    /// After a conflict only the shape is known: what the user made of the commits is theirs.
    pub(crate) fn resolved_by_hand(&mut self) {
        for branch in self.branches.values_mut() {
            if let State::Brought(commits) = &mut branch.state {
                commits.clear();
                commits.push(Sketch { subject: ANYTHING.to_owned(), author: None, changes: None });
            }
        }
    }

    /// What is not as it should be.
    pub(crate) fn problems(&self, before: &World, after: &World) -> Vec<String> {
        let mut found = Vec::new();
        for (name, branch) in &self.branches {
            found.extend(branch.problems(name, after));
        }
        let tracked: BTreeSet<_> = after.tracked().into_iter().map(str::to_owned).collect();
        found.extend(
            tracked.iter().filter(|name| !self.branches.contains_key(*name)).map(|n| format!("{n} is tracked")),
        );
        for name in before.branches().into_iter().filter(|name| !self.branches.contains_key(*name)) {
            let was_tracked = before.documents.contains_key(name);
            if !was_tracked && before.tip(name) != after.tip(name) {
                found.push(format!("{name} is no part of a stack and moved"));
            }
        }
        found
    }
}

/// Stands for whatever a user made of a conflict.
const ANYTHING: &str = "*";

impl Branch {
    fn problems(&self, name: &str, after: &World) -> Vec<String> {
        let mut found = Vec::new();
        let (Some(tip), Some(base), Some(parent)) = (after.tip(name), after.base(name), after.parent(name)) else {
            return vec![format!("{name} is not tracked any more")];
        };
        if parent != self.parent {
            found.push(format!("{name} stands on {parent}, not on {}", self.parent));
        }
        if after.is_frozen(name) != self.frozen {
            found.push(format!("{name} is frozen: {}", !self.frozen));
        }
        match &self.state {
            State::Exact { tip: old, base: old_base } => {
                if tip != old {
                    found.push(format!("{name} moved from {old} to {tip}"));
                }
                if base != old_base {
                    found.push(format!("the base of {name} is {base}, not {old_base}"));
                }
            }
            State::Stays { tip: old } if tip != old => found.push(format!("{name} moved from {old} to {tip}")),
            State::Stays { .. } => {}
            State::Brought(commits) => {
                if after.tip(parent).map(String::as_str) != Some(base) {
                    found.push(format!("{name} has the base {base}, which is not the tip of {parent}"));
                }
                if !after.reachable(tip).contains(base) {
                    found.push(format!("{name} does not contain its base"));
                }
                found.extend(compare(name, commits, after));
            }
        }
        found
    }
}

fn compare(name: &str, expected: &[Sketch], after: &World) -> Vec<String> {
    if expected.first().is_some_and(|sketch| sketch.subject == ANYTHING) {
        return Vec::new();
    }
    let own = after.own(name);
    // What the new parent has already is not the branch's own any more.
    let below = after.base(name).map(|base| after.reachable(base)).unwrap_or_default();
    let is_below = |old: &Commit| below.contains(old.id.as_str());
    // One that changes nothing may be there twice: nobody can tell from the files.
    let is_gone =
        |sketch: &&Sketch| sketch.changes.as_ref().is_some_and(|old| is_below(old) && !old.changes.is_empty());
    let expected: Vec<_> = expected.iter().filter(|sketch| !is_gone(sketch)).collect();
    let subjects: Vec<_> = own.iter().map(|commit| commit.subject.as_str()).collect();
    let wanted: Vec<_> = expected.iter().map(|sketch| sketch.subject.as_str()).collect();
    let before: Vec<_> = below.iter().filter_map(|id| after.commits.get(*id)).chain(&own).collect();
    // A commit that is not there any more is right if what is below has all of it.
    let is_there = |sketch: &&Sketch| match &sketch.changes {
        Some(old) if old.changes.is_empty() => is_below(old),
        Some(old) => old.changes.keys().all(|change| is_made(&before, change)),
        None => before.iter().any(|commit| commit.subject == sketch.subject),
    };
    let expected: Vec<_> = if subjects == wanted {
        expected
    } else {
        let mut rest = subjects.iter().peekable();
        expected
            .into_iter()
            .filter(|sketch| rest.next_if(|s| ***s == sketch.subject).is_some() || !is_there(sketch))
            .collect()
    };
    let wanted: Vec<_> = expected.iter().map(|sketch| sketch.subject.as_str()).collect();
    if subjects != wanted {
        return vec![format!("{name} has the commits {subjects:?}, not {wanted:?}")];
    }
    let mut found = Vec::new();
    for (commit, sketch) in own.iter().zip(expected) {
        if sketch.author.as_ref().is_some_and(|author| *author != commit.author) {
            found.push(format!("`{}` of {name} has the author {}", commit.subject, commit.author));
        }
        if let Some(old) = &sketch.changes {
            found.extend(lost(name, old, commit, after));
        }
    }
    found
}

/// Whether one of these commits made a change, so that there is nothing left to make.
fn is_made(commits: &[&Rc<Commit>], (file, sign, line): &Change) -> bool {
    let made = |sign| commits.iter().any(|commit| commit.changes.contains_key(&(file.clone(), sign, line.clone())));
    // What is not there needs no removing.
    made(*sign) || (*sign == '-' && !made('+'))
}

/// Changes that a rewritten commit lacks although what it stands on does not have them, or has in addition.
fn lost(name: &str, old: &Commit, new: &Commit, after: &World) -> Vec<String> {
    let mut found = Vec::new();
    let below = new.parents.first().map(|parent| after.reachable(parent)).unwrap_or_default();
    let below: Vec<_> = below.iter().filter_map(|id| after.commits.get(*id)).collect();
    for (change, count) in &old.changes {
        if new.changes.get(change) != Some(count) && !is_made(&below, change) {
            found.push(format!("`{}` of {name} lost {change:?}", new.subject));
        }
    }
    for change in new.changes.keys().filter(|change| !old.changes.contains_key(*change)) {
        found.push(format!("`{}` of {name} has {change:?} in addition", new.subject));
    }
    found
}

/// What a command needs and does not find. Moving around needs no valid stack, and neither does a repair; metadata needs
/// no working tree.
pub(crate) fn unmet(world: &World, place: usize, command: &str) -> Vec<String> {
    let mut found = Vec::new();
    if world.marker.is_some() {
        found.push("an operation is in progress".to_owned());
    }
    if matches!(command, "checkout" | "up" | "down" | "top" | "bottom" | "track" | "untrack" | "doctor") {
        return found;
    }
    if world.tip(TRUNK).is_none() {
        found.push("the trunk is missing".to_owned());
    }
    if matches!(command, "freeze" | "unfreeze") {
        found.extend(invalid(world));
        return found;
    }
    let here = &world.places[place];
    if here.operation || !here.unmerged().is_empty() {
        found.push("git has an operation in progress here".to_owned());
    }
    found.extend(invalid(world));
    found
}

/// What is wrong with the stacks themselves.
pub(crate) fn invalid(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for (branch, document) in &world.documents {
        let Document::Good { name, parent, on_trunk, base, .. } = document else {
            found.push(format!("the metadata of {branch} cannot be read"));
            continue;
        };
        let Some(tip) = world.tip(branch) else { continue };
        if name != branch {
            found.push(format!("the metadata of {branch} is that of {name}"));
        }
        if branch == TRUNK {
            found.push("the trunk is tracked".to_owned());
        }
        if world.tip(parent).is_none() {
            found.push(format!("{parent}, the parent of {branch}, is missing"));
        }
        if *on_trunk != (parent == TRUNK) {
            found.push(format!("the parent of {branch} is of the wrong kind"));
        }
        if !world.reachable(tip).contains(base.as_str()) {
            found.push(format!("the base of {branch} is not below it"));
        }
        let mut seen = BTreeSet::from([branch.as_str()]);
        let mut current = parent.as_str();
        while world.tip(current).is_some() {
            if !seen.insert(current) {
                found.push(format!("{branch} stands on itself"));
                break;
            }
            match world.parent(current) {
                Some(parent) => current = parent,
                None => break,
            }
        }
    }
    found
}
