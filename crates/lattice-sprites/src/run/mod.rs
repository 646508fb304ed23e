//! Running a sprite: its place on disk, its states, and the process that watches it.

mod land;
mod place;
mod state;
mod supervise;

#[cfg(test)]
mod tests;

pub use land::{LandError, Landing, Work, land};
pub use lattice_repo::workspace::{Collect, Uncommitted};
pub use place::{PlaceError, SpritePlace};
pub use state::{Ending, Happening, Verdict, next, verdict};
pub use supervise::{CONTROL_SOCKET, Job, RunError, Watcher, ask_for_checkpoint, recover, stop, supervise, supervisor};
