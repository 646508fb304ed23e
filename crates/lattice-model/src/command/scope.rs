//! Finds the branch that a request is about, and says what is wrong with it.

use std::path::{Path, PathBuf};

use crate::gate::Refusal;
use crate::id::Oid;
use crate::issue::{Evidence, Issue, IssueKind, evidence};
use crate::name::{BranchName, shell_word};
use crate::plan::{FreezeDraft, Hooks, Kept, Plan, Step};
use crate::snapshot::{Head, Snapshot};

use super::rewrite::{FROZEN, draft_of, expected_metadata};

/// The branch that was named, or else the current one; `Err` explains why there is none.
pub(super) fn named_or_current(snapshot: &Snapshot, named: Option<&BranchName>) -> Result<BranchName, Issue> {
    if let Some(name) = named {
        if snapshot.branches.contains_key(name) {
            return Ok(name.clone());
        }
        let facts = evidence([("branch", name.to_string())]);
        return Err(Issue::new(IssueKind::ScopeUnresolved, snapshot.no_branch(name), facts).action(
            "look",
            "see which branches there are",
            "lattice log --show-untracked",
        ));
    }
    match &snapshot.head {
        Head::Branch { name, .. } => Ok(name.clone()),
        Head::Detached(commit) => Err(no_current("HEAD is detached", &commit.to_string())),
        Head::Unborn(name) => Err(no_current("the current branch has no commit yet", name)),
        Head::Unusable(name) => Err(no_current("the current branch has a name that Lattice does not use", name)),
    }
}

fn no_current(why: &str, head: &str) -> Issue {
    let facts = evidence([("head", head.to_owned())]);
    Issue::new(IssueKind::ScopeUnresolved, format!("there is no current branch to work on: {why}"), facts).action(
        "check-out",
        "check out a branch",
        "lattice checkout <branch>",
    )
}

/// A tracked branch: the named one, or else the current one.
pub(super) fn tracked(snapshot: &Snapshot, named: Option<&BranchName>) -> Result<BranchName, Issue> {
    let branch = named_or_current(snapshot, named)?;
    if snapshot.is_tracked(&branch) {
        return Ok(branch);
    }
    let facts = evidence([("branch", branch.to_string())]);
    if snapshot.is_trunk(&branch) {
        let summary = format!("`{branch}` is the trunk, which this command does not change");
        return Err(Issue::new(IssueKind::ScopeUnresolved, summary, facts).action(
            "check-out",
            "check out a branch of a stack",
            "lattice checkout <branch>",
        ));
    }
    Err(Issue::new(IssueKind::ScopeUnresolved, format!("`{branch}` is not tracked"), facts).action(
        "track",
        "track it",
        format!("lattice track {} --parent <branch below>", branch.word()),
    ))
}

/// How to keep what both sides of a branch have: that is a rebase of one's own, which plain Git does.
pub(super) fn keep_both(snapshot: &Snapshot, branch: &BranchName) -> String {
    let (remote, word) = (snapshot.settings.forge.remote(), branch.word());
    format!("to keep both: git switch {word} && git pull --rebase {remote} {word}, then lattice restack")
}

/// What to do with commits of the local trunk that the remote's does not have.
pub(super) fn own_commits(there: Oid, trunk: &BranchName) -> String {
    format!("bring your commits onto it, or onto a branch: git log {}..{}", there.short(), trunk.word())
}

/// The issue of a frozen branch that the command would rewrite.
pub(crate) fn frozen(snapshot: &Snapshot, branch: &BranchName) -> Option<Issue> {
    let (metadata, _) = snapshot.metadata_of(branch)?;
    if !metadata.freeze.is_frozen() {
        return None;
    }
    let mut document = draft_of(metadata);
    document.freeze = FreezeDraft::Keep(crate::branch::FreezeState::Unfrozen {});
    let unfreeze = Plan::new("doctor", Hooks::Run)
        .then(Step::SetMetadata { branch: branch.clone(), expected: expected_metadata(snapshot, branch), document })
        .verified();
    let facts = evidence([("branch", branch.to_string())]);
    let why = metadata.freeze.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let issue = Issue::new(IssueKind::Frozen, format!("`{branch}` is frozen{why} and would be rewritten"), facts);
    Some(issue.fix("unfreeze", format!("unfreeze {branch}"), unfreeze))
}

