//! `init`: configures the trunk, or removes all traces.

use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, OldFile, Plan, Step};
use crate::snapshot::ConfigReading;

#[derive(Debug, Clone)]
pub struct Init {
    pub trunk: BranchName,
    /// The configuration file that names this trunk.
    pub content: String,
}

/// Removes metadata and configuration.
#[derive(Debug, Clone)]
pub struct Reset;

impl Command for Init {
    const NAME: &'static str = "init";
    const REQUIRES: &'static [Capability] =
        &[Capability::RepoOpen, Capability::NoLatticeOpInProgress, Capability::RefsWritable];

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let trunk = &self.trunk;
        if !snapshot.branches.contains_key(trunk) {
            return Err(Refusal::new("no-such-branch", format!("there is no branch `{trunk}` to be the trunk"))
                .hint("name one that exists: lattice init --trunk <branch>"));
        }
        if snapshot.is_tracked(trunk) {
            return Err(Refusal::new("trunk-tracked", format!("`{trunk}` is tracked as part of a stack"))
                .hint(format!("lattice untrack {}, or pick another trunk", trunk.word())));
        }
        match &snapshot.config {
            ConfigReading::Absent => {}
            ConfigReading::Valid { .. } if snapshot.is_trunk(trunk) => {
                return Ok(Plan::new(Self::NAME, Hooks::Run).verified());
            }
            ConfigReading::Valid { .. } if snapshot.settings.trunk.is_none() => {}
            ConfigReading::Valid { .. } => {
                let current = snapshot.settings.trunk.as_ref().map(BranchName::as_str).unwrap_or_default();
                return Err(Refusal::new("already-initialised", format!("the trunk is `{current}` already"))
                    .hint(format!("change it with: lattice trunk set {}", trunk.word())));
            }
            ConfigReading::Invalid { reason, .. } => {
                return Err(Refusal::new("config-invalid", format!("the configuration cannot be read: {reason}"))
                    .hint("lattice doctor lists what can be done"));
            }
            ConfigReading::Foreign { .. } => {
                return Err(Refusal::new("config-foreign", "the configuration is that of another program")
                    .hint("lattice doctor offers to convert it"));
            }
        }
        let expected = snapshot.config.digest().cloned();
        let content = Some(self.content.clone());
        Ok(Plan::new(Self::NAME, Hooks::Run)
            .then(Step::WriteConfig { expected, content, old: OldFile::Recorded })
            .then(Step::Guard { name: trunk.branch_ref(), expected: Expected::from_option(snapshot.tip(trunk)) })
            .verified())
    }
}

impl Command for Reset {
    const NAME: &'static str = "init --reset";
    const REQUIRES: &'static [Capability] = Init::REQUIRES;

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let mut plan = Plan::new(Self::NAME, Hooks::Run);
        for (branch, reading) in &snapshot.metadata {
            let expected = Expected::At(reading.oid);
            plan.steps.push(Step::SetRef { name: branch.metadata_ref(), expected, to: None });
        }
        let old = match snapshot.config {
            ConfigReading::Valid { .. } | ConfigReading::Absent => OldFile::Recorded,
            ConfigReading::Invalid { .. } | ConfigReading::Foreign { .. } => OldFile::KeptBeside,
        };
        if let Some(digest) = snapshot.config.digest() {
            plan.steps.push(Step::WriteConfig { expected: Some(digest.clone()), content: None, old });
        }
        Ok(plan.verified())
    }
}
