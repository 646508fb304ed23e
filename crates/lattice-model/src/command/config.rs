//! `trunk set` and `config set`: change the configuration file.

use crate::capability::Capability;
use crate::gate::{Command, ReadyContext, Refusal};
use crate::name::BranchName;
use crate::plan::{Expected, Hooks, OldFile, Plan, Step};
use crate::snapshot::Snapshot;

/// Makes another branch the trunk. Branches that stood on the old one are given the new one as parent.
#[derive(Debug, Clone)]
pub struct SetTrunk {
    pub trunk: BranchName,
    pub content: String,
}

/// Writes the configuration file with options changed.
#[derive(Debug, Clone)]
pub struct WriteSettings {
    pub content: String,
}

impl Command for SetTrunk {
    const NAME: &'static str = "trunk set";
    const REQUIRES: &'static [Capability] = &[
        Capability::RepoOpen,
        Capability::NoLatticeOpInProgress,
        Capability::MetadataReadable,
        Capability::RefsWritable,
    ];

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        let snapshot = ready.snapshot();
        let trunk = &self.trunk;
        if !snapshot.branches.contains_key(trunk) {
            return Err(Refusal::new("no-such-branch", format!("there is no branch `{trunk}` to be the trunk"))
                .hint("lattice log --show-untracked lists the branches"));
        }
        if snapshot.is_tracked(trunk) {
            return Err(Refusal::new("trunk-tracked", format!("`{trunk}` is part of a stack and cannot be its trunk"))
                .hint(format!("lattice untrack {} first", trunk.word())));
        }
        if snapshot.is_trunk(trunk) {
            return Ok(Plan::new(Self::NAME, Hooks::Run).verified());
        }
        let standing: Vec<_> = snapshot
            .tracked()
            .filter(|(metadata, _)| Some(metadata.parent.name()) == snapshot.settings.trunk.as_ref())
            .map(|(metadata, _)| metadata.name.as_str())
            .collect();
        if !standing.is_empty() {
            return Err(Refusal::new(
                "stacks-stand-on-trunk",
                format!("branches stand on the current trunk: {}", standing.join(", ")),
            )
            .hint("untrack them first and track them again on the new trunk"));
        }
        Ok(write(snapshot, Self::NAME, &self.content)
            .then(Step::Guard { name: trunk.branch_ref(), expected: Expected::from_option(snapshot.tip(trunk)) })
            .verified())
    }
}

impl Command for WriteSettings {
    const NAME: &'static str = "config set";
    const REQUIRES: &'static [Capability] =
        &[Capability::RepoOpen, Capability::NoLatticeOpInProgress, Capability::RefsWritable];

    fn plan(&self, ready: &ReadyContext<Self>) -> Result<Plan, Refusal> {
        Ok(write(ready.snapshot(), Self::NAME, &self.content).verified())
    }
}

fn write(snapshot: &Snapshot, command: &str, content: &str) -> Plan {
    let unchanged = snapshot.config.digest() == Some(&crate::id::ContentDigest::of(content.as_bytes()));
    if unchanged {
        return Plan::new(command, Hooks::Run);
    }
    let expected = snapshot.config.digest().cloned();
    let content = Some(content.to_owned());
    Plan::new(command, Hooks::Run).then(Step::WriteConfig { expected, content, old: OldFile::Recorded })
}
