//! What a forge may ask of Git about one remote, without knowing how Git is run.

use std::collections::BTreeMap;

use crate::id::Oid;
use crate::name::{BranchName, RefName};
use crate::plan::Expected;

/// One remote of a repository. Implemented where git is started, used where hosts are known.
pub trait GitRemote: Send + Sync {
    /// The refs of the remote below these prefixes, or with exactly these names.
    fn refs(&self, patterns: &[String]) -> Result<BTreeMap<RefName, Oid>, RemoteError>;

    /// The content of blobs that refs of the remote point to, in the order asked for.
    fn blobs(&self, wanted: &[(RefName, Oid)]) -> Result<Vec<Vec<u8>>, RemoteError>;

    fn write_blob(&self, content: &[u8]) -> Result<Oid, RemoteError>;

    /// Computes what landing `head` on `base` gives. No ref moves, no file changes.
    fn land(&self, landing: &Landing) -> Result<Landed, RemoteError>;

    /// The files that differ between where `head` left `base`, and `head`.
    fn files(&self, base: &RemoteTip, head: &RemoteTip) -> Result<Vec<FileChange>, RemoteError>;

    /// Moves refs of the remote, all or none, each only from the value that is expected.
    fn push(&self, updates: &[RemoteUpdate]) -> Result<Pushed, RemoteError>;

    /// The name of the user, as Git knows it.
    fn identity(&self) -> Result<String, RemoteError>;

    /// Where the remote is, without anything secret.
    fn location(&self) -> &str;
}

/// A branch of the remote and the commit that it was seen at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTip {
    pub branch: BranchName,
    pub at: Oid,
}

/// A head that is to land on a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    pub base: RemoteTip,
    pub head: RemoteTip,
    pub method: MergeMethod,
    pub message: String,
}

/// What landing gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landed {
    At(Oid),
    Conflict,
}

/// How a pull request lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeMethod {
    Merge,
    Squash,
    Rebase,
}

impl MergeMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Squash => "squash",
            Self::Rebase => "rebase",
        }
    }
}

/// A change of one ref of the remote; no value removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUpdate {
    pub name: RefName,
    pub expected: Expected,
    pub to: Option<Oid>,
}

/// How a push ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    Done,
    /// Nothing moved. Each ref that stood in the way, with the reason.
    Refused(Vec<RefusedRef>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRef {
    pub name: RefName,
    pub why: Refused,
}

/// Why a remote did not take a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It has another value than expected.
    Moved { expected: Option<Oid>, found: Option<Oid> },
    /// It has the expected value, and the remote said no. What it said is for people.
    Rejected(String),
}

/// A file that a pull request changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// Git's letter: A, M, D, R, …
    pub status: char,
    pub additions: u64,
    pub deletions: u64,
}

/// Why a remote could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    #[error("{location} could not be reached")]
    Unreachable { location: String, detail: String },
    #[error("the remote answered something unexpected: {0}")]
    Unexpected(String),
    #[error("git failed: {0}")]
    Git(String),
    #[error("git did not push, and the remote has what it had")]
    NotSent { detail: String },
    /// All refs of one push go to git as arguments, which have a limit, and two pushes are not all or nothing.
    #[error("{count} refs are more than one push can take")]
    TooManyRefs { count: usize },
}
