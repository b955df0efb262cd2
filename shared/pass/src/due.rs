//! What is due: re-armed without a read where it was active, else read. What a dead holder left, and what
//! somebody asked for, is put in order at once; the rest is for the plan.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use ledger::{LedgerError, Rearmed};
use lifecycle::{Policy, Record, RuntimeId, Signal, State, Time};

use crate::{
    context::Context,
    outcome::{Recovered, Stuck, Upkeep},
    recover,
    scene::Scene,
    wake::{self, Woken},
};

/// A record that is due for a plan.
pub(crate) struct DueRecord {
    pub(crate) id: RuntimeId,
    pub(crate) record: Record,
}

/// What the index had due.
pub(crate) struct Due {
    /// What is left of it for a plan, by id.
    pub(crate) rest: Vec<DueRecord>,
    /// How many it had.
    pub(crate) were_due: u64,
}

/// What became of one id of the index.
enum Handled {
    /// Nothing is left to do.
    Done,
    /// It needs a plan.
    Plan(Box<DueRecord>),
    Recovered(Recovered),
    Woken(RuntimeId),
    /// It was asked for and could not be called back.
    NotWoken(String),
}

/// Reads what is due, puts in order what can be, and returns the rest.
pub(crate) async fn due(
    cx: Context<'_>,
    scene: &Scene,
    upkeep: &mut Upkeep,
    errors: &mut Vec<Arc<str>>,
) -> Result<Due, LedgerError> {
    let now = cx.now();
    let due = cx.ledger().due(cx.name(), now, cx.limits().max_items).await?;
    if due.more {
        upkeep.more_due.push(cx.name().clone());
    }
    errors.extend(due.unreadable.iter().map(|key| format!("`{key}` in the due index is no runtime").into()));
    let were_due = due.ids.len() as u64;
    let horizon = now.plus(longest(cx.policy()));
    let mut handled = stream::iter(due.ids)
        .map(|(id, at)| async move { (handle(cx, scene, &id, at, horizon).await, id) })
        .buffer_unordered(cx.concurrency());
    let mut rest = Vec::new();
    while let Some((handled, id)) = handled.next().await {
        match handled {
            Ok(Handled::Done) => {}
            Ok(Handled::Plan(due)) => rest.push(*due),
            Ok(Handled::Recovered(recovered)) => upkeep.recovered.push(recovered),
            Ok(Handled::Woken(id)) => upkeep.woken.push(id),
            Ok(Handled::NotWoken(why)) => {
                errors.push(format!("{id}: it is wanted and could not be called back: {why}").into());
            }
            Err(error) => errors.push(format!("{id}: {error}").into()),
        }
    }
    rest.sort_by(|a, b| a.id.cmp(&b.id));
    upkeep.stuck.extend(rest.iter().filter_map(|due| stuck(cx, &due.id, &due.record)));
    Ok(Due { rest, were_due })
}

async fn handle(
    cx: Context<'_>,
    scene: &Scene,
    id: &RuntimeId,
    at: Time,
    horizon: Time,
) -> Result<Handled, LedgerError> {
    if cx.out_of_time().is_some() {
        return Ok(Handled::Done);
    }
    let record = match cx.ledger().rearm(id, at, horizon).await? {
        Rearmed::Until(_) | Rearmed::Look(None) => return Ok(Handled::Done),
        Rearmed::Look(Some(record)) => *record,
    };
    // The index may lag behind the records.
    if record.state == State::Gone || record.due_at.is_none_or(|due| due > cx.now()) {
        return Ok(Handled::Done);
    }
    if let Some(claim) = &record.claim {
        if cx.freed(claim) > cx.now() {
            return Ok(Handled::Done);
        }
        return recover::recover(cx, scene, id, &record).await.map(Handled::Recovered);
    }
    if record.wanted_at.is_some() && matches!(record.state, State::Suspended | State::Archived) {
        return wanted(cx, id, &record).await;
    }
    Ok(Handled::Plan(Box::new(DueRecord { id: id.clone(), record })))
}

async fn wanted(cx: Context<'_>, id: &RuntimeId, record: &Record) -> Result<Handled, LedgerError> {
    Ok(match wake::wake(cx, id).await {
        Woken::Running(_) => Handled::Woken(id.clone()),
        Woken::AlreadyRunning => Handled::Plan(Box::new(DueRecord { id: id.clone(), record: record.clone() })),
        Woken::Pending | Woken::Claimed { .. } | Woken::NotFound => Handled::Done,
        Woken::Refused(why) | Woken::Failed(why) => {
            // Else it would be the first that is due at every pass, and take the place of others.
            recover::later(cx, id, record, cx.now().plus(cx.backoff(record.attempts))).await?;
            Handled::NotWoken(why)
        }
    })
}

/// Who failed several times in a row.
pub(crate) fn stuck(cx: Context<'_>, id: &RuntimeId, record: &Record) -> Option<Stuck> {
    let (attempts, next) = (record.attempts, record.due_at);
    (attempts >= cx.limits().stuck_after).then(|| Stuck { runtime: id.clone(), attempts, next })
}

/// Whether so many heartbeat-fed records fell silent that the whole fleet must be looked at before any of them
/// is acted on: half of what the breaker allows, of a fleet as large as the last sweep found it.
pub(crate) fn suspicious(cx: Context<'_>, scene: &Scene, rest: &[DueRecord]) -> bool {
    let (Some(allowed), Some(sweep)) = (cx.policy().breakers.silent, scene.last_sweep) else { return false };
    let fed =
        |due: &&DueRecord| due.record.state == State::Running && due.record.last_source == Some(Signal::Heartbeat);
    let silent = rest.iter().filter(fed).count() as u64;
    silent.saturating_mul(2) > allowed.of(sweep.count)
}

/// The longest time after its activity at which any rule can make a record due: a hard deadline up to then may
/// come first, and needs a look.
fn longest(policy: &Policy) -> Duration {
    let all = policy.rules.iter().map(|rules| {
        let idle = rules.longest_idle_after().or(rules.idle_after).or(rules.shortest_idle_after()).unwrap_or_default();
        let files = rules.files.caches.max(rules.files.dependencies).unwrap_or_default();
        idle.saturating_add(rules.retention.suspended.unwrap_or_default()).max(files)
    });
    all.max().unwrap_or_default().saturating_add(policy.slack()).saturating_add(policy.coalesce)
}
