//! One unit's part of a tick.

use std::{collections::HashSet, convert::Infallible};

use futures::{StreamExt, stream};
use ledger::{Leased, LedgerError};
use lifecycle::{
    Arming, Fate, Item, Kept, Plan, Reason, Record, RuntimeId, SnapshotBuilder, State, Subject, Time, Token,
    policy::Mode, snapshot::Listing,
};

use crate::{
    attempt::{self, Fated},
    context::Context,
    due::{self, Due, DueRecord},
    examine::{self, Examined, Look, Writes},
    outcome::{Busy, Part, Upkeep},
    presence::{self, Missing},
    recover,
    scene::Scene,
    sweep, trash,
};

/// Runs one unit under its lease, so that two overlapping ticks don't do the work twice.
pub(crate) async fn run(cx: Context<'_>, empty: Plan) -> Part {
    let (upkeep, errors) = (Upkeep::default(), Vec::new());
    let mut part = Part { plan: empty, fates: Vec::new(), upkeep, errors, healed: 0, not_due: 0 };
    // Boxed: the units of a pass are polled side by side.
    let failed = Box::pin(leased(cx, &mut part)).await.err();
    if failed.is_some() || part.plan.backends.iter().any(|note| note.listing.error.is_some()) {
        part.upkeep.unasked.push(cx.name().clone());
    }
    part.errors.extend(failed.map(|error| error.to_string().into()));
    if part.plan.backends.is_empty() && part.upkeep.busy.is_empty() {
        let listing = Listing { complete: false, at: cx.now(), error: None };
        part.plan.backends.push(crate::outcome::note(cx.name(), listing));
    }
    part
}

async fn leased(cx: Context<'_>, part: &mut Part) -> Result<(), LedgerError> {
    let now = cx.now();
    let until = now.plus(cx.limits().lease);
    let lease = match cx.ledger().lease_unit(cx.name(), &cx.pass.owner, until, now).await? {
        Leased::Won { token } => token,
        Leased::Busy { owner, until } => {
            part.upkeep.busy.push(Busy { backend: cx.name().clone(), owner, until });
            return Ok(());
        }
    };
    let passed = tokio::select! {
        biased;
        passed = pass(cx, part, lease) => passed,
        never = renewing(cx, lease) => match never {},
    };
    let released = cx.ledger().release_unit(cx.name(), lease, cx.now()).await;
    passed.and(released.map(drop))
}

/// Keeps the lease for as long as it is polled. Lost all the same (this machine slept), the pass goes on beside
/// another: the lease only saves double work, the claims keep one hand.
async fn renewing(cx: Context<'_>, lease: Token) -> Infallible {
    loop {
        tokio::time::sleep(cx.limits().lease / 2).await;
        let now = cx.now();
        match cx.ledger().renew_unit(cx.name(), lease, now.plus(cx.limits().lease), now).await {
            Ok(true) => {}
            Ok(false) => tracing::warn!(backend = %cx.name(), "the lease was lost; another pass may be at work too"),
            Err(error) => tracing::warn!(backend = %cx.name(), %error, "the lease could not be renewed"),
        }
    }
}

/// What is due and, when it is time, everything.
async fn pass(cx: Context<'_>, part: &mut Part, lease: Token) -> Result<(), LedgerError> {
    let mut scene = Scene::read(cx).await?;
    part.errors.append(&mut scene.errors);
    let Due { rest, were_due } = due::due(cx, &scene, &mut part.upkeep, &mut part.errors).await?;
    let sweeps = sweep_due(cx, &scene) || due::suspicious(cx, &scene, &rest);
    part.not_due = if sweeps { 0 } else { scene.fleet.saturating_sub(were_due) };
    let (examined, ended) = if sweeps {
        whole(cx, &mut scene, part, rest).await?
    } else if scene.paused {
        // Nothing would be acted on; it stays due until somebody lets acts go on.
        (some(cx, &scene, part, Vec::new()).await, false)
    } else {
        (some(cx, &scene, part, rest).await, false)
    };
    let Examined { unit, mut plan, looked, errors } = examined;
    part.errors.extend(errors.into_iter().map(Into::into));
    part.fates = acts(cx, &scene, &plan, &unit, &looked).await;
    for note in plan.backends.iter_mut().filter(|_| !sweeps) {
        // By id, nothing is missing.
        note.listing.complete = note.listing.error.is_none();
    }
    part.plan = plan;
    put_off(cx, &scene, &part.plan, &part.fates, &unit).await?;
    if let Some(note) = part.plan.backends.first().filter(|_| ended)
        && sweep::swept(cx, &scene, note, lease).await?
    {
        part.upkeep.swept.push(cx.name().clone());
    }
    if sweeps && cx.policy().mode == Mode::Enforce {
        trash::empty(cx, &scene, &mut part.upkeep, &mut part.errors).await;
    }
    Ok(())
}

