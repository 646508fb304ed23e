//! The repair broker: a report out, fix ids in.

use lattice_model::capability::{Capability, remaining};
use lattice_model::doctor;
use lattice_model::event::{Detail, Origin};
use lattice_model::gate::Refusal;
use lattice_model::issue::{FixEffect, FixOption, Issue, RepoHealthReport};
use lattice_model::plan::{Hooks, Plan, Step};
use lattice_model::snapshot::{LedgerReading, OpStateReading, Snapshot};
use lattice_repo::{Executed, OperationRequest, ReadWorkingCopy};

use crate::lifecycle::Outcome;
use crate::{Engine, EngineError, Evidence};

/// A fix with the issue that it belongs to.
#[derive(Debug, Clone)]
pub struct ChosenFix {
    pub issue: Issue,
    pub fix: FixOption,
}

/// What applying fixes led to.
#[derive(Debug)]
pub struct Applied {
    pub outcome: Outcome,
    /// Actions that only the user can take.
    pub actions: Vec<ChosenFix>,
    pub fixes: Vec<ChosenFix>,
}

impl Engine {
    /// Lists what is wrong. Changes nothing but the ledger, which remembers what was offered.
    pub fn diagnose(&self) -> Result<(Snapshot, RepoHealthReport, Evidence), EngineError> {
        let observed = self.observe("doctor", ReadWorkingCopy::Yes)?;
        let report = doctor::report(&observed.snapshot);
        self.trace("doctor", &format!("{} issues", report.issues.len()));
        let mut evidence = observed.evidence;
        let offered = detail(&report.issues);
        // A record on top of a damaged one would hide the damage before anyone chose to go on.
        let readable = !matches!(observed.snapshot.ledger, LedgerReading::Damaged { .. });
        let free = report.capabilities.contains(&Capability::NoLatticeOpInProgress);
        if !offered.fixes.is_empty() && free && readable {
            // The divergence may just have been recorded, so the tip is read again.
            let snapshot = self.scan(ReadWorkingCopy::No)?;
            let recorded = self.repo.record_proposal(
                &snapshot,
                offered,
                self.op_id("doctor proposal", &snapshot),
                &self.environment.now,
            );
            if let Err(error) = recorded {
                evidence = Evidence::NotRecorded(error.to_string());
            }
        }
        Ok((observed.snapshot, report, evidence))
    }

    /// What is wrong now, for the end of a repair: its own record stays the newest one.
    pub fn examine(&self) -> Result<(Snapshot, RepoHealthReport), EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::Yes)?;
        let report = doctor::report(&snapshot);
        Ok((snapshot, report))
    }

    /// Finds fixes by id, in a new scan. All of them, or a refusal that names the one that is not there.
    pub fn find_fixes(&self, ids: &[String]) -> Result<Vec<ChosenFix>, EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::Yes)?;
        Ok(find(&snapshot, ids)?)
    }

    /// The plan of several fixes together.
    pub fn combined_plan(&self, chosen: &[ChosenFix]) -> Result<Plan, EngineError> {
        Ok(combine(chosen)?)
    }

    /// Applies exactly the fixes that were named.
    pub fn apply_fixes(&self, ids: &[String]) -> Result<Applied, EngineError> {
        let lock = self.lock("doctor", &self.lock_settings())?;
        let snapshot = self.scan(ReadWorkingCopy::Yes)?;
        let chosen = find(&snapshot, ids)?;
        let (fixes, actions): (Vec<_>, Vec<_>) =
            chosen.into_iter().partition(|chosen| matches!(chosen.fix.effect, FixEffect::Plan(_)));
        let plan = combine(&fixes)?;
        if fixes.is_empty() {
            return Ok(Applied { outcome: Outcome::Nothing { plan }, actions, fixes });
        }
        let mut detail = Detail::default();
        for chosen in &fixes {
            detail.issues.push(chosen.issue.id.to_string());
            detail.fixes.push(chosen.fix.id.to_string());
        }
        let request = OperationRequest {
            op: self.op_id("doctor", &snapshot),
            now: self.environment.now.clone(),
            origin: Origin::Doctor,
            detail,
            plan: plan.clone(),
        };
        self.trace("execute", request.op.as_str());
        let executed: Executed = self.repo.execute(&lock, &snapshot, request)?;
        let outcome = self.told(executed);
        if !matches!(outcome, Outcome::Paused(_)) {
            self.check_resolved(&fixes)?;
        }
        Ok(Applied { outcome, actions, fixes })
    }

    /// A repair that leaves its issue in place is no repair.
    fn check_resolved(&self, fixes: &[ChosenFix]) -> Result<(), EngineError> {
        let snapshot = self.scan(ReadWorkingCopy::Yes)?;
        let left = doctor::everything_fixable(&snapshot);
        match fixes.iter().find(|chosen| left.iter().any(|issue| issue.id == chosen.issue.id)) {
            None => Ok(()),
            Some(chosen) => Err(Refusal::new(
                "fix-did-not-help",
                format!("{} was applied, and {} is still there", chosen.fix.id, chosen.issue.id),
            )
            .hint("lattice undo takes it back")
            .into()),
        }
    }
}

