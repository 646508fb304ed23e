//! Decides whether a command may run on a snapshot.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use crate::capability::Capability;
use crate::doctor;
use crate::issue::{Issue, Severity};
use crate::plan::Plan;
use crate::snapshot::{Divergence, Snapshot};

/// A request that changes the repository: what it needs, what its scope means, what it would do.
pub trait Command: Sized {
    const NAME: &'static str;
    const REQUIRES: &'static [Capability];

    /// What is wrong with this request, on a snapshot that has everything else that the command requires.
    fn check(&self, _snapshot: &Snapshot) -> Vec<Issue> {
        Vec::new()
    }

    /// Pure and deterministic.
    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal>;
}

/// Proof that a snapshot has everything the command `C` requires. Only [`gate`] makes one.
///
/// The context of one command is of no use to another:
///
/// ```compile_fail
/// use lattice_model::command::{freeze::Freeze, restack::Restack};
/// use lattice_model::gate::{Command, ReadyContext};
/// fn confuse(freeze: &Freeze, ready: &ReadyContext<Restack>) {
///     let _ = freeze.plan(ready);
/// }
/// ```
///
/// and nobody else can make one:
///
/// ```compile_fail
/// use lattice_model::{command::freeze::Freeze, gate::ReadyContext, snapshot::Snapshot};
/// fn forge(snapshot: Snapshot) -> ReadyContext<Freeze> {
///     ReadyContext { snapshot, command: std::marker::PhantomData }
/// }
/// ```
#[derive(Debug)]
pub struct ReadyContext<C> {
    snapshot: Snapshot,
    command: PhantomData<C>,
}

impl<C> ReadyContext<C> {
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// The issues that block a command, with their fixes.
#[derive(Debug, Clone)]
pub struct RepairBundle {
    pub command: &'static str,
    pub missing: BTreeSet<Capability>,
    pub issues: Vec<Issue>,
    pub divergence: Option<Divergence>,
}

/// What gating concluded: one of the two, never both, never none.
#[must_use]
#[derive(Debug)]
pub enum Gate<C> {
    Ready(Box<ReadyContext<C>>),
    Repair(RepairBundle),
}

/// A request that is well-formed and allowed, and still cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
    pub hints: Vec<String>,
}

impl Refusal {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// What blocks every change while an operation is in progress.
pub fn in_progress<C: Command>(snapshot: &Snapshot) -> Option<RepairBundle> {
    let blocks = |issue: &Issue| issue.kind.removes() == Some(Capability::NoLatticeOpInProgress);
    let issues: Vec<_> = doctor::diagnose(snapshot).into_iter().filter(blocks).collect();
    let missing = BTreeSet::from([Capability::NoLatticeOpInProgress]);
    let divergence = snapshot.divergence.clone();
    (!issues.is_empty()).then_some(RepairBundle { command: C::NAME, missing, issues, divergence })
}

/// Checks what `command` requires against what `snapshot` proves.
pub fn gate<C: Command>(snapshot: Snapshot, command: &C) -> Gate<C> {
    let required = |issue: &Issue| issue.kind.removes().filter(|removed| C::REQUIRES.contains(removed));
    let mut issues = doctor::diagnose(&snapshot);
    issues.retain(|issue| required(issue).is_some());
    if issues.is_empty() {
        // What a request means can only be said of a repository that is itself in order.
        issues = command.check(&snapshot);
        issues.retain(|issue| required(issue).is_some());
    }
    let missing: BTreeSet<_> = issues.iter().filter_map(required).collect();
    if missing.is_empty() {
        return Gate::Ready(Box::new(ReadyContext { snapshot, command: PhantomData }));
    }
    for issue in &mut issues {
        issue.severity = Severity::Blocking;
    }
    Gate::Repair(RepairBundle { command: C::NAME, missing, issues, divergence: snapshot.divergence })
}

#[cfg(test)]
mod tests;
