//! Actions that agents asked for: what was decided, what was begun, what was done.

use rusqlite::{OptionalExtension as _, Row, Transaction, TransactionBehavior, params};
use serde_json::{Map, Value};

use super::{SpriteKey, Store, StoreError};
use crate::protocol::Event;

/// How far an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionState {
    /// Nobody has looked at it yet.
    New,
    /// A person decides.
    Asked,
    /// It may be carried out.
    Approved,
    /// By a person, by policy, or because it cannot be asked for so.
    Denied,
    Done,
    Failed,
}

/// An action as it stands in the store.
#[derive(Debug, Clone)]
pub struct ActionRow {
    pub id: i64,
    pub sprite: String,
    /// The event that asked for it.
    pub seq: u64,
    pub action: String,
    pub parameters: Map<String, Value>,
    pub blocking: bool,
    /// Where the sprite goes on when the action is settled; absent while it does not wait for it.
    pub checkpoint: Option<String>,
    pub state: ActionState,
    pub reason: Option<String>,
    pub result: Option<Map<String, Value>>,
    pub at: String,
    /// Made of the event; the same for the same request and no other.
    pub mark: String,
}

/// Written before the first effect of an action.
const INTENT: &str = "intent";
/// Written after the last one.
const RECEIPT: &str = "receipt";

