//! Authenticated requests to GitHub: tokens, limits, pages, and errors with their meaning.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderName, IF_NONE_MATCH};
use serde_json::{Value, json};

use super::Connection;
use super::cache::Cache;
use super::transport::{Answer, Transport, Verb};
use crate::ForgeError;
use crate::notes::Notes;
use crate::token::{Clock, TokenProvider};

/// Longest wait for a rate limit that is sat out; a longer one is reported instead.
const WAIT_LIMIT_S: u64 = 60;

/// How often one request is tried again after a wait.
const ATTEMPTS: usize = 4;

/// More pages than this are not read: whoever says that there is one more must end at some time.
const PAGE_LIMIT: usize = 100;

/// The one path that Enterprise has beside its API and not below it.
pub(super) const GRAPHQL: &str = "/graphql";

/// Ends the path that lands pull requests of a stack.
pub(super) const MERGE_ASYNC: &str = "/merge-async";

/// Hears of waits, so that people can see them.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Client {
    transport: Transport,
    tokens: Arc<dyn TokenProvider>,
    cache: Option<Cache>,
    notice: Notice,
    clock: Clock,
}

impl Client {
    pub(crate) fn new(transport: Transport, connection: Connection) -> Self {
        let Connection { tokens, cache, notice, clock, .. } = connection;
        Self { transport, tokens, cache, notice, clock }
    }

