//! The act itself and what is written of its answer. Every answer ends the claim, or leaves it to be found.

use std::sync::Arc;

use backend::{BackendError, ErrorKind, Outcome, Sighting};
use ledger::{AuditLine, Completed, Completion, Ended, Failure, LedgerError};
use lifecycle::{Action, Fate, Observation, State, Subject, Time, Token};

use crate::{
    attempt::{Fated, Held, Ready, json, saving},
    call::{Effect, target},
    context::Context,
    notice,
    notify::EventKind,
    presence,
    scene::Scene,
    wake,
};

/// The audit's line before anything is done, so that nothing is ever done without one.
pub(crate) async fn began(cx: Context<'_>, ready: &Ready, token: Token) -> Result<(), LedgerError> {
    cx.ledger().audit(&line(cx, ready, token, "begun", &Effect::default())).await
}

/// The same line with its end. A failure is logged: the record says what counts.
pub(crate) async fn ended(cx: Context<'_>, ready: &Ready, token: Token, fated: &Fated) {
    note(cx, ready, token, fated, &Effect::default()).await;
}

async fn note(cx: Context<'_>, ready: &Ready, token: Token, fated: &Fated, effect: &Effect) {
    let outcome = fated.detail.as_ref().map_or(fated.fate.to_string(), |detail| format!("{}: {detail}", fated.fate));
    if let Err(error) = cx.ledger().audit(&line(cx, ready, token, &outcome, effect)).await {
        tracing::warn!(runtime = %ready.item.runtime, %error, "how an act ended could not be written into the audit");
    }
}

fn line(cx: Context<'_>, ready: &Ready, token: Token, outcome: &str, effect: &Effect) -> AuditLine {
    let item = &ready.item;
    AuditLine {
        runtime: item.runtime.clone(),
        token,
        at: cx.now(),
        action: item.action.to_string(),
        outcome: outcome.to_owned(),
        owner: cx.pass.owner.clone(),
        reason: json(&item.reason),
        evidence: json(&item.evidence),
        saved: effect.saved.as_deref().map(str::to_owned),
        undo: effect.undo.iter().map(ToString::to_string).collect(),
        bytes: effect.bytes,
    }
}

/// Does it and writes down the answer.
pub(crate) async fn act(cx: Context<'_>, scene: &Scene, ready: Ready, held: Held) -> Result<Fated, LedgerError> {
    let item = &ready.item;
    let answer = match item.action {
        Action::Notify => match notice::give(cx, &ready, held.until).await {
            Ok(()) => Ok(Outcome::Done(Effect::default())),
            Err(error) => Err(BackendError::new(ErrorKind::Unreachable, error.to_string())),
        },
        action => cx.calls().act(action, &target(&ready.seen), saving(cx, &ready.seen), held.until).await,
    };
    match answer {
        Ok(Outcome::Done(effect)) => finish(cx, scene, &ready, &held, (Fate::Done, effect)).await,
        Ok(Outcome::AlreadyDone) => finish(cx, scene, &ready, &held, (Fate::AlreadyDone, Effect::default())).await,
        Ok(Outcome::Gone) if item.action == Action::Delete => {
            finish(cx, scene, &ready, &held, (Fate::Gone, Effect::default())).await
        }
        Ok(Outcome::Gone) => vanished(cx, &ready, &held).await,
        Ok(Outcome::Moved { incarnation, state }) => {
            let why = format!("another run or state is there: `{}`, {state}", incarnation.as_str());
            back(cx, &ready, &held, Fated::new(Fate::Moved, why), Failure::No { due_at: cx.now() }).await
        }
        Ok(Outcome::Refused(why)) => back(cx, &ready, &held, Fated::new(Fate::Refused, why), again(cx, &ready)).await,
        Ok(Outcome::Pending) => pending(cx, &ready, &held).await,
        Ok(Outcome::Unknown(why)) => unknown(cx, scene, &ready, &held, why).await,
        Err(error) => not_asked(cx, &ready, &held, &error).await,
    }
}

