//! A whole sweep: every runtime that the backend shows, and every record that it does not.

mod native;

use std::{collections::HashSet, sync::Arc};

use backend::Sighting;
use futures::{StreamExt, stream};
use ledger::LedgerError;
use lifecycle::{
    Judge, Observation, Ownership, Record, RuntimeId, State, Subject, Sweep, Time, Token, plan::BackendNote,
    snapshot::Listing,
};

use crate::{
    context::Context,
    examine::{self, alone, told},
    listing::{self, Known, Listed},
    outcome::Upkeep,
    presence::{self, Missing},
    scene::{Scene, soon_enough},
};

/// One part of the trailing mean of the silent share is the newest sweep.
const MEAN_OVER: f64 = 8.0;

/// A swept unit: observed and written down.
pub(crate) struct Swept {
    pub(crate) listing: Listing,
    /// The listing came to its end, even if some rows on the way could not be read.
    pub(crate) ended: bool,
    /// What was seen, with the records as they are now.
    pub(crate) seen: Vec<Subject>,
    /// Records of what was not seen.
    pub(crate) unseen: Vec<(RuntimeId, Record)>,
    pub(crate) errors: Vec<Arc<str>>,
    pub(crate) healed: u64,
}

/// Lists, takes what was seen into the records, and looks by id for what was not. A backend that does not answer at
/// all costs nothing else: it is asked again at every pass.
pub(crate) async fn sweep(cx: Context<'_>, scene: &Scene, upkeep: &mut Upkeep) -> Result<Swept, LedgerError> {
    let Listed { listing, ended, rows } = listing::list(cx).await;
    let mut swept = Swept { listing, ended, seen: Vec::new(), unseen: Vec::new(), errors: Vec::new(), healed: 0 };
    if rows.is_empty() && !ended {
        return Ok(swept);
    }
    swept.healed = heal(cx, &mut swept.errors).await?;
    let known = listing::known(cx).await?;
    swept.errors.extend(known.errors.iter().cloned());
    swept.errors.extend(known.unreadable.iter().map(|(_, error)| error.clone()));
    let rows = listing::readable(rows, &known);
    swept.seen = observe(cx, scene, rows, &known, &mut swept.errors).await;
    swept.unseen = unseen(&known, &swept.seen);
    if swept.listing.complete && known.complete {
        let found = missing(cx, scene, &swept.unseen, upkeep, &mut swept.errors).await;
        swept.unseen.retain(|(id, _)| !found.iter().any(|subject| subject.id == *id));
        swept.seen.extend(found);
    }
    swept.errors.extend(native::sync(cx, scene, &known, &swept.seen).await);
    Ok(swept)
}

fn unseen(known: &Known, seen: &[Subject]) -> Vec<(RuntimeId, Record)> {
    let seen: HashSet<&RuntimeId> = seen.iter().map(|subject| &subject.id).collect();
    let unseen = known.records.iter().filter(|(id, record)| !seen.contains(id) && record.state != State::Gone);
    unseen.map(|(id, record)| (id.clone(), record.clone())).collect()
}

/// Takes each row of ours into its record. A row that can't be written stays out of the plan.
async fn observe(
    cx: Context<'_>,
    scene: &Scene,
    rows: Vec<Observation>,
    known: &Known,
    errors: &mut Vec<Arc<str>>,
) -> Vec<Subject> {
    let now = cx.now();
    let empty = scene.snapshot(cx, Listing { complete: true, at: now, error: None });
    let judge = Judge::new(&empty, cx.policy(), now);
    let judge = &judge;
    let mut taken = stream::iter(rows)
        .map(|row| async move {
            let record = known.records.get(&row.id).cloned();
            let id = row.id.clone();
            (take(cx, judge, told(cx, row), record, now).await, id)
        })
        .buffer_unordered(cx.concurrency());
    let mut subjects = Vec::new();
    let mut failed = 0_usize;
    while let Some((taken, id)) = taken.next().await {
        match taken {
            Ok(subject) => subjects.push(subject),
            Err(error) if failed < MOST_NAMED => {
                failed += 1;
                errors.push(format!("{id}: {error}").into());
            }
            Err(_) => failed += 1,
        }
    }
    if failed > MOST_NAMED {
        errors.push(format!("{} more could not be written down", failed - MOST_NAMED).into());
    }
    subjects
}

/// How many failures are named; the rest are counted.
const MOST_NAMED: usize = 5;

