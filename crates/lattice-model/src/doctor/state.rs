//! Issues of the moment: operations in progress, locks, the ledger, odd names, what kind of clone this is.

use std::collections::BTreeMap;

use crate::issue::{Issue, IssueKind, evidence};
use crate::plan::Step;
use crate::snapshot::{
    Completeness, Context, GitOperation, LedgerReading, OpState, OpStateReading, Snapshot, StaleLock, WorkingCopy,
};

use super::repair;
use crate::name::shell_word;

pub(super) fn issues(snapshot: &Snapshot) -> Vec<Issue> {
    let mut issues = Vec::new();
    issues.extend(operation(&snapshot.op_state));
    // A paused operation of Lattice is itself a rebase of Git; one issue for it is enough.
    if snapshot.op_state == OpStateReading::Absent {
        issues.extend(snapshot.git_operation.map(git_operation));
        issues.extend(working_copy(&snapshot.working_copy));
    }
    issues.extend(snapshot.stale_locks.iter().map(stale_lock));
    issues.extend(kind_of_clone(snapshot));
    issues.extend(ledger(&snapshot.ledger));
    issues.extend(names(snapshot));
    for warning in &snapshot.warnings {
        issues.push(
            Issue::new(
                IssueKind::BrokenRef,
                format!("Git warned while listing refs: {warning}"),
                evidence([("warning", warning.clone())]),
            )
            .action("look", "see what Git says of the repository", "git fsck"),
        );
    }
    issues
}

fn operation(reading: &OpStateReading) -> Option<Issue> {
    match reading {
        OpStateReading::Absent => None,
        OpStateReading::Present(state) => Some(in_progress(state)),
        OpStateReading::Damaged { reason } => {
            let facts = evidence([("file", "lattice/op-state.json".to_owned()), ("reason", reason.clone())]);
            let summary = format!("the marker of an operation in progress cannot be read: {reason}");
            Some(Issue::new(IssueKind::OpStateDamaged, summary, facts).fix(
                "remove-marker",
                "set the marker aside; refs stay as they are",
                repair(Step::RemoveOpState),
            ))
        }
    }
}

fn in_progress(state: &OpState) -> Issue {
    let place = state.origin_work_dir.as_ref().unwrap_or(&state.origin_git_dir).display().to_string();
    let facts = evidence([
        ("operation", state.op.to_string()),
        ("command", state.command.clone()),
        ("phase", state.phase.as_str().to_owned()),
        ("worktree", place.clone()),
    ]);
    let summary = format!("`{}` (operation {}) is in progress, begun in {place}", state.command, state.op);
    Issue::new(IssueKind::OperationInProgress, summary, facts)
        .action("continue", "finish it", "lattice continue")
        .action("abort", "go back to where it began", "lattice abort")
}

fn git_operation(operation: GitOperation) -> Issue {
    let name = operation.as_str();
    let facts = evidence([("operation", name.to_owned())]);
    let issue = Issue::new(IssueKind::GitOperation, format!("a {name} by Git is in progress in this worktree"), facts);
    match operation {
        GitOperation::Bisect => issue.action("finish", "end it", "git bisect reset"),
        GitOperation::Rebase
        | GitOperation::Merge
        | GitOperation::CherryPick
        | GitOperation::Revert
        | GitOperation::ApplyMailbox => issue.action("continue", "finish it", format!("git {name} --continue")).action(
            "abort",
            "give it up",
            format!("git {name} --abort"),
        ),
    }
}

fn working_copy(state: &WorkingCopy) -> Option<Issue> {
    match state {
        WorkingCopy::Unknown { reason } => {
            let facts = evidence([("reason", reason.clone())]);
            let issue =
                Issue::new(IssueKind::WorkingCopyUnknown, format!("the working copy cannot be read: {reason}"), facts);
            Some(issue.action("look", "see what Git says", "git status"))
        }
        WorkingCopy::Known { unmerged, .. } if !unmerged.is_empty() => {
            let facts = BTreeMap::from([("files", unmerged.clone())]);
            let issue = Issue::new(IssueKind::Unmerged, "files are in conflict", facts);
            Some(issue.action("resolve", "resolve them and stage the result", "git add <file>"))
        }
        WorkingCopy::None | WorkingCopy::NotRead | WorkingCopy::Known { .. } => None,
    }
}

