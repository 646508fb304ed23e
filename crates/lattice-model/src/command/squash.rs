//! `squash`, `split` and `revert`: make other commits of the changes of a branch.

use crate::branch::{FreezeState, Parent, PrState};
use crate::capability::Capability;
use crate::event::HeadValue;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::history::Position;
use crate::id::Oid;
use crate::issue::Issue;
use crate::name::BranchName;
use crate::plan::{Derivation, Expected, FreezeDraft, Hooks, LineChange, MetadataDraft, Place, Plan, Step, count};
use crate::similar;
use crate::snapshot::Snapshot;

use super::restack::{Restack, claimed};
use super::rewrite::{Rewriting, draft_of, expected_metadata};
use super::scope;

/// Makes one commit of the current branch's own commits.
#[derive(Debug, Clone)]
pub struct Squash {
    /// All messages one after another if absent.
    pub message: Option<String>,
    pub hooks: Hooks,
}

/// Makes several branches of the current one.
#[derive(Debug, Clone)]
pub struct Split {
    pub by: SplitBy,
    pub hooks: Hooks,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitBy {
    /// Each commit becomes a branch; the newest keeps the name.
    Commit,
    /// The changes of these files go to a branch below, of all that the branch changes; paths from the top of the repository.
    File { paths: Vec<String>, changed: Vec<String> },
    /// These hunks go to a branch below.
    Hunk(Vec<BranchHunk>),
}

/// So many files are named to somebody who named another.
const LISTED: usize = 5;

/// Each path must be of a file, or of a folder with one, that the branch changes.
fn check_paths(paths: &[String], changed: &[String]) -> Result<(), Refusal> {
    let is_in = |path: &str, file: &String| {
        file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let unknown = paths.iter().find(|path| !changed.iter().any(|file| is_in(path, file)));
    // Where there are no changes at all, more is amiss than a path.
    let Some(unknown) = unknown.filter(|_| !changed.is_empty()) else { return Ok(()) };
    let mut files = changed.to_vec();
    similar::closest_first(unknown, &mut files);
    files.truncate(LISTED);
    let refusal = Refusal::new("nothing-left", format!("the branch changes nothing at `{unknown}`"));
    Err(refusal.hint(format!("it changes {}", files.join(", "))))
}

/// One change of the current branch that can go elsewhere by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchHunk {
    Lines(LineChange),
    /// A file that is new or gone, or that is no text.
    Whole {
        path: String,
        what: &'static str,
    },
}

impl BranchHunk {
    pub fn path(&self) -> &str {
        match self {
            Self::Lines(change) => &change.path,
            Self::Whole { path, .. } => path,
        }
    }
}

/// Takes a commit back on a new branch on the trunk.
#[derive(Debug, Clone)]
pub struct Revert {
    pub commit: Oid,
    pub hooks: Hooks,
}

impl Command for Squash {
    const NAME: &'static str = "squash";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        check_current(snapshot, |branch| self.planned(snapshot, branch))
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let branch = scope::tracked(ready.snapshot(), None).expect("bug: the gate resolved the scope");
        self.planned(ready.snapshot(), &branch)
    }
}

impl Squash {
    fn planned(&self, snapshot: &Snapshot, branch: &BranchName) -> Result<Plan, Refusal> {
        let own = Own::of(snapshot, branch)?;
        if own.commits.len() < 2 {
            return Err(Refusal::new(
                "nothing-to-squash",
                format!("`{branch}` has {}, which needs no squashing", count(own.commits.len(), "commit")),
            )
            .hint("lattice modify changes the newest commit"));
        }
        let how = Derivation::Squash { commits: own.commits, onto: own.fork };
        let message = self.message.clone();
        let plan = Plan::new(Self::NAME, self.hooks).then(Step::Derive {
            branch: branch.clone(),
            expected: Expected::At(own.tip),
            how,
            message,
        });
        carry_along(snapshot, branch, plan)
    }
}

