//! The law: scan, gate, plan, execute, verify, record.

use lattice_model::event::{Detail, RefChange};
use lattice_model::gate::{Command, Gate, ReadyContext, Refusal, RepairBundle, gate, in_progress};
use lattice_model::id::{ContentDigest, OpId};
use lattice_model::plan::Plan;
use lattice_model::snapshot::Snapshot;
use lattice_repo::{Dropped, ExecuteError, Executed, Foresight, Lock, OperationRequest, Paused, ReadWorkingCopy};

use crate::{Engine, EngineError};

/// What is to be done with the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Execute,
    /// Only if the plan is still this one.
    ExecuteExactly(ContentDigest),
    DryRun,
}

/// How a request ended. Refusals and pauses are outcomes, not errors.
#[derive(Debug)]
pub enum Outcome {
    Done {
        op: OpId,
        plan: Plan,
        refs: Vec<RefChange>,
        /// Commits that are not there any more because their change was there already.
        dropped: Vec<Dropped>,
    },
    /// Everything is as the request wants it already.
    Nothing {
        plan: Plan,
    },
    Planned {
        plan: Plan,
        /// What it would run into, or why that cannot be told.
        foresight: Result<Foresight, String>,
    },
    /// The plan is not the one that was agreed to.
    Differs {
        plan: Plan,
    },
    Paused(Paused),
    Gated(RepairBundle),
}

/// What gating and planning led to.
enum Decision<C> {
    Execute(Box<ReadyContext<C>>, Plan),
    Tell(Outcome),
}

impl Engine {
    /// Takes one request through the law. `build` makes it from what the scan saw.
    pub fn run<C: Command>(
        &self,
        mode: &Mode,
        working_copy: ReadWorkingCopy,
        build: impl FnOnce(&Self, &Snapshot) -> Result<C, Refusal>,
    ) -> Result<Outcome, EngineError> {
        self.run_with_detail(mode, working_copy, Detail::default(), build)
    }

    pub(crate) fn run_with_detail<C: Command>(
        &self,
        mode: &Mode,
        working_copy: ReadWorkingCopy,
        detail: Detail,
        build: impl FnOnce(&Self, &Snapshot) -> Result<C, Refusal>,
    ) -> Result<Outcome, EngineError> {
        self.run_then(mode, (working_copy, detail), build, |_, _| Ok(()))
    }

    /// As `run`; `perform` carries out the remote part, once the local part is verified and recorded.
    pub(crate) fn run_then<C: Command>(
        &self,
        mode: &Mode,
        (working_copy, mut detail): (ReadWorkingCopy, Detail),
        build: impl FnOnce(&Self, &Snapshot) -> Result<C, Refusal>,
        perform: impl FnOnce(&Lock, &Plan) -> Result<(), EngineError>,
    ) -> Result<Outcome, EngineError> {
        // The lock comes before the scan, so that a writer that had to wait plans on what the
        // one before it left.
        let lock = match mode {
            Mode::DryRun => None,
            Mode::Execute | Mode::ExecuteExactly(_) => Some(self.lock(C::NAME, &self.lock_settings())?),
        };
        let mut snapshot = self.scan(working_copy)?;
        // An operation records what was seen together with itself; whatever ends before that does it here.
        let seen = snapshot.divergence.is_some().then(|| snapshot.clone());
        let note = || seen.iter().for_each(|snapshot| drop(self.note_divergence(snapshot, C::NAME)));
        let asked = self.ask(&snapshot, build).inspect_err(|_| note())?;
        let Ok(request) = asked else {
            note();
            return Ok(asked.err().expect("bug: what is no request is told"));
        };
        // Once more for each branch that has to be left out, which are at most all of them.
        loop {
            let (ready, plan) = match self.decide(mode, snapshot, &request).inspect_err(|_| note())? {
                Decision::Execute(ready, plan) => (ready, plan),
                Decision::Tell(outcome) => {
                    note();
                    return Ok(outcome);
                }
            };
            let lock = lock.as_ref().expect("bug: what executes has the lock");
            detail.remote = plan.remote_intents();
            let operation = OperationRequest {
                op: self.op_id(C::NAME, ready.snapshot()),
                now: self.environment.now.clone(),
                origin: self.origin.clone(),
                detail: detail.clone(),
                plan: plan.clone(),
            };
            self.trace("execute", operation.op.as_str());
            match self.repo.execute(lock, ready.snapshot(), operation) {
                Err(ExecuteError::HeldBack { held })
                    if held.keys().any(|branch| !ready.snapshot().held.contains_key(branch)) =>
                {
                    snapshot = ready.snapshot().clone();
                    snapshot.held.extend(held);
                }
                executed => {
                    let outcome = self.told(executed?);
                    if matches!(outcome, Outcome::Done { .. }) {
                        perform(lock, &plan)?;
                    }
                    return Ok(outcome);
                }
            }
        }
    }

    /// Makes the request; what cannot even be asked for is still told first that an operation waits.
    fn ask<C: Command>(
        &self,
        snapshot: &Snapshot,
        build: impl FnOnce(&Self, &Snapshot) -> Result<C, Refusal>,
    ) -> Result<Result<C, Outcome>, EngineError> {
        match build(self, snapshot) {
            Ok(request) => Ok(Ok(request)),
            Err(refusal) => match in_progress::<C>(snapshot) {
                Some(bundle) => Ok(Err(Outcome::Gated(bundle))),
                None => Err(refusal.into()),
            },
        }
    }

    /// Gates and plans.
    fn decide<C: Command>(&self, mode: &Mode, snapshot: Snapshot, request: &C) -> Result<Decision<C>, EngineError> {
        let ready = match gate(snapshot, request) {
            Gate::Repair(bundle) => {
                let missing: Vec<_> = bundle.missing.iter().map(ToString::to_string).collect();
                self.trace("gate", &format!("repair: {} missing", missing.join(", ")));
                return Ok(Decision::Tell(Outcome::Gated(bundle)));
            }
            Gate::Ready(ready) => ready,
        };
        self.trace("gate", "ready");
        let plan = request.plan(&ready)?;
        let digest = plan.digest();
        self.trace("plan", digest.as_str());
        Ok(match mode {
            Mode::DryRun => {
                let foreseen = self.repo.foresee(ready.snapshot(), &plan, &self.environment.now);
                let foresight = foreseen.map_err(|error| error.to_string());
                Decision::Tell(Outcome::Planned { plan, foresight })
            }
            Mode::ExecuteExactly(agreed) if *agreed != digest => Decision::Tell(Outcome::Differs { plan }),
            Mode::Execute | Mode::ExecuteExactly(_) if plan.is_empty() => Decision::Tell(Outcome::Nothing { plan }),
            Mode::Execute | Mode::ExecuteExactly(_) => Decision::Execute(ready, plan),
        })
    }

    pub(crate) fn told(&self, executed: Executed) -> Outcome {
        match executed {
            Executed::Done { op, plan, refs, dropped } => {
                self.trace("verify", "holds");
                self.trace("record", "Committed");
                Outcome::Done { op, plan: *plan, refs, dropped }
            }
            Executed::Paused(paused) => {
                self.trace("execute", "awaiting_user");
                Outcome::Paused(paused)
            }
        }
    }

    /// How long to wait for the lock is known before anything is scanned.
    pub(crate) fn lock_settings(&self) -> lattice_model::settings::Settings {
        self.repo.settings(&self.environment.user_settings)
    }
}
