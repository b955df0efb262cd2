//! Calling a runtime back: a claim of its own, so that one of many callers does it.

use backend::{Outcome, Sighting};
use ledger::{Arming, Claimed, Completed, Completion, Ended, Failure, LedgerError, Lost};
use lifecycle::{Incarnation, Observation, Ownership, Record, RuntimeId, State, Time, Token};

use crate::{
    Pass,
    call::target,
    context::Context,
    examine::{self, told},
    notice, presence, recover,
    scene::Scene,
};

/// What came of a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Woken {
    /// It runs again, as this run.
    Running(Incarnation),
    /// It ran already.
    AlreadyRunning,
    /// Under way; a later pass looks.
    Pending,
    /// Somebody else is at it, until then at the latest.
    Claimed {
        /// When the claim ends.
        until: Time,
    },
    /// There is no record, or the runtime is no more.
    NotFound,
    /// The backend says no. It stays as it was, and can be tried again.
    Refused(String),
    /// It could not be asked, or no answer came. A later pass looks, and it can be tried again.
    Failed(String),
}

impl Pass {
    /// Calls one runtime back. Pause does not stop it: the switch stops reclaiming, not coming back.
    pub async fn wake(&self, id: &RuntimeId) -> Woken {
        let Some(unit) = self.units.iter().find(|unit| unit.backend.name == *id.backend()) else {
            return Woken::Refused(format!("backend `{}` is not configured", id.backend()));
        };
        let deadline = self.clock.now().plus(self.limits.duration);
        wake(Context { pass: self, unit, deadline }, id).await
    }
}

/// Looks, claims, resumes, and writes it down.
pub(crate) async fn wake(cx: Context<'_>, id: &RuntimeId) -> Woken {
    woken(cx, id).await.unwrap_or_else(|error| Woken::Failed(error.to_string()))
}

async fn woken(cx: Context<'_>, id: &RuntimeId) -> Result<Woken, LedgerError> {
    let record = in_order(cx, id).await?;
    let seen = match (cx.calls().look(id).await, &record) {
        (Ok(Sighting::Seen(seen)), _) => *seen,
        (Ok(Sighting::NotThere), None) => return Ok(Woken::NotFound),
        (Ok(Sighting::NotThere), Some(record)) => {
            presence::missing(cx, id, record).await?;
            return Ok(Woken::NotFound);
        }
        (Err(error), _) => return Ok(Woken::Failed(error.to_string())),
    };
    if seen.ownership != Ownership::Ours {
        return Ok(Woken::Refused(format!("it is {}, and only what is ours is called back", seen.ownership)));
    }
    // What was stopped behind our back, or was never recorded, is recorded first: the claim is on the record.
    let seen = told(cx, seen);
    examine::observe(cx, &Scene::bare(), &seen, record).await?;
    if seen.state == State::Running && recorded_as_running(cx, id).await? {
        return Ok(Woken::AlreadyRunning);
    }
    let now = cx.now();
    let until = cx.claim_until(now);
    match cx.ledger().wake(id, &cx.pass.owner, until, now).await? {
        Claimed::Won(claimed) => resume(cx, &seen, &claimed, cx.act_until(until)).await,
        Claimed::Lost(Lost::Claimed { until }) => Ok(Woken::Claimed { until }),
        Claimed::Lost(Lost::State { state: State::Running }) => Ok(Woken::AlreadyRunning),
        Claimed::Lost(Lost::Gone | Lost::NoRecord) => Ok(Woken::NotFound),
        Claimed::Lost(lost) => Ok(Woken::Failed(format!("its record says otherwise: {lost:?}"))),
    }
}

/// Whether the record says, after the look, that it runs. A look that changes nothing writes nothing, so that only this
/// read meets who has claimed it since the first one.
async fn recorded_as_running(cx: Context<'_>, id: &RuntimeId) -> Result<bool, LedgerError> {
    let record = cx.ledger().get(id).await?;
    Ok(record.is_some_and(|record| record.state == State::Running))
}

/// The record. What a dead holder left half done is first finished or given back, as a pass would do it: whoever
/// calls must not need one.
async fn in_order(cx: Context<'_>, id: &RuntimeId) -> Result<Option<Record>, LedgerError> {
    let record = cx.ledger().get(id).await?;
    let ended = |record: &&Record| record.claim.as_ref().is_some_and(|claim| cx.freed(claim) <= cx.now());
    let Some(left) = record.as_ref().filter(ended) else { return Ok(record) };
    // Boxed: what is recovered may be called back in turn.
    let _ = Box::pin(recover::recover(cx, &Scene::bare(), id, left)).await?;
    cx.ledger().get(id).await
}

