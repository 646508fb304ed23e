//! Reads JSON in which no object names a key twice, an envelope without a detour.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::envelope::cut;

/// The keys of an envelope.
pub(super) const KEYS: [&str; 6] =
    ["protocol_version", "event_type", "sprite_id", "work_item_id", "timestamp", "payload"];

/// A line of JSON: an envelope, or nothing if it is no object.
pub(super) struct Read(pub(super) Option<Envelope>);

/// The values of an envelope in the order of its keys, and what else stood beside them.
#[derive(Default)]
pub(super) struct Envelope {
    pub(super) known: [Option<Value>; KEYS.len()],
    pub(super) extra: Map<String, Value>,
}

/// A key of an envelope by its number, or another one.
enum Key {
    Known(usize),
    Other(String),
}

struct Strict(Value);

fn twice<E: serde::de::Error>(key: &str) -> E {
    E::custom(format!("the key `{}` stands twice", cut(key)))
}

/// Reads the value of a key that must be new.
fn put<'de, A: MapAccess<'de>>(object: &mut Map<String, Value>, key: String, entries: &mut A) -> Result<(), A::Error> {
    let Strict(value) = entries.next_value()?;
    match object.entry(key) {
        Entry::Vacant(place) => place.insert(value),
        Entry::Occupied(known) => return Err(twice(known.key())),
    };
    Ok(())
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, text: &str) -> Result<Key, E> {
                let known = KEYS.iter().position(|key| *key == text);
                Ok(known.map_or_else(|| Key::Other(text.to_owned()), Key::Known))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadVisitor)
    }
}

struct ReadVisitor;

impl<'de> Visitor<'de> for ReadVisitor {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Read, E> {
        Ok(Read(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Read, E> {
        Ok(Read(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Read, E> {
        Ok(Read(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Read, E> {
        Ok(Read(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Read, E> {
        Ok(Read(None))
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Read, A::Error> {
        StrictVisitor.visit_seq(items).map(|_| Read(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Read, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(key) = entries.next_key::<Key>()? {
            match key {
                Key::Known(number) => {
                    let Strict(value) = entries.next_value()?;
                    if envelope.known[number].replace(value).is_some() {
                        return Err(twice(KEYS[number]));
                    }
                }
                Key::Other(key) => put(&mut envelope.extra, key, &mut entries)?,
            }
        }
        Ok(Read(Some(envelope)))
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
            put(&mut object, key, &mut entries)?;
        }
        Ok(Value::Object(object))
    }
}
