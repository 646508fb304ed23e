//! Running a sprite: its place on disk, its states, and the process that watches it.

mod land;
mod place;
mod session;
mod state;
mod supervise;
mod usage;

#[cfg(test)]
mod tests;

pub use land::{Inside, LandError, Landing, Work, land, look_inside, unlock};
pub use lattice_repo::workspace::{Collect, Uncommitted};
pub use place::{PlaceError, SpritePlace, remove_base};
pub use session::{RecordError, session_id};
pub use state::{Ending, Happening, Verdict, next, verdict};
pub use supervise::{
    CONTROL_SOCKET, Job, RunError, Watcher, ask_for_checkpoint, own_session, recover, stop, supervise, supervisor, user,
};
pub use usage::Usage;
