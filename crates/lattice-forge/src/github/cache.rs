//! Answers with their tags, so that what has not changed is not sent again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::transport::Answer;
use crate::secret::SecretStore;

/// Larger answers are cheaper to fetch again.
const SIZE_LIMIT: usize = 1024 * 1024;

/// A folder of answers.
pub struct Cache {
    pub store: SecretStore,
    pub host: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) etag: String,
    path: String,
    #[serde(with = "text")]
    pub(crate) body: Vec<u8>,
}

impl Cache {
    fn file(&self, path: &str) -> PathBuf {
        let digest = Sha256::digest(format!("{}{path}", self.host).as_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.store.note_path(&format!("cache.{name}.json"))
    }

    pub(crate) fn load(&self, path: &str) -> Option<Known> {
        let known: Known = serde_json::from_slice(&std::fs::read(self.file(path)).ok()?).ok()?;
        (known.path == path).then_some(known)
    }

    /// Pages of lists are left out: their tags do not cover where the next page is.
    pub(crate) fn save(&self, path: &str, answer: &Answer) {
        let Some(etag) = answer.header("etag") else { return };
        if answer.status != 200 || answer.body.len() > SIZE_LIMIT || answer.header("link").is_some() {
            return;
        }
        let known = Known { etag: etag.to_owned(), path: path.to_owned(), body: answer.body.clone() };
        let _ = self.store.write(&self.file(path), &serde_json::to_vec(&known).unwrap_or_default());
    }
}

mod text {
    //! Bodies are JSON, and so are the files.

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(body))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(deserializer).map(String::into_bytes)
    }
}