/// Never swept, too long ago, or under another policy.
fn sweep_due(cx: Context<'_>, scene: &Scene) -> bool {
    let due = |sweep: lifecycle::Sweep| cx.now().since(sweep.at) >= cx.limits().sweep_every;
    scene.last_sweep.is_none_or(due) || scene.swept_under.as_ref() != Some(&cx.policy().hash())
}

/// Everything that the backend shows and every record, and what is due and was in neither. And whether the listing
/// came to its end.
async fn whole(
    cx: Context<'_>,
    scene: &mut Scene,
    part: &mut Part,
    rest: Vec<DueRecord>,
) -> Result<(Examined, bool), LedgerError> {
    let swept = sweep::sweep(cx, scene, &mut part.upkeep).await?;
    part.errors.extend(swept.errors);
    part.healed = swept.healed;
    let recorded = swept.seen.iter().filter_map(|subject| Some((&subject.id, subject.record.as_deref()?)));
    let stuck: Vec<_> = recorded.filter_map(|(id, record)| due::stuck(cx, id, record)).collect();
    part.upkeep.stuck.retain(|known| !stuck.iter().any(|stuck| stuck.runtime == known.runtime));
    part.upkeep.stuck.extend(stuck);
    let seen: HashSet<RuntimeId> = swept.seen.iter().map(|subject| subject.id.clone()).collect();
    let (complete, ended) = (swept.listing.complete, swept.ended);
    let left = rest.into_iter().filter(|due| !complete && !seen.contains(&due.id)).collect();
    let (looked, found) = look_at(cx, scene, part, left).await;
    let mut unit = scene.furnish(
        SnapshotBuilder::new(cx.name().clone(), cx.unit.backend.capabilities(), swept.listing)
            .records(swept.unseen)
            .build(),
    );
    let mut subjects = unit.subjects().to_vec();
    subjects.extend(swept.seen);
    subjects.extend(found);
    unit.set_subjects(subjects);
    let examined = examine::examine(cx, scene, unit, looked, Writes::Record).await;
    for note in &examined.plan.backends {
        scene.count(note);
    }
    Ok((examined, ended))
}

/// What is due alone, by id.
async fn some(cx: Context<'_>, scene: &Scene, part: &mut Part, rest: Vec<DueRecord>) -> Examined {
    let (looked, found) = look_at(cx, scene, part, rest).await;
    let mut unit = scene.snapshot(cx, Listing { complete: false, at: cx.now(), error: None });
    // Of what is due all that is heartbeat-fed is silent; the share of the fleet was looked at before.
    unit.silent_mean = Some(1.0);
    unit.set_subjects(found);
    examine::examine(cx, scene, unit, looked, Writes::Record).await
}

/// Looks at each by id. What is not there is noted; what can't be looked at waits.
async fn look_at(
    cx: Context<'_>,
    scene: &Scene,
    part: &mut Part,
    due: Vec<DueRecord>,
) -> (HashSet<RuntimeId>, Vec<Subject>) {
    let mut looks = stream::iter(due)
        .map(|DueRecord { id, record }| async move {
            if cx.out_of_time().is_some() {
                return None;
            }
            Some((examine::look(cx, scene, &id, Some(record.clone()), Writes::Record).await, id, record))
        })
        .buffer_unordered(cx.concurrency());
    let (mut looked, mut found) = (HashSet::new(), Vec::new());
    while let Some(look) = looks.next().await {
        let Some((look, id, record)) = look else { continue };
        match look {
            Look::Subject(subject) => {
                looked.insert(id);
                found.push(*subject);
            }
            Look::NotThere => match presence::missing(cx, &id, &record).await {
                Ok(Missing::Gone) => part.upkeep.gone.push(id),
                Ok(Missing::Noted) => {}
                Err(error) => part.errors.push(format!("{id}: {error}").into()),
            },
            Look::Failed(error) => {
                part.errors.push(format!("{id}: {error}").into());
                let at = cx.now().plus(cx.backoff(record.attempts));
                if let Err(error) = recover::later(cx, &id, &record, at).await {
                    part.errors.push(format!("{id}: {error}").into());
                }
            }
            Look::Ledger(error) => part.errors.push(format!("{id}: {error}").into()),
        }
    }
    (looked, found)
}

