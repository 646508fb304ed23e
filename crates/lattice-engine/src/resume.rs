//! `continue` and `abort` for an operation in progress.

use lattice_model::plan::StageMode;
use lattice_repo::Aborted;

use crate::lifecycle::Outcome;
use crate::{Engine, EngineError};

impl Engine {
    /// Finishes the operation in progress; `stage` adds resolved files first.
    pub fn resume(&self, stage: Option<StageMode>) -> Result<Outcome, EngineError> {
        let settings = self.lock_settings();
        let lock = self.lock("continue", &settings)?;
        self.trace("resume", "from the journal");
        let executed = self.repo.resume(&lock, stage, &settings, &self.environment.now)?;
        Ok(self.told(executed))
    }

    /// Goes back to where the operation in progress began.
    pub fn abort(&self) -> Result<Aborted, EngineError> {
        let settings = self.lock_settings();
        let lock = self.lock("abort", &settings)?;
        self.trace("abort", "from the journal");
        Ok(self.repo.abort(&lock, &settings, &self.environment.now)?)
    }
}
