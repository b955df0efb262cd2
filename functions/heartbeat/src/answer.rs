//! Answers: a status, a word for programs, a sentence for people, and when it is worth coming back.

use std::time::Duration;

use axum::{
    Json,
    http::{
        HeaderValue, StatusCode,
        header::{ALLOW, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
};
use ledger::{Heartbeat, LedgerError, Registered, Saved};
use lifecycle::{State, Time, record::Epoch};
use serde::{Serialize, Serializer};

/// When to come back to a ledger that is throttled or does not answer.
const BACK_OFF: Duration = Duration::from_secs(5);

/// What is answered, for one runtime or for a request as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Answer {
    /// The status.
    #[serde(serialize_with = "number")]
    pub status: StatusCode,
    /// For programs.
    pub code: &'static str,
    /// For people: what happened, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<str>>,
    /// A heartbeat before then says nothing new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
    /// The present registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// The runtime's token, for it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Box<str>>,
    /// The runtime's state, where it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Seconds after which to try again.
    #[serde(rename = "retry_after_s", skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub retry_after: Option<Duration>,
    /// The method that the path takes, where another was used.
    #[serde(skip)]
    pub allow: Option<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn number<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(whole_seconds).serialize(serializer)
}

/// Rounded up: who comes back too early is refused again.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

impl Answer {
    /// One without more to say.
    pub fn new(status: StatusCode, code: &'static str) -> Self {
        let (message, next, epoch, token, state, retry_after, allow) = (None, None, None, None, None, None, None);
        Self { status, code, message, next, epoch, token, state, retry_after, allow }
    }

    /// A refusal, for people too.
    pub fn refused(status: StatusCode, code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self { message: Some(message.into()), ..Self::new(status, code) }
    }

    /// To another method than the one that the path takes.
    pub fn only(method: &'static str) -> Self {
        let message = format!("this path takes {method}");
        Self { allow: Some(method), ..Self::refused(StatusCode::METHOD_NOT_ALLOWED, "method", message) }
    }

    /// Neither the request nor its bearer is to blame: try again.
    pub fn unavailable(message: impl Into<Box<str>>) -> Self {
        let answer = Self::refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message);
        Self { retry_after: Some(BACK_OFF), ..answer }
    }

    /// To a heartbeat. `coalesce`: how late one may be.
    pub fn heartbeat(told: &Heartbeat, coalesce: Duration, now: Time) -> Self {
        let conflict = |code, message: String| Self::refused(StatusCode::CONFLICT, code, message);
        match told {
            Heartbeat::Recorded => Self { next: Some(now.plus(coalesce)), ..Self::new(StatusCode::OK, "recorded") },
            Heartbeat::Coalesced => Self::coalesced(now.plus(coalesce)),
            Heartbeat::Unknown => {
                let message = "no such runtime is registered or was seen; register it with PUT";
                Self::refused(StatusCode::NOT_FOUND, "unknown_runtime", message)
            }
            Heartbeat::Gone => {
                let message = "the runtime is no more; register it with PUT if it has come back";
                Self::refused(StatusCode::GONE, "gone", message)
            }
            Heartbeat::Superseded { epoch } => {
                let message = format!("the runtime was registered again (registration {epoch}); use the newer token");
                conflict("superseded", message)
            }
            Heartbeat::NotRunning { state, .. } => Self {
                state: Some(*state),
                retry_after: Some(coalesce),
                ..conflict(
                    "not_running",
                    format!("the runtime is {state}; it is called back, or what was begun is given up"),
                )
            },
        }
    }

    /// To one that says nothing new.
    pub fn coalesced(next: Time) -> Self {
        Self { next: Some(next), ..Self::new(StatusCode::OK, "coalesced") }
    }

    /// To a save.
    pub fn saved(told: &Saved, coalesce: Duration, now: Time) -> Self {
        let as_a_heartbeat = |told| Self::heartbeat(&told, coalesce, now);
        match *told {
            Saved::Noted { .. } => Self::new(StatusCode::OK, "saved"),
            Saved::NotThere { generation } => {
                let newest = generation.map_or("none".to_owned(), |newest| format!("generation {newest}"));
                let message = format!("the workspace has {newest}; tell of a save when it is committed");
                Self::refused(StatusCode::CONFLICT, "not_there", message)
            }
            Saved::Unknown => as_a_heartbeat(Heartbeat::Unknown),
            Saved::Gone => as_a_heartbeat(Heartbeat::Gone),
            Saved::Superseded { epoch } => as_a_heartbeat(Heartbeat::Superseded { epoch }),
        }
    }

    /// To a registration that is refused; the one that is made has more to say.
    pub fn not_registered(registered: &Registered, now: Time) -> Option<Self> {
        let (code, message, until) = match *registered {
            Registered::Done(_) => return None,
            Registered::Claimed { until } => {
                ("claimed", format!("somebody acts on the runtime until {until} at the latest"), until)
            }
            Registered::Overtaken { until } => {
                let message =
                    format!("the runtime's record tells of something later; if it runs, register it after {until}");
                ("overtaken", message, until)
            }
        };
        let answer = Self::refused(StatusCode::CONFLICT, code, message);
        Some(Self { retry_after: Some(until.since(now).max(Duration::from_secs(1))), ..answer })
    }

    /// When the ledger could not be asked. Its own words are for the log: they name tables and roles.
    pub fn ledger(error: &LedgerError) -> Self {
        match error {
            LedgerError::Throttled { .. } => {
                let message = "too many at once; nothing was recorded";
                let answer = Self::refused(StatusCode::SERVICE_UNAVAILABLE, "throttled", message);
                Self { retry_after: Some(BACK_OFF), ..answer }
            }
            error if error.passes() => Self::unavailable("the ledger did not answer; send it again"),
            _ => Self::refused(
                StatusCode::INTERNAL_SERVER_ERROR,
                "broken",
                "the ledger can't be used as it is; the service's log says why",
            ),
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let (status, retry_after, allow) = (self.status, self.retry_after, self.allow);
        let mut response = (status, Json(self)).into_response();
        if let Some(after) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
        }
        if let Some(method) = allow {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
        }
        response
    }
}
