//! Operations as the ledger tells them: what was done, what was undone, what was only observed.

use std::collections::BTreeMap;

use lattice_model::command::undo::{Direction, Undo};
use lattice_model::event::{Category, Detail, Event, RefChange};
use lattice_model::gate::Refusal;
use lattice_model::id::OpId;
use lattice_model::time::Timestamp;
use lattice_repo::{LedgerEntry, ReadWorkingCopy};

use crate::lifecycle::{Mode, Outcome};
use crate::{Engine, EngineError};

/// One operation.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: OpId,
    pub command: String,
    pub origin: &'static str,
    pub at: Timestamp,
    pub state: OperationState,
    pub undoable: bool,
    pub refs: Vec<RefChange>,
    pub undoes: Option<OpId>,
    pub reason: Option<String>,
    /// What it intended on a remote.
    pub remote: Vec<String>,
    event: Event,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState {
    Committed,
    Aborted,
    Undone,
    Observed,
}

impl OperationState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Undone => "undone",
            Self::Observed => "observed",
        }
    }
}

/// Which operation to undo.
#[derive(Debug, Clone)]
pub enum Pick {
    /// The newest that changed something here and is not undone.
    Newest,
    /// By id, or the beginning of one.
    Id(String),
}

/// An operation that was reversed.
#[derive(Debug)]
pub struct Reversal {
    pub operation: Operation,
    /// Newer ones that concern a remote alone: there is nothing of them to put back here.
    pub passed_over: Vec<Operation>,
    pub outcome: Outcome,
}

impl Engine {
    /// All operations, newest first.
    pub fn operations(&self) -> Result<Vec<Operation>, EngineError> {
        let events = self.repo.events(None)?;
        let kept = self.repo.kept_operations()?;
        let readable: Vec<_> = events.into_iter().filter_map(|(_, event)| event.ok()).collect();
        let undone = undone(&readable);
        let mut operations = Vec::new();
        for event in readable {
            let state = match event.category {
                Category::Committed if undone.get(&event.op).copied().unwrap_or(false) => OperationState::Undone,
                Category::Committed => OperationState::Committed,
                Category::Aborted => OperationState::Aborted,
                Category::DivergenceObserved => OperationState::Observed,
                Category::IntentRecorded | Category::DoctorProposed | Category::DoctorApplied => continue,
            };
            operations.push(Operation {
                id: event.op.clone(),
                command: event.command.clone(),
                origin: event.origin.as_str(),
                at: event.at.clone(),
                undoable: state == OperationState::Committed && kept.contains(&event.op),
                state,
                refs: event.refs.clone(),
                undoes: event.detail.undoes.clone(),
                reason: event.detail.reason.clone(),
                remote: event.detail.remote.clone(),
                event,
            });
        }
        Ok(operations)
    }

