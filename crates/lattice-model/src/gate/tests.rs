//! Capabilities follow from snapshots, and gates from capabilities.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proptest::prelude::*;

use super::{Capability, Command, Gate, RepairBundle, Snapshot, gate};
use crate::branch::{BranchMetadataV1, FreezeScope, FreezeState, Parent, PrState};
use crate::command::REGISTRY;
use crate::command::create::{Create, PlaceInStack};
use crate::command::delete::{Delete, DeleteReach};
use crate::command::freeze::{Freeze, Unfreeze};
use crate::command::modify::{Modify, ModifyMode};
use crate::command::navigate::{Destination, Navigate};
use crate::command::reparent::Move;
use crate::command::restack::{Reach, Restack};
use crate::doctor;
use crate::event::RefChange;
use crate::history::History;
use crate::id::{ContentDigest, Fingerprint, Oid};
use crate::issue::IssueKind;
use crate::name::BranchName;
use crate::plan::Hooks;
use crate::settings::Settings;
use crate::snapshot::{
    Completeness, ConfigReading, Context, Divergence, GitOperation, Head, LedgerReading, MetadataProblem,
    MetadataReading, OpStateReading, ReadableRest, Repository, StaleLock, WorkingCopy,
};
use crate::time::Timestamp;

fn name(text: &str) -> BranchName {
    BranchName::new(text).expect("test names are valid")
}

fn oid(number: u8) -> Oid {
    Oid::new(&format!("{number:02x}").repeat(20)).expect("forty digits")
}

fn metadata(branch: &str, parent: &str, base: u8) -> BranchMetadataV1 {
    let at = Timestamp::from_unix(0);
    BranchMetadataV1 {
        name: name(branch),
        parent: Parent::of(&name(parent), &name("main")),
        base: oid(base),
        freeze: FreezeState::Unfrozen {},
        pr: PrState::None {},
        created_at: at.clone(),
        updated_at: at,
    }
}

/// `main` (1, then 2) with `a` (10) on 1 and `b` (20) on 10, which is checked out; nothing is wrong.
fn healthy() -> Snapshot {
    let reading = |number, metadata| MetadataReading { oid: oid(number), content: Ok(metadata) };
    let known =
        WorkingCopy::Known { staged: Vec::new(), unstaged: Vec::new(), unmerged: Vec::new(), untracked: Vec::new() };
    Snapshot {
        repository: Repository {
            context: Context::Normal,
            git_dir: PathBuf::from("/r/.git"),
            common_dir: PathBuf::from("/r/.git"),
            work_dir: Some(PathBuf::from("/r")),
        },
        head: Head::Branch { name: name("b"), tip: oid(20) },
        config: ConfigReading::Valid {
            digest: ContentDigest::of(b""),
            content: String::new(),
            unknown_keys: Vec::new(),
        },
        settings: Settings { trunk: Some(name("main")), ..Settings::default() },
        branches: [("main", 2), ("a", 10), ("b", 20)].map(|(branch, tip)| (name(branch), oid(tip))).into(),
        unusable: Vec::new(),
        worktrees: [(name("b"), PathBuf::from("/r"))].into(),
        gone_worktrees: BTreeSet::new(),
        metadata: [
            (name("a"), reading(110, metadata("a", "main", 1))),
            (name("b"), reading(120, metadata("b", "a", 10))),
        ]
        .into(),
        history: History::new(BTreeMap::from([(oid(10), vec![oid(1)]), (oid(20), vec![oid(10)])])),
        unreadable: BTreeMap::new(),
        op_state: OpStateReading::Absent,
        git_operation: None,
        working_copy: known,
        ledger: LedgerReading::Absent,
        held: BTreeMap::new(),
        completeness: Completeness::Complete,
        stale_locks: Vec::new(),
        warnings: Vec::new(),
        fingerprint: Fingerprint::of(b""),
        divergence: None,
        recorded: BTreeMap::new(),
    }
}

fn with(change: impl Fn(&mut Snapshot)) -> Snapshot {
    let mut snapshot = healthy();
    change(&mut snapshot);
    snapshot
}

type Defect = (Capability, fn(&mut Snapshot));

