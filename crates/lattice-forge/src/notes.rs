//! Repositories of which something was found out a while ago, so that it need not be asked again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lattice_model::host::Slug;

use crate::secret::SecretStore;

/// A file with the times at which something was found to be so.
pub struct Notes {
    store: SecretStore,
    path: PathBuf,
    now: i64,
    seconds: i64,
}

impl Notes {
    /// What is noted is believed for so many seconds.
    pub(crate) fn new(store: &SecretStore, name: &str, (now, seconds): (i64, i64)) -> Self {
        let path = store.note_path(&format!("{}.json", name.replace('/', "_")));
        Self { store: store.clone(), path, now, seconds }
    }

    pub fn holds(&self, slug: &Slug) -> bool {
        self.read().get(&slug.to_string()).is_some_and(|at| self.is_fresh(*at))
    }

    /// Forgetting is harmless, so a failure to remember is too.
    pub(crate) fn remember(&self, slug: &Slug) {
        let mut known = self.read();
        known.retain(|_, at| self.is_fresh(*at));
        known.insert(slug.to_string(), self.now);
        let text = serde_json::to_vec(&known).unwrap_or_default();
        let _ = self.store.write(&self.path, &text);
    }

    fn read(&self) -> BTreeMap<String, i64> {
        serde_json::from_slice(&std::fs::read(&self.path).unwrap_or_default()).unwrap_or_default()
    }

    fn is_fresh(&self, at: i64) -> bool {
        (0..self.seconds).contains(&(self.now - at))
    }
}
