//! Looking at what was stored: events, violations, artifacts.

use rusqlite::Row;
use serde_json::Value;

use crate::protocol::{Event, read_event};

use super::{SpriteKey, Store, StoreError};

/// An event as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    pub seq: u64,
    /// `stdout`, `outbox` or `both`.
    pub source: String,
    pub envelope: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViolationRow {
    pub seq: Option<u64>,
    pub side: Option<String>,
    pub line: Option<u64>,
    pub rule: String,
    pub weight: String,
    pub detail: String,
    pub at: String,
}

/// What a sprite declared to have made.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactRow {
    pub seq: u64,
    pub kind: String,
    pub reference: Option<String>,
    pub url: Option<String>,
    pub metadata: Option<Value>,
}

impl Store {
    /// Events after `after`, at most `most` of them.
    pub fn events(&self, key: SpriteKey, after: u64, most: u64) -> Result<Vec<EventRow>, StoreError> {
        let mut statement = self.db.prepare_cached(
            "SELECT e.seq, CASE WHEN c.seq IS NULL THEN e.side ELSE 'both' END, e.json FROM events e \
             LEFT JOIN confirmations c ON c.sprite = e.sprite AND c.seq = e.seq \
             WHERE e.sprite = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3",
        )?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
        let rows = statement.query_map([key.0, to_sql(after), to_sql(most)], read)?;
        let mut events = Vec::new();
        for row in rows {
            let (seq, source, json) = row?;
            let envelope =
                serde_json::from_str(&json).map_err(|error| StoreError::Damaged(format!("event {seq}: {error}")))?;
            events.push(EventRow { seq, source, envelope });
        }
        Ok(events)
    }

    /// The newest WAITING that the outbox has.
    pub fn last_waiting(&self, key: SpriteKey) -> Result<Option<Event>, StoreError> {
        let mut statement = self.db.prepare(
            "SELECT e.json FROM events e WHERE e.sprite = ?1 AND e.kind = 'WAITING' AND (e.side = 'outbox' OR EXISTS \
             (SELECT 1 FROM confirmations c WHERE c.sprite = e.sprite AND c.seq = e.seq)) ORDER BY e.seq DESC LIMIT 1",
        )?;
        let mut rows = statement.query_map([key.0], |row| row.get::<_, String>(0))?;
        let Some(json) = rows.next().transpose()? else { return Ok(None) };
        let damaged = |_| StoreError::Damaged("a WAITING that is no event".to_owned());
        Ok(Some(read_event(json.as_bytes()).map_err(damaged)?.0))
    }

    pub fn violations(&self, key: SpriteKey) -> Result<Vec<ViolationRow>, StoreError> {
        let mut statement = self.db.prepare(
            "SELECT seq, side, line, rule, weight, detail, at FROM violations WHERE sprite = ?1 ORDER BY id",
        )?;
        let read = |row: &Row<'_>| {
            Ok(ViolationRow {
                seq: row.get(0)?,
                side: row.get(1)?,
                line: row.get(2)?,
                rule: row.get(3)?,
                weight: row.get(4)?,
                detail: row.get(5)?,
                at: row.get(6)?,
            })
        };
        let rows = statement.query_map([key.0], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub fn artifacts(&self, key: SpriteKey) -> Result<Vec<ArtifactRow>, StoreError> {
        let query = "SELECT seq, kind, ref, url, metadata FROM artifacts WHERE sprite = ?1 ORDER BY seq";
        let mut statement = self.db.prepare(query)?;
        let read = |row: &Row<'_>| {
            let metadata: Option<String> = row.get(4)?;
            Ok(ArtifactRow {
                seq: row.get(0)?,
                kind: row.get(1)?,
                reference: row.get(2)?,
                url: row.get(3)?,
                metadata: metadata.and_then(|text| serde_json::from_str(&text).ok()),
            })
        };
        let rows = statement.query_map([key.0], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
