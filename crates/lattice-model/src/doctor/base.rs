//! Issues of recorded bases and of the commits above them: missing, unreadable, or none below the branch.

use crate::branch::BranchMetadataV1;
use crate::command::reparented;
use crate::history::{Ancestry, Position};
use crate::id::Oid;
use crate::issue::{Issue, IssueKind, evidence};
use crate::plan::{Expected, Step};
use crate::snapshot::{Completeness, Snapshot};

use super::repair;

pub(super) fn issues(snapshot: &Snapshot) -> Vec<Issue> {
    // Where history is cut off nobody can tell; that is an issue of its own.
    if snapshot.completeness == Completeness::Shallow {
        return Vec::new();
    }
    snapshot
        .tracked()
        .filter_map(|(metadata, tip)| unreadable(snapshot, metadata, tip).or_else(|| issue(snapshot, metadata)))
        .collect()
}

/// A branch whose commits are damaged: which of them are its own cannot be told.
fn unreadable(snapshot: &Snapshot, metadata: &BranchMetadataV1, tip: Oid) -> Option<Issue> {
    let branch = &metadata.name;
    let reason = snapshot.unreadable.get(branch)?;
    let facts = evidence([("branch", branch.to_string()), ("tip", tip.to_string()), ("git", reason.clone())]);
    let summary = format!("the commits of `{branch}` cannot be read: {reason}");
    let expected = Expected::At(snapshot.metadata[branch].oid);
    let remove = Step::SetRef { name: branch.metadata_ref(), expected, to: None };
    Some(
        Issue::new(IssueKind::HistoryUnreadable, summary, facts)
            .action("look", "see what Git says of the repository, and fetch or restore what is missing", "git fsck")
            .fix(
                "remove-metadata",
                format!("stop tracking {branch}, so that the others can be worked on"),
                repair(remove),
            ),
    )
}

fn issue(snapshot: &Snapshot, metadata: &BranchMetadataV1) -> Option<Issue> {
    let branch = &metadata.name;
    let position = snapshot.position(branch)?;
    let facts = evidence([("branch", branch.to_string()), ("base", metadata.base.to_string())]);
    let issue = match position.base {
        Some(Ancestry::Ancestor) | None => return None,
        Some(Ancestry::Missing) => {
            let summary = format!("the base of `{branch}`, {}, is no commit of this repository", metadata.base.short());
            Issue::new(IssueKind::BaseMissing, summary, facts)
        }
        Some(Ancestry::NotAncestor) => {
            let summary = format!(
                "`{branch}` no longer contains its base {}: it was reset or rebased elsewhere",
                metadata.base.short()
            );
            Issue::new(IssueKind::BaseNotAncestor, summary, facts)
        }
    };
    Some(with_choices(issue, snapshot, metadata, &position))
}

/// Where a branch leaves its parent: the newest of its commits that the parent has, too.
fn leaving(snapshot: &Snapshot, metadata: &BranchMetadataV1, position: &Position) -> Option<Oid> {
    let parent = snapshot.tip(metadata.parent.name()).filter(|_| position.merges.is_empty());
    let shared = |commit: &&Oid| parent.is_some_and(|parent| snapshot.history.contains(**commit, parent));
    position.commits.iter().find(shared).copied().or(position.fork)
}

fn with_choices(issue: Issue, snapshot: &Snapshot, metadata: &BranchMetadataV1, position: &Position) -> Issue {
    let branch = &metadata.name;
    let expected = Expected::At(snapshot.metadata[branch].oid);
    let mut issue = issue;
    if let Some(fork) = leaving(snapshot, metadata, position) {
        let document = reparented(metadata, metadata.parent.clone(), fork);
        let summary = format!("take {} as the base, where {branch} leaves {}", fork.short(), metadata.parent.name());
        issue = issue.fix(
            "correct-base",
            summary,
            repair(Step::SetMetadata { branch: branch.clone(), expected, document }),
        );
    }
    let remove = Step::SetRef { name: branch.metadata_ref(), expected, to: None };
    issue.fix("remove-metadata", format!("stop tracking {branch}"), repair(remove))
}
