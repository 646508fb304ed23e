//! One event: the envelope around a payload, read from the bytes of a line.

use std::fmt;

use lattice_model::time::Timestamp;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::kind::EventType;
use super::shape;
use super::violation::{Finding, Rule};
use super::{LONGEST_LINE, VERSION};

const KEYS: [&str; 6] = ["protocol_version", "event_type", "sprite_id", "work_item_id", "timestamp", "payload"];

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

/// A JSON value in which no object names a key twice.
struct Strict(Value);

/// Reads one event. An event with an extra key is valid and has a finding; an error has at least one.
pub fn read_event(line: &[u8]) -> Result<(Event, Vec<Finding>), Vec<Finding>> {
    if line.len() > LONGEST_LINE {
        return Err(vec![Finding::new(Rule::LineTooLong, format!("the line has {} bytes", line.len()))]);
    }
    let mut envelope = match serde_json::from_slice::<Strict>(line) {
        Ok(Strict(Value::Object(envelope))) => envelope,
        Ok(Strict(_)) => return Err(vec![Finding::new(Rule::NotJson, "the line is JSON, but no object")]),
        Err(error) => return Err(vec![Finding::new(Rule::NotJson, error.to_string())]),
    };
    let missing = KEYS.iter().filter(|key| !envelope.contains_key(**key));
    let mut faults: Vec<_> = missing.map(|key| Finding::new(Rule::MissingKey, format!("`{key}` is missing"))).collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let kind = check_envelope(&envelope, &mut faults);
    let payload = envelope.remove("payload");
    let (Some(kind), Some(Value::Object(payload))) = (kind, payload) else { return Err(faults) };
    faults.extend(shape::check(kind, &payload));
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut take = |key: &str| match envelope.remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (sprite_id, work_item_id, timestamp) = (take("sprite_id"), take("work_item_id"), take("timestamp"));
    take("protocol_version");
    take("event_type");
    let remarks =
        envelope.keys().map(|key| Finding::new(Rule::ExtraKey, format!("`{}` is no key of an event", cut(key))));
    let remarks = remarks.collect();
    Ok((Event { kind, sprite_id, work_item_id, timestamp, payload, extra: envelope }, remarks))
}

fn check_envelope(envelope: &Map<String, Value>, faults: &mut Vec<Finding>) -> Option<EventType> {
    let text = |key: &str| envelope.get(key).and_then(Value::as_str);
    if text("protocol_version") != Some(VERSION) {
        let found = cut(&envelope["protocol_version"].to_string());
        faults.push(Finding::new(Rule::WrongVersion, format!("`protocol_version` is {found}, not \"{VERSION}\"")));
    }
    let kind = text("event_type").and_then(EventType::from_name);
    if kind.is_none() {
        let found = cut(&envelope["event_type"].to_string());
        faults.push(Finding::new(Rule::UnknownType, format!("{found} is no event type")));
    }
    for key in ["sprite_id", "work_item_id"] {
        if text(key).is_none_or(|id| id.trim().is_empty()) {
            faults.push(Finding::new(Rule::BadField, format!("`{key}` must be text that is not empty")));
        }
    }
    if let Err(error) = Timestamp::new(text("timestamp").unwrap_or_default()) {
        faults.push(Finding::new(Rule::BadTimestamp, cut(&error.to_string())));
    }
    if !envelope["payload"].is_object() {
        faults.push(Finding::new(Rule::BadField, "`payload` must be an object"));
    }
    kind
}

/// What an agent wrote may be long; a message quotes its beginning.
fn cut(text: &str) -> String {
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

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Strict(value) = entries.next_value()?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{}` stands twice", cut(&key))));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
