//! What a dead or slow holder left: look, then finish what is so, or give back what is not. The old evidence
//! is never acted on.

use backend::Sighting;
use ledger::{Claimed, Completed, Completion, Ended, Failure, LedgerError};
use lifecycle::{Arming, Observation, Record, RuntimeId, State, Time, Token};

use crate::{
    context::Context,
    examine,
    outcome::{Recovered, Recovery},
    presence::{self, Missing},
    scene::Scene,
    wake,
};

/// Ends the expired claim of one record, and the middle state that it left.
pub(crate) async fn recover(
    cx: Context<'_>,
    scene: &Scene,
    id: &RuntimeId,
    record: &Record,
) -> Result<Recovered, LedgerError> {
    let was = record.state;
    if !was.is_middle() {
        let how = let_go(cx, id, record).await?;
        return Ok(Recovered { runtime: id.clone(), was, how });
    }
    let how = match cx.calls().look(id).await {
        Ok(Sighting::Seen(seen)) => by_sight(cx, scene, record, *seen).await?,
        Ok(Sighting::NotThere) => match presence::missing(cx, id, record).await? {
            Missing::Gone => Recovery::Gone,
            Missing::Noted => Recovery::Absent,
        },
        Err(error) => {
            later(cx, id, record, cx.now().plus(cx.backoff(record.attempts))).await?;
            Recovery::Unread { why: error.to_string() }
        }
    };
    tracing::info!(runtime = %id, backend = %cx.name(), reason = "claim expired", "{was}: {how}");
    Ok(Recovered { runtime: id.clone(), was, how })
}

/// A claim that had changed no state (files, a notice): nothing is half done that a new plan would not see.
async fn let_go(cx: Context<'_>, id: &RuntimeId, record: &Record) -> Result<Recovery, LedgerError> {
    let now = cx.now();
    match cx.ledger().take_over(id, record.token, &cx.pass.owner, cx.claim_until(now), now).await? {
        Claimed::Won(taken) => give_back(cx, record, id, taken.token, record.state).await,
        Claimed::Lost(_) => Ok(Recovery::Taken),
    }
}

async fn by_sight(cx: Context<'_>, scene: &Scene, record: &Record, seen: Observation) -> Result<Recovery, LedgerError> {
    let now = cx.now();
    let until = cx.claim_until(now);
    let id = seen.id.clone();
    let token = match cx.ledger().take_over(&id, record.token, &cx.pass.owner, until, now).await? {
        Claimed::Won(record) => record.token,
        Claimed::Lost(_) => return Ok(Recovery::Taken),
    };
    match (record.state, seen.state) {
        (State::Suspending, State::Suspended) => finish(cx, scene, record, seen, (Ended::Suspended, token)).await,
        (State::Archiving, State::Archived) => finish(cx, scene, record, seen, (Ended::Archived, token)).await,
        (State::Resuming, State::Running) => {
            let incarnation = seen.incarnation.clone();
            let _ = wake::runs(cx, seen, token, incarnation).await?;
            Ok(Recovery::Finished { state: State::Running })
        }
        (_, state) if state.is_middle() => {
            let _ = cx.ledger().hand_over(&id, token, now.plus(cx.limits().backoff), now).await?;
            Ok(Recovery::UnderWay { state })
        }
        (_, state) => give_back(cx, record, &id, token, state).await,
    }
}

async fn finish(
    cx: Context<'_>,
    scene: &Scene,
    record: &Record,
    seen: Observation,
    (ended, token): (Ended, Token),
) -> Result<Recovery, LedgerError> {
    let (now, state, id) = (cx.now(), seen.state, seen.id.clone());
    let record = Record { state, state_since: now, claim: None, ..record.clone() };
    let arming = scene.arming(cx, &examine::alone(seen, Some(record)), now);
    let done = Completion { ended, saved_as_of: None, arming };
    let ended = cx.ledger().complete(&id, token, &done, now).await?;
    wanted(cx, &id, ended, Recovery::Finished { state }).await
}

/// What was begun did not happen, or was undone: the record goes back to what is there.
async fn give_back(
    cx: Context<'_>,
    record: &Record,
    id: &RuntimeId,
    token: Token,
    state: State,
) -> Result<Recovery, LedgerError> {
    let now = cx.now();
    let failure = Failure::Yes { due_at: now.plus(cx.backoff(record.attempts)) };
    let ended = cx.ledger().abandon(id, token, state, failure, now).await?;
    wanted(cx, id, ended, Recovery::GivenBack { state }).await
}

async fn wanted(cx: Context<'_>, id: &RuntimeId, ended: Completed, how: Recovery) -> Result<Recovery, LedgerError> {
    let state = match &how {
        Recovery::Finished { state } | Recovery::GivenBack { state } => *state,
        _ => return Ok(how),
    };
    match ended {
        Completed::Fenced => Ok(Recovery::Taken),
        Completed::Done { wanted: true } if matches!(state, State::Suspended | State::Archived) => {
            let _ = wake::wake(cx, id).await;
            Ok(how)
        }
        Completed::Done { .. } => Ok(how),
    }
}

/// It could not be looked at: later, without a change to the record.
pub(crate) async fn later(cx: Context<'_>, id: &RuntimeId, record: &Record, at: Time) -> Result<(), LedgerError> {
    let arming = Arming { idle_ms: record.idle_ms, cap_at: record.cap_at, due_at: Some(at) };
    let _ = cx.ledger().reschedule(id, record.token, record.due_at, arming, cx.now()).await?;
    Ok(())
}
