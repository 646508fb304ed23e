//! The device flow: the user types a code on a page, and this program asks until the host knows.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ForgeError;
use crate::github::transport::{Transport, Verb};
use crate::secret::{TokenBundle, TokenKind};

/// What the user has to do.
#[derive(Debug, Clone, Deserialize)]
pub struct DeviceCode {
    device_code: String,
    pub user_code: String,
    pub verification_uri: String,
    pub expires_in: u64,
    #[serde(default = "usual_interval")]
    interval: u64,
}

fn usual_interval() -> u64 {
    5
}

/// Tokens that the host granted.
#[derive(Clone, Deserialize)]
pub struct Granted {
    access_token: String,
    expires_in: Option<i64>,
    refresh_token: Option<String>,
    refresh_token_expires_in: Option<i64>,
}

/// Why the host granted nothing.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("the code has expired")]
    Expired,
    #[error("it was denied on the page")]
    Denied,
    #[error("the App does not allow this way of logging in")]
    Disabled,
    #[error("the host says `{0}`")]
    Refused(String),
    #[error(transparent)]
    Host(#[from] ForgeError),
}

impl Granted {
    pub fn bundle(&self, kind: TokenKind, user: Option<String>, now: i64) -> TokenBundle {
        TokenBundle {
            schema_version: 1,
            kind,
            user,
            access_token: self.access_token.clone(),
            expires_at: self.expires_in.map(|seconds| now + seconds),
            refresh_token: self.refresh_token.clone(),
            refresh_expires_at: self.refresh_token_expires_in.map(|seconds| now + seconds),
        }
    }

    pub fn token(&self) -> &str {
        &self.access_token
    }
}

/// Begins to log in.
pub async fn begin(web_url: &str, client_id: &str) -> Result<DeviceCode, DeviceError> {
    let answer = ask(web_url, "/login/device/code", &json!({ "client_id": client_id })).await?;
    read(answer)
}

/// Asks until the user has typed the code, the host says no, or the code is too old.
pub async fn finish(web_url: &str, client_id: &str, code: &DeviceCode) -> Result<Granted, DeviceError> {
    let body = json!({
        "client_id": client_id,
        "device_code": code.device_code,
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
    });
    let mut interval = code.interval;
    let mut waited = 0;
    while waited <= code.expires_in {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        waited += interval.max(1);
        match granted(ask(web_url, "/login/oauth/access_token", &body).await?) {
            Err(DeviceError::Refused(reason)) if reason == "authorization_pending" => {}
            Err(DeviceError::Refused(reason)) if reason == "slow_down" => interval += 5,
            end => return end,
        }
    }
    Err(DeviceError::Expired)
}

/// New tokens for a refresh token.
pub async fn refresh(web_url: &str, client_id: &str, refresh_token: &str) -> Result<Granted, DeviceError> {
    let body = json!({ "client_id": client_id, "grant_type": "refresh_token", "refresh_token": refresh_token });
    granted(ask(web_url, "/login/oauth/access_token", &body).await?)
}

async fn ask(web_url: &str, path: &str, body: &Value) -> Result<Value, ForgeError> {
    let transport = Transport::new(web_url)?;
    let answer = transport.send(Verb::Post, path, Some(body), &[]).await?;
    answer.json()
}

/// The host answers 200 also when it refuses.
fn granted(answer: Value) -> Result<Granted, DeviceError> {
    match answer.get("error").and_then(Value::as_str) {
        None => read(answer),
        Some("expired_token") => Err(DeviceError::Expired),
        Some("access_denied") => Err(DeviceError::Denied),
        Some("device_flow_disabled") => Err(DeviceError::Disabled),
        Some(other) => Err(DeviceError::Refused(other.to_owned())),
    }
}

fn read<T: for<'a> Deserialize<'a>>(answer: Value) -> Result<T, DeviceError> {
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        return match error {
            "device_flow_disabled" => Err(DeviceError::Disabled),
            other => Err(DeviceError::Refused(other.to_owned())),
        };
    }
    // What the host sent may hold a token; only the place of the mistake is told.
    serde_json::from_value(answer).map_err(|_| ForgeError::BadAnswer("a login without its fields".to_owned()).into())
}
