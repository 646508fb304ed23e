//! Whether a token reaches a repository, remembered for ten minutes.

use lattice_model::host::{AccessReading, Slug};
use serde_json::Value;

use crate::ForgeError;
use crate::github::GitHub;
use crate::notes::Notes;
use crate::secret::{SecretStore, TokenKind};

/// How long a yes is believed.
const SECONDS: i64 = 600;

/// What is remembered of a host.
pub fn notes(store: &SecretStore, host: &str, now: i64) -> Notes {
    Notes::new(store, &format!("access.{host}"), (now, SECONDS))
}

/// Asks whether the token may push to the repository, unless that was answered a moment ago.
pub async fn read(github: &GitHub, kind: TokenKind, app: &str, known: &Notes) -> Result<AccessReading, ForgeError> {
    let slug = github.slug().clone();
    if known.holds(&slug) {
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
        known.remember(&slug);
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