impl Command for Split {
    const NAME: &'static str = "split";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, snapshot: &Snapshot) -> Vec<Issue> {
        check_current(snapshot, |branch| self.planned(snapshot, branch))
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let branch = scope::tracked(ready.snapshot(), None).expect("bug: the gate resolved the scope");
        self.planned(ready.snapshot(), &branch)
    }
}

impl Split {
    fn planned(&self, snapshot: &Snapshot, branch: &BranchName) -> Result<Plan, Refusal> {
        let own = Own::of(snapshot, branch)?;
        match &self.by {
            SplitBy::Commit => self.by_commit(snapshot, branch, &own),
            SplitBy::File { paths, changed } => {
                check_paths(paths, changed)?;
                let lower = Derivation::Files { from: own.tip, onto: own.fork, paths: paths.clone() };
                self.in_two(snapshot, branch, &own, lower)
            }
            SplitBy::Hunk(hunks) => self.in_two(snapshot, branch, &own, some_hunks(&own, hunks)),
        }
    }

    /// Every commit but the newest gets a branch of its own. No commit changes.
    fn by_commit(&self, snapshot: &Snapshot, branch: &BranchName, own: &Own) -> Result<Plan, Refusal> {
        if own.commits.len() < 2 {
            return Err(Refusal::new(
                "nothing-to-split",
                format!("`{branch}` has {}", count(own.commits.len(), "commit")),
            )
            .hint("lattice split --by-file <path> splits one commit"));
        }
        let (metadata, _) = snapshot.metadata_of(branch).expect("bug: tracked branches have metadata");
        let mut plan = Plan::new(Self::NAME, self.hooks);
        let (mut parent, mut base) = (metadata.parent.clone(), metadata.base);
        for (name, commit) in parts(snapshot, branch).zip(&own.commits[..own.commits.len() - 1]) {
            let to = Some(Place::Object(*commit));
            plan = plan.then(Step::SetRef { name: name.branch_ref(), expected: Expected::Absent, to }).then(track(
                &name,
                parent,
                Place::Object(base),
            ));
            (parent, base) = (Parent::Branch(name), *commit);
        }
        let mut document = draft_of(metadata);
        (document.parent, document.base) = (parent, Place::Object(base));
        let expected = expected_metadata(snapshot, branch);
        Ok(plan
            .then(Step::SetMetadata { branch: branch.clone(), expected, document })
            .then(Step::Guard { name: branch.branch_ref(), expected: Expected::At(own.tip) })
            .verified())
    }

    /// Some changes go to a branch below; the rest stays, as one commit whose files are what they were.
    fn in_two(&self, snapshot: &Snapshot, branch: &BranchName, own: &Own, lower: Derivation) -> Result<Plan, Refusal> {
        let (metadata, _) = snapshot.metadata_of(branch).expect("bug: tracked branches have metadata");
        let name = parts(snapshot, branch).next().expect("bug: numbers do not end");
        let rest = Derivation::Rest { commits: own.commits.clone(), below: name.clone() };
        let mut document = draft_of(metadata);
        (document.parent, document.base) = (Parent::Branch(name.clone()), Place::TipOf(name.clone()));
        let plan = Plan::new(Self::NAME, self.hooks)
            .then(Step::Derive { branch: name.clone(), expected: Expected::Absent, how: lower, message: None })
            .then(Step::Derive { branch: branch.clone(), expected: Expected::At(own.tip), how: rest, message: None })
            .then(track(&name, metadata.parent.clone(), Place::Object(own.fork)))
            .then(Step::SetMetadata {
                branch: branch.clone(),
                expected: expected_metadata(snapshot, branch),
                document,
            });
        carry_along(snapshot, branch, plan)
    }
}

impl Command for Revert {
    const NAME: &'static str = "revert";
    const REQUIRES: &'static [Capability] = Restack::REQUIRES;

