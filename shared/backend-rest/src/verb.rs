//! What all verbs share: the look just before the act, and what an act's answer comes to.

use std::fmt;

use backend::{BackendError, Outcome};
pub(crate) use backend::{
    Miss,
    provider::{aimed, moved, ours, same_run},
};
use lifecycle::{Observation, Role};

use crate::api::Failure;

/// It does not lack this role.
pub(crate) fn able(seen: &Observation, role: Role) -> Result<(), Miss> {
    match seen.cannot.iter().find(|cannot| cannot.role == role) {
        Some(cannot) => Err(Miss::Refused(cannot.why.clone())),
        None => Ok(()),
    }
}

/// What a failed act comes to where nothing in the provider's words says more: what may have been done is
/// unknown, what can be asked again later is an error, and what will not be done is refused.
pub(crate) fn failed<T>(failure: Failure) -> Result<Outcome<T>, BackendError> {
    match failure {
        Failure::NotAsked(error) => Err(error),
        Failure::NoAnswer(words) | Failure::Unreadable(words) => Ok(Outcome::Unknown(words.into())),
        Failure::Said { status, wait, .. } if wait.is_some() || matches!(status.as_u16(), 401 | 403) => {
            Err(failure.into())
        }
        Failure::Said { status, message, .. } if status.is_server_error() => Ok(Outcome::Unknown(message.into())),
        Failure::Said { message, .. } => Ok(Outcome::Refused(message.into())),
    }
}

/// A provider's answer to an act was good, and then it can't be read: what it did is for the next look.
pub(crate) fn unread<T>(what: impl fmt::Display) -> Outcome<T> {
    Outcome::Unknown(what.to_string().into())
}
