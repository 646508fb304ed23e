//! The event store: one append-only SQLite file for all sprites of a repository.

mod actions;
mod events;
mod proposals;
mod recorder;
mod schema;
mod sprites;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use actions::{ActionRow, ActionState};
pub use events::{ArtifactRow, EventRow, ViolationRow};
pub use proposals::ProposalRow;
pub use recorder::{Effect, Ending, Recorder};
pub use sprites::{Answer, CheckpointCost, CheckpointRow, NewSprite, Sprite, SpriteState};

/// Why the store did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the event store failed")]
    Database(#[from] rusqlite::Error),
    #[error("the event store has version {found}, this program knows {known}")]
    TooNew { found: usize, known: usize },
    #[error("there is no sprite `{name}`{meant}")]
    NoSuchSprite { name: String, meant: String },
    #[error("there is no action {0}")]
    NoSuchAction(i64),
    #[error("there is no proposal `{0}`")]
    NoSuchProposal(String),
    #[error("there is a sprite `{0}` already")]
    NameTaken(String),
    #[error("the outbox could not be read")]
    Outbox(#[from] std::io::Error),
    #[error("the event store holds something that this program did not write: {0}")]
    Damaged(String),
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    db: Connection,
}

/// A sprite in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpriteKey(pub(crate) i64);

/// One run of an agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionKey(pub(crate) i64);

/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(30);

impl Store {
    /// Opens the store, and makes it if there is none.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            Self::create(path)?;
        }
        Self::prepare(path)
    }

    /// Makes a store beside its place and puts it there whole: who looks meanwhile finds none, and two who make one at the
    /// same time do not get into each other's way.
    fn create(path: &Path) -> Result<(), StoreError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let draft = path.with_extension(format!("{}-{:?}.new", std::process::id(), std::thread::current().id()));
        // Its end brings everything into the one file.
        drop(Self::prepare(&draft)?);
        let placed = std::fs::hard_link(&draft, path);
        std::fs::remove_file(&draft)?;
        match placed {
            // Another was faster; theirs is as good.
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn prepare(path: &Path) -> Result<Self, StoreError> {
        let mut db = Connection::open(path)?;
        db.busy_timeout(PATIENCE)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        // What was said to be stored must survive a power cut.
        db.pragma_update(None, "synchronous", "full")?;
        db.pragma_update(None, "foreign_keys", true)?;
        schema::migrate(&mut db)?;
        Ok(Self { db })
    }

    /// Opens a store that is there, to look; `None` if there is none.
    pub fn look(path: &Path) -> Result<Option<Self>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = match Connection::open_with_flags(path, flags) {
            Ok(db) => db,
            Err(_) => Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        };
        db.busy_timeout(PATIENCE)?;
        schema::migrate(&mut db)?;
        Ok(Some(Self { db }))
    }
}
