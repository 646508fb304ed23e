//! What can be wrong with a repository, and the choices a user has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::capability::Capability;
use crate::id::{ContentDigest, Fingerprint};
use crate::plan::{Plan, Step};
use crate::snapshot::Divergence;

/// What a scan found, in the words of the specification.
#[derive(Debug, Clone)]
pub struct RepoHealthReport {
    pub issues: Vec<Issue>,
    pub capabilities: BTreeSet<Capability>,
    pub fingerprint: Fingerprint,
    pub divergence: Option<Divergence>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub id: IssueId,
    pub kind: IssueKind,
    pub severity: Severity,
    pub summary: String,
    pub evidence: Evidence,
    pub fixes: Vec<FixOption>,
}

/// Facts by name; equal facts give equal issue ids.
pub type Evidence = BTreeMap<&'static str, Vec<String>>;

/// Stable name of an issue, such as `missing-parent-1f00aa32`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IssueId(String);

/// Stable name of a fix, such as `reparent-to-trunk-1f00aa32`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixId(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Blocking,
    Warning,
    Info,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One way out, which the user may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixOption {
    pub id: FixId,
    pub summary: String,
    /// What must still be true when the fix is applied.
    pub preconditions: Vec<Capability>,
    pub effect: FixEffect,
}

/// What a fix does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixEffect {
    Plan(Plan),
    /// Something only the user can do.
    UserAction(String),
}

