//! The session record of a checkpoint: what a sprite was asked until then, what it said, and what it made.

use lattice_context::session::{ContextCheckpoint, SessionError, SessionState, Speaker, Turn};
use lattice_context::task::{Artifact, TaskType};
use lattice_model::time::Timestamp;
use serde_json::{Map, Value};

use super::place::SpritePlace;
use crate::store::{ArtifactRow, EventRow, Sprite, Store, StoreError};

/// The session as it was at a checkpoint has the same mark as the checkpoint.
pub fn session_id(checkpoint: &str) -> String {
    format!("session_{}", checkpoint.strip_prefix("chk_").unwrap_or(checkpoint))
}

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// So much of what was said last is kept with each checkpoint.
const TURNS: u64 = 100;

/// Parts of a payload that say what an event is about.
const SAID: [&str; 6] = ["message", "summary", "reason", "phase", "action", "ref"];

/// Stores what a sprite's session is at this moment.
pub(super) fn record(
    place: &SpritePlace,
    store: &Store,
    sprite: &Sprite,
    (checkpoint, now): (&str, Timestamp),
) -> Result<(), RecordError> {
    let last = store.sprite(&sprite.name)?.events;
    let events = store.events(sprite.key, last.saturating_sub(TURNS), TURNS)?;
    let task = Turn { role: Speaker::User, content: sprite.task.clone() };
    let state = SessionState {
        task_type: TaskType::Implement,
        user_request: sprite.task.clone(),
        context: place.context(),
        artifacts: store.artifacts(sprite.key)?.into_iter().map(artifact).collect(),
        state: "running".to_owned(),
        conversation_history: [task].into_iter().chain(events.iter().filter_map(turn)).collect(),
    };
    ContextCheckpoint::new(place.sessions()).save(&session_id(checkpoint), state, now)?;
    Ok(())
}

fn turn(event: &EventRow) -> Option<Turn> {
    let payload = &event.envelope["payload"];
    let said = SAID.iter().find_map(|name| payload[name].as_str())?;
    let kind = event.envelope["event_type"].as_str()?;
    Some(Turn { role: Speaker::Assistant, content: format!("{kind}: {said}") })
}

fn artifact(row: ArtifactRow) -> Artifact {
    let mut details = Map::new();
    details.extend(row.url.map(|url| ("url".to_owned(), Value::String(url))));
    details.extend(row.metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    Artifact { kind: row.kind, path: row.reference.unwrap_or_default(), details }
}
