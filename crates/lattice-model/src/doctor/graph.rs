//! Issues of the stack graph: cycles, missing parents, a tracked trunk.

use crate::branch::{BranchMetadataV1, Parent};
use crate::command::reparent::rescue;
use crate::command::reparented;
use crate::graph::GraphProblem;
use crate::id::Oid;
use crate::issue::{Issue, IssueKind, evidence};
use crate::name::BranchName;
use crate::plan::{Expected, MetadataDraft, Place, Plan, Step};
use crate::snapshot::Snapshot;

use super::metadata::with_renames;
use super::repair;

/// How many branches of a long cycle are offered as the place to cut it.
const CUTS_OFFERED: usize = 10;

pub(super) fn issues(snapshot: &Snapshot) -> Vec<Issue> {
    let problems = snapshot.graph().problems(|branch| snapshot.branches.contains_key(branch));
    let mut issues: Vec<_> = problems.iter().map(|problem| issue(snapshot, problem)).collect();
    issues.extend(snapshot.tracked().filter_map(|(metadata, _)| wrong_kind(snapshot, metadata)));
    issues
}

fn issue(snapshot: &Snapshot, problem: &GraphProblem) -> Issue {
    match problem {
        GraphProblem::Cycle(trace) => cycle(snapshot, trace),
        GraphProblem::MissingParent { branch, parent } => missing_parent(snapshot, branch, parent),
        GraphProblem::TrackedTrunk(trunk) => {
            let facts = evidence([("trunk", trunk.to_string())]);
            let expected = Expected::At(snapshot.metadata[trunk].oid);
            let remove = Step::SetRef { name: trunk.metadata_ref(), expected, to: None };
            Issue::new(
                IssueKind::TrunkTracked,
                format!("the trunk `{trunk}` is tracked as if it were part of a stack"),
                facts,
            )
            .fix("remove-metadata", format!("stop tracking {trunk}"), repair(remove))
        }
    }
}

fn cycle(snapshot: &Snapshot, trace: &[BranchName]) -> Issue {
    let names: Vec<_> = trace.iter().map(BranchName::to_string).collect();
    let shown = if names.len() > 6 {
        format!("{} -> … ({} branches)", names[..5].join(" -> "), names.len())
    } else {
        names.join(" -> ")
    };
    let facts = [("cycle", names)].into();
    let summary = format!("the parents of these branches go round in a circle: {shown} -> {}", trace[0]);
    let mut issue = Issue::new(IssueKind::Cycle, summary, facts);
    for branch in trace.iter().take(CUTS_OFFERED) {
        let Some((metadata, _)) = snapshot.metadata_of(branch) else { continue };
        if let Some(trunk) = &snapshot.settings.trunk {
            let base = metadata.base;
            let document = reparented(metadata, Parent::Trunk(trunk.clone()), base);
            issue = issue.fix("cut-cycle", format!("let {branch} stand on {trunk}"), write(snapshot, branch, document));
        }
        let remove = Step::SetRef {
            name: branch.metadata_ref(),
            expected: Expected::At(snapshot.metadata[branch].oid),
            to: None,
        };
        issue = issue.fix("remove-metadata", format!("stop tracking {branch}"), repair(remove));
    }
    issue
}

fn missing_parent(snapshot: &Snapshot, branch: &BranchName, parent: &BranchName) -> Issue {
    let facts = evidence([("branch", branch.to_string()), ("parent", parent.to_string())]);
    let summary = format!("`{branch}` stands on `{parent}`, which does not exist");
    let issue = Issue::new(IssueKind::ParentMissing, summary, facts);
    let mut issue = with_renames(issue, snapshot, parent);
    let (metadata, oid) = snapshot.metadata_of(branch).expect("bug: the graph holds readable metadata only");
    if let Some(tip) = snapshot.recorded.get(parent).and_then(|recorded| recorded.tip) {
        let to = Some(Place::Object(tip));
        let create = Step::SetRef { name: parent.branch_ref(), expected: Expected::Absent, to };
        issue = issue.fix("recreate-branch", format!("create {parent} again at {}", tip.short()), repair(create));
    }
    if let Some((below, base)) = grandparent(snapshot, parent) {
        issue = issue.fix(
            "adopt",
            format!("let {branch} stand on {}, with the commits of {parent} as its own", below.name()),
            write(snapshot, branch, reparented(metadata, below.clone(), base)),
        );
    }
    if let Some(trunk) = snapshot.settings.trunk.clone().filter(|trunk| trunk != parent) {
        let document = reparented(metadata, Parent::Trunk(trunk.clone()), metadata.base);
        let summary = format!("let {branch} stand on {trunk}, with its own commits only");
        issue = issue.fix("reparent-to-trunk", summary, write(snapshot, branch, document));
        if let Some(plan) = rescue(snapshot, branch, &trunk) {
            let summary = format!("move {branch} onto {trunk} at once, with its own commits only");
            issue = issue.fix("move-to-trunk", summary, plan);
        }
    }
    let remove = Step::SetRef { name: branch.metadata_ref(), expected: Expected::At(oid), to: None };
    issue.fix("remove-metadata", format!("stop tracking {branch}"), repair(remove))
}

/// What the missing parent itself stood on, where its metadata is still there.
fn grandparent(snapshot: &Snapshot, parent: &BranchName) -> Option<(Parent, Oid)> {
    let metadata = snapshot.metadata_of(parent).map(|(metadata, _)| metadata);
    let recorded = || Some(&snapshot.recorded.get(parent)?.metadata.as_ref()?.1);
    let metadata = metadata.or_else(recorded)?;
    snapshot.branches.contains_key(metadata.parent.name()).then(|| (metadata.parent.clone(), metadata.base))
}

/// `trunk` as the kind of a parent that is not the trunk, or the other way round.
fn wrong_kind(snapshot: &Snapshot, metadata: &BranchMetadataV1) -> Option<Issue> {
    let trunk = snapshot.settings.trunk.as_ref()?;
    let right = Parent::of(metadata.parent.name(), trunk);
    if right == metadata.parent {
        return None;
    }
    let facts = evidence([("branch", metadata.name.to_string()), ("parent", metadata.parent.name().to_string())]);
    let summary = format!(
        "the metadata of `{}` calls `{}` by the wrong kind; the trunk is `{trunk}`",
        metadata.name,
        metadata.parent.name()
    );
    let document = reparented(metadata, right, metadata.base);
    let issue = Issue::new(IssueKind::ParentKindWrong, summary, facts);
    Some(issue.fix("correct-kind", "write the right kind", write(snapshot, &metadata.name, document)))
}

fn write(snapshot: &Snapshot, branch: &BranchName, document: MetadataDraft) -> Plan {
    let expected = Expected::At(snapshot.metadata[branch].oid);
    repair(Step::SetMetadata { branch: branch.clone(), expected, document })
}
