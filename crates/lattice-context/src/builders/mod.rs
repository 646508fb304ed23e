//! The four context builders and their utilities. Plain data out, every cut on record.

pub mod dict;
pub mod fit;
mod fix;
mod implementation;
mod issue;
pub mod metadata;
mod review;
mod sources;
pub mod validation;
pub mod window;

pub use dict::ContextDict;
pub use fit::{DEFAULT_BUDGET, FitError, fit_to_budget};
pub use fix::build_fix_context;
pub use implementation::build_implementation_context;
pub use issue::{GitHubIssue, build_issue_context};
pub use metadata::TruncationMetadata;
pub use review::build_review_context;
pub use window::truncate_file;

use crate::git::GitOperationError;

/// A context that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("this is no Git repository")]
    NoRepository,
    #[error(transparent)]
    Git(#[from] GitOperationError),
}

impl From<lattice_repo::GitError> for BuildError {
    fn from(error: lattice_repo::GitError) -> Self {
        Self::Git(error.into())
    }
}
