//! One request and its answer: size and time are bounded, and nothing is followed to another host.

use std::error::Error;
use std::io;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use http_body_util::BodyExt;
use octocrab::{OctoBody, Octocrab};
use serde_json::Value;

use crate::{ForgeError, NotReached};

/// Longer answers are refused.
const BODY_LIMIT: usize = 32 * 1024 * 1024;

/// How long an answer may take, unless the configuration says otherwise.
const TIMEOUT_S: u64 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Patch,
    Put,
    Delete,
}

impl Verb {
    fn method(self) -> http::Method {
        match self {
            Self::Get => http::Method::GET,
            Self::Post => http::Method::POST,
            Self::Patch => http::Method::PATCH,
            Self::Put => http::Method::PUT,
            Self::Delete => http::Method::DELETE,
        }
    }
}

/// What a host sent.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn json(&self) -> Result<Value, ForgeError> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        // The text itself is not shown: it may be a page of HTML, or hold a token.
        serde_json::from_slice(&self.body).map_err(|error| {
            ForgeError::BadAnswer(format!(
                "no JSON ({} bytes, line {}, column {})",
                self.body.len(),
                error.line(),
                error.column()
            ))
        })
    }
}

/// A way to one host.
pub(crate) struct Transport {
    crab: Octocrab,
    base: String,
    timeout: Duration,
}

impl Transport {
    /// For the host that `base` names.
    pub(crate) fn new(base: &str) -> Result<Self, ForgeError> {
        let unusable = |error: octocrab::Error| not_reached(&error);
        let base = base.trim_end_matches('/').to_owned();
        // It would put the path of its base before every other path; ours are whole already.
        let builder = Octocrab::builder().base_uri(origin(&base)).map_err(unusable)?;
        let limit = Some(Duration::from_secs(TIMEOUT_S));
        let crab = builder.set_connect_timeout(limit).set_read_timeout(limit).build().map_err(unusable)?;
        Ok(Self { crab, base, timeout: Duration::from_secs(TIMEOUT_S) })
    }

    pub(crate) fn with_timeout(mut self, timeout_ms: u64) -> Self {
        self.timeout = Duration::from_millis(timeout_ms);
        self
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Sends one request; `path` begins with a slash. Redirects are answers like any other.
    pub(crate) async fn send(
        &self,
        verb: Verb,
        path: &str,
        body: Option<&Value>,
        headers: &[(HeaderName, String)],
    ) -> Result<Answer, ForgeError> {
        let base = match path {
            super::client::GRAPHQL => self.base.strip_suffix("/v3").unwrap_or(&self.base),
            _ => &self.base,
        };
        let mut request = http::Request::builder().method(verb.method()).uri(format!("{base}{path}"));
        request = request.header(ACCEPT, "application/json").header(USER_AGENT, "lattice");
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| ForgeError::BadAnswer("a header that cannot be sent".to_owned()))?;
            value.set_sensitive(*name == AUTHORIZATION);
            request = request.header(name, value);
        }
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(text).map_err(|error| not_reached(&error))?;
        let exchange = self.exchange(request);
        let seconds = self.timeout.as_secs();
        tokio::time::timeout(self.timeout, exchange).await.map_err(|_| ForgeError::TimedOut { seconds })?
    }

    async fn exchange(&self, request: http::Request<String>) -> Result<Answer, ForgeError> {
        let lost = |error: octocrab::Error| not_reached(&error);
        let response = self.crab.send(request.map(OctoBody::from)).await.map_err(lost)?;
        let (parts, mut stream) = response.into_parts();
        let mut body = Vec::new();
        while let Some(frame) = stream.frame().await {
            let frame = frame.map_err(lost)?;
            if let Some(bytes) = frame.data_ref() {
                if body.len() + bytes.len() > BODY_LIMIT {
                    return Err(ForgeError::BadAnswer(format!("more than {BODY_LIMIT} bytes")));
                }
                body.extend_from_slice(bytes);
            }
        }
        let answer = Answer { status: parts.status.as_u16(), headers: parts.headers, body };
        if (300..400).contains(&answer.status) && answer.status != 304 {
            let to = answer.headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            return Err(ForgeError::Redirected(host_of(to)));
        }
        Ok(answer)
    }
}

/// Scheme and host of an address.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |at| &url[..host + at])
}

/// The part of an address that says where it leads.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(100).collect()
}

/// The innermost error says what happened; the outer ones only that something did.
fn not_reached(error: &(dyn Error + 'static)) -> ForgeError {
    let mut innermost = error;
    while let Some(inner) = inside(innermost) {
        innermost = inner;
    }
    let why = match innermost.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(_)) => NotReached::Certificate,
        Some(_) | None => NotReached::Connection,
    };
    ForgeError::Unreachable { detail: innermost.to_string(), why }
}

/// What an error is about. Errors of input and output pass over the one that they hold.
fn inside<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(held) => Some(held),
        None => error.source(),
    }
}
