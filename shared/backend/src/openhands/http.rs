//! Bounded requests to one agent server.

use std::{fmt::Display, time::Duration};

use reqwest::{Method, RequestBuilder, StatusCode, Url, header};

use super::AgentServer;
use crate::{BackendError, Bounds, Clock, ErrorKind};

/// One request takes at most this long, and never longer than the call's bounds.
const TIMEOUT: Duration = Duration::from_secs(6);
/// An answer has at most so many bytes.
const MAX_BODY: usize = 4 << 20;
/// A throttled server is left alone at least this long, and at most an hour.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// A client for agent servers.
#[derive(Debug, Clone)]
pub(super) struct Http {
    client: reqwest::Client,
    clock: Clock,
}

/// An answer that the caller has a meaning for.
#[derive(Debug)]
pub(super) enum Reply {
    /// 2xx.
    Body(Vec<u8>),
    /// 404.
    NotFound,
    /// 503.
    Unavailable,
    /// 2xx, with more than [`MAX_BODY`].
    TooLarge,
}

impl Reply {
    /// The error of an answer that means nothing here.
    pub(super) fn refused(&self, path: &str) -> BackendError {
        let (kind, what) = match self {
            Self::NotFound => {
                (ErrorKind::Malformed, "has no such route (404): it is no agent server, or another version")
            }
            Self::Unavailable => (ErrorKind::Unreachable, "is not ready (503)"),
            Self::Body(_) => (ErrorKind::Malformed, "answered what was not asked for"),
            Self::TooLarge => {
                let message = format!("the agent server's answer to `/{path}` has more than {MAX_BODY} bytes");
                return BackendError::new(ErrorKind::Malformed, message);
            }
        };
        BackendError::new(kind, format!("the agent server at `/{path}` {what}"))
    }
}

impl Http {
    pub(super) fn new(clock: Clock) -> Result<Self, BackendError> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("furlough")
            .build()
            .map_err(|error| BackendError::new(ErrorKind::Local, format!("no HTTP client could be made: {error}")))?;
        Ok(Self { client, clock })
    }

    pub(super) async fn get(
        &self,
        server: &AgentServer,
        path: &str,
        query: &[(&str, &str)],
        bounds: Bounds,
    ) -> Result<Reply, BackendError> {
        let mut url = address(server, path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.send(self.client.request(Method::GET, url), server, path, bounds).await
    }

    pub(super) async fn post(&self, server: &AgentServer, path: &str, bounds: Bounds) -> Result<Reply, BackendError> {
        self.send(self.client.request(Method::POST, address(server, path)), server, path, bounds).await
    }

    async fn send(
        &self,
        request: RequestBuilder,
        server: &AgentServer,
        path: &str,
        bounds: Bounds,
    ) -> Result<Reply, BackendError> {
        let mut request = request.timeout(bounds.left(self.clock.now())?.min(TIMEOUT));
        if let Some(key) = &server.key {
            let unfit = |_| BackendError::new(ErrorKind::Local, "the session key is not fit for a header");
            let mut value = header::HeaderValue::from_str(&key.0).map_err(unfit)?;
            value.set_sensitive(true);
            request = request.header("X-Session-API-Key", value);
        }
        let response = request.send().await.map_err(|error| no_answer(path, error))?;
        match response.status() {
            status if status.is_success() => body(response, path).await,
            StatusCode::NOT_FOUND => Ok(Reply::NotFound),
            StatusCode::SERVICE_UNAVAILABLE => Ok(Reply::Unavailable),
            status => Err(unexpected(path, status, response.headers())),
        }
    }
}

/// The base's own path, then `path`.
fn address(server: &AgentServer, path: &str) -> Url {
    let mut url = server.base.clone();
    url.set_path(&format!("{}/{path}", server.base.path().trim_end_matches('/')));
    url
}

async fn body(mut response: reqwest::Response, path: &str) -> Result<Reply, BackendError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(path, error))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Ok(Reply::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Reply::Body(body))
}

fn no_answer(path: &str, error: reqwest::Error) -> BackendError {
    let why: &dyn Display = if error.is_timeout() { &"it took too long" } else { &error.without_url() };
    BackendError::new(ErrorKind::Unreachable, format!("the agent server did not answer `/{path}`: {why}"))
}

fn unexpected(path: &str, status: StatusCode, headers: &header::HeaderMap) -> BackendError {
    let (kind, what) = match status.as_u16() {
        401 | 403 => (ErrorKind::Denied, "refused the session key"),
        429 => (ErrorKind::Throttled { retry_after: retry_after(headers) }, "asks for fewer requests"),
        300..=399 => (ErrorKind::Malformed, "redirects, which is not followed"),
        500..=599 => (ErrorKind::Unreachable, "failed"),
        _ => (ErrorKind::Malformed, "answered with an unexpected status"),
    };
    BackendError::new(kind, format!("the agent server {what} at `/{path}` ({})", status.as_u16()))
}

fn retry_after(headers: &header::HeaderMap) -> Duration {
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map_or(RETRY_AFTER, Duration::from_secs).clamp(RETRY_AFTER, Duration::from_hours(1))
}