    /// The operation whose id begins so.
    pub fn operation(&self, id: &str) -> Result<Operation, EngineError> {
        let found: Vec<_> = self.operations()?.into_iter().filter(|op| op.id.as_str().starts_with(id)).collect();
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(Refusal::new("no-such-operation", format!("there is no operation `{id}`"))
                .hint("lattice ops lists them")
                .into()),
            [first, ..] if found.iter().all(|op| op.id == first.id) => Ok(first.clone()),
            _ => Err(Refusal::new("ambiguous-operation", format!("several operations begin with `{id}`"))
                .hint("give more of the id")
                .into()),
        }
    }

    /// Reverses an operation.
    pub fn undo(&self, pick: &Pick, mode: &Mode) -> Result<Reversal, EngineError> {
        let operations = self.operations()?;
        let (target, passed_over) = match pick {
            Pick::Id(id) => (self.operation(id)?, Vec::new()),
            Pick::Newest => newest(&operations)?,
        };
        let outcome = self.reverse(&operations, &target, Direction::Undo, mode)?;
        Ok(Reversal { operation: target, passed_over, outcome })
    }

    /// Reverses the newest undo.
    pub fn redo(&self, mode: &Mode) -> Result<Reversal, EngineError> {
        let operations = self.operations()?;
        let candidate = |op: &&Operation| op.state == OperationState::Committed && op.command == "undo";
        let newest = operations.iter().find(candidate).cloned();
        let target =
            newest.ok_or_else(|| Refusal::new("nothing-to-redo", "nothing was undone that could be redone"))?;
        let outcome = self.reverse(&operations, &target, Direction::Redo, mode)?;
        Ok(Reversal { operation: target, passed_over: Vec::new(), outcome })
    }

    fn reverse(
        &self,
        operations: &[Operation],
        target: &Operation,
        direction: Direction,
        mode: &Mode,
    ) -> Result<Outcome, EngineError> {
        check_reversible(target)?;
        let event = target.event.clone();
        let later = operations.iter().take_while(|op| op.id != target.id);
        let later: Vec<_> = later.filter(|op| op.can_be_next()).map(|op| op.event.clone()).collect();
        let detail = Detail { undoes: Some(target.id.clone()), ..Detail::default() };
        let build = |_: &Self, _: &_| Ok(Undo { event, direction, later });
        self.run_with_detail(mode, ReadWorkingCopy::No, detail, build)
    }

    /// The ledger, newest first.
    pub fn ledger(&self, limit: Option<usize>) -> Result<Vec<LedgerEntry>, EngineError> {
        Ok(self.repo.events(limit)?)
    }
}

impl Operation {
    /// Whether it is in effect and no reversal itself.
    fn can_be_next(&self) -> bool {
        self.state == OperationState::Committed && self.undoes.is_none()
    }
}

/// The newest operation that left something to put back, and those that it is looked for behind: they would stand in
/// the way of every older one for ever.
fn newest(operations: &[Operation]) -> Result<(Operation, Vec<Operation>), Refusal> {
    let mut passed_over = Vec::new();
    for operation in operations.iter().filter(|op| op.can_be_next()) {
        if operation.event.changed_something() {
            return Ok((operation.clone(), passed_over));
        }
        passed_over.push(operation.clone());
    }
    let message = match passed_over.as_slice() {
        [] => "there is no operation to undo",
        [..] => "no operation that is left to undo changed anything here",
    };
    Err(Refusal::new("nothing-to-undo", message).hint("lattice ops lists them"))
}

fn check_reversible(target: &Operation) -> Result<(), Refusal> {
    match target.state {
        OperationState::Committed if target.undoable => Ok(()),
        OperationState::Committed => {
            Err(Refusal::new("too-old", format!("what operation {} replaced is no longer kept", target.id))
                .hint("undo.keep_operations and undo.keep_days say how long it is"))
        }
        OperationState::Undone => {
            Err(Refusal::new("already-undone", format!("operation {} is undone already", target.id))
                .hint("lattice redo brings the newest one back"))
        }
        OperationState::Aborted => {
            Err(Refusal::new("not-undoable", format!("operation {} changed nothing", target.id)))
        }
        OperationState::Observed => {
            Err(Refusal::new("not-undoable", "that change was made outside of Lattice, which only saw it")
                .hint("git reflog knows the old values"))
        }
    }
}

/// For each operation whether it is undone: an undo undoes, and undoing an undo brings back.
fn undone(newest_first: &[Event]) -> BTreeMap<OpId, bool> {
    let mut undone: BTreeMap<OpId, bool> = BTreeMap::new();
    let mut reverses: BTreeMap<OpId, OpId> = BTreeMap::new();
    for event in newest_first.iter().rev().filter(|event| event.category == Category::Committed) {
        let mut target = event.detail.undoes.clone();
        if let Some(target) = &target {
            reverses.insert(event.op.clone(), target.clone());
        }
        let mut state = true;
        while let Some(op) = target {
            undone.insert(op.clone(), state);
            state = !state;
            target = reverses.get(&op).cloned();
        }
    }
    undone
}