/// It could not be asked, so nothing was done.
async fn not_asked(cx: Context<'_>, ready: &Ready, held: &Held, error: &BackendError) -> Result<Fated, LedgerError> {
    match error.kind {
        ErrorKind::Throttled { retry_after } => {
            let failure = Failure::No { due_at: cx.now().plus(retry_after) };
            back(cx, ready, held, Fated::new(Fate::Left, error.to_string()), failure).await
        }
        _ => back(cx, ready, held, Fated::new(Fate::Failed, error.to_string()), again(cx, ready)).await,
    }
}

/// A failed attempt, tried again later and later.
fn again(cx: Context<'_>, ready: &Ready) -> Failure {
    Failure::Yes { due_at: cx.now().plus(cx.backoff(ready.record.attempts)) }
}

/// The claim is given back, and the line says why.
async fn back(
    cx: Context<'_>,
    ready: &Ready,
    held: &Held,
    fated: Fated,
    failure: Failure,
) -> Result<Fated, LedgerError> {
    ended(cx, ready, held.token, &fated).await;
    abandon(cx, ready, held, failure).await?;
    Ok(fated)
}

/// Gives the claim back, into the state that was left. Who was asked for meanwhile is woken.
pub(crate) async fn abandon(cx: Context<'_>, ready: &Ready, held: &Held, failure: Failure) -> Result<(), LedgerError> {
    let id = &ready.item.runtime;
    match cx.ledger().abandon(id, held.token, ready.record.state, failure, cx.now()).await? {
        Completed::Done { wanted: true } if ready.record.state != State::Running => {
            let _ = wake::wake(cx, id).await;
        }
        Completed::Done { .. } | Completed::Fenced => {}
    }
    Ok(())
}

/// The backend has no such runtime: absence, once.
async fn vanished(cx: Context<'_>, ready: &Ready, held: &Held) -> Result<Fated, LedgerError> {
    let fated = Fated::new(Fate::Gone, "the backend has it no more; a second look later makes that certain");
    let due_at = cx.now().plus(cx.apart());
    let fated = back(cx, ready, held, fated, Failure::No { due_at }).await?;
    if let Some(record) = cx.ledger().get(&ready.item.runtime).await? {
        presence::missing(cx, &ready.item.runtime, &record).await?;
    }
    Ok(fated)
}

/// It goes on by itself; the claim is given back, and somebody looks later.
async fn pending(cx: Context<'_>, ready: &Ready, held: &Held) -> Result<Fated, LedgerError> {
    let fated = Fated::new(Fate::Pending, "under way; a later pass looks whether it ended");
    ended(cx, ready, held.token, &fated).await;
    let look_again = cx.now().plus(cx.limits().backoff);
    let _ = cx.ledger().hand_over(&ready.item.runtime, held.token, look_again, cx.now()).await?;
    Ok(fated)
}

/// No answer came. One look may tell; else the claim stays until its end, since the call may still be under
/// way, and whoever finds it then looks first.
async fn unknown(
    cx: Context<'_>,
    scene: &Scene,
    ready: &Ready,
    held: &Held,
    why: Arc<str>,
) -> Result<Fated, LedgerError> {
    if let Ok(Sighting::Seen(seen)) = cx.calls().look(&ready.item.runtime).await
        && reached(ready.item.action, &seen)
    {
        return finish(cx, scene, ready, held, (Fate::Done, Effect::default())).await;
    }
    let fated = Fated::new(Fate::Unknown, why);
    ended(cx, ready, held.token, &fated).await;
    Ok(fated)
}

/// Whether what is seen is what the act leads to.
fn reached(action: Action, seen: &Observation) -> bool {
    match action {
        Action::Suspend => seen.state == State::Suspended,
        Action::Archive => seen.state == State::Archived,
        Action::Delete | Action::Shed(_) | Action::Notify => false,
    }
}