/// Ways to lose what a snapshot proves.
const DEFECTS: &[Defect] = &[
    (Capability::TrunkKnown, |snapshot| {
        snapshot.config = ConfigReading::Absent;
        snapshot.settings.trunk = None;
    }),
    (Capability::TrunkKnown, |snapshot| {
        snapshot.config = ConfigReading::Invalid {
            digest: ContentDigest::of(b"["),
            reason: "line 1".to_owned(),
            rest: ReadableRest::default(),
        };
        snapshot.settings.trunk = None;
    }),
    (Capability::NoLatticeOpInProgress, |snapshot| {
        snapshot.op_state = OpStateReading::Damaged { reason: "empty".to_owned() };
    }),
    (Capability::NoExternalGitOpInProgress, |snapshot| snapshot.git_operation = Some(GitOperation::Rebase)),
    (Capability::NoExternalGitOpInProgress, |snapshot| snapshot.git_operation = Some(GitOperation::Merge)),
    (Capability::MetadataReadable, |snapshot| {
        let problem = MetadataProblem::Malformed("no JSON".to_owned());
        snapshot.metadata.insert(name("a"), MetadataReading { oid: oid(130), content: Err(problem) });
    }),
    (Capability::GraphValid, |snapshot| {
        let content = Ok(metadata("b", "gone", 10));
        snapshot.metadata.insert(name("b"), MetadataReading { oid: oid(131), content });
    }),
    (Capability::GraphValid, |snapshot| {
        let content = Ok(metadata("a", "b", 1));
        snapshot.metadata.insert(name("a"), MetadataReading { oid: oid(132), content });
    }),
    (Capability::WorkingCopyStateKnown, |snapshot| {
        snapshot.working_copy = WorkingCopy::Unknown { reason: "the index is damaged".to_owned() };
    }),
    (Capability::WorkingDirectoryAvailable, |snapshot| {
        snapshot.repository.context = Context::Bare;
        snapshot.repository.work_dir = None;
        snapshot.working_copy = WorkingCopy::None;
    }),
    (Capability::HistoryComplete, |snapshot| snapshot.completeness = Completeness::Shallow),
    (Capability::HistoryComplete, |snapshot| {
        snapshot.unreadable.insert(name("b"), "bad object".to_owned());
    }),
    (Capability::RefsWritable, |snapshot| {
        snapshot.stale_locks.push(StaleLock { path: "HEAD.lock".to_owned(), age_seconds: 60, size: 0 });
    }),
];

// proves: ST-5.2-10, ST-13.1-3
#[test]
fn each_capability_is_present_in_health_and_absent_with_its_defect_alone() {
    let all: BTreeSet<_> = Capability::ALL.iter().copied().collect();
    assert_eq!(doctor::report(&healthy()).capabilities, all, "a healthy snapshot proves everything");
    let dirty = with(|snapshot| {
        snapshot.working_copy = WorkingCopy::Known {
            staged: vec!["x".to_owned()],
            unstaged: vec!["y".to_owned()],
            unmerged: Vec::new(),
            untracked: vec!["z".to_owned()],
        };
    });
    assert_eq!(doctor::report(&dirty).capabilities, all, "what is dirty is known");
    for (at, (lost, defect)) in DEFECTS.iter().enumerate() {
        let report = doctor::report(&with(defect));
        let missing: Vec<_> = all.difference(&report.capabilities).collect();
        assert_eq!(missing, [lost], "defect {at}");
        let explained = report.issues.iter().any(|issue| issue.kind.removes() == Some(*lost));
        assert!(explained, "the absence of {lost} has an issue");
    }
}

// proves: ST-13.1-3
#[test]
fn capabilities_of_a_request_are_absent_with_their_defect() {
    let frozen = with(|snapshot| {
        let mut document = metadata("a", "main", 1);
        let at = Timestamp::from_unix(0);
        document.freeze = FreezeState::Frozen { scope: FreezeScope::DownstackInclusive, reason: None, frozen_at: at };
        snapshot.metadata.insert(name("a"), MetadataReading { oid: oid(140), content: Ok(document) });
    });
    let elsewhere = with(|snapshot| {
        snapshot.worktrees.insert(name("a"), PathBuf::from("/elsewhere"));
    });
    let stray = Restack { branch: Some(name("stray")), ..restack() };
    let on_a = Restack { branch: Some(name("a")), ..restack() };
    for (snapshot, request, lost, kind) in [
        (healthy(), &stray, Capability::ScopeResolved, IssueKind::ScopeUnresolved),
        (frozen, &on_a, Capability::FrozenPolicySatisfied, IssueKind::Frozen),
    ] {
        let bundle = bundle(gate(snapshot, request));
        assert_eq!(bundle.missing, [lost].into(), "{lost}");
        assert!(bundle.issues.iter().any(|issue| issue.kind == kind), "{lost} is explained");
    }
    let delete = Delete { branch: Some(name("a")), reach: DeleteReach::Only, hooks: Hooks::Run };
    let bundle = bundle(gate(elsewhere, &delete));
    assert_eq!(bundle.missing, [Capability::BranchesFree].into());
    assert!(bundle.issues.iter().any(|issue| issue.kind == IssueKind::CheckedOutElsewhere));
    assert!(matches!(gate(healthy(), &on_a), Gate::Ready(_)), "all hold in health");
    assert!(matches!(gate(healthy(), &delete), Gate::Ready(_)), "all hold in health");
}

fn bundle<C: std::fmt::Debug>(gate: Gate<C>) -> RepairBundle {
    match gate {
        Gate::Repair(bundle) => bundle,
        Gate::Ready(ready) => panic!("it is ready: {ready:?}"),
    }
}

