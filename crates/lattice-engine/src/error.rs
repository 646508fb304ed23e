//! Why a request could not be carried out.

use lattice_forge::ForgeError;
use lattice_model::gate::Refusal;
use lattice_model::id::OpId;
use lattice_model::remote::{RefusedRef, RemoteError};
use lattice_repo::{ExecuteError, GitError, LockError, ScanError};

use crate::lifecycle::Outcome;

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
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("the remote did not take the push, and nothing on it was moved")]
    PushRefused { refused: Vec<RefusedRef> },
    #[error("the local part is done, and the remote part is not")]
    RemotePart { done: Vec<String>, source: Box<EngineError> },
    #[error("a part of it was done, and the rest was not: {source}")]
    After { done: Box<Outcome>, source: Box<EngineError> },
    #[error("requests cannot be made on this machine: {0}")]
    NoRuntime(String),
    #[error("this runs inside operation {op}, which has not ended")]
    InsideOperation { op: OpId },
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
