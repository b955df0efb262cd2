//! One request to a provider, one bounded answer, and nothing secret in a log or an error.

use std::{error::Error as _, net::IpAddr, time::Duration};

use backend::{
    BackendError, Bounds, Clock, ErrorKind,
    provider::{Key, Pace},
};
use lifecycle::Time;
use reqwest::{
    Client, Method, StatusCode, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;

use crate::headers;

/// How long a question that changes nothing may take.
pub(crate) const ASK: Duration = Duration::from_secs(30);

/// What is waited before a question whose answer was lost is asked once more.
const AGAIN: Duration = Duration::from_millis(250);

/// The most bytes of an answer that is about one thing, or a refusal.
const MAX_WORD: usize = 1 << 20;
/// The most bytes of a page: 200 sandboxes have some 400 kB.
const MAX_PAGE: usize = 16 << 20;
/// The most of a provider's own words that is passed on to people, in characters.
const MAX_MESSAGE: usize = 300;

/// The most that a provider's clock may be off ours. Beyond it none of its times can be held to a limit.
const MAX_SKEW: Duration = Duration::from_secs(30);

/// How a request shows that it is ours.
pub(crate) struct Credential {
    /// `authorization`, `x-api-key`.
    pub(crate) header: HeaderName,
    /// What stands before the key: `Bearer `.
    pub(crate) scheme: &'static str,
    pub(crate) key: Key,
}

/// A provider's API.
pub(crate) struct Api {
    /// Its name, for people.
    who: &'static str,
    client: Client,
    base: Url,
    credential: Credential,
    clock: Clock,
    pace: Pace,
}

/// What the provider answered with a 2xx.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Why a call has no answer that can be used.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It never reached the provider, so it did nothing.
    NotAsked(BackendError),
    /// It was sent, and no answer came: it may have done all of it.
    NoAnswer(String),
    /// The provider answered that it could not, or would not.
    Said {
        status: StatusCode,
        /// Its words, shortened.
        message: String,
        /// How long it asks to be left alone, where it does.
        wait: Option<Duration>,
    },
    /// The provider answered what can't be read.
    Unreadable(String),
}

impl Failure {
    pub(crate) fn is(&self, wanted: StatusCode) -> bool {
        matches!(self, Self::Said { status, .. } if *status == wanted)
    }

    /// What was answered, for people.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::NotAsked(error) => error.message.clone(),
            Self::NoAnswer(message) | Self::Unreadable(message) | Self::Said { message, .. } => message.clone(),
        }
    }
}

impl From<Failure> for BackendError {
    /// For a question that changes nothing: whatever failed, it can be asked again.
    fn from(failure: Failure) -> Self {
        let message = failure.words();
        let kind = match failure {
            Failure::NotAsked(error) => return error,
            Failure::NoAnswer(_) => ErrorKind::Unreachable,
            Failure::Said { wait: Some(retry_after), .. } => ErrorKind::Throttled { retry_after },
            Failure::Said { status, .. } if matches!(status.as_u16(), 401 | 403) => ErrorKind::Denied,
            Failure::Said { status, .. } if status.is_server_error() => ErrorKind::Unreachable,
            Failure::Said { .. } | Failure::Unreadable(_) => ErrorKind::Malformed,
        };
        Self::new(kind, message)
    }
}

/// One request.
pub(crate) struct Call {
    method: Method,
    url: Url,
    body: Option<Value>,
    limit: usize,
}

