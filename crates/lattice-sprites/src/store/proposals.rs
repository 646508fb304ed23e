//! Changes of the environment that agents propose: each is known once, however often it is made.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{SpriteKey, Store, StoreError};
use crate::protocol::{Event, EventType};

/// A proposal as it stands in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalRow {
    pub id: String,
    /// The sprite that made it first.
    pub sprite: String,
    /// How often it was made.
    pub seen: u64,
    pub payload: Value,
    /// `pending`, `accepted` or `rejected`.
    pub state: String,
    /// What is done in future sprites before the agent starts.
    pub step: Option<String>,
}

const SELECT: &str = "SELECT p.id, s.name, p.seen, p.json, p.state FROM proposals p JOIN sprites s ON s.id = p.sprite";

fn proposal(row: &Row<'_>) -> rusqlite::Result<ProposalRow> {
    let json: String = row.get(3)?;
    let mut payload: Value = serde_json::from_str(&json).map_err(|_| rusqlite::Error::InvalidQuery)?;
    let step = payload["step"].as_str().map(str::to_owned);
    if let Some(fields) = payload.as_object_mut() {
        fields.remove("step");
    }
    Ok(ProposalRow { id: row.get(0)?, sprite: row.get(1)?, seen: row.get(2)?, payload, state: row.get(4)?, step })
}

/// Proposals of the same change are the same, whatever failed and however sure the agent is.
fn fingerprint(event: &Event) -> String {
    let payload = &event.payload;
    let same = json!([payload.get("suggested_adjustment"), payload.get("scope")]);
    let digest = Sha256::digest(same.to_string().as_bytes());
    let short: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("prop_{short}")
}

/// Takes note of a proposal in the transaction that stores its event.
pub(super) fn register(
    batch: &Transaction<'_>,
    sprite: SpriteKey,
    (seq, event): (u64, &Event),
) -> Result<(), StoreError> {
    if event.kind == EventType::EnvironmentProposal {
        batch.execute(
            "INSERT INTO proposals (id, sprite, seq, seen, json, state) VALUES (?1, ?2, ?3, 1, ?4, 'pending') \
             ON CONFLICT (id) DO UPDATE SET seen = seen + 1",
            params![fingerprint(event), sprite.0, seq, Value::from(event.payload.clone()).to_string()],
        )?;
    }
    Ok(())
}

impl Store {
    /// All proposals, oldest first.
    pub fn proposals(&self) -> Result<Vec<ProposalRow>, StoreError> {
        let mut statement = self.db.prepare(&format!("{SELECT} ORDER BY p.rowid"))?;
        let rows = statement.query_map([], proposal)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub fn proposal(&self, id: &str) -> Result<ProposalRow, StoreError> {
        let found = self.db.query_row(&format!("{SELECT} WHERE p.id = ?1"), [id], proposal).optional()?;
        found.ok_or_else(|| StoreError::NoSuchProposal(id.to_owned()))
    }

    /// Records what a person decided.
    pub fn decide_proposal(
        &self,
        row: &ProposalRow,
        (state, step): (&str, Option<&str>),
        at: &str,
    ) -> Result<(), StoreError> {
        let mut payload = row.payload.clone();
        if let Some(step) = step {
            payload["step"] = json!(step);
        }
        self.db.execute(
            "UPDATE proposals SET state = ?2, json = ?3, decided_at = ?4 WHERE id = ?1",
            params![row.id, state, payload.to_string(), at],
        )?;
        Ok(())
    }
}