/// Why a command cannot go on without a branch that has to stay.
pub(super) fn kept_in_the_way(kept: &Kept) -> Refusal {
    let (branch, reason) = (&kept.branch, &kept.reason);
    if reason == FROZEN {
        return Refusal::new("frozen", format!("`{branch}` is frozen and stands on what would change"))
            .hint(format!("lattice unfreeze {}", branch.word()));
    }
    Refusal::new("worktree-in-the-way", format!("`{branch}` cannot move: {reason}"))
        .hint("commit or put aside what is there, then try again")
}

/// Issues for branches that would be removed or checked out here while another worktree has them checked out.
pub(super) fn occupied<'a>(snapshot: &Snapshot, branches: impl IntoIterator<Item = &'a BranchName>) -> Vec<Issue> {
    let issue = |branch: &'a BranchName| {
        let path = elsewhere(snapshot, branch)?;
        Some(out_of_reach(snapshot, branch).unwrap_or_else(|| {
            let there = path.display().to_string();
            Issue::new(IssueKind::CheckedOutElsewhere, at_worktree(branch, path), worktree_facts(branch, path)).action(
                "free",
                "let go of the branch there",
                format!("git -C {} switch --detach", shell_word(&there)),
            )
        }))
    };
    branches.into_iter().filter_map(issue).collect()
}

/// The issue of a branch that would move, which another worktree has that is not there to move along.
pub(super) fn out_of_reach(snapshot: &Snapshot, branch: &BranchName) -> Option<Issue> {
    let path = elsewhere(snapshot, branch).filter(|path| snapshot.gone_worktrees.contains(*path))?;
    let summary = format!("{}, which is gone", at_worktree(branch, path));
    // Git counts it until it is told, since the folder may be on a disk that comes back.
    Some(Issue::new(IssueKind::CheckedOutElsewhere, summary, worktree_facts(branch, path)).action(
        "prune",
        "let Git forget worktrees whose folders are gone",
        "git worktree prune",
    ))
}

/// The other worktree that has a branch checked out.
fn elsewhere<'a>(snapshot: &'a Snapshot, branch: &BranchName) -> Option<&'a PathBuf> {
    snapshot.worktrees.get(branch).filter(|path| Some(*path) != snapshot.repository.work_dir.as_ref())
}

fn at_worktree(branch: &BranchName, path: &Path) -> String {
    format!("`{branch}` is checked out in the worktree {}", path.display())
}

fn worktree_facts(branch: &BranchName, path: &Path) -> Evidence {
    evidence([("branch", branch.to_string()), ("worktree", path.display().to_string())])
}

/// Refuses a new branch name that exists or that Git could not store beside the others.
pub fn check_new_name(snapshot: &Snapshot, name: &BranchName) -> Result<(), Refusal> {
    if snapshot.branches.contains_key(name) {
        return Err(Refusal::new("branch-exists", format!("a branch `{name}` exists already"))
            .hint(format!("lattice checkout {}, or pick another name", name.word())));
    }
    check_room(snapshot.branches.keys().chain(snapshot.metadata.keys()), name)?;
    check_case(snapshot.branches.keys(), name)?;
    if snapshot.metadata.contains_key(name) {
        return Err(Refusal::new(
            "metadata-exists",
            format!("there is metadata of a deleted branch `{name}`; it would be taken over silently"),
        )
        .hint("run `lattice doctor` to remove or restore it"));
    }
    Ok(())
}

/// Refuses a name that is another one where file systems ignore case.
fn check_case<'a>(mut others: impl Iterator<Item = &'a BranchName>, name: &BranchName) -> Result<(), Refusal> {
    let lower = name.as_str().to_lowercase();
    match others.find(|other| *other != name && other.as_str().to_lowercase() == lower) {
        Some(other) => Err(Refusal::new(
            "branch-name-clash",
            format!("`{name}` and `{other}` differ in case alone; on many file systems they are one branch"),
        )
        .hint("pick another name")),
        None => Ok(()),
    }
}

/// Refuses a name that Git could not store beside `others`.
pub(super) fn check_room<'a>(others: impl Iterator<Item = &'a BranchName>, name: &BranchName) -> Result<(), Refusal> {
    for other in others {
        let (short, long) = if name.as_str().len() < other.as_str().len() { (name, other) } else { (other, name) };
        let nested = long.as_str().strip_prefix(short.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if nested {
            return Err(Refusal::new(
                "branch-name-clash",
                format!("`{name}` cannot exist beside `{other}`: Git stores refs like files and folders"),
            )
            .hint("pick another name, or run `lattice doctor` if that branch is gone"));
        }
    }
    Ok(())
}
