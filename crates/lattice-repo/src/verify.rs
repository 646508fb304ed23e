//! Postconditions: an operation is a success only if a new scan says so.

use lattice_model::branch::BranchMetadataV1;
use lattice_model::doctor;
use lattice_model::history::Ancestry;
use lattice_model::id::Oid;
use lattice_model::issue::{Issue, IssueKind};
use lattice_model::plan::{Plan, Step};
use lattice_model::settings::Settings;
use lattice_model::snapshot::Snapshot;
use lattice_model::time::Timestamp;

use crate::format::journal::{Journal, Prepared};
use crate::scan::{Look, ReadWorkingCopy, ScanRequest};

pub(crate) fn scan_request(settings: &Settings, now: &Timestamp) -> ScanRequest {
    let mut defaults = settings.clone();
    // The configuration may have been removed; what it said must not survive it.
    defaults.trunk = None;
    ScanRequest { look: Look::Afresh, working_copy: ReadWorkingCopy::No, now: now.clone(), defaults }
}

/// Everything in `snapshot` that contradicts what the plan promised.
///
/// Refs that the plan does not name may change meanwhile: the next command reports them as
/// divergence, since the record of this operation does not have their new values.
pub(crate) fn problems(snapshot: &Snapshot, journal: &Journal, prepared: &Prepared) -> Vec<String> {
    let plan = &journal.plan;
    let mut problems = Vec::new();
    for edit in &prepared.edits {
        let found = match (edit.name.as_branch(), edit.name.as_metadata_of()) {
            (Some(branch), _) => snapshot.tip(&branch),
            (None, Some(branch)) => snapshot.metadata.get(&branch).map(|reading| reading.oid),
            (None, None) => edit.new,
        };
        if found != edit.new {
            let shown = |oid: Option<Oid>| oid.map_or("absent".to_owned(), |oid| oid.to_string());
            problems.push(format!("{} is {}, not {}", edit.name, shown(found), shown(edit.new)));
        }
    }
    if let Some(head) = &prepared.head_after
        && snapshot.head.value().as_ref() != Some(head)
    {
        problems.push("HEAD is not where the plan puts it".to_owned());
    }
    problems.extend(positions(snapshot, journal));
    problems.extend(structure(snapshot, plan));
    problems
}

/// Rewritten branches stand on their parents.
fn positions(snapshot: &Snapshot, journal: &Journal) -> Vec<String> {
    let mut problems = Vec::new();
    for step in &journal.plan.steps {
        let Step::Rewrite { branch, commits, .. } = step else { continue };
        let Some(position) = snapshot.position(branch) else {
            problems.push(format!("{branch} is no longer tracked"));
            continue;
        };
        let stands = position.base == Some(Ancestry::Ancestor)
            && snapshot.metadata_of(branch).is_some_and(|(m, _)| parent_tip(snapshot, journal, m) == Some(m.base));
        if !stands {
            problems.push(format!("{branch} does not stand on its parent"));
        }
        // Who resolves a conflict may drop a commit that became empty, or make two of one.
        let (has, wanted) = (position.commits.len(), journal.remaining(branch, commits).len());
        if has != wanted && !journal.resolved.contains(branch) {
            problems.push(format!("{branch} has {has} commits, not {wanted}"));
        }
    }
    problems
}

/// The tip of a branch's parent: as it is, or as the transaction found it, since others may go on with a branch that
/// the plan only depends on.
fn parent_tip(snapshot: &Snapshot, journal: &Journal, metadata: &BranchMetadataV1) -> Option<Oid> {
    let name = metadata.parent.name().branch_ref();
    let guarded = journal.plan.steps.iter().find_map(|step| match step {
        Step::Guard { name: guarded, expected } if *guarded == name => expected.value(),
        _ => None,
    });
    guarded.or_else(|| snapshot.tip(metadata.parent.name()))
}

/// No branch whose metadata the plan wrote is in a state that would gate the next command.
fn structure(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    let written: Vec<_> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::SetMetadata { branch, .. } => Some(branch.to_string()),
            _ => None,
        })
        .collect();
    let concerns = |issue: &&Issue| {
        let branch = issue.evidence.get("branch").and_then(|values| values.first());
        branch.is_some_and(|branch| written.contains(branch))
            && matches!(
                issue.kind,
                IssueKind::MetadataUnreadable
                    | IssueKind::ParentMissing
                    | IssueKind::BaseMissing
                    | IssueKind::BaseNotAncestor
            )
    };
    // A repair of one defect may leave others; only those that the plan itself wrote count.
    if plan.command == "doctor" {
        return Vec::new();
    }
    doctor::diagnose(snapshot).iter().filter(concerns).map(|issue| issue.summary.clone()).collect()
}