impl ActionState {
    pub const ALL: [Self; 6] = [Self::New, Self::Asked, Self::Approved, Self::Denied, Self::Done, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Asked => "asked",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Whether nothing more happens to it.
    pub fn is_settled(self) -> bool {
        match self {
            Self::Denied | Self::Done | Self::Failed => true,
            Self::New | Self::Asked | Self::Approved => false,
        }
    }
}

const SELECT: &str = "SELECT a.id, s.name, a.seq, a.action, a.parameters, a.blocking, a.checkpoint, a.state, a.reason, \
    a.result, a.at, lower(hex(e.key)) FROM actions a JOIN sprites s ON s.id = a.sprite \
    JOIN events e ON e.sprite = a.sprite AND e.seq = a.seq";

fn action(row: &Row<'_>) -> rusqlite::Result<ActionRow> {
    let state: String = row.get(7)?;
    let state = ActionState::ALL.into_iter().find(|known| known.as_str() == state);
    let parameters: String = row.get(4)?;
    let result: Option<String> = row.get(9)?;
    Ok(ActionRow {
        id: row.get(0)?,
        sprite: row.get(1)?,
        seq: row.get(2)?,
        action: row.get(3)?,
        parameters: serde_json::from_str(&parameters).map_err(|_| rusqlite::Error::InvalidQuery)?,
        blocking: row.get(5)?,
        checkpoint: row.get(6)?,
        state: state.ok_or(rusqlite::Error::InvalidQuery)?,
        reason: row.get(8)?,
        result: result.and_then(|text| serde_json::from_str(&text).ok()),
        at: row.get(10)?,
        mark: row.get(11)?,
    })
}

/// Takes note of a request in the transaction that stores its event, so that it is known exactly once.
pub(super) fn register(
    batch: &Transaction<'_>,
    sprite: SpriteKey,
    (seq, event): (u64, &Event),
    at: &str,
) -> Result<(), StoreError> {
    if let Some(request) = event.action_request() {
        batch.execute(
            "INSERT OR IGNORE INTO actions (sprite, seq, action, parameters, blocking, state, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, 'new', ?6)",
            params![sprite.0, seq, request.action, Value::from(request.parameters).to_string(), request.blocking, at],
        )?;
    }
    if let Some(waiting) = event.waiting() {
        // The pause belongs to the request before it, if its checkpoint exists.
        batch.execute(
            "UPDATE actions SET checkpoint = ?2 WHERE sprite = ?1 AND blocking AND checkpoint IS NULL AND seq = \
             (SELECT max(seq) FROM actions WHERE sprite = ?1 AND seq < ?3) AND EXISTS \
             (SELECT 1 FROM checkpoints WHERE id = ?2 AND sprite = ?1)",
            params![sprite.0, waiting.checkpoint_id, seq],
        )?;
    }
    Ok(())
}

impl Store {
    /// All actions, oldest first; those of one sprite if it is named.
    pub fn actions(&self, sprite: Option<SpriteKey>) -> Result<Vec<ActionRow>, StoreError> {
        let mut statement = self.db.prepare(&format!("{SELECT} WHERE ?1 IS NULL OR a.sprite = ?1 ORDER BY a.id"))?;
        let rows = statement.query_map([sprite.map(|key| key.0)], action)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub fn action(&self, id: i64) -> Result<ActionRow, StoreError> {
        let found = self.db.query_row(&format!("{SELECT} WHERE a.id = ?1"), [id], action).optional()?;
        found.ok_or(StoreError::NoSuchAction(id))
    }

    /// The action that a sprite waits for at this checkpoint.
    pub fn awaited(&self, key: SpriteKey, checkpoint: &str) -> Result<Option<ActionRow>, StoreError> {
        let query =
            format!("{SELECT} WHERE a.sprite = ?1 AND a.checkpoint = ?2 AND a.blocking ORDER BY a.id DESC LIMIT 1");
        Ok(self.db.query_row(&query, params![key.0, checkpoint], action).optional()?)
    }

    /// What the same request led to in an earlier session: an agent that begins again asks again.
    pub fn done_before(&self, row: &ActionRow) -> Result<Option<Map<String, Value>>, StoreError> {
        let same = "SELECT a.result FROM actions a JOIN actions b ON b.id = ?1 AND a.sprite = b.sprite \
             AND a.action = b.action AND a.parameters = b.parameters AND a.id < b.id AND a.state = 'done' \
             JOIN events ea ON ea.sprite = a.sprite AND ea.seq = a.seq \
             JOIN events eb ON eb.sprite = b.sprite AND eb.seq = b.seq AND eb.session <> ea.session LIMIT 1";
        let found: Option<Option<String>> = self.db.query_row(same, [row.id], |row| row.get(0)).optional()?;
        Ok(found.map(|text| text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()))
    }

    /// Moves an action from one state to another; `false` if it is no longer where it was.
    pub fn move_action(
        &self,
        id: i64,
        (from, to): (ActionState, ActionState),
        reason: Option<&str>,
    ) -> Result<bool, StoreError> {
        let moved = self.db.execute(
            "UPDATE actions SET state = ?3, reason = ?4 WHERE id = ?1 AND state = ?2",
            params![id, from.as_str(), to.as_str(), reason],
        )?;
        Ok(moved > 0)
    }

    /// Says why an action that may be carried out is not done yet.
    pub fn delay_action(&self, id: i64, reason: &str) -> Result<(), StoreError> {
        let delay = "UPDATE actions SET reason = ?2 WHERE id = ?1 AND state = 'approved'";
        self.db.execute(delay, params![id, reason])?;
        Ok(())
    }

    /// Records that the first effect comes now; `false` if that was recorded before.
    pub fn begin_action(&self, id: i64, detail: &str, at: &str) -> Result<bool, StoreError> {
        let added = self.db.execute(
            "INSERT OR IGNORE INTO action_log (action, step, detail, at) VALUES (?1, ?2, ?3, ?4)",
            params![id, INTENT, detail, at],
        )?;
        Ok(added > 0)
    }

    /// Records the end of an action, with a notice for the user if that is what it was.
    pub fn end_action(
        &mut self,
        row: &ActionRow,
        (state, reason): (ActionState, Option<&str>),
        (result, notice): (&Map<String, Value>, Option<&str>),
        at: &str,
    ) -> Result<(), StoreError> {
        let batch = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = Value::from(result.clone()).to_string();
        let ended = batch.execute(
            "UPDATE actions SET state = ?2, reason = ?3, result = ?4 WHERE id = ?1 AND state = 'approved'",
            params![row.id, state.as_str(), reason, result],
        )?;
        if ended == 0 {
            return Ok(());
        }
        batch.execute(
            "INSERT OR IGNORE INTO action_log (action, step, detail, at) VALUES (?1, ?2, ?3, ?4)",
            params![row.id, RECEIPT, state.as_str(), at],
        )?;
        if let Some(notice) = notice {
            batch.execute(
                "INSERT INTO notices (sprite, message, at) SELECT id, ?2, ?3 FROM sprites WHERE name = ?1",
                params![row.sprite, notice, at],
            )?;
        }
        Ok(batch.commit()?)
    }

    /// What a sprite wanted the user to know: when, and what.
    pub fn notices(&self, key: SpriteKey) -> Result<Vec<(String, String)>, StoreError> {
        let mut statement = self.db.prepare("SELECT at, message FROM notices WHERE sprite = ?1 ORDER BY id")?;
        let rows = statement.query_map([key.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
