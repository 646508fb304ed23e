//! Whether a token reaches a repository, remembered for ten minutes.

use std::collections::BTreeMap;

use lattice_model::host::{AccessReading, Slug};
use serde_json::Value;

use crate::ForgeError;
use crate::github::GitHub;
use crate::secret::{SecretStore, TokenKind};

/// How long a yes is believed.
const SECONDS: i64 = 600;

/// What is remembered, and where.
pub struct AccessCache<'a> {
    pub store: &'a SecretStore,
    pub host: &'a str,
    pub now: i64,
}

impl AccessCache<'_> {
    fn path(&self) -> std::path::PathBuf {
        self.store.note_path(&format!("access.{}.json", self.host.replace('/', "_")))
    }

    fn read(&self) -> BTreeMap<String, i64> {
        let text = std::fs::read(self.path()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn holds(&self, slug: &Slug) -> bool {
        let age = self.read().get(&slug.to_string()).map(|at| self.now - at);
        age.is_some_and(|age| (0..SECONDS).contains(&age))
    }

    /// Forgetting is harmless, so a failure to remember is too.
    fn remember(&self, slug: &Slug) {
        let mut known = self.read();
        known.retain(|_, at| (0..SECONDS).contains(&(self.now - *at)));
        known.insert(slug.to_string(), self.now);
        let text = serde_json::to_vec(&known).unwrap_or_default();
        let _ = self.store.write(&self.path(), &text);
    }
}

/// Asks whether the token may push to the repository, unless that was answered a moment ago.
pub async fn read(
    github: &GitHub,
    kind: TokenKind,
    app: &str,
    cache: &AccessCache<'_>,
) -> Result<AccessReading, ForgeError> {
    let slug = github.slug().clone();
    if cache.holds(&slug) {
        return Ok(AccessReading::Granted);
    }
    let reading = match kind {
        TokenKind::App if installed(github, &slug).await? => AccessReading::Granted,
        TokenKind::App => AccessReading::AppNotInstalled { slug: slug.clone(), app: app.to_owned() },
        TokenKind::Personal => match github.repository().await {
            Ok(found) if found["permissions"]["push"].as_bool() == Some(true) => AccessReading::Granted,
            Ok(_) | Err(ForgeError::Missing(_)) => AccessReading::ReadOnly { slug: slug.clone() },
            Err(error) => return Err(error),
        },
    };
    if reading == AccessReading::Granted {
        cache.remember(&slug);
    }
    Ok(reading)
}

/// Whether one of the user's installations of the App covers the repository.
async fn installed(github: &GitHub, slug: &Slug) -> Result<bool, ForgeError> {
    let name = slug.to_string();
    for installation in github.all("/user/installations?per_page=100", Some("installations")).await? {
        let Some(id) = installation["id"].as_u64() else { continue };
        let path = format!("/user/installations/{id}/repositories?per_page=100");
        let repositories = github.all(&path, Some("repositories")).await?;
        let is_it = |found: &Value| found["full_name"].as_str().is_some_and(|full| full.eq_ignore_ascii_case(&name));
        if repositories.iter().any(is_it) {
            return Ok(true);
        }
    }
    Ok(false)
}
