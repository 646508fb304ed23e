//! Structured records of what the pipeline decides, for those who ask.

use serde_json::Value;

/// Hears of each event with its fields.
#[derive(Debug, Clone, Copy)]
pub struct Log(pub fn(event: &str, fields: Value));

impl Log {
    /// Nobody listens.
    pub const SILENT: Self = Self(|_, _| {});

    pub fn event(self, name: &str, fields: Value) {
        (self.0)(name, fields);
    }
}
