//! What a verb can answer.

use std::{sync::Arc, time::Duration};

use lifecycle::{Incarnation, State};

/// The answer of a verb that was asked. A lost race is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Outcome<T = ()> {
    /// It was done by this call.
    Done(T),
    /// It was so already.
    AlreadyDone,
    /// The runtime is no more.
    Gone,
    /// Another incarnation or state than the target's: nothing was done.
    Moved {
        /// What is there now.
        incarnation: Incarnation,
        /// Its state.
        state: State,
    },
    /// It will not be done, for this reason, whoever asks: nothing was done.
    Refused(Arc<str>),
    /// Under way: look again later.
    Pending,
    /// It was asked and no answer came: look before asking again.
    Unknown(Arc<str>),
}

impl<T> Outcome<T> {
    /// The same outcome, with what `done` makes of what a done one carries.
    pub fn map<U>(self, done: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done(carried) => Outcome::Done(done(carried)),
            Self::AlreadyDone => Outcome::AlreadyDone,
            Self::Gone => Outcome::Gone,
            Self::Moved { incarnation, state } => Outcome::Moved { incarnation, state },
            Self::Refused(why) => Outcome::Refused(why),
            Self::Pending => Outcome::Pending,
            Self::Unknown(why) => Outcome::Unknown(why),
        }
    }
}

/// A backend could not be asked. Says what the caller must do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    /// What to do about it.
    pub kind: ErrorKind,
    /// What happened, to which part, for people. Lower case, no full stop, never a secret.
    pub message: String,
}

/// What to do about a backend that could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It did not answer: try at the next pass.
    Unreachable,
    /// It refuses us: a person must mend the configuration or the rights.
    Denied,
    /// Too many requests: not before this has passed.
    Throttled {
        /// How long to wait.
        retry_after: Duration,
    },
    /// It answered something that can't be read: keep, report, go on with the others.
    Malformed,
    /// This machine failed (disk full, read only, no such file): a person must look.
    Local,
}

impl BackendError {
    /// A new error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// Why the look just before an act found nothing to act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// The backend has no such runtime.
    Gone,
    /// It is another run, or in another state, than was aimed at.
    Moved {
        /// Its run.
        incarnation: Incarnation,
        /// Its state.
        state: State,
    },
    /// It may not be acted on.
    Refused(Arc<str>),
}

impl Miss {
    /// What the verb answers.
    pub fn outcome<T>(self) -> Outcome<T> {
        match self {
            Self::Gone => Outcome::Gone,
            Self::Moved { incarnation, state } => Outcome::Moved { incarnation, state },
            Self::Refused(why) => Outcome::Refused(why),
        }
    }
}
