//! `_metadata`: what a builder cut, could not find, or wants to warn of.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::dict::ContextDict;

/// What was cut. `truncated` holds exactly when lines are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruncationMetadata {
    pub truncated: bool,
    pub original_lines: u64,
    pub kept_lines: u64,
    pub sections_affected: Vec<String>,
    #[serde(default)]
    pub missing: Vec<String>,
    #[serde(default)]
    pub skipped_binary: Vec<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl TruncationMetadata {
    /// Adds a section of which `kept` of `original` lines are there.
    pub fn section(&mut self, name: &str, original: u64, kept: u64) {
        let kept = kept.min(original);
        self.original_lines += original;
        self.kept_lines += kept;
        if kept < original {
            self.truncated = true;
            if !self.sections_affected.iter().any(|known| known == name) {
                self.sections_affected.push(name.to_owned());
            }
        }
    }

    /// Puts the metadata behind the sections.
    pub fn complete(self, mut sections: ContextDict) -> ContextDict {
        sections.insert("_metadata", json!(self));
        sections
    }
}
