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
        if is_usual(text.as_bytes()) {
            return Ok(Self(text));
        }
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

/// Whether this is `YYYY-MM-DDTHH:MM:SSZ` on a day that every month has. Nearly all times are, and a repository has
/// thousands of them.
fn is_usual(text: &[u8]) -> bool {
    const FORM: &[u8; 20] = b"0000-00-00T00:00:00Z";
    let same_form = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    if text.len() != FORM.len() || !text.iter().zip(FORM).all(same_form) {
        return false;
    }
    let number = |at: usize| (text[at] - b'0') * 10 + (text[at + 1] - b'0');
    (1..=12).contains(&number(5))
        && (1..=28).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) < 60
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
        for bad in ["2026-00-02T03:04:05Z", "2026-02-30T03:04:05Z", "2026-01-02T24:04:05Z", "2026-01-02T03:60:05Z"] {
            assert!(Timestamp::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Timestamp::from_unix(0).as_str(), "1970-01-01T00:00:00Z");
    }
}
