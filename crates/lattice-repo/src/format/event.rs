//! Records of the ledger: one sealed JSON document per commit, as its message.

use lattice_model::event::{Category, Detail, Event, Origin, RefChange};
use lattice_model::id::{ContentDigest, Fingerprint, OpId};
use lattice_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::sealed::{self, SealError};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventV1 {
    kind: Kind,
    schema_version: u32,
    seq: u64,
    event: Category,
    op_id: OpId,
    command: String,
    origin: Origin,
    at: Timestamp,
    touched_refs: Vec<RefChange>,
    fingerprint_before: Fingerprint,
    fingerprint_after: Option<Fingerprint>,
    committed_fingerprint: Option<Fingerprint>,
    observed_fingerprints: Vec<Fingerprint>,
    plan_digest: Option<ContentDigest>,
    detail: Detail,
}

#[derive(Serialize, Deserialize)]
enum Kind {
    #[serde(rename = "lattice.event")]
    Event,
}

pub(crate) fn parse(message: &[u8]) -> Result<Event, SealError> {
    let document: EventV1 = sealed::unseal(message)?;
    Ok(Event {
        seq: document.seq,
        category: document.event,
        op: document.op_id,
        command: document.command,
        origin: document.origin,
        at: document.at,
        refs: document.touched_refs,
        before: document.fingerprint_before,
        after: document.fingerprint_after,
        committed: document.committed_fingerprint,
        observed: document.observed_fingerprints,
        plan: document.plan_digest,
        detail: document.detail,
    })
}

pub(crate) fn render(event: &Event) -> String {
    let document = EventV1 {
        kind: Kind::Event,
        schema_version: 1,
        seq: event.seq,
        event: event.category,
        op_id: event.op.clone(),
        command: event.command.clone(),
        origin: event.origin.clone(),
        at: event.at.clone(),
        touched_refs: event.refs.clone(),
        fingerprint_before: event.before.clone(),
        fingerprint_after: event.after.clone(),
        committed_fingerprint: event.committed.clone(),
        observed_fingerprints: event.observed.clone(),
        plan_digest: event.plan.clone(),
        detail: event.detail.clone(),
    };
    sealed::seal(&document) + "\n"
}