async fn take(
    cx: Context<'_>,
    judge: &Judge<'_>,
    row: Observation,
    record: Option<Record>,
    now: Time,
) -> Result<Subject, LedgerError> {
    if row.ownership != Ownership::Ours {
        return Ok(alone(row, record));
    }
    let row = match &record {
        Some(record) if runs_again(record, &row) => match cx.calls().look(&row.id).await {
            Ok(Sighting::Seen(seen)) => told(cx, *seen),
            // Not confirmed: nothing is written down of it, and a later pass looks again.
            Ok(Sighting::NotThere) | Err(_) => return Ok(alone(row, Some(record.clone()))),
        },
        _ => row,
    };
    if row.ownership != Ownership::Ours {
        return Ok(alone(row, record));
    }
    let arm = |next: &Record| {
        let subject = alone(row.clone(), Some(next.clone()));
        soon_enough(cx, &subject, judge.arming(&subject), now)
    };
    let record = cx.ledger().observe_known(record, &row, arm, now).await?;
    Ok(alone(row, Some(record)))
}

/// A listing tells that what rests by its record runs. It may lag behind a suspend that was written down since, and of
/// what is said to run heartbeats are recorded: so that needs a look by id.
fn runs_again(record: &Record, row: &Observation) -> bool {
    row.state == State::Running && matches!(record.state, State::Suspended | State::Archived)
}

/// Records without a row: looked at by id. There after all: the listing was short, and they count as seen.
async fn missing(
    cx: Context<'_>,
    scene: &Scene,
    unseen: &[(RuntimeId, Record)],
    upkeep: &mut Upkeep,
    errors: &mut Vec<Arc<str>>,
) -> Vec<Subject> {
    let absent = unseen.iter().take(cx.limits().max_items);
    let mut looks = stream::iter(absent)
        .map(|(id, record)| async move { (absence(cx, scene, id, record).await, id) })
        .buffer_unordered(cx.concurrency());
    let mut found = Vec::new();
    while let Some((look, id)) = looks.next().await {
        match look {
            Ok(Absence::There(subject)) => found.push(*subject),
            Ok(Absence::Not(Missing::Gone)) => upkeep.gone.push(id.clone()),
            Ok(Absence::Not(Missing::Noted)) => {}
            Err(error) => errors.push(format!("{id}: {error}").into()),
        }
    }
    found
}

enum Absence {
    There(Box<Subject>),
    Not(Missing),
}

async fn absence(cx: Context<'_>, scene: &Scene, id: &RuntimeId, record: &Record) -> Result<Absence, String> {
    match cx.calls().look(id).await {
        Ok(Sighting::Seen(seen)) => {
            let seen = told(cx, *seen);
            let record = if seen.ownership == Ownership::Ours {
                examine::observe(cx, scene, &seen, Some(record.clone())).await.map_err(|error| error.to_string())?
            } else {
                record.clone()
            };
            Ok(Absence::There(Box::new(alone(seen, Some(record)))))
        }
        Ok(Sighting::NotThere) => {
            presence::missing(cx, id, record).await.map(Absence::Not).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Puts back what fell out of the due index. Expected: nothing.
async fn heal(cx: Context<'_>, errors: &mut Vec<Arc<str>>) -> Result<u64, LedgerError> {
    let mut healed = 0;
    let mut cursor = None;
    for _ in 0..cx.limits().max_pages {
        let page = cx.ledger().heal(cx.name(), cursor.take(), cx.now()).await?;
        for id in &page.healed {
            tracing::warn!(runtime = %id, backend = %cx.name(), "a record was in no index and was put back");
        }
        healed += page.healed.len() as u64;
        match page.next {
            None => return Ok(healed),
            Some(next) => cursor = Some(next),
        }
    }
    errors.push(format!("healing did not end within {} pages", cx.limits().max_pages).into());
    Ok(healed)
}

/// Notes a sweep that came to its end, under the lease. Rows that could not be read count for nothing, and keep no
/// sweep from being one: else a single such row would make every tick a sweep.
pub(crate) async fn swept(
    cx: Context<'_>,
    scene: &Scene,
    note: &BackendNote,
    lease: Token,
) -> Result<bool, LedgerError> {
    // What could not be read is still there: a partial listing makes no smaller fleet to compare the next one with.
    let before = scene.last_sweep.filter(|_| !note.listing.complete).map_or(0, |sweep| sweep.count);
    let sweep = Sweep { at: note.listing.at, count: note.ours.max(before) };
    let mean = trailing(scene.silent_mean, note.silent_share);
    cx.ledger().swept(cx.name(), lease, sweep, mean, &cx.policy().hash()).await
}

/// The trailing mean of the silent share. It follows slowly, so that an outage of the heartbeats opens the
/// breaker for several sweeps, and a fleet that really fell silent closes it again.
fn trailing(mean: Option<f64>, share: Option<f64>) -> Option<f64> {
    match (mean, share) {
        (Some(mean), Some(share)) => Some(mean + (share - mean) / MEAN_OVER),
        (mean, share) => mean.or(share.map(|share| share / MEAN_OVER)),
    }
}
