//! Sprites: what an agent says, where it is kept, and how an agent is run, paused and acted for.

pub mod emit;
pub mod ingest;
pub mod merge;
pub mod outbox;
pub mod protocol;
pub mod store;

use std::path::{Path, PathBuf};

/// Where the event store of a repository is.
pub fn store_path(common_dir: &Path) -> PathBuf {
    common_dir.join("lattice").join("sprites.db")
}
