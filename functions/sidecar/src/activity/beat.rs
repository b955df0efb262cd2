//! What a heartbeat is told.
//!
//! **Invariants.** An answer that is not understood is as none: the heartbeat is sent again.

use std::{fmt, time::Duration};

use lifecycle::Time;
use serde::Deserialize;

/// The longest wait that an answer can ask for.
pub const MAX_WAIT: Duration = Duration::from_mins(5);
/// After which it is tried again where nobody says when.
const AGAIN: Duration = Duration::from_secs(10);

/// What came of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// It was taken; the next one says nothing new before so long.
    Taken {
        /// How long.
        wait: Duration,
    },
    /// Nobody took it.
    Later {
        /// How long to wait.
        wait: Duration,
    },
    /// The runtime is on its way to a stop, and is wanted now: send it again.
    NotRunning {
        /// How long to wait.
        wait: Duration,
    },
    /// It is of a registration that is over.
    Ended(End),
}

/// Why a registration is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// There is a newer one: its token is needed.
    Superseded,
    /// The runtime counts as gone: its host has to register it again.
    Gone,
}

impl End {
    /// For programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::Gone => "gone",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Superseded => "the runtime was registered again: deliver the newer token with the same `/init`",
            Self::Gone => "the runtime counts as gone: register it, and deliver its token with the same `/init`",
        })
    }
}

/// What of an answer concerns the sender.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    code: String,
    next: Option<Time>,
    retry_after_s: Option<u64>,
}

impl Answered {
    /// Reads an answer, which came at `now`.
    pub fn of(status: u16, body: &[u8], now: Time) -> Self {
        let answer: Answer = serde_json::from_slice(body).unwrap_or_default();
        let after = answer.retry_after_s.map_or(AGAIN, Duration::from_secs).min(MAX_WAIT);
        match (status, answer.code.as_str()) {
            (200, _) => Self::Taken { wait: answer.next.map_or(AGAIN, |next| next.since(now)).min(MAX_WAIT) },
            (409, "superseded") => Self::Ended(End::Superseded),
            (409, _) => Self::NotRunning { wait: after },
            (410, _) => Self::Ended(End::Gone),
            // A host may register it yet, or its key be known soon.
            (400..500, _) => Self::Later { wait: MAX_WAIT },
            _ => Self::Later { wait: after },
        }
    }

    /// Where no answer came.
    pub const NONE: Self = Self::Later { wait: AGAIN };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: Time = Time::from_millis(1_764_500_000_000);

    fn of(status: u16, body: &serde_json::Value) -> Answered {
        Answered::of(status, body.to_string().as_bytes(), NOW)
    }

    #[test]
    fn each_answer_has_its_meaning() {
        let seconds = Duration::from_secs;
        let next = NOW.plus(seconds(30));
        assert_eq!(of(200, &json!({ "code": "recorded", "next": next })), Answered::Taken { wait: seconds(30) });
        let far = NOW.plus(seconds(86_400));
        assert_eq!(of(200, &json!({ "code": "recorded", "next": far })), Answered::Taken { wait: MAX_WAIT });
        assert_eq!(of(409, &json!({ "code": "superseded" })), Answered::Ended(End::Superseded));
        let stopping = json!({ "code": "not_running", "state": "suspending", "retry_after_s": 40 });
        assert_eq!(of(409, &stopping), Answered::NotRunning { wait: seconds(40) });
        assert_eq!(of(410, &json!({ "code": "gone" })), Answered::Ended(End::Gone));
        assert_eq!(of(404, &json!({ "code": "unknown_runtime" })), Answered::Later { wait: MAX_WAIT });
        assert_eq!(of(503, &json!({ "retry_after_s": 5 })), Answered::Later { wait: seconds(5) });
        assert_eq!(Answered::of(502, b"<html>", NOW), Answered::NONE);
    }

    proptest! {
        #[test]
        fn any_answer_is_understood_or_as_none(status in 100_u16..600, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let told = Answered::of(status, &body, NOW);
            if let Answered::Taken { wait } | Answered::Later { wait } | Answered::NotRunning { wait } = told {
                prop_assert!(wait <= MAX_WAIT);
            }
        }
    }
}
