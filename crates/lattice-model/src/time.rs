//! Points in time as ISO-8601 UTC. The clock itself is read by the program.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A time such as `2026-01-02T03:04:05Z`, kept as it was written.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(String);

/// A text that is not a time in ISO-8601 UTC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time in ISO-8601 UTC, such as 2026-01-02T03:04:05Z")]
pub struct TimestampError(String);

impl Timestamp {
    pub fn new(text: impl Into<String>) -> Result<Self, TimestampError> {
        let text = text.into();
        // Other programs write `+00:00`; any other zone would not be UTC.
        let utc = text.ends_with('Z') || text.ends_with("+00:00");
        if utc && text.contains('T') && text.parse::<jiff::Timestamp>().is_ok() {
            return Ok(Self(text));
        }
        Err(TimestampError(text))
    }

    /// The time `seconds` after the start of 1970, or the end of representable time.
    pub fn from_unix(seconds: i64) -> Self {
        let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
        Self(time.to_string())
    }

    /// Seconds since the start of 1970.
    pub fn unix_seconds(&self) -> i64 {
        self.0.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;
    fn try_from(text: String) -> Result<Self, TimestampError> {
        Self::new(text)
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn only_utc_times_are_accepted() {
        for good in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05+00:00"] {
            assert!(Timestamp::new(good).is_ok(), "{good}");
        }
        for bad in
            ["", "yesterday", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04:05+02:00", "2026-13-02T03:04:05Z"]
        {
            assert!(Timestamp::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Timestamp::from_unix(0).as_str(), "1970-01-01T00:00:00Z");
    }
}