impl Api {
    /// `url`: `https://`, or `http://` to this machine alone, so that the key goes nowhere in the open.
    pub(crate) fn new(
        who: &'static str,
        url: &str,
        credential: Credential,
        clock: Clock,
        pace: Pace,
    ) -> Result<Self, BackendError> {
        let base = address(url)?;
        if HeaderValue::from_str(credential.key.reveal()).is_err() || credential.key.reveal().is_empty() {
            let why = format!("the key of {who} is empty or has characters that no header can have");
            return Err(BackendError::new(ErrorKind::Denied, why));
        }
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .user_agent("furlough")
            .build()
            .map_err(|error| BackendError::new(ErrorKind::Local, format!("no HTTP client: {error}")))?;
        Ok(Self { who, client, base, credential, clock, pace })
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// What is left until the deadline, when that is at least `needed`.
    pub(crate) fn time_for(&self, what: &str, needed: Duration, bounds: Bounds) -> Result<Duration, BackendError> {
        let left = bounds.left(self.now())?;
        if left < needed {
            let (needed, left) = (needed.as_secs(), left.as_secs());
            let why = format!("{what} can take {needed} s and {left} s are left before the deadline: not begun");
            return Err(BackendError::new(ErrorKind::Unreachable, why));
        }
        Ok(left)
    }

    /// A request below the base, each part encoded: an id is one part, whatever it has in it.
    pub(crate) fn call(&self, method: Method, parts: &[&str]) -> Call {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        Call { method, url, body: None, limit: MAX_WORD }
    }

    /// Asks a question. One whose answer was lost is asked once more: it changes nothing.
    pub(crate) async fn ask(&self, call: Call, within: Duration) -> Result<Answer, Failure> {
        let until = self.now().plus(within);
        let lost = |failure: &Failure| match failure {
            Failure::NoAnswer(_) => true,
            Failure::Said { status, wait, .. } => wait.is_none() && matches!(status.as_u16(), 502..=504),
            Failure::NotAsked(_) | Failure::Unreadable(_) => false,
        };
        let answer = match self.send(&call, within / 2).await {
            Err(failure) if lost(&failure) => {
                tokio::time::sleep(AGAIN).await;
                self.send(&call, until.since(self.now()).min(within / 2)).await?
            }
            answer => answer?,
        };
        self.in_time(&call, answer)
    }

    /// Asks for a change, once: what a lost one did is for the next look to find out.
    pub(crate) async fn act(&self, call: Call, within: Duration) -> Result<Answer, Failure> {
        self.send(&call, within).await
    }

    async fn send(&self, call: &Call, within: Duration) -> Result<Answer, Failure> {
        let place = self.place(call);
        if tokio::time::timeout(within, self.pace.turn()).await.is_err() {
            let why = format!("{place} was not asked: its turn at the configured rate did not come in time");
            return Err(Failure::NotAsked(BackendError::new(ErrorKind::Unreachable, why)));
        }
        let mut request = self.client.request(call.method.clone(), call.url.clone()).timeout(within);
        request = match &call.body {
            Some(body) => request.json(body),
            // Some servers refuse a POST that does not say its length.
            None if call.method == Method::POST => request.header("content-length", "0"),
            None => request,
        };
        request = request.header(self.credential.header.clone(), self.secret()?);
        let mut response = request.send().await.map_err(|error| unanswered(&place, &error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let limit = if status.is_success() { call.limit } else { MAX_WORD };
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unanswered(&place, &error))? {
            if body.len() + chunk.len() > limit {
                return Err(Failure::Unreadable(format!(
                    "{place} has more than {limit} bytes: no more of it was read"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            Ok(Answer { status, headers, body })
        } else {
            Err(self.said(call, status, &headers, &body))
        }
    }

    fn secret(&self) -> Result<HeaderValue, Failure> {
        let Credential { scheme, key, .. } = &self.credential;
        let unfit = |_| Failure::NotAsked(BackendError::new(ErrorKind::Denied, "the key is not fit for a header"));
        let mut value = HeaderValue::from_str(&format!("{scheme}{}", key.reveal())).map_err(unfit)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Times in an answer mean what they say only while its clock and ours agree.
    fn in_time(&self, call: &Call, answer: Answer) -> Result<Answer, Failure> {
        let now = self.now();
        let place = self.place(call);
        let Some(theirs) = headers::date(&answer.headers) else {
            return Err(Failure::Unreadable(format!(
                "{place} has no `Date`: its times can't be held to a clock, so none of it is used"
            )));
        };
        let off = theirs.since(now).max(now.since(theirs));
        if off > MAX_SKEW {
            let (off, most) = (off.as_secs(), MAX_SKEW.as_secs());
            return Err(Failure::Unreadable(format!(
                "the clock of {place} is {off} s off this machine's, and at most {most} s are allowed: none of it is used"
            )));
        }
        Ok(answer)
    }

    fn said(&self, call: &Call, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        let wait = headers::wait(status, headers, self.now());
        let (place, code) = (self.place(call), status.as_u16());
        let words = self.words(body).unwrap_or_else(|| format!("{} bytes that are not {}", body.len(), self.whose()));
        Failure::Said { status, message: format!("{place} is {code}: {words}"), wait }
    }

    /// The provider's own words of a refusal: on one line, shortened, and without the key, should it be in them.
    fn words(&self, body: &[u8]) -> Option<String> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let plain = ["message", "error", "detail"].iter().find_map(|field| body.get(field)?.as_str());
        let said = plain.or_else(|| body["errors"][0]["message"].as_str())?;
        let line: String =
            said.split_whitespace().collect::<Vec<_>>().join(" ").replace(self.credential.key.reveal(), "…");
        let line: String = line.chars().filter(|char| !char.is_control()).collect();
        Some(match line.char_indices().nth(MAX_MESSAGE) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        })
    }

    /// An answer's body as JSON. What it has is told by its size alone: it may be anything.
    pub(crate) fn json(&self, answer: &Answer) -> Result<Value, Failure> {
        serde_json::from_slice(&answer.body).map_err(|error| {
            Failure::Unreadable(format!(
                "what {} answered with {} is not JSON (line {}, column {}, {} bytes)",
                self.who,
                answer.status.as_u16(),
                error.line(),
                error.column(),
                answer.body.len(),
            ))
        })
    }

    /// A call for people: no query, no host that holds a name.
    fn place(&self, call: &Call) -> String {
        format!("{} answer to `{} {}`", self.whose(), call.method, call.url.path())
    }

    fn whose(&self) -> String {
        format!("{}{}", self.who, if self.who.ends_with('s') { "'" } else { "'s" })
    }
}

impl Call {
    /// With these in its query.
    pub(crate) fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        self.url.query_pairs_mut().extend_pairs(pairs);
        self
    }

    /// With this body.
    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Its answer is a page.
    pub(crate) fn page(mut self) -> Self {
        self.limit = MAX_PAGE;
        self
    }
}

fn address(url: &str) -> Result<Url, BackendError> {
    let wrong = |why: &str| BackendError::new(ErrorKind::Denied, format!("`url` {why}"));
    let base = Url::parse(url).map_err(|error| wrong(&format!("is no address: {error}")))?;
    let here = match base.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        None => return Err(wrong("has no host")),
    };
    if base.scheme() != "https" && !(base.scheme() == "http" && here) {
        return Err(wrong("must be `https://`: the key would travel in the open; `http://` is for this machine alone"));
    }
    if !base.username().is_empty() || base.password().is_some() || base.query().is_some() || base.fragment().is_some() {
        return Err(wrong("has a user, a query or a fragment; give the host and the path alone"));
    }
    Ok(base)
}

fn unanswered(place: &str, error: &reqwest::Error) -> Failure {
    if error.is_timeout() && !error.is_connect() {
        return Failure::NoAnswer(format!("{place} did not come in time"));
    }
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    let why = cause.map_or_else(|| "the connection failed".to_owned(), ToString::to_string);
    let message = format!("{place} did not come: {why}");
    if error.is_connect() || error.is_builder() {
        return Failure::NotAsked(BackendError::new(ErrorKind::Unreachable, message));
    }
    Failure::NoAnswer(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_over_tls_or_stays_on_this_machine() {
        for good in ["https://app.daytona.io/api", "http://127.0.0.1:80/api", "http://localhost:1", "http://[::1]:1/"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://example.com",
            "http://127.0.0.1.example.com",
            "ftp://localhost",
            "https://u:p@h/",
            "https://h/?q=1",
            "https://h/#f",
            "nonsense",
            "file:///etc",
            "",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