/// The end of what was done: the audit's line, then the record, then whoever asked for it meanwhile.
async fn finish(
    cx: Context<'_>,
    scene: &Scene,
    ready: &Ready,
    held: &Held,
    (fate, effect): (Fate, Effect),
) -> Result<Fated, LedgerError> {
    let id = &ready.item.runtime;
    let effect = saved_before(cx, ready, effect).await;
    let fated = Fated {
        fate,
        detail: told(&effect).map(Into::into),
        bytes: (effect.bytes > 0).then_some(effect.bytes),
        again: None,
    };
    note(cx, ready, held.token, &fated, &effect).await;
    let now = cx.now();
    let done = completion(cx, scene, ready, now);
    let ended = match cx.ledger().complete(id, held.token, &done, now).await {
        Ok(ended) => ended,
        Err(error) => {
            let why = format!("it was done but could not be written down ({error}); a later pass does that");
            return Ok(Fated { detail: Some(why.into()), fate: Fate::Unknown, ..fated });
        }
    };
    log(cx, ready, fate);
    match ended {
        Completed::Done { wanted: true } if done.ended != Ended::Deleted => {
            let _ = wake::wake(cx, id).await;
        }
        Completed::Done { .. } => {}
        Completed::Fenced => {
            let why = "it was done, but the claim was no longer ours; a later pass looks";
            return Ok(Fated { detail: Some(why.into()), fate: Fate::Unknown, ..fated });
        }
    }
    if ready.item.action != Action::Notify && fate == Fate::Done {
        notice::tell(cx, ready, held.token, EventKind::Done).await;
    }
    Ok(fated)
}

/// Where the work of what was deleted is, if it was saved before by whoever had it.
async fn saved_before(cx: Context<'_>, ready: &Ready, effect: Effect) -> Effect {
    let record = &ready.record;
    let was_saved = record.saved_as_of.is_some_and(|saved| saved >= record.idle_from);
    if ready.item.action != Action::Delete || effect.saved.is_some() || !was_saved {
        return effect;
    }
    match cx.ledger().detail(&ready.item.runtime).await {
        Ok(detail) => Effect { saved: detail.and_then(|detail| detail.saved_in).map(Into::into), ..effect },
        Err(error) => {
            tracing::warn!(runtime = %ready.item.runtime, %error, "where its work is could not be read");
            effect
        }
    }
}

fn log(cx: Context<'_>, ready: &Ready, fate: Fate) {
    let item = &ready.item;
    tracing::info!(
        runtime = %item.runtime,
        backend = %cx.name(),
        reason = item.reason.code(),
        idle_s = item.evidence.idle.as_secs(),
        "{}: {fate}",
        item.action,
    );
}

/// What an effect says to people.
fn told(effect: &Effect) -> Option<String> {
    let saved = effect.saved.iter().map(|place| format!("saved as `{place}`"));
    let undo = effect.undo.iter().map(|entry| format!("to be taken back with `furlough undo {entry}`"));
    let kept = effect.kept.iter().map(|what| format!("kept: {what}"));
    let all: Vec<_> = saved.chain(undo).chain(kept).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn completion(cx: Context<'_>, scene: &Scene, ready: &Ready, now: Time) -> Completion {
    let ended = match ready.item.action {
        Action::Suspend => Ended::Suspended,
        Action::Archive => Ended::Archived,
        Action::Delete => Ended::Deleted,
        Action::Shed(tier) => Ended::Shed(tier),
        Action::Notify => Ended::Noticed,
    };
    let arming = scene.arming(cx, &after(ready, now), now);
    Completion { ended, saved_as_of: None, arming }
}

/// The runtime as it is after the act: what it is armed for.
fn after(ready: &Ready, now: Time) -> Subject {
    let (mut seen, mut record) = (ready.seen.clone(), ready.record.clone());
    record.claim = None;
    record.attempts = 0;
    match ready.item.action {
        Action::Suspend => entered(&mut seen, &mut record, State::Suspended, now),
        Action::Archive => entered(&mut seen, &mut record, State::Archived, now),
        Action::Shed(tier) => record.shed = record.shed.max(Some(tier)),
        Action::Notify => {
            record.condemned_at = record.condemned_at.or(Some(now));
            record.noticed_at = Some(now);
        }
        Action::Delete => {}
    }
    Subject { id: seen.id.clone(), seen: Some(Box::new(seen)), record: Some(Box::new(record)), probe: None }
}

fn entered(seen: &mut Observation, record: &mut lifecycle::Record, state: State, now: Time) {
    seen.state = state;
    seen.state_since = Some(now);
    record.state = state;
    record.state_since = now;
    record.busy_until = None;
    record.frozen_since = None;
}
