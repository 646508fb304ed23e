//! Why a request could not be carried out.

use lattice_model::gate::Refusal;
use lattice_model::id::OpId;
use lattice_repo::{ExecuteError, GitError, LockError, ScanError};

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    #[error("{}", .0.message)]
    Refused(Refusal),
    #[error("this runs inside operation {op}, which has not ended")]
    InsideOperation { op: OpId },
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
