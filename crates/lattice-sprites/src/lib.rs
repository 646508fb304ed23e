//! Sprites: what an agent says, where it is kept, and how an agent is run, paused and acted for.

#[cfg(target_os = "linux")]
pub mod action;
#[cfg(target_os = "linux")]
pub mod checkpoint;
pub mod emit;
pub mod ingest;
pub mod merge;
#[cfg(target_os = "linux")]
pub mod network;
pub mod outbox;
#[cfg(target_os = "linux")]
mod process;
pub mod protocol;
#[cfg(target_os = "linux")]
pub mod run;
#[cfg(target_os = "linux")]
pub mod sandbox;
pub mod skills;
pub mod store;
#[cfg(target_os = "linux")]
mod tree;

use std::path::{Path, PathBuf};

/// Where the event store of a repository is.
pub fn store_path(common_dir: &Path) -> PathBuf {
    common_dir.join("lattice").join("sprites.db")
}
