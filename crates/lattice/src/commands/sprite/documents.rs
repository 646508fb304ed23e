//! The documents of `sprite`.

use lattice_sprites::store::{ActionRow, ArtifactRow, CheckpointRow, EventRow, Sprite, ViolationRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::commands::run;
use crate::output::Document;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteDocument {
    pub(crate) id: String,
    pub(crate) work_item_id: String,
    pub(crate) state: &'static str,
    pub(crate) phase: Option<String>,
    pub(crate) branch: String,
    pub(crate) parent: String,
    pub(crate) agent: String,
    pub(crate) checkpoint: Option<String>,
    pub(crate) events: u64,
    pub(crate) started_at: String,
    pub(crate) ended_at: Option<String>,
    /// What it ended with, or why it waits.
    pub(crate) outcome: Option<String>,
    /// `strict`, or `none`.
    pub(crate) sandbox: &'static str,
    /// Its files were removed.
    pub(crate) destroyed: bool,
    /// Whether `branch` is a branch of this repository.
    pub(crate) branch_state: BranchState,
}

/// Whether there is a branch that a sprite has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BranchState {
    Here,
    NotLanded,
    /// It was landed and is there no more.
    Gone,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteListDocument {
    pub(crate) sprites: Vec<SpriteDocument>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteShowDocument {
    pub(crate) sprite: SpriteDocument,
    pub(crate) task: String,
    pub(crate) checkpoints: Vec<CheckpointDocument>,
    pub(crate) violations: Vec<ViolationDocument>,
    /// What it asked for, and what became of it.
    pub(crate) actions: Vec<ActionDocument>,
    /// What it wanted you to know.
    pub(crate) notices: Vec<NoticeDocument>,
    /// How it is run.
    pub(crate) run: Value,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ActionDocument {
    pub(crate) id: String,
    pub(crate) action: String,
    pub(crate) blocking: bool,
    /// `new`, `asked`, `approved`, `denied`, `done` or `failed`.
    pub(crate) state: &'static str,
    pub(crate) reason: Option<String>,
    pub(crate) result: Option<serde_json::Map<String, Value>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NoticeDocument {
    pub(crate) at: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckpointDocument {
    pub(crate) id: String,
    /// The record of its session: `lattice context session restore` prints it, by this id or the checkpoint's.
    pub(crate) session: String,
    pub(crate) made_at: String,
    /// Bytes written: what changed since the checkpoint before, and a list of everything.
    pub(crate) bytes: Option<u64>,
    /// So long the agent stood still.
    pub(crate) pause_us: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ViolationDocument {
    pub(crate) rule: String,
    pub(crate) weight: String,
    pub(crate) detail: String,
    pub(crate) seq: Option<u64>,
    pub(crate) source: Option<String>,
    pub(crate) line: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteEventsDocument {
    pub(crate) events: Vec<EventDocument>,
}

/// The envelope of an event with its number and where it was seen.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventDocument {
    pub(crate) seq: u64,
    /// `stdout`, `outbox` or `both`.
    pub(crate) source: String,
    #[serde(flatten)]
    pub(crate) envelope: Value,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteArtifactsDocument {
    pub(crate) work_item_id: String,
    pub(crate) artifacts: Vec<ArtifactDocument>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArtifactDocument {
    #[serde(rename = "type")]
    kind: String,
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
}

/// A recorded session, understood.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteIngestDocument {
    pub(crate) events: Vec<EventDocument>,
    pub(crate) violations: Vec<ViolationDocument>,
}

/// What the agent printed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteLogsDocument {
    pub(crate) log: String,
}

/// Files that a sprite changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteDiffDocument {
    /// The checkpoint that shows them; null where they are what is there now, since the sprite does not run.
    pub(crate) checkpoint: Option<String>,
    pub(crate) since: Option<String>,
    /// Paths with `added`, `changed` or `removed`.
    pub(crate) files: std::collections::BTreeMap<String, &'static str>,
}

/// What was done with a sprite.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteManageDocument {
    pub(crate) sprite: String,
    /// `restored`, `stopped` or `destroyed`.
    pub(crate) done: &'static str,
    pub(crate) branches: Vec<String>,
    /// Branches that were only in the sprite, and are gone with it.
    pub(crate) lost: Vec<String>,
}

/// What was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpriteGcDocument {
    /// Sprites whose files were removed; their events stay.
    pub(crate) sprites: Vec<String>,
    /// Branches that their work was landed on before.
    pub(crate) landed: Vec<String>,
    /// Checkouts that no sprite has any more, by commit.
    pub(crate) checkouts: Vec<String>,
    /// Sprites that were kept, and why.
    pub(crate) kept: std::collections::BTreeMap<String, String>,
}

impl Document for SpriteGcDocument {
    const COMMAND: &'static str = "sprite-gc";
}

impl Document for SpriteLogsDocument {
    const COMMAND: &'static str = "sprite-logs";
}

impl Document for SpriteDiffDocument {
    const COMMAND: &'static str = "sprite-diff";
}

impl Document for SpriteManageDocument {
    const COMMAND: &'static str = "sprite-manage";
}

impl Document for SpriteListDocument {
    const COMMAND: &'static str = "sprite-list";
}

impl Document for SpriteShowDocument {
    const COMMAND: &'static str = "sprite-show";
}

impl Document for SpriteEventsDocument {
    const COMMAND: &'static str = "sprite-events";
}

impl Document for SpriteArtifactsDocument {
    const COMMAND: &'static str = "sprite-artifacts";
}

impl Document for SpriteIngestDocument {
    const COMMAND: &'static str = "sprite-ingest";
}

impl SpriteDocument {
    pub(crate) fn of(sprite: &Sprite) -> Self {
        Self {
            id: sprite.name.clone(),
            work_item_id: sprite.work_item_id.clone(),
            state: sprite.state.as_str(),
            phase: sprite.phase.clone(),
            branch: sprite.branch.clone(),
            parent: sprite.parent.clone(),
            agent: sprite.agent.clone(),
            checkpoint: sprite.checkpoint.clone(),
            events: sprite.events,
            started_at: sprite.started_at.clone(),
            ended_at: sprite.ended_at.clone(),
            outcome: sprite.outcome.clone(),
            sandbox: run::bare::isolation(sprite).as_str(),
            destroyed: false,
            branch_state: BranchState::NotLanded,
        }
    }
}

impl ActionDocument {
    pub(crate) fn of(row: ActionRow) -> Self {
        Self {
            id: row.id.to_string(),
            action: row.action,
            blocking: row.blocking,
            state: row.state.as_str(),
            reason: row.reason,
            result: row.result,
        }
    }
}

impl CheckpointDocument {
    pub(crate) fn of(row: CheckpointRow) -> Self {
        let session = lattice_sprites::run::session_id(&row.id);
        let (bytes, pause_us) = (row.cost.map(|cost| cost.bytes), row.cost.map(|cost| cost.pause_us));
        Self { id: row.id, session, made_at: row.made_at, bytes, pause_us }
    }
}

impl ViolationDocument {
    pub(crate) fn of(row: ViolationRow) -> Self {
        let ViolationRow { seq, side, line, rule, weight, detail, .. } = row;
        Self { rule, weight, detail, seq, source: side, line }
    }
}

impl EventDocument {
    pub(crate) fn of(row: EventRow) -> Self {
        Self { seq: row.seq, source: row.source, envelope: row.envelope }
    }
}

impl ArtifactDocument {
    pub(crate) fn of(row: ArtifactRow) -> Self {
        Self { kind: row.kind, path: row.reference, url: row.url, metadata: row.metadata }
    }
}
