//! Issues of metadata documents: unreadable, vanished, or without a branch.

use crate::branch::BranchMetadataV1;
use crate::id::Oid;
use crate::issue::{Issue, IssueKind, evidence};
use crate::name::BranchName;
use crate::plan::{Expected, Place, Plan, Step};
use crate::snapshot::{MetadataProblem, Recorded, Snapshot};

use super::repair;
use crate::command::reparented;

pub(super) fn issues(snapshot: &Snapshot) -> Vec<Issue> {
    let mut issues = Vec::new();
    for (branch, reading) in &snapshot.metadata {
        match &reading.content {
            Err(problem) => issues.push(unreadable(snapshot, branch, reading.oid, problem)),
            Ok(_) if !snapshot.branches.contains_key(branch) => issues.push(orphaned(snapshot, branch, reading.oid)),
            Ok(_) => {}
        }
    }
    for (branch, recorded) in &snapshot.recorded {
        let vanished = snapshot.branches.contains_key(branch) && !snapshot.metadata.contains_key(branch);
        if let (true, Some((oid, _))) = (vanished, &recorded.metadata) {
            issues.push(missing(branch, recorded, *oid));
        }
    }
    issues
}

fn unreadable(snapshot: &Snapshot, branch: &BranchName, oid: Oid, problem: &MetadataProblem) -> Issue {
    let facts = evidence([
        ("ref", branch.metadata_ref().to_string()),
        ("object", oid.to_string()),
        ("reason", problem.to_string()),
    ]);
    let mut issue = Issue::new(
        IssueKind::MetadataUnreadable,
        format!("the metadata of `{branch}` cannot be used: {problem}"),
        facts,
    );
    if let Some(recorded) = snapshot.recorded.get(branch)
        && let Some((old, _)) = recorded.metadata.as_ref().filter(|(old, _)| *old != oid)
    {
        let summary = format!("put back the metadata that the ledger saw last ({})", old.short());
        issue = issue.fix("restore-metadata", summary, set(branch, Expected::At(oid), Some(*old)));
    }
    issue.fix("remove-metadata", format!("stop tracking {branch}"), set(branch, Expected::At(oid), None))
}

fn missing(branch: &BranchName, recorded: &Recorded, oid: Oid) -> Issue {
    let facts = evidence([
        ("branch", branch.to_string()),
        ("ledger_event", recorded.event.to_string()),
        ("last_metadata", oid.to_string()),
        ("last_parent", recorded.metadata.as_ref().map(|(_, m)| m.parent.name().to_string()).unwrap_or_default()),
        ("last_base", recorded.metadata.as_ref().map(|(_, m)| m.base.to_string()).unwrap_or_default()),
    ]);
    let summary = format!("`{branch}` was tracked, and its metadata was removed outside of Lattice");
    Issue::new(IssueKind::MetadataVanished, summary, facts)
        .fix(
            "restore-metadata",
            format!("track {branch} again as the ledger saw it last"),
            set(branch, Expected::Absent, Some(oid)),
        )
        .action("leave", "leave it untracked", "nothing to do; the next operation of Lattice accepts it")
}

fn orphaned(snapshot: &Snapshot, branch: &BranchName, oid: Oid) -> Issue {
    let facts = evidence([("ref", branch.metadata_ref().to_string()), ("object", oid.to_string())]);
    let mut issue = Issue::new(
        IssueKind::MetadataOrphaned,
        format!("there is metadata for `{branch}`, and no such branch: it was deleted or renamed"),
        facts,
    );
    issue = with_renames(issue, snapshot, branch);
    if let Some(tip) = snapshot.recorded.get(branch).and_then(|recorded| recorded.tip) {
        let create =
            Step::SetRef { name: branch.branch_ref(), expected: Expected::Absent, to: Some(Place::Object(tip)) };
        issue = issue.fix("recreate-branch", format!("create {branch} again at {}", tip.short()), repair(create));
    }
    issue.fix("remove-metadata", format!("forget {branch}"), set(branch, Expected::At(oid), None))
}

/// Adds a fix for each branch that the one that is gone may be now.
pub(super) fn with_renames(issue: Issue, snapshot: &Snapshot, gone: &BranchName) -> Issue {
    let tip = snapshot.recorded.get(gone).and_then(|recorded| recorded.tip);
    let (Some(tip), Some((metadata, oid))) = (tip, snapshot.metadata_of(gone)) else { return issue };
    renamed_to(snapshot, tip).into_iter().fold(issue, |issue, renamed| {
        let summary = format!("`{gone}` is now `{renamed}`: move its metadata and the branches above it");
        issue.fix("follow-rename", summary, follow_rename(snapshot, (metadata, oid), renamed))
    })
}

/// Untracked branches that stand where the deleted one stood.
fn renamed_to(snapshot: &Snapshot, tip: Oid) -> Vec<&BranchName> {
    let untracked = |branch: &BranchName| !snapshot.metadata.contains_key(branch) && !snapshot.is_trunk(branch);
    snapshot.branches.iter().filter(|(name, at)| **at == tip && untracked(name)).map(|(name, _)| name).collect()
}

fn follow_rename(snapshot: &Snapshot, (metadata, oid): (&BranchMetadataV1, Oid), new: &BranchName) -> Plan {
    let old = &metadata.name;
    let document = reparented(metadata, metadata.parent.clone(), metadata.base);
    let mut plan = Plan::new("doctor", crate::plan::Hooks::Run)
        .then(Step::SetMetadata { branch: new.clone(), expected: Expected::Absent, document })
        .then(Step::SetRef { name: old.metadata_ref(), expected: Expected::At(oid), to: None });
    for (child, _) in snapshot.tracked().filter(|(child, _)| child.parent.name() == old) {
        let document = reparented(child, crate::branch::Parent::Branch(new.clone()), child.base);
        let expected = Expected::At(snapshot.metadata[&child.name].oid);
        plan.steps.push(Step::SetMetadata { branch: child.name.clone(), expected, document });
    }
    plan.verified()
}

fn set(branch: &BranchName, expected: Expected, to: Option<Oid>) -> Plan {
    repair(Step::SetRef { name: branch.metadata_ref(), expected, to: to.map(Place::Object) })
}
