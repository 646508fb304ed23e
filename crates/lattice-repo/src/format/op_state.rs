//! The marker of an operation in progress.

use std::path::PathBuf;

use lattice_model::event::RefChange;
use lattice_model::id::{ContentDigest, OpId};
use lattice_model::snapshot::{Holder, OpPhase, OpState};
use serde::{Deserialize, Serialize};

use super::sealed::{self, SealError};

pub(crate) const SIZE_LIMIT: u64 = 64 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpStateV1 {
    kind: Kind,
    schema_version: u32,
    op_id: OpId,
    command: String,
    phase: Phase,
    plan_digest: ContentDigest,
    touched_refs: Vec<RefChange>,
    origin_git_dir: PathBuf,
    origin_work_dir: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
enum Kind {
    #[serde(rename = "lattice.op-state")]
    OpState,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    Executing,
    AwaitingUser,
}

pub(crate) fn parse(bytes: &[u8], holder: Holder) -> Result<OpState, SealError> {
    let document: OpStateV1 = sealed::unseal(bytes)?;
    Ok(OpState {
        op: document.op_id,
        command: document.command,
        phase: match document.phase {
            Phase::Executing => OpPhase::Executing,
            Phase::AwaitingUser => OpPhase::AwaitingUser,
        },
        plan: document.plan_digest,
        touched: document.touched_refs,
        origin_git_dir: document.origin_git_dir,
        origin_work_dir: document.origin_work_dir,
        holder,
    })
}

pub(crate) fn render(state: &OpState) -> String {
    sealed::seal(&OpStateV1 {
        kind: Kind::OpState,
        schema_version: 1,
        op_id: state.op.clone(),
        command: state.command.clone(),
        phase: match state.phase {
            OpPhase::Executing => Phase::Executing,
            OpPhase::AwaitingUser => Phase::AwaitingUser,
        },
        plan_digest: state.plan.clone(),
        touched_refs: state.touched.clone(),
        origin_git_dir: state.origin_git_dir.clone(),
        origin_work_dir: state.origin_work_dir.clone(),
    })
}
