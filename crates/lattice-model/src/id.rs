//! Ids: objects, operations, fingerprints, digests.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A full object id of Git: 40 hexadecimal digits, or 64 in a SHA-256 repository.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid {
    bytes: [u8; 32],
    len: u8,
}

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("`{0}` is not a full object id of 40 or 64 lower-case hexadecimal digits")]
    NotAnOid(String),
    #[error("`{0}` is not a {1}")]
    NotHex(String, &'static str),
}

impl Oid {
    pub fn new(hex: &str) -> Result<Self, IdError> {
        Self::from_hex(hex.as_bytes()).ok_or_else(|| IdError::NotAnOid(hex.to_owned()))
    }

    /// Reads the hexadecimal form; `None` for anything else.
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        if hex.len() != 40 && hex.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self { bytes, len: (hex.len() / 2) as u8 })
    }

    /// Reads the binary form; `None` for any other length.
    pub fn from_bytes(raw: &[u8]) -> Option<Self> {
        if raw.len() != 20 && raw.len() != 32 {
            return None;
        }
        let mut bytes = [0; 32];
        bytes[..raw.len()].copy_from_slice(raw);
        Some(Self { bytes, len: raw.len() as u8 })
    }

    /// The binary form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The first eight digits, for people.
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(8);
        text
    }

    /// How many hexadecimal digits the id has.
    pub fn hex_len(&self) -> usize {
        usize::from(self.len) * 2
    }
}

impl Hash for Oid {
    /// An id is a hash already; its first bytes tell it from others as well as all of them.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.bytes[..8]);
    }
}

fn digit(hex: u8) -> Option<u8> {
    match hex {
        b'0'..=b'9' => Some(hex - b'0'),
        b'a'..=b'f' => Some(hex - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        let digits = &mut digits[..self.hex_len()];
        write_hex(self.as_bytes(), digits);
        f.write_str(std::str::from_utf8(digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Oid {
    type Error = IdError;
    fn try_from(hex: String) -> Result<Self, IdError> {
        Self::new(&hex)
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.to_string()
    }
}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $digits:expr, $what:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn new(hex: impl Into<String>) -> Result<Self, IdError> {
                let hex = hex.into();
                if hex.len() == $digits && hex.bytes().all(|b| digit(b).is_some()) {
                    return Ok(Self(hex));
                }
                Err(IdError::NotHex(hex, $what))
            }

            /// The digest of `bytes`, cut to the length of this id.
            pub fn of(bytes: &[u8]) -> Self {
                let mut text = hex(&Sha256::digest(bytes));
                text.truncate($digits);
                Self(text)
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(hex: String) -> Result<Self, IdError> {
                Self::new(hex)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

hex_id!(
    /// One operation: twelve hexadecimal digits.
    OpId, 12, "operation id of twelve hexadecimal digits"
);
hex_id!(
    /// SHA-256 over the sorted ref values that Lattice depends on.
    Fingerprint, 64, "fingerprint"
);
hex_id!(
    /// SHA-256 of a plan or of a file's content.
    ContentDigest, 64, "SHA-256 digest"
);

fn hex(bytes: &[u8]) -> String {
    let mut digits = vec![0; bytes.len() * 2];
    write_hex(bytes, &mut digits);
    String::from_utf8_lossy(&digits).into_owned()
}

fn write_hex(bytes: &[u8], digits: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(digits.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::{Fingerprint, Oid};

    // proves: ST-3.2.2-8
    #[test]
    fn only_full_lower_case_ids_are_object_ids() {
        let sha1 = "0123456789abcdef0123456789abcdef01234567";
        let sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for good in [sha1, sha256] {
            assert_eq!(Oid::new(good).expect("a full id").to_string(), good);
        }
        for bad in
            ["", "0123456", "HEAD", &sha1.to_uppercase(), &sha1[..39], &format!("{sha1}0"), &sha1.replace('0', "g")]
        {
            assert!(Oid::new(bad).is_err(), "{bad:?} is not a full object id");
        }
    }

    #[test]
    fn a_digest_is_the_sha256_of_its_input() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Fingerprint::of(b"").as_str(), empty);
    }
}