fn restack() -> Restack {
    Restack::new(None, Reach::Stack, Hooks::Run)
}

/// What one gate concluded, without its type.
#[derive(Debug, PartialEq)]
struct Verdict {
    command: &'static str,
    missing: Option<BTreeSet<Capability>>,
    kinds: Vec<IssueKind>,
    plan: Option<ContentDigest>,
}

fn judged<C: Command>(snapshot: &Snapshot, request: &C) -> Verdict {
    match gate(snapshot.clone(), request) {
        Gate::Ready(ready) => {
            let plan = request.plan(&ready).ok().map(|plan| plan.digest());
            Verdict { command: C::NAME, missing: None, kinds: Vec::new(), plan }
        }
        Gate::Repair(bundle) => Verdict {
            command: C::NAME,
            missing: Some(bundle.missing),
            kinds: bundle.issues.iter().map(|issue| issue.kind).collect(),
            plan: None,
        },
    }
}

/// Requests that a healthy snapshot can answer.
fn verdicts(snapshot: &Snapshot) -> Vec<Verdict> {
    let create = Create {
        name: name("new"),
        message: Some("new".to_owned()),
        stage: None,
        place: PlaceInStack::OnTop,
        hooks: Hooks::Run,
    };
    let message = Some("again".to_owned());
    let modify = Modify { message, stage: None, how: ModifyMode::Amend, into: None, hooks: Hooks::Run };
    vec![
        judged(snapshot, &restack()),
        judged(snapshot, &create),
        judged(snapshot, &modify),
        judged(snapshot, &Move { source: None, onto: name("main"), hooks: Hooks::Run }),
        judged(snapshot, &Freeze { branch: None, reason: None }),
        judged(snapshot, &Unfreeze { branch: None }),
        judged(snapshot, &Navigate { to: Destination::Branch(name("a")) }),
    ]
}

fn required(command: &str) -> BTreeSet<Capability> {
    let (_, required) = REGISTRY.iter().find(|(name, _)| *name == command).expect("it is registered");
    required.iter().copied().collect()
}

// proves: ST-4.1-11
#[test]
fn a_healthy_snapshot_is_ready_for_every_command() {
    for verdict in verdicts(&healthy()) {
        assert_eq!(verdict.missing, None, "{}", verdict.command);
        assert!(verdict.plan.is_some(), "{} has a plan", verdict.command);
    }
}

proptest! {
    // proves: ST-5.4-1, ST-5.4-4, ST-4.1-13, ST-7.3-1
    #[test]
    fn a_bundle_is_given_exactly_where_a_required_capability_is_absent(
        chosen in proptest::sample::subsequence((0..DEFECTS.len()).collect::<Vec<_>>(), 0..=4),
        changed in proptest::sample::subsequence(vec!["main", "a", "b", "gone"], 1..=4),
    ) {
        let mut snapshot = healthy();
        for at in &chosen {
            DEFECTS[*at].1(&mut snapshot);
        }
        let held = doctor::report(&snapshot).capabilities;
        for verdict in verdicts(&snapshot) {
            let lost: BTreeSet<_> = required(verdict.command).difference(&held).copied().collect();
            if lost.is_empty() {
                prop_assert_eq!(&verdict.missing, &None, "{} with {:?}", verdict.command, &chosen);
            } else {
                prop_assert_eq!(&verdict.missing, &Some(lost.clone()), "{} with {:?}", verdict.command, &chosen);
                let named = verdict.kinds.iter().all(|kind| kind.removes().is_some_and(|gone| lost.contains(&gone)));
                prop_assert!(named, "only what blocks is listed: {:?}", verdict);
            }
        }
        let decided = verdicts(&snapshot);
        prop_assert_eq!(&decided, &verdicts(&snapshot), "the same snapshot gives the same plans");
        let change = |branch: &&str| RefChange { name: name(branch).branch_ref(), old: Some(oid(7)), new: Some(oid(8)) };
        let fingerprint = |text: &[u8]| Fingerprint::of(text);
        snapshot.divergence = Some(Divergence {
            prior: fingerprint(b"before"),
            current: fingerprint(b"now"),
            changes: changed.iter().map(change).collect(),
            files: Vec::new(),
        });
        prop_assert_eq!(decided, verdicts(&snapshot), "a divergence decides nothing by itself");
    }
}

// proves: ST-14.2-1
#[test]
fn every_issue_of_a_defect_offers_a_way_out_and_has_evidence() {
    for (at, (_, defect)) in DEFECTS.iter().enumerate() {
        for issue in doctor::diagnose(&with(defect)) {
            assert!(!issue.fixes.is_empty(), "{} of defect {at}", issue.id);
            assert!(!issue.evidence.is_empty(), "{} of defect {at}", issue.id);
        }
    }
}
