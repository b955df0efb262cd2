//! A provider's own timers, brought in line with the policy at each sweep: it then acts by itself, also when nobody
//! makes passes any more.
//!
//! Off unless a policy says `native`, and then only where passes act at all. What is held gets no timers: a hold holds
//! against the provider too. What is claimed, in a middle state or not ours is left as it is.

use std::{sync::Arc, time::Duration};

use backend::{BackendError, Bounds, NativeLifecycle, NativeWanted, Outcome, Target};
use futures::{StreamExt, stream};
use lifecycle::{NativeObserved, Ownership, State, Subject, Time, native::NativeSettings, policy::Mode};

use crate::{call::target, context::Context, listing::Known, scene::Scene};

/// At most so many runtimes' timers are written in a sweep; the next one goes on.
const MOST: usize = 1_000;

/// What is left at least between the time at which a pass would suspend and the end that a provider puts to a run,
/// which may lose its files.
const ROOM: Duration = Duration::from_hours(1);

/// Writes what differs. What could not be asked is in the answer, one line each; what is refused is in the log.
pub(super) async fn sync(cx: Context<'_>, scene: &Scene, known: &Known, seen: &[Subject]) -> Vec<Arc<str>> {
    let Some(role) = &cx.unit.backend.native else { return Vec::new() };
    if scene.paused || cx.policy().mode != Mode::Enforce {
        return Vec::new();
    }
    let changed = scene.swept_under.as_ref() != Some(&cx.policy().hash());
    let news = |subject: &Subject| changed || is_new(known, subject);
    let wishes = seen.iter().filter_map(|subject| wish(cx, role.as_ref(), subject, || news(subject))).take(MOST);
    let writes = wishes.map(|(target, wanted)| async move {
        if cx.out_of_time().is_some() {
            return None;
        }
        written(cx, role.as_ref(), &target, wanted).await.err().map(|error| (target, error))
    });
    let failed: Vec<_> = stream::iter(writes).buffer_unordered(cx.concurrency()).collect().await;
    let told = |(target, error): (Target, BackendError)| {
        format!("{}: the provider's timers could not be written: {error}", target.id).into()
    };
    failed.into_iter().flatten().map(told).collect()
}

/// Whether this sweep is the first to see this run of it.
fn is_new(known: &Known, subject: &Subject) -> bool {
    let before = known.records.get(&subject.id).and_then(|record| record.incarnation.as_ref());
    before.is_none() || before != subject.seen.as_ref().map(|seen| &seen.incarnation)
}

/// The timers that a runtime should have, where it has others. Of those that can't be read that is not known: they are
/// written once for each run, and again for another policy.
fn wish(
    cx: Context<'_>,
    role: &dyn NativeLifecycle,
    subject: &Subject,
    news: impl FnOnce() -> bool,
) -> Option<(Target, NativeWanted)> {
    let (seen, record) = (subject.seen.as_deref()?, subject.record.as_deref()?);
    let native = seen.native.as_deref()?;
    let settled = matches!(seen.state, State::Running | State::Suspended) && record.state == seen.state;
    if seen.ownership != Ownership::Ours || !settled || record.claim.is_some() {
        return None;
    }
    let rules = cx.rules(&seen.labels)?;
    let settings = lifecycle::native::wanted(rules)?;
    let held = record.hold_until.is_some_and(|hold| hold.holds(cx.now()));
    let wanted = if held { NativeWanted::default() } else { wanted(settings) };
    if native.hidden {
        return (native.mutable && news()).then(|| (target(seen), wanted));
    }
    let attainable = role.attainable(wanted);
    if native.mutable && attainable.differs_from(native) {
        return Some((target(seen), wanted));
    }
    let idle = wanted.idle_suspend.filter(|_| attainable.idle_suspend.is_none())?;
    let until = record.idle_from.plus(idle).plus(cx.limits().sweep_every.max(ROOM));
    let longer = put_off(native, until, cx.now())?;
    Some((target(seen), NativeWanted { idle_suspend: Some(longer), ..wanted }))
}

fn wanted(NativeSettings { idle_suspend, archive, delete }: NativeSettings) -> NativeWanted {
    let of = |span: Option<lifecycle::native::Span>| span.map(lifecycle::native::Span::get);
    NativeWanted { idle_suspend: of(idle_suspend), archive: of(archive), delete: of(delete) }
}

/// A provider without a timer of idleness that ends a run at a time does so too soon: how long it should last from
/// now. Only ever later. What is idle for long is put off no more, so that what its owner set comes in the end.
fn put_off(native: &NativeObserved, until: Time, now: Time) -> Option<Duration> {
    let deadline = native.deadline?;
    (now < until && deadline.at < until).then(|| until.since(now))
}

async fn written(
    cx: Context<'_>,
    role: &dyn NativeLifecycle,
    target: &Target,
    wanted: NativeWanted,
) -> Result<(), BackendError> {
    let limit = cx.limits().look_timeout;
    let bounds = Bounds { deadline: cx.now().plus(limit) };
    let outcome = cx.calls().within(limit, role.set_native(target, wanted, bounds)).await?;
    let (runtime, backend) = (&target.id, cx.name());
    match outcome {
        Outcome::Done(_) => tracing::info!(%runtime, %backend, ?wanted, "the provider's timers were written"),
        Outcome::Refused(reason) => {
            tracing::warn!(%runtime, %backend, %reason, "the provider's timers stay as they are");
        }
        Outcome::Unknown(reason) => {
            tracing::warn!(%runtime, %backend, %reason, "whether the provider's timers were written is not known");
        }
        // What moved meanwhile is seen by the next sweep.
        Outcome::AlreadyDone | Outcome::Gone | Outcome::Moved { .. } | Outcome::Pending => {}
    }
    Ok(())
}