    /// Reads; an answer that has not changed since it was last read is not sent again.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, ForgeError> {
        self.read(path).await?.json()
    }

    /// Changes something. Never tried again where it may have been done already.
    pub(crate) async fn send(&self, verb: Verb, path: &str, body: &Value) -> Result<Value, ForgeError> {
        self.request(verb, path, Some(body).filter(|body| !body.is_null()), &[]).await?.json()
    }

    /// What was found out about repositories of this host, with how long that is believed.
    pub(crate) fn notes(&self, name: &str, seconds: i64) -> Option<Notes> {
        let cache = self.cache.as_ref()?;
        Some(Notes::new(&cache.store, &format!("{name}.{}", cache.host), ((self.clock)(), seconds)))
    }

    /// Every page of a list; `field` is where the items are if the answer is no list itself.
    pub(crate) async fn all(&self, path: &str, field: Option<&str>) -> Result<Vec<Value>, ForgeError> {
        let mut items = Vec::new();
        let mut next = Some(path.to_owned());
        for _ in 0..PAGE_LIMIT {
            let Some(path) = next else { return Ok(items) };
            let answer = self.read(&path).await?;
            let mut page = answer.json()?;
            let page = match field {
                Some(field) => page[field].take(),
                None => page,
            };
            let Value::Array(page) = page else { return Err(ForgeError::BadAnswer("no list".to_owned())) };
            items.extend(page);
            next = self.next_page(&answer)?;
        }
        (self.notice)(&format!("only the first {PAGE_LIMIT} pages of a list were read"));
        Ok(items)
    }

    pub(crate) async fn graphql(&self, query: &str, variables: Value) -> Result<Value, ForgeError> {
        let body = json!({ "query": query, "variables": variables });
        let mut answer = self.request(Verb::Post, GRAPHQL, Some(&body), &[]).await?.json()?;
        if let Some(error) = answer["errors"].as_array().into_iter().flatten().find(|error| !is_bearable(error)) {
            let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
            return Err(match error["type"].as_str() {
                Some("NOT_FOUND") => ForgeError::Missing(message),
                Some("FORBIDDEN") => ForgeError::Forbidden(message),
                Some(_) | None => ForgeError::Unprocessable(message),
            });
        }
        Ok(answer["data"].take())
    }

    async fn read(&self, path: &str) -> Result<Answer, ForgeError> {
        let known = self.cache.as_ref().and_then(|cache| cache.load(path));
        let headers: Vec<_> = known.iter().map(|known| (IF_NONE_MATCH, known.etag.clone())).collect();
        let mut answer = self.request(Verb::Get, path, None, &headers).await?;
        match (answer.status, known, &self.cache) {
            (304, Some(known), _) => answer.body = known.body,
            (304, None, _) => return Err(ForgeError::BadAnswer("`not modified` without a question".to_owned())),
            (_, _, Some(cache)) => cache.save(path, &answer),
            (_, _, None) => {}
        }
        Ok(answer)
    }

    async fn request(
        &self,
        verb: Verb,
        path: &str,
        body: Option<&Value>,
        headers: &[(HeaderName, String)],
    ) -> Result<Answer, ForgeError> {
        let mut token = self.tokens.bearer_token().await?;
        let mut replaced = false;
        for attempt in 1..=ATTEMPTS {
            let mut headers = headers.to_vec();
            headers.push((AUTHORIZATION, format!("Bearer {token}")));
            let answer = self.transport.send(verb, path, body, &headers).await?;
            match judge(&answer, path, (self.clock)()) {
                Ok(()) => return Ok(answer),
                Err(ForgeError::Unauthorized) if !replaced => {
                    replaced = true;
                    token = self.tokens.replace(&token).await.map_err(|_| ForgeError::Unauthorized)?;
                }
                Err(ForgeError::RateLimited { seconds }) if seconds <= WAIT_LIMIT_S && attempt < ATTEMPTS => {
                    (self.notice)(&format!("GitHub asks to wait {seconds} s; waiting"));
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                }
                Err(ForgeError::Server(_)) if verb == Verb::Get && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(ForgeError::Server(503))
    }

    /// Where the next page is. A page on another host is none of ours.
    fn next_page(&self, answer: &Answer) -> Result<Option<String>, ForgeError> {
        let Some(links) = answer.header("link") else { return Ok(None) };
        let next = links.split(',').find(|link| link.contains("rel=\"next\""));
        let url = next.and_then(|link| link.split_once('<')?.1.split_once('>')).map(|(url, _)| url);
        let Some(url) = url else { return Ok(None) };
        match url.strip_prefix(self.transport.base()) {
            Some(path) if path.starts_with('/') => Ok(Some(path.to_owned())),
            Some(_) | None => Err(ForgeError::BadAnswer("a next page on another host".to_owned())),
        }
    }
}

/// A token may be forbidden to see checks: then they are not known, and the rest of the answer stands.
fn is_bearable(error: &Value) -> bool {
    error["path"].as_array().is_some_and(|path| path.iter().any(|step| step == super::read::ROLLUP))
}

/// What a status means.
fn judge(answer: &Answer, path: &str, now: i64) -> Result<(), ForgeError> {
    let said = || {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let details = body["errors"].as_array().into_iter().flatten();
        let details: Vec<_> = details.filter_map(|detail| detail["message"].as_str()).collect();
        let message = body["message"].as_str().unwrap_or("no reason given");
        let message =
            if details.is_empty() { message.to_owned() } else { format!("{message}: {}", details.join("; ")) };
        message.chars().take(500).collect::<String>()
    };
    match answer.status {
        200..=299 | 304 => Ok(()),
        // There these say how far landing has come.
        400 | 409 if path.ends_with(MERGE_ASYNC) => Ok(()),
        401 => Err(ForgeError::Unauthorized),
        403 | 429 => match wait(answer, now) {
            Some(seconds) => Err(ForgeError::RateLimited { seconds }),
            None => Err(ForgeError::Forbidden(said())),
        },
        404 | 410 => Err(ForgeError::Missing(path.split('?').next().unwrap_or(path).to_owned())),
        409 | 405 => Err(ForgeError::Conflict(said())),
        422 => Err(ForgeError::Unprocessable(said())),
        status => Err(ForgeError::Server(status)),
    }
}

/// How long a limit says to wait: for too many requests at once, or for too many in this hour.
fn wait(answer: &Answer, now: i64) -> Option<u64> {
    let number = |name: &str| answer.header(name).and_then(|value| value.parse::<u64>().ok());
    if let Some(seconds) = number("retry-after") {
        return Some(seconds);
    }
    if number("x-ratelimit-remaining") == Some(0) {
        let reset = number("x-ratelimit-reset").and_then(|at| i64::try_from(at).ok());
        return reset.map(|at| u64::try_from(at - now).unwrap_or(1));
    }
    (answer.status == 429).then_some(WAIT_LIMIT_S)
}
