//! What builders return: sections in their order, each any JSON value.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// An ordered map from names to JSON values, ready to be put into a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextDict(Vec<(String, Value)>);

impl ContextDict {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Adds a section, or replaces the one of this name.
    pub fn insert(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<ContextDict> for Value {
    fn from(sections: ContextDict) -> Self {
        Self::Object(sections.0.into_iter().collect())
    }
}

impl Serialize for ContextDict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ContextDict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Sections)
    }
}

struct Sections;

impl<'de> Visitor<'de> for Sections {
    type Value = ContextDict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of sections")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ContextDict, A::Error> {
        let mut sections = ContextDict::default();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            sections.insert(&name, value);
        }
        Ok(sections)
    }
}
