//! Absence: what a backend has no more is gone only when that was seen twice, apart in time, by id.

use ledger::{Arming, Completed, LedgerError};
use lifecycle::{Record, RuntimeId, State};

use crate::context::Context;

/// What an absence came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Seen once, or not long enough ago: looked at again.
    Noted,
    /// Seen twice: its record is a tombstone.
    Gone,
}

/// A look by id found nothing.
pub(crate) async fn missing(cx: Context<'_>, id: &RuntimeId, record: &Record) -> Result<Missing, LedgerError> {
    if record.state == State::Gone {
        return Ok(Missing::Gone);
    }
    let now = cx.now();
    if record.claim.as_ref().is_some_and(|claim| cx.freed(claim) > now) {
        // Its holder may be deleting it just now, and says so itself.
        return Ok(Missing::Noted);
    }
    let apart = cx.apart();
    let since = match record.absent_since {
        Some(since) if now.since(since) >= apart => {
            return Ok(match cx.ledger().gone(id, record.token, since, now).await? {
                Completed::Done { .. } => {
                    tracing::info!(runtime = %id, backend = %cx.name(), reason = "absent", "gone: absent at two looks");
                    Missing::Gone
                }
                Completed::Fenced => Missing::Noted,
            });
        }
        Some(since) => since,
        None => {
            if !cx.ledger().absent(id, record, now).await? {
                // Somebody has claimed or seen it since it was read: a later look decides.
                return Ok(Missing::Noted);
            }
            now
        }
    };
    let arming = Arming { idle_ms: record.idle_ms, cap_at: record.cap_at, due_at: Some(since.plus(apart)) };
    let _ = cx.ledger().reschedule(id, record.token, record.due_at, arming, now).await?;
    Ok(Missing::Noted)
}
