//! Checkpoints: what a sprite changed, written down as one file that a restore can rebuild it from.
//!
//! A pack holds the content of files that changed since the checkpoint before, and a list of everything that
//! is in the upper layers, with the packs that have its content. So it costs what changed, and a restore
//! needs no history of layers: it makes them what the list says.

mod content;
mod difference;
mod manifest;
mod pack;
mod restore;
mod walk;

#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;

pub use difference::{Difference, difference, difference_left, difference_since};
pub use manifest::ManifestError;
pub(crate) use pack::{Packed, pack};
pub use restore::{Checkpoint, RestoreError, restored_paths};

/// The places that a checkpoint covers, and where packs go.
pub(crate) struct Roots {
    pub(crate) workspace: OwnedFd,
    pub(crate) home: OwnedFd,
    pub(crate) checkpoints: OwnedFd,
}

/// How a checkpoint's file is named.
pub fn pack_name(id: &str) -> String {
    format!("{id}.pack")
}

/// Whether a text is the id of a checkpoint, and so can be part of a file name.
pub fn is_id(id: &str) -> bool {
    id.strip_prefix("chk_").is_some_and(|rest| {
        !rest.is_empty() && rest.len() <= 40 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}
