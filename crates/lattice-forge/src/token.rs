//! Tokens: where they come from, and how an expired one is refreshed exactly once.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::device_flow::{self, DeviceError};
use crate::secret::{SecretError, SecretStore, TokenBundle, TokenKind, Validity};

/// Gives a token for each request.
#[async_trait]
pub trait TokenProvider: Send + Sync {
    /// A valid bearer token; refreshes it first if need be, under the lock of its host.
    async fn bearer_token(&self) -> Result<String, AuthError>;

    /// Whether there is a token that is valid or can be refreshed. Never refreshes.
    fn is_authenticated(&self) -> bool;

    /// Gets another token after the host refused this one; by default there is none.
    async fn replace(&self, _refused: &str) -> Result<String, AuthError> {
        Err(AuthError::NotAuthenticated)
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("there is no token for this host")]
    NotAuthenticated,
    #[error("the token could not be refreshed: {0}")]
    RefreshFailed(String),
    #[error("another process holds the lock for refreshing the token")]
    LockContention,
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// Seconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A token that somebody else looks after: an environment variable, or `gh`.
pub struct FixedToken(pub String);

#[async_trait]
impl TokenProvider for FixedToken {
    async fn bearer_token(&self) -> Result<String, AuthError> {
        Ok(self.0.clone())
    }

    fn is_authenticated(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Looks after the stored tokens of one host.
pub struct AuthManager {
    pub store: SecretStore,
    pub host: String,
    /// Where tokens are refreshed.
    pub web_url: String,
    pub client_id: Option<String>,
    pub clock: Clock,
}

/// How long to wait for another process that refreshes, in growing steps: about ten seconds altogether.
const WAITS_MS: [u64; 10] = [20, 40, 80, 160, 320, 640, 1000, 1500, 2500, 4000];

#[async_trait]
impl TokenProvider for AuthManager {
    async fn bearer_token(&self) -> Result<String, AuthError> {
        let bundle = self.store.load(&self.host)?.ok_or(AuthError::NotAuthenticated)?;
        match bundle.validity((self.clock)()) {
            Validity::Valid => Ok(bundle.access_token),
            Validity::NeedsRefresh => self.refreshed(&bundle.access_token).await,
            Validity::Expired => {
                Err(AuthError::RefreshFailed("it has expired, and so has its refresh token".to_owned()))
            }
        }
    }

    fn is_authenticated(&self) -> bool {
        let bundle = self.store.load(&self.host).ok().flatten();
        bundle.is_some_and(|bundle| bundle.validity((self.clock)()) != Validity::Expired)
    }

    async fn replace(&self, refused: &str) -> Result<String, AuthError> {
        self.refreshed(refused).await
    }
}

impl AuthManager {
    /// A token in the place of `old`: whoever gets the lock first fetches it, the others find it.
    async fn refreshed(&self, old: &str) -> Result<String, AuthError> {
        let lock = self.lock().await?;
        // Another process may have been faster.
        let bundle = self.store.load(&self.host)?.ok_or(AuthError::NotAuthenticated)?;
        if bundle.access_token != old && bundle.validity((self.clock)()) == Validity::Valid {
            return Ok(bundle.access_token);
        }
        let failed = |reason: String| AuthError::RefreshFailed(reason);
        let refresh = bundle.refresh_token.as_deref().ok_or_else(|| failed("it has no refresh token".to_owned()))?;
        let client = self.client_id.as_deref().ok_or_else(|| failed("no client id is configured".to_owned()))?;
        let granted = device_flow::refresh(&self.web_url, client, refresh).await;
        let granted = granted.map_err(|error: DeviceError| failed(error.to_string()))?;
        let new = granted.bundle(TokenKind::App, bundle.user.clone(), (self.clock)());
        self.store.save(&self.host, &new)?;
        drop(lock);
        Ok(new.access_token)
    }

    /// The lock of the host, which the kernel drops when its holder dies.
    async fn lock(&self) -> Result<std::fs::File, AuthError> {
        let file = self.store.lock_file(&self.host)?;
        for wait in WAITS_MS {
            if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Ok(file);
            }
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        Err(AuthError::LockContention)
    }
}

impl TokenBundle {
    /// A token that the user gave.
    pub fn personal(token: &str, user: Option<String>) -> Self {
        Self {
            schema_version: 1,
            kind: TokenKind::Personal,
            user,
            access_token: token.to_owned(),
            expires_at: None,
            refresh_token: None,
            refresh_expires_at: None,
        }
    }
}

/// The header that authenticates Git over HTTP with a token.
pub fn git_header(token: &str) -> String {
    use base64::Engine as _;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{token}"));
    format!("Authorization: Basic {pair}")
}

/// The token that `gh` has for a host, if `gh` is there and has one.
#[expect(clippy::disallowed_methods, reason = "the one place where gh starts")]
pub fn from_gh(gh: &Path, host: &str, environment: &[(std::ffi::OsString, std::ffi::OsString)]) -> Option<String> {
    let mut command = Command::new(gh);
    command.args(["auth", "token", "--hostname", host]).env_clear().envs(environment.iter().cloned());
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let token = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !token.is_empty()).then_some(token)
}
