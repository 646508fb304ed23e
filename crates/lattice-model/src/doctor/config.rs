//! Issues of the configuration: absent, broken, foreign, or naming a trunk that is not there.

use crate::issue::{Issue, IssueKind, evidence};
use crate::name::BranchName;
use crate::plan::{OldFile, Plan, Step};
use crate::settings::Settings;
use crate::snapshot::{ConfigReading, Snapshot};

use super::repair;

pub(super) fn issues(snapshot: &Snapshot) -> Vec<Issue> {
    let mut issues = Vec::new();
    match &snapshot.config {
        ConfigReading::Absent => {
            let issue = Issue::new(
                IssueKind::ConfigMissing,
                "Lattice is not set up here: no trunk is configured",
                evidence([("absent", "lattice/config.toml".to_owned())]),
            );
            issues.push(with_trunks(issue, snapshot, OldFile::Recorded));
        }
        ConfigReading::Invalid { reason, digest, rest } => {
            let mut facts = evidence([
                ("file", "lattice/config.toml".to_owned()),
                ("reason", reason.clone()),
                ("sha256", digest.to_string()),
            ]);
            if !rest.left_out.is_empty() {
                facts.insert("unreadable", rest.left_out.clone());
            }
            let issue =
                Issue::new(IssueKind::ConfigInvalid, format!("the configuration cannot be read: {reason}"), facts);
            let issue = issue.action("edit", "correct the file", "lattice config edit");
            issues.push(with_trunks(issue, snapshot, OldFile::KeptBeside));
        }
        ConfigReading::Foreign { trunk, converted, digest } => {
            let facts = evidence([("file", "lattice/config.toml".to_owned()), ("trunk", trunk.clone())]);
            let summary = "the configuration has the layout of another program (`trunk` at the top level)";
            let step = Step::WriteConfig {
                expected: Some(digest.clone()),
                content: Some(converted.clone()),
                old: OldFile::KeptBeside,
            };
            let issue = Issue::new(IssueKind::ConfigForeign, summary, facts);
            issues.push(issue.fix("convert-config", format!("convert it, with the trunk `{trunk}`"), repair(step)));
        }
        ConfigReading::Valid { unknown_keys, .. } => {
            issues.extend(unknown_keys.iter().map(|key| unknown_key(key)));
            issues.extend(missing_trunk(snapshot));
        }
    }
    issues
}

fn unknown_key(key: &str) -> Issue {
    let facts = evidence([("key", key.to_owned())]);
    Issue::new(
        IssueKind::ConfigUnknownKey,
        format!("the configuration has an unknown key `{key}`, which does nothing"),
        facts,
    )
    .action("edit", "remove or correct it", "lattice config edit")
}

fn missing_trunk(snapshot: &Snapshot) -> Option<Issue> {
    let Some(trunk) = &snapshot.settings.trunk else {
        let facts = evidence([("absent", "trunk.branch".to_owned())]);
        let issue = Issue::new(IssueKind::ConfigMissing, "the configuration names no trunk", facts);
        return Some(with_trunks(issue, snapshot, OldFile::Recorded));
    };
    if snapshot.branches.contains_key(trunk) {
        return None;
    }
    let facts = evidence([("trunk", trunk.to_string())]);
    let issue = Issue::new(IssueKind::TrunkMissing, format!("the configured trunk `{trunk}` does not exist"), facts);
    let issue =
        issue.action("create-trunk", format!("create `{trunk}`"), format!("git branch {} <commit>", trunk.word()));
    Some(with_trunks(issue, snapshot, OldFile::Recorded))
}

/// Offers each likely trunk as a choice.
fn with_trunks(mut issue: Issue, snapshot: &Snapshot, old: OldFile) -> Issue {
    let likely = |branch: &&BranchName| ["main", "master", "trunk", "develop"].contains(&branch.as_str());
    let usable = |branch: &&BranchName| !snapshot.metadata.contains_key(*branch);
    let current = snapshot.head.branch().filter(|current| snapshot.branches.contains_key(*current) && !likely(current));
    let candidates: Vec<_> = snapshot.branches.keys().filter(likely).chain(current).filter(usable).collect();
    for branch in candidates {
        let plan = set_trunk(snapshot, branch, old);
        issue = issue.fix("set-trunk", format!("make `{branch}` the trunk{}", lost(snapshot)), plan);
    }
    if issue.fixes.is_empty() {
        issue = issue.action("init", "say which branch is the trunk", "lattice init --trunk <branch>");
    }
    issue
}

/// What a new file would not have of the old one.
fn lost(snapshot: &Snapshot) -> String {
    let ConfigReading::Invalid { rest, .. } = &snapshot.config else { return String::new() };
    let kept = "the old file stays as lattice/config.toml.replaced-<operation>";
    match (rest.content.trim(), rest.left_out.as_slice()) {
        ("", _) => format!("; all other settings are lost, {kept}"),
        (_, left_out) => format!("; {} cannot be read and would be lost, {kept}", left_out.join(", ")),
    }
}

fn set_trunk(snapshot: &Snapshot, trunk: &BranchName, old: OldFile) -> Plan {
    let expected = snapshot.config.digest().cloned();
    let content = match &snapshot.config {
        ConfigReading::Valid { content, .. } => Settings::with_trunk(content, trunk),
        ConfigReading::Invalid { rest, .. } => Settings::with_trunk(&rest.content, trunk),
        ConfigReading::Absent | ConfigReading::Foreign { .. } => Settings::with_trunk("", trunk),
    };
    repair(Step::WriteConfig { expected, content: Some(content), old })
}
