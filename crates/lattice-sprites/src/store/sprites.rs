//! Sprites, their sessions and their checkpoints.

use lattice_model::similar::did_you_mean;
use rusqlite::{OptionalExtension as _, Row, TransactionBehavior, params};

use super::{SessionKey, SpriteKey, Store, StoreError};

/// How a sprite is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpriteState {
    Queued,
    Running,
    Waiting,
    Completed,
    Failed,
    Stopped,
    Interrupted,
}

/// What is known of a sprite when it is made.
#[derive(Debug, Clone)]
pub struct NewSprite {
    pub name: String,
    pub work_item_id: String,
    pub agent: String,
    /// What it was asked to do.
    pub task: String,
    pub branch: String,
    pub parent: String,
    /// The commit it starts from.
    pub base: String,
    /// How it is run, as JSON: command, network, limits.
    pub run: String,
    pub started_at: String,
}

/// A sprite as it stands in the store.
#[derive(Debug, Clone)]
pub struct Sprite {
    pub key: SpriteKey,
    pub name: String,
    pub work_item_id: String,
    pub agent: String,
    pub task: String,
    pub branch: String,
    pub parent: String,
    pub base: String,
    pub run: String,
    pub state: SpriteState,
    pub phase: Option<String>,
    /// What it ended with, or why it waits.
    pub outcome: Option<String>,
    pub checkpoint: Option<String>,
    /// The process that watches it.
    pub supervisor: Option<String>,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub events: u64,
}

/// An answer that a session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub checkpoint: String,
    /// Absent if the answer was recorded before and the session only goes on with it.
    pub digest: Option<String>,
}

/// A checkpoint that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    pub id: String,
    pub session: i64,
    pub previous: Option<String>,
    pub made_at: String,
    /// Unknown for one that an earlier version made.
    pub cost: Option<CheckpointCost>,
}

/// What a checkpoint cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointCost {
    /// Entries of the layers.
    pub files: u64,
    /// Written to disk.
    pub bytes: u64,
    /// So long everything stood still.
    pub pause_us: u64,
}

impl SpriteState {
    pub const ALL: [Self; 7] =
        [Self::Queued, Self::Running, Self::Waiting, Self::Completed, Self::Failed, Self::Stopped, Self::Interrupted];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether nothing more comes from it by itself.
    pub fn is_over(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Stopped => true,
            Self::Queued | Self::Running | Self::Waiting | Self::Interrupted => false,
        }
    }
}

const SELECT: &str = "SELECT id, name, work_item_id, agent, task, branch, parent, base, run, state, phase, outcome, \
    checkpoint, supervisor, started_at, ended_at, \
    (SELECT coalesce(max(seq), 0) FROM events WHERE events.sprite = sprites.id) FROM sprites";

fn sprite(row: &Row<'_>) -> rusqlite::Result<Sprite> {
    let state: String = row.get(9)?;
    let state = SpriteState::from_name(&state).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(Sprite {
        key: SpriteKey(row.get(0)?),
        name: row.get(1)?,
        work_item_id: row.get(2)?,
        agent: row.get(3)?,
        task: row.get(4)?,
        branch: row.get(5)?,
        parent: row.get(6)?,
        base: row.get(7)?,
        run: row.get(8)?,
        state,
        phase: row.get(10)?,
        outcome: row.get(11)?,
        checkpoint: row.get(12)?,
        supervisor: row.get(13)?,
        started_at: row.get(14)?,
        ended_at: row.get(15)?,
        events: row.get(16)?,
    })
}

impl Store {
    pub fn add_sprite(&self, new: &NewSprite) -> Result<SpriteKey, StoreError> {
        let added = self.db.execute(
            "INSERT OR IGNORE INTO sprites (name, work_item_id, agent, task, branch, parent, base, run, state, started_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', ?9)",
            params![
                new.name,
                new.work_item_id,
                new.agent,
                new.task,
                new.branch,
                new.parent,
                new.base,
                new.run,
                new.started_at
            ],
        )?;
        match added {
            0 => Err(StoreError::NameTaken(new.name.clone())),
            _ => Ok(SpriteKey(self.db.last_insert_rowid())),
        }
    }