/// Does each item, in the plan's order, several at once. In report mode nothing is done.
async fn acts(
    cx: Context<'_>,
    scene: &Scene,
    plan: &Plan,
    unit: &lifecycle::UnitSnapshot,
    looked: &HashSet<RuntimeId>,
) -> Vec<Fated> {
    if cx.policy().mode == Mode::Report {
        let left = Fated::new(Fate::Left, "the mode is report; `furlough apply` does it, or mode = \"enforce\"");
        return vec![left; plan.items.len()];
    }
    let acts = stream::iter(&plan.items).map(|item| {
        let subject = unit.subject(&item.runtime).filter(|_| looked.contains(&item.runtime)).cloned();
        one(cx, scene, item, subject)
    });
    acts.buffered(cx.concurrency()).collect().await
}

pub(crate) async fn one(cx: Context<'_>, scene: &Scene, item: &Item, looked: Option<Subject>) -> Fated {
    if let Some(why) = cx.out_of_time() {
        return Fated::new(Fate::Left, why);
    }
    let ready = match looked {
        Some(subject) => attempt::ready(cx, scene, item, subject),
        None => attempt::verify(cx, scene, item).await,
    };
    match ready {
        // Boxed: it is the largest part of a pass, and there are many at once.
        Ok(ready) => Box::pin(attempt::attempt(cx, scene, ready)).await,
        Err(fated) => fated,
    }
}

/// Gives every runtime that was due and was not acted on its next time.
async fn put_off(
    cx: Context<'_>,
    scene: &Scene,
    plan: &Plan,
    fates: &[Fated],
    unit: &lifecycle::UnitSnapshot,
) -> Result<(), LedgerError> {
    let now = cx.now();
    let later = now.plus(cx.limits().sweep_every);
    let reports = cx.policy().mode == Mode::Report;
    let kept = plan.kept.iter().filter_map(|kept| Some((&kept.runtime, next(cx, scene, kept, unit, later)?)));
    let items = plan.items.iter().zip(fates).filter_map(|(item, fated)| {
        let at = if reports { Some(later) } else { fated.again };
        Some((&item.runtime, at?))
    });
    let all: Vec<_> = kept.chain(items).collect();
    let puts = stream::iter(all).map(|(id, at)| put(cx, scene, unit, id, at));
    let mut puts = puts.buffer_unordered(cx.concurrency());
    while let Some(put) = puts.next().await {
        put?;
    }
    Ok(())
}

/// When a kept runtime that is due is looked at next; `None`: it is not due, so that stands already.
fn next(cx: Context<'_>, scene: &Scene, kept: &Kept, unit: &lifecycle::UnitSnapshot, later: Time) -> Option<Time> {
    let subject = unit.subject(&kept.runtime)?;
    let record = subject.record.as_deref()?;
    subject.seen.as_ref()?;
    record.due_at.filter(|due| *due <= cx.now())?;
    if let Some(claim) = &record.claim {
        // Whatever else keeps it: whoever finds its claim ended puts it in order, and one that has ended stays due.
        return Some(cx.freed(claim)).filter(|end| *end > cx.now());
    }
    match kept.reason {
        Reason::Budget { .. } => kept.next_check.or(Some(later)),
        Reason::Paused => None,
        // Only what finds it due calls it back, and had no room for it yet.
        Reason::Wanted if matches!(record.state, State::Suspended | State::Archived) => None,
        Reason::Breaker { .. } | Reason::Unread | Reason::Moved | Reason::Wanted => Some(later),
        _ => scene.arming(cx, subject, cx.now()).due_at.or(kept.next_check).or(Some(later)),
    }
}

async fn put(
    cx: Context<'_>,
    scene: &Scene,
    unit: &lifecycle::UnitSnapshot,
    id: &RuntimeId,
    at: Time,
) -> Result<(), LedgerError> {
    let Some(subject) = unit.subject(id) else { return Ok(()) };
    let Some(Record { token, due_at, .. }) = subject.record.as_deref() else { return Ok(()) };
    let arming = Arming { due_at: Some(at), ..scene.arming(cx, subject, cx.now()) };
    let _ = cx.ledger().reschedule(id, *token, *due_at, arming, cx.now()).await?;
    Ok(())
}