    fn check(&self, _snapshot: &Snapshot) -> Vec<Issue> {
        Vec::new()
    }

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let trunk = snapshot.settings.trunk.clone().expect("bug: the gate requires a trunk");
        let tip = snapshot.tip(&trunk).expect("bug: the gate requires a trunk that exists");
        let name = BranchName::new(format!("revert-{}", self.commit.short())).expect("bug: the name is plain");
        scope::check_new_name(snapshot, &name)?;
        let how = Derivation::Revert { commit: self.commit, onto: tip };
        Ok(Plan::new(Self::NAME, self.hooks)
            .then(Step::Derive { branch: name.clone(), expected: Expected::Absent, how, message: None })
            .then(track(&name, Parent::Trunk(trunk.clone()), Place::Object(tip)))
            .then(Step::Guard { name: trunk.branch_ref(), expected: Expected::At(tip) })
            .then(Step::Switch { to: HeadValue::Branch(name) })
            .verified())
    }
}

/// The commits of a branch that can be made anew, oldest first.
struct Own {
    tip: Oid,
    fork: Oid,
    commits: Vec<Oid>,
}

impl Own {
    fn of(snapshot: &Snapshot, branch: &BranchName) -> Result<Self, Refusal> {
        let tip = snapshot.tip(branch).expect("bug: tracked branches exist");
        let Position { commits, merges, fork, .. } =
            snapshot.position(branch).expect("bug: tracked branches have a position");
        if let Some(merge) = merges.first() {
            let text = format!("`{branch}` contains the merge commit {}, which would be flattened", merge.short());
            return Err(Refusal::new("merge-commit", text).hint("make its history linear first"));
        }
        let fork = fork.ok_or_else(|| {
            Refusal::new("unrelated-history", format!("`{branch}` shares no history with its parent"))
        })?;
        Ok(Self { tip, fork, commits: commits.into_iter().rev().collect() })
    }
}

fn some_hunks(own: &Own, hunks: &[BranchHunk]) -> Derivation {
    let (mut lines, mut paths) = (Vec::new(), Vec::new());
    for hunk in hunks {
        match hunk {
            BranchHunk::Lines(change) => lines.push(change.clone()),
            BranchHunk::Whole { path, .. } => paths.push(path.clone()),
        }
    }
    Derivation::Hunks { from: own.tip, onto: own.fork, lines, paths }
}

fn check_current(snapshot: &Snapshot, plan: impl Fn(&BranchName) -> Result<Plan, Refusal>) -> Vec<Issue> {
    let branch = match scope::tracked(snapshot, None) {
        Ok(branch) => branch,
        Err(issue) => return vec![issue],
    };
    let mut issues: Vec<_> = scope::frozen(snapshot, &branch).into_iter().collect();
    if let Ok(plan) = plan(&branch) {
        issues.extend(scope::occupied(snapshot, claimed(&plan).iter()));
    }
    issues
}

/// What stands on the branch follows its new tip.
fn carry_along(snapshot: &Snapshot, branch: &BranchName, plan: Plan) -> Result<Plan, Refusal> {
    let mut rewriting = Rewriting::new(snapshot);
    rewriting.tip_changes(branch);
    for above in snapshot.graph().upstack(branch) {
        rewriting.bring(&above)?;
    }
    Ok(rewriting.finish(plan).verified())
}

/// Names for parts of a branch that nothing else has.
fn parts(snapshot: &Snapshot, branch: &BranchName) -> impl Iterator<Item = BranchName> {
    let name = move |number: usize| BranchName::new(format!("{branch}-{number}"));
    let names = (1..).map(move |number| name(number).expect("bug: a number at the end keeps a name valid"));
    names.filter(move |name| scope::check_new_name(snapshot, name).is_ok())
}

fn track(name: &BranchName, parent: Parent, base: Place) -> Step {
    let freeze = FreezeDraft::Keep(FreezeState::Unfrozen {});
    let document = MetadataDraft { parent, base, freeze, pr: PrState::None {}, created_at: None };
    Step::SetMetadata { branch: name.clone(), expected: Expected::Absent, document }
}
