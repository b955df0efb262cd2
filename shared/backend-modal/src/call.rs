//! One request to Modal, within its time: who asks, which try it is, and what a refusal means.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use backend::{
    BackendError, Bounds, Clock, ErrorKind,
    provider::{Key, Pace},
};
use lifecycle::Time;
use prost::Message;
use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, ClientTlsConfig, Endpoint, Uri},
};

use crate::proto::{AuthTokenGetRequest, RpcRetryPolicy, RpcStatus, modal_client_client::ModalClientClient};

/// How long a question that changes nothing may take.
pub(crate) const ASK: Duration = Duration::from_secs(30);
/// How often something is asked again.
const TRIES: u32 = 4;
/// What is waited before the first of those; each next waits twice as long.
const AGAIN: Duration = Duration::from_millis(100);
/// The shortest and the longest wait: a provider can't make us hammer it, nor switch us off.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(1);
/// How long a token of the second generation's calls is used: what it says of itself is not ours to read.
const TOKEN_FOR: Duration = Duration::from_mins(5);
/// How long asking for one may take.
const TOKEN_WITHIN: Duration = Duration::from_secs(5);
/// The most bytes of an answer: a page of some thousands of sandboxes.
const MAX_ANSWER: usize = 16 << 20;
/// The most of Modal's own words that is passed on to people, in characters.
const MAX_MESSAGE: usize = 300;

pub(crate) type Client = ModalClientClient<Channel>;

/// Modal's API.
pub(crate) struct Api {
    client: Client,
    host: MetadataValue<Ascii>,
    token: [MetadataValue<Ascii>; 2],
    secrets: (Key, Key),
    pace: Pace,
    clock: Clock,
    /// What the second generation's calls are shown, and until when.
    session: Mutex<Option<(MetadataValue<Ascii>, Time)>>,
    asked: AtomicU64,
}

/// Whether the same may be asked again when no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Yes,
    No,
}

/// Why a call has no answer that can be used.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It never reached Modal, so it did nothing.
    NotAsked(BackendError),
    /// It was sent, and no answer came: it may have done all of it.
    NoAnswer(String),
    /// Modal answered that it could not, or would not.
    Said { code: Code, message: String, wait: Option<Duration> },
    /// Modal answered what can't be read.
    Unreadable(String),
}

impl Failure {
    pub(crate) fn is(&self, wanted: Code) -> bool {
        matches!(self, Self::Said { code, .. } if *code == wanted)
    }

    /// What was answered, for people.
    pub(crate) fn words(self) -> String {
        match self {
            Self::NotAsked(error) => error.message,
            Self::NoAnswer(message) | Self::Unreadable(message) | Self::Said { message, .. } => message,
        }
    }
}

impl From<Failure> for BackendError {
    /// For a question that changes nothing: whatever failed, it can be asked again.
    fn from(failure: Failure) -> Self {
        let kind = match &failure {
            Failure::NotAsked(error) => return error.clone(),
            Failure::NoAnswer(_) => ErrorKind::Unreachable,
            Failure::Said { wait: Some(retry_after), .. } => ErrorKind::Throttled { retry_after: *retry_after },
            Failure::Said { code: Code::Unauthenticated | Code::PermissionDenied, .. } => ErrorKind::Denied,
            Failure::Said { code, .. } if is_lost(*code) => ErrorKind::Unreachable,
            Failure::Said { .. } | Failure::Unreadable(_) => ErrorKind::Malformed,
        };
        Self::new(kind, failure.words())
    }
}

impl Api {
    /// `url`: `https://`, or `http://` to this machine alone, so that the token goes nowhere in the open.
    pub(crate) fn new(url: &str, secrets: (Key, Key), clock: Clock, pace: Pace) -> Result<Self, BackendError> {
        let wrong = |why: String| BackendError::new(ErrorKind::Denied, why);
        let uri: Uri = url.parse().map_err(|error| wrong(format!("`url` is no address: {error}")))?;
        let host = uri.host().ok_or_else(|| wrong("`url` has no host".to_owned()))?.to_owned();
        let here = host == "localhost"
            || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if here => false,
            _ => {
                let why =
                    "`url` must be `https://`: the token would travel in the open; `http://` is for this machine alone";
                return Err(wrong(why.to_owned()));
            }
        };
        let mut endpoint = Endpoint::from(uri).connect_timeout(Duration::from_secs(10));
        if tls {
            let config = ClientTlsConfig::new().with_native_roots();
            endpoint = endpoint.tls_config(config).map_err(|error| wrong(format!("no TLS: {error}")))?;
        }
        let header = |what: &str, text: &str| {
            let unfit = || wrong(format!("{what} of Modal is empty or has characters that no header can have"));
            let mut value: MetadataValue<Ascii> = text.parse().map_err(|_| unfit())?;
            value.set_sensitive(true);
            if text.is_empty() { Err(unfit()) } else { Ok(value) }
        };
        let token = [header("the token's id", secrets.0.reveal())?, header("the token's secret", secrets.1.reveal())?];
        let client = Client::new(endpoint.connect_lazy()).max_decoding_message_size(MAX_ANSWER);
        let (session, asked) = (Mutex::default(), AtomicU64::new(0));
        Ok(Self { client, host: header("the host", &host)?, token, secrets, pace, clock, session, asked })
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