    /// All sprites, oldest first.
    pub fn sprites(&self) -> Result<Vec<Sprite>, StoreError> {
        let mut statement = self.db.prepare(&format!("{SELECT} ORDER BY id"))?;
        let rows = statement.query_map([], sprite)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub fn sprite(&self, name: &str) -> Result<Sprite, StoreError> {
        let found = self.db.query_row(&format!("{SELECT} WHERE name = ?1"), [name], sprite).optional()?;
        if let Some(found) = found {
            return Ok(found);
        }
        let all = self.sprites()?;
        let meant = did_you_mean(name, all.iter().map(|sprite| sprite.name.as_str()));
        Err(StoreError::NoSuchSprite { name: name.to_owned(), meant })
    }

    /// Moves a sprite to another state; a process that is over watches nothing.
    pub fn set_state(
        &self,
        key: SpriteKey,
        state: SpriteState,
        outcome: Option<&str>,
        at: &str,
    ) -> Result<(), StoreError> {
        let ended = state.is_over().then_some(at);
        self.db.execute(
            "UPDATE sprites SET state = ?2, outcome = coalesce(?3, outcome), ended_at = ?4, \
             supervisor = CASE WHEN ?2 = 'running' THEN supervisor END WHERE id = ?1",
            params![key.0, state.as_str(), outcome, ended],
        )?;
        Ok(())
    }

    /// Says which process watches the sprite from now on.
    pub fn set_supervisor(&self, key: SpriteKey, supervisor: &str) -> Result<(), StoreError> {
        self.db.execute(
            "UPDATE sprites SET state = 'running', supervisor = ?2, ended_at = NULL WHERE id = ?1",
            params![key.0, supervisor],
        )?;
        Ok(())
    }

    pub fn set_run(&self, key: SpriteKey, run: &str) -> Result<(), StoreError> {
        self.db.execute("UPDATE sprites SET run = ?2 WHERE id = ?1", params![key.0, run])?;
        Ok(())
    }

    /// Begins a session, and records the answer that it begins with; `None` if that was given before.
    pub fn begin_session(
        &mut self,
        key: SpriteKey,
        answer: Option<&Answer>,
        at: &str,
    ) -> Result<Option<SessionKey>, StoreError> {
        let batch = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if let Some(Answer { checkpoint, digest: Some(digest) }) = answer {
            let added = batch.execute(
                "INSERT OR IGNORE INTO resumes (sprite, checkpoint, digest, at) VALUES (?1, ?2, ?3, ?4)",
                params![key.0, checkpoint, digest, at],
            )?;
            if added == 0 {
                return Ok(None);
            }
        }
        batch.execute(
            "INSERT INTO sessions (sprite, resumed_from, started_at) VALUES (?1, ?2, ?3)",
            params![key.0, answer.map(|answer| answer.checkpoint.as_str()), at],
        )?;
        let session = SessionKey(batch.last_insert_rowid());
        batch.commit()?;
        Ok(Some(session))
    }

    pub fn end_session(&self, session: SessionKey, exit: &str, at: &str) -> Result<(), StoreError> {
        self.db.execute(
            "UPDATE sessions SET ended_at = ?2, exit = ?3 WHERE id = ?1 AND ended_at IS NULL",
            params![session.0, at, exit],
        )?;
        Ok(())
    }

    /// The newest session of a sprite.
    pub fn last_session(&self, key: SpriteKey) -> Result<Option<SessionKey>, StoreError> {
        let newest = "SELECT max(id) FROM sessions WHERE sprite = ?1";
        Ok(self.db.query_row(newest, [key.0], |row| row.get::<_, Option<i64>>(0))?.map(SessionKey))
    }

    /// Whether this answer to this checkpoint was given already.
    pub fn is_replay(&self, key: SpriteKey, checkpoint: &str, digest: &str) -> Result<bool, StoreError> {
        let known = "SELECT count(*) FROM resumes WHERE sprite = ?1 AND checkpoint = ?2 AND digest = ?3";
        Ok(self.db.query_row(known, params![key.0, checkpoint, digest], |row| row.get::<_, i64>(0))? > 0)
    }

    /// The checkpoint whose answer the newest session began with.
    pub fn last_answered(&self, key: SpriteKey) -> Result<Option<String>, StoreError> {
        let newest = "SELECT resumed_from FROM sessions WHERE sprite = ?1 ORDER BY id DESC LIMIT 1";
        Ok(self.db.query_row(newest, [key.0], |row| row.get(0)).optional()?.flatten())
    }

    /// Every answer so far, as checkpoint and digest.
    pub fn resumes(&self, key: SpriteKey) -> Result<Vec<(String, String)>, StoreError> {
        let query = "SELECT checkpoint, digest FROM resumes WHERE sprite = ?1 ORDER BY at, checkpoint, digest";
        let mut statement = self.db.prepare(query)?;
        let rows = statement.query_map([key.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Publishes a checkpoint.
    pub fn add_checkpoint(&self, key: SpriteKey, row: &CheckpointRow) -> Result<(), StoreError> {
        self.db.execute(
            "INSERT INTO checkpoints (id, sprite, session, previous, made_at, files, bytes, pause_us) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                row.id,
                key.0,
                row.session,
                row.previous,
                row.made_at,
                row.cost.map(|cost| cost.files),
                row.cost.map(|cost| cost.bytes),
                row.cost.map(|cost| cost.pause_us)
            ],
        )?;
        self.db.execute("UPDATE sprites SET checkpoint = ?2 WHERE id = ?1", params![key.0, row.id])?;
        Ok(())
    }

    /// The sprite that a checkpoint is of.
    pub fn sprite_of_checkpoint(&self, id: &str) -> Result<Option<String>, StoreError> {
        let query = "SELECT s.name FROM checkpoints c JOIN sprites s ON s.id = c.sprite WHERE c.id = ?1";
        Ok(self.db.query_row(query, [id], |row| row.get(0)).optional()?)
    }

    /// The checkpoints of a sprite, oldest first.
    pub fn checkpoints(&self, key: SpriteKey) -> Result<Vec<CheckpointRow>, StoreError> {
        let query = "SELECT id, session, previous, made_at, files, bytes, pause_us FROM checkpoints \
             WHERE sprite = ?1 ORDER BY rowid";
        let mut statement = self.db.prepare(query)?;
        let row = |row: &Row<'_>| {
            let cost = match (row.get(4)?, row.get(5)?, row.get(6)?) {
                (Some(files), Some(bytes), Some(pause_us)) => Some(CheckpointCost { files, bytes, pause_us }),
                _ => None,
            };
            Ok(CheckpointRow {
                id: row.get(0)?,
                session: row.get(1)?,
                previous: row.get(2)?,
                made_at: row.get(3)?,
                cost,
            })
        };
        let rows = statement.query_map([key.0], row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
