//! The index of a bundle, and the bundle itself.

use lattice_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::data::ItemType;

/// The version of the format.
pub(super) const VERSION: &str = "v1";

/// `manifest.json`: what the bundle is about, and which files it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub version: String,
    pub trigger_type: ItemType,
    pub trigger_number: u64,
    pub repo: String,
    pub title: String,
    pub gathered_at: Timestamp,
    pub files: Vec<FileEntry>,
    pub linked_items: Vec<LinkedItem>,
    pub expansion_budget: ExpansionBudget,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// From the root of the bundle, with `/`.
    pub path: String,
    pub kind: FileKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Trigger,
    Thread,
    DiffStats,
    Reviews,
    LinkedIssue,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkedItem {
    #[serde(rename = "type")]
    pub kind: ItemType,
    pub number: u64,
    pub title: String,
}

/// References that were looked up, and how many may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpansionBudget {
    pub used: usize,
    pub max: usize,
}

/// Everything that an agent gets to read about an issue or pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    pub manifest: Manifest,
    /// In the order of the manifest.
    pub files: Vec<BundleFile>,
    /// Set if the work is to go on with a pull request that there is.
    pub amends: Option<Amendment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleFile {
    pub path: String,
    pub kind: FileKind,
    pub content: String,
}

/// The pull request that the work amends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amendment {
    pub number: u64,
    pub branch: String,
}

impl Manifest {
    /// The bytes of `manifest.json`.
    pub fn render(&self) -> String {
        serde_json::to_string_pretty(self).expect("bug: the manifest has string keys") + "\n"
    }

    /// Reads a manifest, also one that somebody else wrote.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let manifest: Self = serde_json::from_slice(bytes)?;
        if manifest.version != VERSION {
            return Err(ManifestError::Version(manifest.version));
        }
        let known = |entry: &&FileEntry| !is_path(&entry.path, entry.kind);
        match manifest.files.iter().find(known) {
            Some(entry) => Err(ManifestError::Path(entry.path.clone())),
            None => Ok(manifest),
        }
    }
}

/// A document that is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("it is no manifest: {0}")]
    Shape(#[from] serde_json::Error),
    #[error("it has version `{0}`; this program knows {VERSION}")]
    Version(String),
    #[error("`{0}` is no file of a bundle")]
    Path(String),
}

/// Whether a file of this kind can have this path. Nothing that a host says becomes part of one but digits.
fn is_path(path: &str, kind: FileKind) -> bool {
    match kind {
        FileKind::Trigger => path == TRIGGER,
        FileKind::Thread => path == THREAD,
        FileKind::DiffStats => path == DIFF_STATS,
        FileKind::Reviews => path == REVIEWS,
        FileKind::LinkedIssue => {
            let number = path.strip_prefix("linked/issue_").and_then(|rest| rest.strip_suffix(".md"));
            number.and_then(|text| text.parse().ok()).is_some_and(|number: u64| path == linked_path(number))
        }
    }
}

/// Whether a bundle may have a file with this path.
pub(super) fn is_file_of_a_bundle(path: &str) -> bool {
    [FileKind::Trigger, FileKind::Thread, FileKind::DiffStats, FileKind::Reviews, FileKind::LinkedIssue]
        .into_iter()
        .any(|kind| is_path(path, kind))
}

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const TRIGGER: &str = "trigger.md";
pub(super) const THREAD: &str = "thread.md";
pub(super) const DIFF_STATS: &str = "diff_stats.md";
pub(super) const REVIEWS: &str = "reviews.md";

pub(super) fn linked_path(number: u64) -> String {
    format!("linked/issue_{number}.md")
}
