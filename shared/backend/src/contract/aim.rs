//! What the cases share: roles that have to be there, and answers that have to be given.

use std::{fmt::Debug, sync::Arc};

use super::{Checked, Harness, NotApplicable, check, violated};
use crate::{BackendError, Outcome};

type Answer<T> = Result<Outcome<T>, BackendError>;

/// The role, or the reason why the case does not apply.
pub(super) fn role<R: ?Sized>(role: Option<Arc<R>>, name: &str) -> Checked<Arc<R>> {
    Ok(role.ok_or_else(|| NotApplicable::because(format!("the backend has no role `{name}`")))?)
}

/// It was done, or is under way and is then let come to its end. `None`: the latter.
pub(super) async fn done<T: Debug>(harness: &dyn Harness, verb: &str, answer: Answer<T>) -> Checked<Option<T>> {
    match answer {
        Ok(Outcome::Done(done)) => Ok(Some(done)),
        Ok(Outcome::Pending) => {
            harness.settle().await;
            Ok(None)
        }
        other => violated(format!("{verb} should be done, but answered {other:?}")),
    }
}

/// It is another incarnation or state.
pub(super) fn moved<T: Debug>(verb: &str, answer: &Answer<T>) -> Checked {
    check(matches!(answer, Ok(Outcome::Moved { .. })), || format!("{verb} should be Moved, but answered {answer:?}"))
}

/// It is no more.
pub(super) fn gone<T: Debug>(verb: &str, answer: &Answer<T>) -> Checked {
    check(matches!(answer, Ok(Outcome::Gone)), || format!("{verb} should be Gone, but answered {answer:?}"))
}

/// It was so already.
pub(super) fn already<T: Debug>(verb: &str, answer: &Answer<T>) -> Checked {
    check(matches!(answer, Ok(Outcome::AlreadyDone)), || {
        format!("{verb} should be AlreadyDone, but answered {answer:?}")
    })
}

/// It will not be done, with a reason.
pub(super) fn refused<T: Debug>(verb: &str, answer: &Answer<T>) -> Checked {
    check(matches!(answer, Ok(Outcome::Refused(why)) if !why.trim().is_empty()), || {
        format!("{verb} should be Refused with a reason, but answered {answer:?}")
    })
}

/// Whatever it answered, it did not say that it was done or begun, or may have been.
pub(super) fn not_done<T: Debug>(verb: &str, answer: &Answer<T>) -> Checked {
    check(!matches!(answer, Ok(Outcome::Done(_) | Outcome::Pending | Outcome::Unknown(_))), || {
        format!("{verb} should not be done, but answered {answer:?}")
    })
}

/// It could not be asked.
pub(super) fn failed<T: Debug>(verb: &str, answer: &Result<T, BackendError>) -> Checked {
    check(answer.is_err(), || format!("{verb} could not be asked, but answered {answer:?}"))
}
