//! Diagnosis: every way a repository can be wrong, with the choices for each.

mod base;
mod config;
mod graph;
pub mod host;
mod metadata;
mod state;

use crate::capability::remaining;
use crate::issue::{Issue, RepoHealthReport};
use crate::plan::{Hooks, Plan, Step};
use crate::snapshot::Snapshot;

/// All issues of a snapshot, worst first, then by id. Changes nothing.
pub fn diagnose(snapshot: &Snapshot) -> Vec<Issue> {
    let mut issues = config::issues(snapshot);
    issues.extend(metadata::issues(snapshot));
    issues.extend(graph::issues(snapshot));
    issues.extend(base::issues(snapshot));
    issues.extend(state::issues(snapshot));
    issues.sort_by(|a, b| (a.severity, &a.id).cmp(&(b.severity, &b.id)));
    issues
}

/// Every issue that a gated command may have shown, so that its fixes can be found by id.
pub fn everything_fixable(snapshot: &Snapshot) -> Vec<Issue> {
    let mut issues = diagnose(snapshot);
    issues.extend(snapshot.branches.keys().filter_map(|branch| crate::command::frozen(snapshot, branch)));
    issues
}

/// The report of a scan.
pub fn report(snapshot: &Snapshot) -> RepoHealthReport {
    let issues = diagnose(snapshot);
    RepoHealthReport {
        capabilities: remaining(&issues),
        issues,
        fingerprint: snapshot.fingerprint.clone(),
        divergence: snapshot.divergence.clone(),
    }
}

/// A repair of one step.
fn repair(step: Step) -> Plan {
    Plan::new("doctor", Hooks::Run).then(step).verified()
}