macro_rules! issue_kinds {
    ($($(#[$doc:meta])* $kind:ident => $name:literal, $severity:ident, $removes:expr;)*) => {
        /// The kinds of issues.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum IssueKind { $($(#[$doc])* $kind,)* }

        impl IssueKind {
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// How bad it is for the repository as a whole; a command that needs what it removes is blocked.
            pub fn severity(self) -> Severity {
                match self { $(Self::$kind => Severity::$severity,)* }
            }

            /// The capability that is absent while this holds.
            pub fn removes(self) -> Option<Capability> {
                match self { $(Self::$kind => $removes,)* }
            }
        }
    };
}

issue_kinds! {
    ConfigMissing => "not-initialised", Blocking, Some(Capability::TrunkKnown);
    ConfigInvalid => "config-invalid", Blocking, Some(Capability::TrunkKnown);
    ConfigForeign => "config-foreign", Blocking, Some(Capability::TrunkKnown);
    ConfigUnknownKey => "config-unknown-key", Warning, None;
    TrunkMissing => "trunk-missing", Blocking, Some(Capability::TrunkKnown);
    TrunkTracked => "trunk-tracked", Blocking, Some(Capability::GraphValid);
    MetadataUnreadable => "metadata-unreadable", Blocking, Some(Capability::MetadataReadable);
    MetadataVanished => "metadata-vanished", Warning, None;
    MetadataOrphaned => "metadata-orphaned", Warning, None;
    ParentKindWrong => "parent-kind-wrong", Blocking, Some(Capability::GraphValid);
    ParentMissing => "missing-parent", Blocking, Some(Capability::GraphValid);
    Cycle => "cycle", Blocking, Some(Capability::GraphValid);
    BaseMissing => "base-missing", Blocking, Some(Capability::GraphValid);
    BaseNotAncestor => "base-not-ancestor", Blocking, Some(Capability::GraphValid);
    HistoryUnreadable => "history-unreadable", Blocking, Some(Capability::HistoryComplete);
    OperationInProgress => "operation-in-progress", Blocking, Some(Capability::NoLatticeOpInProgress);
    OpStateDamaged => "op-state-damaged", Blocking, Some(Capability::NoLatticeOpInProgress);
    GitOperation => "git-operation-in-progress", Blocking, Some(Capability::NoExternalGitOpInProgress);
    Unmerged => "unmerged-files", Blocking, Some(Capability::NoExternalGitOpInProgress);
    WorkingCopyUnknown => "working-copy-unknown", Blocking, Some(Capability::WorkingCopyStateKnown);
    StaleLock => "stale-lock", Blocking, Some(Capability::RefsWritable);
    /// No defect of the repository, but what needs a working directory cannot run.
    Bare => "bare-repository", Info, Some(Capability::WorkingDirectoryAvailable);
    Shallow => "shallow-clone", Warning, Some(Capability::HistoryComplete);
    LedgerDamaged => "ledger-damaged", Warning, None;
    UnusableName => "unusable-name", Info, None;
    LookAlikeNames => "look-alike-names", Warning, None;
    BrokenRef => "broken-ref", Warning, None;
    ScopeUnresolved => "scope-unresolved", Blocking, Some(Capability::ScopeResolved);
    Frozen => "frozen", Blocking, Some(Capability::FrozenPolicySatisfied);
    CheckedOutElsewhere => "checked-out-elsewhere", Blocking, Some(Capability::BranchesFree);
    RemoteUnresolved => "remote-unresolved", Blocking, Some(Capability::RemoteResolved);
    AuthenticationRequired => "authentication-required", Blocking, Some(Capability::AuthAvailable);
    TokenExpired => "token-expired", Blocking, Some(Capability::AuthAvailable);
    AppNotInstalled => "app-not-installed", Blocking, Some(Capability::RepoAuthorized);
    PushNotAllowed => "push-not-allowed", Blocking, Some(Capability::RepoAuthorized);
}

impl IssueKind {
    /// Whether it stands between the user and a host; a scan of the repository does not find it.
    pub fn concerns_host(self) -> bool {
        self.removes().is_some_and(|capability| Capability::HOST.contains(&capability))
    }
}

impl Issue {
    /// An issue whose id follows from its kind and evidence alone.
    pub fn new(kind: IssueKind, summary: impl Into<String>, evidence: Evidence) -> Self {
        let id = IssueId(format!("{}-{}", kind.as_str(), tag(kind.as_str(), &evidence)));
        Self { id, kind, severity: kind.severity(), summary: summary.into(), evidence, fixes: Vec::new() }
    }

    /// Adds a fix that changes the repository.
    #[must_use]
    pub fn fix(mut self, name: &str, summary: impl Into<String>, plan: Plan) -> Self {
        self.push(name, summary.into(), FixEffect::Plan(plan));
        self
    }

    /// Adds a fix that the user carries out.
    #[must_use]
    pub fn action(mut self, name: &str, summary: impl Into<String>, action: impl Into<String>) -> Self {
        self.push(name, summary.into(), FixEffect::UserAction(action.into()));
        self
    }

    fn push(&mut self, name: &str, summary: String, effect: FixEffect) {
        let mut tagged = self.evidence.clone();
        tagged.insert("fix", vec![self.kind.as_str().to_owned(), summary.clone()]);
        let id = FixId(format!("{name}-{}", tag(name, &tagged)));
        let preconditions = preconditions(&effect);
        self.fixes.push(FixOption { id, summary, preconditions, effect });
    }
}

/// What must still hold when a fix is applied: it cannot run inside another operation, unless it
/// repairs the marker of one, nor move refs that are locked; and what rewrites commits needs what any rewrite needs.
fn preconditions(effect: &FixEffect) -> Vec<Capability> {
    let mut needed = vec![Capability::RepoOpen];
    if let FixEffect::Plan(plan) = effect {
        if !plan.steps.contains(&Step::RemoveOpState) {
            needed.push(Capability::NoLatticeOpInProgress);
        }
        if !plan.touched_refs().is_empty() {
            needed.push(Capability::RefsWritable);
        }
        if plan.steps.iter().any(|step| matches!(step, Step::Rewrite { .. })) {
            needed.extend([
                Capability::NoExternalGitOpInProgress,
                Capability::WorkingDirectoryAvailable,
                Capability::HistoryComplete,
            ]);
        }
    }
    needed
}

/// The evidence of an issue from pairs of a name and one value.
pub fn evidence<const N: usize>(facts: [(&'static str, String); N]) -> Evidence {
    facts.into_iter().map(|(name, value)| (name, vec![value])).collect()
}

fn tag(name: &str, evidence: &Evidence) -> String {
    let mut text = name.to_owned();
    for (key, values) in evidence {
        text.push('\0');
        text.push_str(key);
        for value in values {
            text.push('\u{1}');
            text.push_str(value);
        }
    }
    ContentDigest::of(text.as_bytes()).as_str()[..8].to_owned()
}

macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(IssueId);
text_id!(FixId);