    /// Asks with a call that needs no token of a session.
    pub(crate) async fn ask<Q, A>(
        &self,
        (name, again): (&str, Again),
        question: Q,
        within: Duration,
        send: impl AsyncFn(Client, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Failure>
    where
        Q: Clone,
    {
        self.sent((name, again), None, question, within, send).await
    }

    /// Asks with a call of the second generation.
    pub(crate) async fn ask_v2<Q, A>(
        &self,
        call: (&str, Again),
        question: Q,
        within: Duration,
        send: impl AsyncFn(Client, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Failure>
    where
        Q: Clone,
    {
        let session = self.session().await?;
        let answer = self.sent(call, Some(session), question, within, send).await;
        if matches!(&answer, Err(failure) if failure.is(Code::Unauthenticated)) {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        answer
    }

    async fn session(&self) -> Result<MetadataValue<Ascii>, Failure> {
        let now = self.now();
        let held = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((token, _)) = held.filter(|(_, until)| now < *until) {
            return Ok(token);
        }
        let asked = self
            .ask(("AuthTokenGet", Again::Yes), AuthTokenGetRequest {}, TOKEN_WITHIN, async |mut client, question| {
                client.auth_token_get(question).await
            })
            .await?;
        let unfit =
            |_| Failure::Unreadable("Modal's answer to `AuthTokenGet` has no token that a header can have".to_owned());
        let mut token: MetadataValue<Ascii> = asked.token.parse().map_err(unfit)?;
        token.set_sensitive(true);
        let until = now.plus(TOKEN_FOR);
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some((token.clone(), until));
        Ok(token)
    }

    async fn sent<Q, A>(
        &self,
        (name, again): (&str, Again),
        session: Option<MetadataValue<Ascii>>,
        question: Q,
        within: Duration,
        send: impl AsyncFn(Client, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Failure>
    where
        Q: Clone,
    {
        let until = instant() + within;
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let key = format!("furlough-{}-{number}", self.now().millis());
        let tries = if again == Again::Yes { TRIES } else { 1 };
        let mut last = None;
        for attempt in 0..tries {
            if attempt > 0 {
                tokio::time::sleep_until((instant() + AGAIN * (1 << (attempt - 1))).min(until)).await;
            }
            if tokio::time::timeout_at(until, self.pace.turn()).await.is_err() {
                let why =
                    format!("Modal's `{name}` was not asked: its turn at the configured rate did not come in time");
                return Err(last.unwrap_or(Failure::NotAsked(BackendError::new(ErrorKind::Unreachable, why))));
            }
            let left = until.saturating_duration_since(instant());
            let request = self.request(question.clone(), &key, attempt, session.clone(), left);
            match tokio::time::timeout_at(until, send(self.client.clone(), request)).await {
                Ok(Ok(answer)) => return Ok(answer.into_inner()),
                Ok(Err(status)) => {
                    let failure = self.failure(name, &status);
                    let vanished = matches!(&failure, Failure::Said { code, wait: None, .. } if is_lost(*code));
                    if !vanished && !matches!(failure, Failure::NoAnswer(_) | Failure::NotAsked(_)) {
                        return Err(failure);
                    }
                    last = Some(failure);
                }
                Err(_) => {
                    last = Some(Failure::NoAnswer(format!("Modal's answer to `{name}` did not come in time")));
                    break;
                }
            }
        }
        Err(last.unwrap_or_else(|| Failure::NoAnswer(format!("Modal's `{name}` was not asked"))))
    }

    fn request<Q>(
        &self,
        question: Q,
        key: &str,
        attempt: u32,
        session: Option<MetadataValue<Ascii>>,
        within: Duration,
    ) -> Request<Q> {
        let mut request = Request::new(question);
        request.set_timeout(within);
        let metadata = request.metadata_mut();
        // A Python client is what the protocol knows; which version of it is spoken is said with it.
        metadata.insert("x-modal-client-type", MetadataValue::from_static("1"));
        metadata.insert("x-modal-client-version", MetadataValue::from_static("1.6.4"));
        metadata.insert("x-modal-token-id", self.token[0].clone());
        metadata.insert("x-modal-token-secret", self.token[1].clone());
        metadata.insert("x-modal-host", self.host.clone());
        metadata.insert("x-retry-attempt", MetadataValue::from(attempt));
        if let Ok(key) = key.parse() {
            metadata.insert("x-idempotency-key", key);
        }
        if let Some(session) = session {
            metadata.insert("x-modal-auth-token", session);
        }
        request
    }

    fn failure(&self, name: &str, status: &Status) -> Failure {
        let (code, said) = (status.code(), self.words(status.message()));
        let message = format!("Modal's answer to `{name}` is {code:?}: {said}");
        // Made on this machine, of a connection that was not, or is no more.
        let ours = std::error::Error::source(status).is_some();
        match (code, ours) {
            (Code::Unavailable, true) if is_connecting(status) => {
                let why = format!("Modal can't be reached for `{name}`: {said}");
                Failure::NotAsked(BackendError::new(ErrorKind::Unreachable, why))
            }
            (_, true) => Failure::NoAnswer(message),
            (Code::OutOfRange | Code::Internal, false) if said.contains("message length too large") => {
                Failure::Unreadable(message)
            }
            _ => Failure::Said { code, message, wait: wait(status.details()) },
        }
    }

    /// Modal's own words: on one line, shortened, and without the token, should it be in them.
    fn words(&self, said: &str) -> String {
        let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.replace(self.secrets.0.reveal(), "…").replace(self.secrets.1.reveal(), "…");
        let line: String = line.chars().filter(|char| !char.is_control()).collect();
        match line.char_indices().nth(MAX_MESSAGE) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }
}

/// The moment on the runtime's own timer, by which a request's waits and its end are measured.
#[expect(clippy::disallowed_methods, reason = "what timers wait for is no time of day, and is told by nothing else")]
fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// What Modal's own client asks again.
fn is_lost(code: Code) -> bool {
    matches!(code, Code::DeadlineExceeded | Code::Unavailable | Code::Cancelled | Code::Internal | Code::Unknown)
}

/// The connection was never made.
fn is_connecting(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| {
            matches!(error.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound)
        }) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// How long a refusal asks to be left alone. `None`: it does not ask.
fn wait(details: &[u8]) -> Option<Duration> {
    let status = RpcStatus::decode(details).ok()?;
    let policy = status.details.iter().find(|detail| detail.type_url.ends_with("/modal.client.RPCRetryPolicy"))?;
    let seconds = RpcRetryPolicy::decode(&policy.value[..]).ok()?.retry_after_secs;
    let wait = Duration::try_from_secs_f32(seconds).unwrap_or(SHORTEST);
    Some(wait.clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proto::Detail;

    fn details(type_url: &str, seconds: f32) -> Vec<u8> {
        let value = RpcRetryPolicy { retry_after_secs: seconds }.encode_to_vec();
        let details = vec![Detail { type_url: type_url.to_owned(), value }];
        RpcStatus { code: 8, message: "slow".to_owned(), details }.encode_to_vec()
    }

    #[test]
    fn a_wait_is_told_by_its_policy_alone_and_has_its_bounds() {
        const POLICY: &str = "type.modal.com/modal.client.RPCRetryPolicy";
        let of = |seconds| wait(&details(POLICY, seconds));
        assert_eq!(of(7.0), Some(Duration::from_secs(7)));
        for (odd, told) in
            [(0.0, SHORTEST), (-3.0, SHORTEST), (f32::NAN, SHORTEST), (1e30, SHORTEST), (99_999.0, LONGEST)]
        {
            assert_eq!(of(odd), Some(told), "{odd}");
        }
        assert_eq!(wait(&details("type.googleapis.com/google.rpc.RetryInfo", 7.0)), None);
        assert_eq!(wait(b""), None);
    }

    #[test]
    fn a_token_goes_over_tls_or_stays_on_this_machine() {
        let token = || (Key::new("ak-1"), Key::new("as-1"));
        let pace = || Pace::new(std::num::NonZeroU32::MIN, Duration::from_secs(1));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let new = |url: &str, token| Api::new(url, token, Clock::fixed(Time::MAX), pace()).map(drop);
        for good in ["http://127.0.0.1:1", "http://localhost:1", "https://api.modal.com"] {
            assert_eq!(new(good, token()), Ok(()), "{good}");
        }
        for bad in ["http://api.modal.com", "http://127.0.0.1.example.com", "unix:///x", "nonsense", ""] {
            assert!(new(bad, token()).is_err(), "{bad}");
        }
        for bad in [("", "as-1"), ("ak-1", ""), ("ak\n1", "as-1")] {
            assert!(new("https://api.modal.com", (Key::new(bad.0), Key::new(bad.1))).is_err(), "{bad:?}");
        }
    }

    proptest! {
        /// Whatever a refusal carries, it is a wait within its bounds, or none.
        #[test]
        fn any_details_are_a_bounded_wait_or_none(bytes in prop::collection::vec(any::<u8>(), 0..64), seconds: f32) {
            prop_assert!(wait(&bytes).is_none_or(|wait| (SHORTEST..=LONGEST).contains(&wait)));
            let told = wait(&details("x/modal.client.RPCRetryPolicy", seconds));
            prop_assert!(told.is_some_and(|wait| (SHORTEST..=LONGEST).contains(&wait)));
        }
    }
}