fn stale_lock(lock: &StaleLock) -> Issue {
    let facts = evidence([("path", lock.path.clone()), ("bytes", lock.size.to_string())]);
    let summary = format!(
        "{} was left behind {} seconds ago, by a Git process that ended or still runs; Git refuses to work around it",
        lock.path, lock.age_seconds
    );
    let remove = Step::RemoveLock { path: lock.path.clone(), size: lock.size };
    Issue::new(IssueKind::StaleLock, summary, facts).fix("remove-lock", format!("remove {}", lock.path), repair(remove))
}

fn kind_of_clone(snapshot: &Snapshot) -> Vec<Issue> {
    let mut issues = Vec::new();
    if snapshot.repository.context == Context::Bare {
        let path = snapshot.repository.git_dir.display().to_string();
        // Where it is does not matter: a copy of it has the same issue.
        let facts = evidence([("core.bare", "true".to_owned())]);
        let summary = "this repository is bare: it has no working directory, which commands that change branches need";
        issues.push(Issue::new(IssueKind::Bare, summary, facts).action(
            "add-worktree",
            "make a working directory; without one there are log, info, parent, children, trunk, init, track, untrack, freeze, unfreeze, doctor, verify, ops, undo and redo",
            format!("git -C {} worktree add ../work <branch>", shell_word(&path)),
        ));
    }
    if snapshot.completeness == Completeness::Shallow {
        let issue = Issue::new(
            IssueKind::Shallow,
            "this clone is shallow: older commits are missing",
            evidence([("file", "shallow".to_owned())]),
        );
        issues.push(issue.action("unshallow", "fetch the rest", "git fetch --unshallow"));
    }
    issues
}

fn ledger(reading: &LedgerReading) -> Option<Issue> {
    let LedgerReading::Damaged { commit, reason, .. } = reading else { return None };
    let facts = evidence([("commit", commit.to_string()), ("reason", reason.clone())]);
    let summary = format!("the newest record of the ledger cannot be read: {reason}; changes since then go unnoticed");
    Some(Issue::new(IssueKind::LedgerDamaged, summary, facts).fix(
        "go-on",
        "start a readable record on top of it; the old one stays below",
        repair(Step::Guard {
            name: crate::name::RefName::new("refs/lattice/event-log").expect("a constant name"),
            expected: crate::plan::Expected::At(*commit),
        }),
    ))
}

fn names(snapshot: &Snapshot) -> Vec<Issue> {
    let mut issues = Vec::new();
    for unusable in &snapshot.unusable {
        let facts = evidence([("ref", unusable.name.clone()), ("reason", unusable.reason.clone())]);
        let summary = format!("Lattice does not touch {}: {}", unusable.name, unusable.reason);
        issues.push(Issue::new(IssueKind::UnusableName, summary, facts).action(
            "rename",
            "give it another name",
            "git branch -m -- <old> <new>",
        ));
    }
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for branch in snapshot.branches.keys() {
        alike.entry(branch.as_str().to_lowercase()).or_default().push(branch.to_string());
    }
    let mut composed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for branch in snapshot.branches.keys().filter(|branch| !branch.as_str().is_ascii()) {
        composed.entry(skeleton(branch.as_str())).or_default().push(branch.to_string());
    }
    composed.retain(|_, twins| twins.iter().any(|twin| twin.contains(is_mark)));
    for twins in alike.into_values().chain(composed.into_values()).filter(|twins| twins.len() > 1) {
        let summary = format!("these names look alike and are one file on some systems: {}", twins.join(", "));
        let issue = Issue::new(IssueKind::LookAlikeNames, summary, BTreeMap::from([("branches", twins)]));
        issues.push(issue.action("rename", "rename one of them", "git branch -m <old> <new>"));
    }
    issues
}

/// A mark that is drawn onto the letter before it.
fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// The name with each letter outside of ASCII, and each letter that carries marks, as the same sign: whether an
/// accent is part of a letter or follows it then makes no difference.
fn skeleton(name: &str) -> String {
    let mut skeleton = String::new();
    for c in name.chars() {
        if is_mark(c) {
            skeleton.pop();
        }
        skeleton.push(if c.is_ascii() { c.to_ascii_lowercase() } else { '\u{fffd}' });
    }
    skeleton
}
