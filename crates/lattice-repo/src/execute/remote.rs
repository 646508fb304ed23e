//! The remote part of an operation, after its local part was verified and recorded.

use lattice_model::plan::{Plan, Step};
use lattice_model::remote::{GitRemote, Pushed, RemoteError, RemoteUpdate};

use crate::lock::Lock;
use crate::remote::Remote;

use crate::Repo;

impl Repo {
    /// Carries out one step of a plan that concerns a remote. What the host has to do is not done here.
    pub fn execute_remote(
        &self,
        _lock: &Lock,
        remote: &Remote,
        plan: &Plan,
        step: &Step,
    ) -> Result<Pushed, RemoteError> {
        match step {
            Step::Fetch { .. } => remote.fetch().map(|()| Pushed::Done),
            Step::Push { updates, .. } => {
                let update = |update: &lattice_model::plan::PushUpdate| RemoteUpdate {
                    name: update.branch.branch_ref(),
                    expected: update.expected,
                    to: update.to,
                };
                let updates: Vec<_> = updates.iter().map(update).collect();
                remote.with_hooks(plan.hooks).push(&updates)
            }
            Step::Host { .. }
            | Step::WriteConfig { .. }
            | Step::Stage { .. }
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
            | Step::RemoveOpState
            | Step::RemoveLock { .. }
            | Step::Verify => Ok(Pushed::Done),
        }
    }
}
