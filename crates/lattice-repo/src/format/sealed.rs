//! JSON with a checksum, so that a torn or altered file is recognised.

use lattice_model::id::ContentDigest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why a document cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    #[error("it is empty")]
    Empty,
    #[error("it is not valid JSON of its kind: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("it has no checksum")]
    Unsealed,
    #[error("its checksum does not match its content")]
    Broken,
    #[error("it has schema version {0}, which this program does not know")]
    UnknownVersion(String),
}

/// The document as text, with its checksum.
pub(crate) fn seal<T: Serialize>(document: &T) -> String {
    let mut value = serde_json::to_value(document).expect("bug: our documents have string keys");
    let digest = digest(&value);
    if let Value::Object(fields) = &mut value {
        fields.insert("checksum".to_owned(), Value::String(digest.to_string()));
    }
    value.to_string()
}

/// The document, if it is exactly what was sealed.
pub(crate) fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SealError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(SealError::Empty);
    }
    let mut value: Value = serde_json::from_slice(bytes)?;
    let claimed = match &mut value {
        Value::Object(fields) => {
            match fields.get("schema_version") {
                Some(version) if *version == 1 => {}
                other => return Err(SealError::UnknownVersion(other.map_or("none".to_owned(), Value::to_string))),
            }
            fields.remove("checksum")
        }
        _ => None,
    };
    let claimed = claimed.as_ref().and_then(Value::as_str).ok_or(SealError::Unsealed)?;
    if claimed != digest(&value).as_str() {
        return Err(SealError::Broken);
    }
    Ok(serde_json::from_value(value)?)
}

/// Keys are sorted, so equal documents have equal digests.
fn digest(value: &Value) -> ContentDigest {
    ContentDigest::of(value.to_string().as_bytes())
}