async fn resume(cx: Context<'_>, seen: &Observation, record: &Record, until: Time) -> Result<Woken, LedgerError> {
    // It ran when it was looked at and rested when it was claimed: only a look under the claim tells which it is.
    let now_seen = match seen.state {
        State::Running => cx.calls().look(&seen.id).await,
        _ => Ok(Sighting::Seen(Box::new(seen.clone()))),
    };
    match now_seen {
        Ok(Sighting::Seen(seen)) if seen.state == State::Running => {
            let incarnation = seen.incarnation.clone();
            runs(cx, *seen, record.token, incarnation).await
        }
        Ok(Sighting::Seen(seen)) => ask(cx, &seen, record, until).await,
        // The claim is left to be found.
        Ok(Sighting::NotThere) => Ok(Woken::NotFound),
        Err(error) => Ok(Woken::Failed(error.to_string())),
    }
}

async fn ask(cx: Context<'_>, seen: &Observation, record: &Record, until: Time) -> Result<Woken, LedgerError> {
    let (id, token) = (&seen.id, record.token);
    match cx.calls().resume(&target(seen), until).await {
        Ok(Outcome::Done(incarnation)) => runs(cx, seen.clone(), token, incarnation).await,
        Ok(Outcome::AlreadyDone | Outcome::Unknown(_)) => found(cx, id, token).await,
        Ok(Outcome::Pending) => {
            let look_again = cx.now().plus(cx.limits().backoff);
            let _ = cx.ledger().hand_over(id, token, look_again, cx.now()).await?;
            Ok(Woken::Pending)
        }
        Ok(Outcome::Gone) => {
            give_back(cx, seen, record).await?;
            Ok(Woken::NotFound)
        }
        Ok(Outcome::Moved { state, .. }) => {
            give_back(cx, seen, record).await?;
            Ok(Woken::Failed(format!("it changed while it was called back: it is {state}")))
        }
        Ok(Outcome::Refused(why)) => {
            give_back(cx, seen, record).await?;
            Ok(Woken::Refused(why.to_string()))
        }
        Err(error) => {
            give_back(cx, seen, record).await?;
            Ok(Woken::Failed(error.to_string()))
        }
    }
}

/// No answer, or "it was so already": what is there says which run it is. Else the claim is left to be found.
async fn found(cx: Context<'_>, id: &RuntimeId, token: Token) -> Result<Woken, LedgerError> {
    match cx.calls().look(id).await {
        Ok(Sighting::Seen(seen)) if seen.state == State::Running => {
            let incarnation = seen.incarnation.clone();
            runs(cx, *seen, token, incarnation).await
        }
        Ok(_) => Ok(Woken::Failed("no answer came; a later pass looks".to_owned())),
        Err(error) => Ok(Woken::Failed(error.to_string())),
    }
}

/// It runs: a whole idle period begins.
pub(crate) async fn runs(
    cx: Context<'_>,
    mut seen: Observation,
    token: Token,
    incarnation: Incarnation,
) -> Result<Woken, LedgerError> {
    let now = cx.now();
    let id = seen.id.clone();
    seen.state = State::Running;
    seen.incarnation = incarnation.clone();
    seen.running_since = Some(now);
    seen.state_since = Some(now);
    let scene = Scene::bare();
    let arming = scene.arming(cx, &crate::examine::alone(seen, None), now);
    let done = Completion { ended: Ended::Resumed(incarnation.clone()), saved_as_of: None, arming };
    match cx.ledger().complete(&id, token, &done, now).await? {
        Completed::Done { .. } => {
            tracing::info!(runtime = %id, backend = %cx.name(), reason = "wanted", "called back");
            notice::woken(cx, &id, token).await;
            Ok(Woken::Running(incarnation))
        }
        Completed::Fenced => Ok(Woken::Failed("the claim was no longer ours; a later pass looks".to_owned())),
    }
}

/// Back to rest: it can be tried again, at once by whoever asks, later by a pass.
async fn give_back(cx: Context<'_>, seen: &Observation, record: &Record) -> Result<(), LedgerError> {
    let now = cx.now();
    let due_at = now.plus(cx.backoff(record.attempts));
    let ended = cx.ledger().abandon(&seen.id, record.token, seen.state, Failure::Yes { due_at }, now).await?;
    if ended == (Completed::Done { wanted: true }) {
        // A wish makes it due at once; what just failed waits all the same.
        let arming = Arming { idle_ms: record.idle_ms, cap_at: record.cap_at, due_at: Some(due_at) };
        let _ = cx.ledger().reschedule(&seen.id, record.token, None, arming, now).await?;
    }
    Ok(())
}
