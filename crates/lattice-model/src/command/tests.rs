//! What holds for every command of the registry.

use expect_test::expect_file;

use super::REGISTRY;
use crate::capability::Capability;
use crate::issue::IssueKind;

/// The reference of gates: what each command requires, and which issues take that away.
fn reference() -> String {
    let mut text = "# What each command requires\n\nA command runs only if everything it requires holds. Each issue below takes one thing away, \
        and `lattice doctor` lists its fixes. Updated by `UPDATE_EXPECT=1 cargo nextest run -p lattice-model`.\n"
        .to_owned();
    for (command, requires) in REGISTRY {
        text.push_str(&format!("\n## {command}\n\n| requires | is absent while there is |\n|---|---|\n"));
        for capability in *requires {
            let issues: Vec<_> =
                issues_against(*capability).iter().map(|kind| format!("`{}`", kind.as_str())).collect();
            text.push_str(&format!("| {capability} | {} |\n", issues.join(", ")));
        }
    }
    text
}

fn issues_against(capability: Capability) -> Vec<IssueKind> {
    IssueKind::ALL.iter().copied().filter(|kind| kind.removes() == Some(capability)).collect()
}

// proves: ST-14.1-5, ST-5.3-1
#[test]
fn every_command_says_what_it_requires_and_every_requirement_has_issues_that_gate_it() {
    for (command, requires) in REGISTRY {
        assert!(requires.contains(&Capability::RepoOpen), "{command} needs a repository");
        assert!(requires.contains(&Capability::NoLatticeOpInProgress), "{command} waits for an operation in progress");
        for capability in requires.iter().filter(|capability| **capability != Capability::RepoOpen) {
            assert!(!issues_against(*capability).is_empty(), "{command}: nothing explains the absence of {capability}");
        }
    }
    expect_file!["../../../../docs/gates.md"].assert_eq(&reference());
}

// proves: ST-3.2.2-5
#[test]
fn the_document_type_has_validated_types_for_its_structural_fields() {
    use crate::branch::{BranchMetadataV1, FreezeState, Parent, PrState};
    use crate::id::Oid;
    use crate::name::BranchName;
    use crate::time::Timestamp;
    let now = Timestamp::from_unix(0);
    let build = |name: &str, base: &str| {
        Some(BranchMetadataV1 {
            name: BranchName::new(name).ok()?,
            parent: Parent::Trunk(BranchName::new("main").ok()?),
            base: Oid::new(base).ok()?,
            freeze: FreezeState::Unfrozen {},
            pr: PrState::None {},
            created_at: now.clone(),
            updated_at: now.clone(),
        })
    };
    let oid = "0123456789abcdef0123456789abcdef01234567";
    assert!(build("api", oid).is_some());
    assert!(build("-api", oid).is_none(), "no type can be made from an invalid name");
    assert!(build("api", "0123456").is_none(), "nor from an abbreviated id");
}
