//! One event: the envelope around a payload, read from the bytes of a line.

use lattice_model::time::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::kind::EventType;
use super::shape;
use super::strict::{KEYS, Read};
use super::violation::{Finding, Rule};
use super::{LONGEST_LINE, VERSION};

/// A valid event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: EventType,
    pub sprite_id: String,
    pub work_item_id: String,
    pub timestamp: String,
    pub payload: Map<String, Value>,
    /// Keys that the envelope does not have; the event counts all the same.
    pub extra: Map<String, Value>,
}

/// Equal for two events if and only if their whole JSON is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey(pub [u8; 16]);

/// Reads one event. An event with an extra key is valid and has a finding; an error has at least one.
pub fn read_event(line: &[u8]) -> Result<(Event, Vec<Finding>), Vec<Finding>> {
    if line.len() > LONGEST_LINE {
        return Err(vec![Finding::new(Rule::LineTooLong, format!("the line has {} bytes", line.len()))]);
    }
    let envelope = match serde_json::from_slice::<Read>(line) {
        Ok(Read(Some(envelope))) => envelope,
        Ok(Read(None)) => return Err(vec![Finding::new(Rule::NotJson, "the line is JSON, but no object")]),
        Err(error) => return Err(vec![Finding::new(Rule::NotJson, error.to_string())]),
    };
    let extra = envelope.extra;
    let [Some(version), Some(kind), Some(sprite_id), Some(work_item_id), Some(timestamp), Some(payload)] =
        envelope.known
    else {
        let missing = KEYS.iter().zip(&envelope.known).filter(|(_, value)| value.is_none());
        return Err(missing.map(|(key, _)| Finding::new(Rule::MissingKey, format!("`{key}` is missing"))).collect());
    };
    let mut faults = Vec::new();
    let kind = check_kind(&version, &kind, &mut faults);
    let mut id = |name: &str, value: Value| match value {
        Value::String(id) if !id.trim().is_empty() => id,
        _ => {
            faults.push(Finding::new(Rule::BadField, format!("`{name}` must be text that is not empty")));
            String::new()
        }
    };
    let (sprite_id, work_item_id) = (id("sprite_id", sprite_id), id("work_item_id", work_item_id));
    let timestamp = if let Value::String(timestamp) = timestamp { timestamp } else { String::new() };
    if let Err(error) = Timestamp::new(&timestamp) {
        faults.push(Finding::new(Rule::BadTimestamp, cut(&error.to_string())));
    }
    let Value::Object(payload) = payload else {
        faults.push(Finding::new(Rule::BadField, "`payload` must be an object"));
        return Err(faults);
    };
    let Some(kind) = kind else { return Err(faults) };
    faults.extend(shape::check(kind, &payload));
    if !faults.is_empty() {
        return Err(faults);
    }
    let remarks = extra.keys().map(|key| Finding::new(Rule::ExtraKey, format!("`{}` is no key of an event", cut(key))));
    let remarks = remarks.collect();
    Ok((Event { kind, sprite_id, work_item_id, timestamp, payload, extra }, remarks))
}

fn check_kind(version: &Value, kind: &Value, faults: &mut Vec<Finding>) -> Option<EventType> {
    if version.as_str() != Some(VERSION) {
        let found = cut(&version.to_string());
        faults.push(Finding::new(Rule::WrongVersion, format!("`protocol_version` is {found}, not \"{VERSION}\"")));
    }
    let known = kind.as_str().and_then(EventType::from_name);
    if known.is_none() {
        faults.push(Finding::new(Rule::UnknownType, format!("{} is no event type", cut(&kind.to_string()))));
    }
    known
}

/// What an agent wrote may be long; a message quotes its beginning.
pub(super) fn cut(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl Event {
    /// The whole envelope.
    pub fn to_value(&self) -> Value {
        let mut envelope = self.extra.clone();
        let mut set = |key: &str, value: Value| drop(envelope.insert(key.to_owned(), value));
        set("protocol_version", VERSION.into());
        set("event_type", self.kind.as_str().into());
        set("sprite_id", self.sprite_id.as_str().into());
        set("work_item_id", self.work_item_id.as_str().into());
        set("timestamp", self.timestamp.as_str().into());
        set("payload", Value::Object(self.payload.clone()));
        Value::Object(envelope)
    }

    /// One line of JSON without its end, the keys in the order of the specification.
    pub fn to_line(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut line = format!(
            "{{\"protocol_version\":\"{VERSION}\",\"event_type\":\"{}\",\"sprite_id\":{},\"work_item_id\":{},\
             \"timestamp\":{},\"payload\":{}",
            self.kind,
            quoted(&self.sprite_id),
            quoted(&self.work_item_id),
            quoted(&self.timestamp),
            serde_json::to_string(&self.payload).expect("bug: a map with text keys is JSON"),
        );
        for (key, value) in &self.extra {
            line.push_str(&format!(",{}:{value}", quoted(key)));
        }
        line.push('}');
        line
    }

    pub fn key(&self) -> EventKey {
        EventKey::of(&self.to_line())
    }
}

impl EventKey {
    /// The key of the event with this canonical line.
    pub fn of(line: &str) -> Self {
        let digest = Sha256::digest(line.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Self(key)
    }
}