/// The issues and fixes that a report offers, for the ledger.
fn detail(issues: &[Issue]) -> Detail {
    let offers = |issue: &&Issue| issue.fixes.iter().any(|fix| matches!(fix.effect, FixEffect::Plan(_)));
    let issues: Vec<_> = issues.iter().filter(offers).collect();
    Detail {
        issues: issues.iter().map(|issue| issue.id.to_string()).collect(),
        fixes: issues.iter().flat_map(|issue| &issue.fixes).map(|fix| fix.id.to_string()).collect(),
        ..Detail::default()
    }
}

fn find(snapshot: &Snapshot, ids: &[String]) -> Result<Vec<ChosenFix>, Refusal> {
    let issues = doctor::everything_fixable(snapshot);
    let holds = remaining(&issues.iter().filter(|issue| snapshot_level(issue)).cloned().collect::<Vec<_>>());
    let mut chosen: Vec<ChosenFix> = Vec::new();
    for id in ids {
        if chosen.iter().any(|earlier| earlier.fix.id.as_str() == id) {
            continue;
        }
        let found = issues.iter().find_map(|issue| {
            let fix = issue.fixes.iter().find(|fix| fix.id.as_str() == id)?;
            Some(ChosenFix { issue: issue.clone(), fix: fix.clone() })
        });
        let found = found.ok_or_else(|| {
            Refusal::new("unknown-fix", format!("there is no fix `{id}` now"))
                .hint("lattice doctor lists those that there are")
        })?;
        if let Some(missing) = found.fix.preconditions.iter().find(|needed| !holds.contains(needed)) {
            if let (Capability::NoLatticeOpInProgress, OpStateReading::Present(state)) = (missing, &snapshot.op_state) {
                let message = format!("`{id}` has to wait: `{}` is in progress", state.command);
                return Err(Refusal::new("operation-in-progress", message)
                    .hint("go on with: lattice continue")
                    .hint("or go back with: lattice abort"));
            }
            return Err(Refusal::new(
                "precondition-failed",
                format!("`{id}` needs {missing}, which does not hold now"),
            )
            .hint("lattice doctor says why"));
        }
        chosen.push(found);
    }
    Ok(chosen)
}

/// A frozen branch is an issue only for a command that would rewrite it.
fn snapshot_level(issue: &Issue) -> bool {
    issue.kind != lattice_model::issue::IssueKind::Frozen
}

fn combine(chosen: &[ChosenFix]) -> Result<Plan, Refusal> {
    let mut plan = Plan::new("doctor", Hooks::Run);
    let mut taken = std::collections::BTreeMap::new();
    for chosen in chosen {
        let FixEffect::Plan(fix) = &chosen.fix.effect else { continue };
        for thing in changed_by(fix) {
            if let Some(other) = taken.insert(thing.clone(), &chosen.fix.id) {
                return Err(Refusal::new("fixes-clash", format!("{other} and {} both change {thing}", chosen.fix.id))
                    .hint("apply one of them, then look again"));
            }
        }
        plan.steps.extend(fix.steps.iter().filter(|step| **step != Step::Verify).cloned());
    }
    Ok(plan.verified())
}

/// Everything that a fix changes, by name: two fixes that change the same thing contradict each other.
fn changed_by(fix: &Plan) -> Vec<String> {
    let mut things: Vec<_> = fix.touched_refs().into_iter().map(|touched| touched.name.to_string()).collect();
    things.extend(fix.steps.iter().filter_map(|step| match step {
        Step::WriteConfig { .. } => Some("lattice/config.toml".to_owned()),
        Step::RemoveOpState => Some("the marker of an operation".to_owned()),
        Step::RemoveLock { path, .. } => Some(path.clone()),
        Step::Stage { .. }
        | Step::Commit { .. }
        | Step::Derive { .. }
        | Step::LeaveFiles { .. }
        | Step::Fixup { .. }
        | Step::Rewrite { .. }
        | Step::SetRef { .. }
        | Step::SetMetadata { .. }
        | Step::MoveOptions { .. }
        | Step::Guard { .. }
        | Step::Switch { .. }
        | Step::RestoreWorktree { .. }
        | Step::Verify
        | Step::Fetch { .. }
        | Step::Push { .. }
        | Step::Host { .. } => None,
    }));
    things
}
