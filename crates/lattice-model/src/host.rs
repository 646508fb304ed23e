//! What is known of a host and its pull requests before something is planned for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::gate::Refusal;
use crate::id::Oid;
use crate::name::{BranchName, shell_word};
use crate::remote::MergeMethod;

/// Everything that a plan for a remote is made from, besides the snapshot. All of it was read before planning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    pub remote: RemoteReading,
    pub auth: AuthReading,
    pub access: AccessReading,
    /// Branches of the remote with the values that leases are made of.
    pub heads: BTreeMap<BranchName, Oid>,
    /// Branches whose value on the remote is, or once was, the tip of the local branch, or is contained in it.
    pub ours: BTreeSet<BranchName>,
    /// Branches that stand on commits of the trunk which the trunk of the remote does not have.
    pub private: BTreeSet<BranchName>,
    /// The newest pull request of each branch.
    pub pulls: BTreeMap<BranchName, Pull>,
    pub stacks: HostStacks,
    /// Title and body that a new pull request gets.
    pub texts: BTreeMap<BranchName, PullText>,
}

impl HostFacts {
    /// Commits that are only on the trunk here would become part of a pull request, and land with it.
    pub fn check_public(&self, branch: &BranchName, trunk: &BranchName) -> Result<(), Refusal> {
        if !self.private.contains(branch) {
            return Ok(());
        }
        let (remote, trunk) = (shell_word(self.remote.name()), trunk.word());
        let what =
            format!("`{branch}` stands on commits of `{trunk}` that the remote does not have; they would go with it");
        Err(Refusal::new("trunk-not-pushed", what)
            .hint(format!("git log {remote}/{trunk}..{trunk} shows them; git push {remote} {trunk} publishes them"))
            .hint(format!(
                "or keep them on a branch: git branch <name> {trunk}, git branch -f {trunk} {remote}/{trunk}, lattice restack"
            )))
    }
}

/// What the configuration of Git says of the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteReading {
    Missing { name: String },
    Unusable { name: String, reason: String },
    Resolved { name: String, slug: Slug, forge: ForgeKind },
}

impl RemoteReading {
    pub fn name(&self) -> &str {
        match self {
            Self::Missing { name } | Self::Unusable { name, .. } | Self::Resolved { name, .. } => name,
        }
    }
}

/// Owner and name of a repository on its host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slug {
    pub owner: String,
    pub repo: String,
}

impl std::fmt::Display for Slug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.repo)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    /// Any Git remote; its own transport decides who may do what.
    Git,
    GitHub,
}

impl ForgeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::GitHub => "github",
        }
    }
}

/// Whether there is a token for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthReading {
    NotNeeded,
    Available,
    Missing {
        host: String,
    },
    /// Access token and refresh token are both too old.
    Expired {
        host: String,
    },
}

/// Whether the token reaches the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessReading {
    /// Not asked yet: something before it was missing.
    NotAsked,
    Granted,
    /// No installation of the App covers the repository.
    AppNotInstalled {
        slug: Slug,
        app: String,
    },
    /// The token may not push.
    ReadOnly {
        slug: Slug,
    },
}

/// A pull request as its host tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    pub number: u64,
    pub url: String,
    pub state: PullState,
    pub draft: Draft,
    pub title: String,
    pub body: String,
    pub author: String,
    pub head: String,
    pub base: String,
    pub head_at: Option<Oid>,
    /// `owner/name` of the repository that the head is in, where it is not the one of the base.
    pub fork: Option<String>,
    pub standing: Standing,
}

/// What reviewers and checks say of a pull request, as far as the host tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    pub review: Option<ReviewState>,
    pub checks: Option<ChecksState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewState {
    Approved,
    ChangesRequested,
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksState {
    Passed,
    Failed,
    Running,
}

impl ReviewState {
    const ALL: [Self; 3] = [Self::Approved, Self::ChangesRequested, Self::Required];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::ChangesRequested => "changes-requested",
            Self::Required => "review-required",
        }
    }
}

impl ChecksState {
    const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Running];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "checks-passed",
            Self::Failed => "checks-failed",
            Self::Running => "checks-running",
        }
    }
}

impl Standing {
    /// One word for each thing that is known.
    pub fn words(self) -> Vec<&'static str> {
        self.review.map(ReviewState::as_str).into_iter().chain(self.checks.map(ChecksState::as_str)).collect()
    }

    /// The opposite of [`Standing::words`]; what is not understood is not known.
    pub fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        words.fold(Self::default(), |standing, word| Self {
            review: ReviewState::ALL.into_iter().find(|state| state.as_str() == word).or(standing.review),
            checks: ChecksState::ALL.into_iter().find(|state| state.as_str() == word).or(standing.checks),
        })
    }
}

