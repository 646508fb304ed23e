//! An issue or pull request as a bundle of files that an agent reads without asking anybody.
//!
//! ```text
//! Trigger -> fetch -> Gathered -> render -> Bundle -> deliver
//! ```
//!
//! [`gather`] does everything up to the bundle, [`deliver`] puts it where an agent finds it. Only `fetch` waits for
//! a host, which it reaches through a [`Capability`]; only `deliver` writes, and only through a `FileWriter`.

pub mod capability;
pub mod data;
mod delivery;
mod gatherer;
mod manifest;
mod references;
mod renderer;
mod table;
mod trigger;
mod untrusted;

use lattice_model::time::Timestamp;

pub use capability::{Capability, ForgeReader};
pub use data::{Gathered, ItemType, PullParts};
pub use delivery::{deliver, is_replaceable};
pub use gatherer::{Call, DEFAULT_EXPANSIONS, GatherError, fetch};
pub use manifest::{
    Amendment, Bundle, BundleFile, ExpansionBudget, FileEntry, FileKind, LinkedItem, Manifest, ManifestError,
};
pub use references::references;
pub use renderer::render;
pub use trigger::{RepoName, Trigger, TriggerError};

use crate::pack::Secrets;

/// How a bundle is made. References are followed one step; there is no option for more.
#[derive(Debug, Clone)]
pub struct Options {
    /// References that are looked up at most, failed ones included.
    pub max_expansions: usize,
    pub secrets: Secrets,
    pub gathered_at: Timestamp,
}

impl Options {
    pub fn new(gathered_at: Timestamp) -> Self {
        Self { max_expansions: DEFAULT_EXPANSIONS, secrets: Secrets::Warn, gathered_at }
    }
}

/// Asks the host for all that belongs to the trigger and renders it.
pub async fn gather(trigger: Trigger, host: &dyn Capability, options: &Options) -> Result<Bundle, GatherError> {
    let gathered = fetch(trigger, host, options.max_expansions).await?;
    Ok(render(&gathered, &options.gathered_at, options.secrets))
}