/// Whether a host keeps stacks itself, besides the bases of pull requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostStacks {
    /// There is no pull request yet that it could be asked about.
    NotAsked,
    NotKept,
    /// It does; this is the one that the lowest pull request is in, if any.
    Kept(Option<HostStack>),
}

impl HostStacks {
    /// The stack that a pull request is in.
    pub fn of(&self, pull: u64) -> Option<&HostStack> {
        match self {
            Self::Kept(Some(stack)) if stack.pulls.contains(&pull) => Some(stack),
            Self::Kept(_) | Self::NotKept | Self::NotAsked => None,
        }
    }
}

/// A stack that a host keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStack {
    pub number: u64,
    /// Those that are open, lowest first.
    pub pulls: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PullState {
    Open,
    Closed,
    Merged,
}

impl PullState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Merged => "merged",
        }
    }
}

/// Whether a pull request asks for review yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draft {
    Draft,
    Ready,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullText {
    pub title: String,
    pub body: String,
}

/// One thing that a plan asks of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum HostAction {
    OpenPull {
        head: BranchName,
        base: BranchName,
        title: String,
        body: String,
        draft: Draft,
    },
    /// Only what is set changes.
    UpdatePull {
        number: u64,
        head: BranchName,
        base: Option<BranchName>,
        draft: Option<Draft>,
    },
    RequestReviewers {
        head: BranchName,
        reviewers: Vec<String>,
    },
    /// Takes pull requests out of a stack that the host keeps.
    Unstack {
        stack: u64,
    },
    /// Makes pull requests, lowest first, one stack of the host, where it keeps stacks.
    Stack {
        branches: Vec<BranchName>,
        /// The stack that the lowest of them are in already, and how many.
        onto: Option<(u64, usize)>,
    },
    /// Tells in each pull request of a stack which others belong to it, lowest first.
    Overview {
        place: OverviewPlace,
        stack: Vec<BranchName>,
    },
    /// Lands a pull request whose head is at this commit.
    MergePull {
        number: u64,
        head: BranchName,
        at: Oid,
        method: MergeMethod,
        #[serde(default)]
        through: Through,
    },
}

/// How a host is asked to land a pull request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Through {
    #[default]
    Pull,
    /// As part of a stack that the host keeps: it also moves what stands on it.
    Stack,
}

/// Where the list of a stack's pull requests goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverviewPlace {
    Body,
    Comment,
    Off,
}

impl HostAction {
    /// One line for people.
    pub fn preview(&self) -> String {
        match self {
            Self::OpenPull { head, base, draft: Draft::Ready, .. } => format!("open a pull request {head} -> {base}"),
            Self::OpenPull { head, base, draft: Draft::Draft, .. } => format!("open a draft {head} -> {base}"),
            Self::UpdatePull { number, base, draft, .. } => {
                let base = base.as_ref().map(|base| format!(", base {base}")).unwrap_or_default();
                let draft = match draft {
                    Some(Draft::Draft) => ", draft",
                    Some(Draft::Ready) => ", ready for review",
                    None => "",
                };
                format!("update #{number}{base}{draft}")
            }
            Self::RequestReviewers { head, reviewers } => format!("ask {} to review {head}", reviewers.join(", ")),
            Self::Unstack { stack } => format!("take apart stack {stack} of the host"),
            Self::Stack { branches, .. } => {
                format!("make the {} pull requests one stack of the host, if it keeps stacks", branches.len())
            }
            Self::Overview { stack, .. } => format!("list the stack in its {} pull requests", stack.len()),
            Self::MergePull { number, head, method, .. } => format!("land #{number} ({head}) by {}", method.as_str()),
        }
    }

    /// What was done, where the pull request itself does not say it.
    pub fn story(&self) -> Option<String> {
        match self {
            Self::OpenPull { .. } | Self::Overview { .. } | Self::Unstack { .. } | Self::Stack { .. } => None,
            Self::UpdatePull { number, .. } => Some(format!("updated #{number}")),
            Self::RequestReviewers { head, reviewers } => {
                Some(format!("asked {} to review {head}", reviewers.join(", ")))
            }
            Self::MergePull { number, head, .. } => Some(format!("landed #{number} ({head})")),
        }
    }
}
