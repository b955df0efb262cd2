//! What an observation makes of a record. Pure: forward only, and nothing when nothing changed.

use std::time::Duration;

use lifecycle::{Activity, Busy, Observation, Record, Signal, State, Time, activity::MAX_BUSY};

use crate::{Arming, item::VERSION};

/// The record of a runtime that was never seen before.
pub(crate) fn fresh(seen: &Observation, now: Time) -> Record {
    let state = settled(seen.state).unwrap_or(State::Running);
    let begun = known(seen.running_since, now);
    let since = known(seen.state_since, now);
    let active = activity(seen, now);
    let (state_since, least) = match state {
        State::Running => (begun.or(since), begun),
        _ => (since, None),
    };
    // What runs was active at the latest when it began; of the unknown only that it is seen now.
    let idle_from = active.map_or(now, |at| least.map_or(at, |begun| at.max(begun)));
    Record {
        incarnation: Some(seen.incarnation.clone()),
        state,
        state_since: state_since.unwrap_or(now),
        idle_from,
        last_active: active,
        last_source: active.map(|_| Signal::Provider),
        frozen_since: frozen(seen).then_some(now),
        busy_until: busy(seen.busy, now),
        running_since: begun,
        ..unseen(now)
    }
}

/// The record of a runtime that somebody names and nobody has seen: neither active nor idle.
pub(crate) fn unseen(now: Time) -> Record {
    Record {
        v: VERSION,
        epoch: 0,
        incarnation: None,
        state: State::Running,
        state_since: now,
        first_seen: now,
        idle_from: now,
        last_active: None,
        last_source: None,
        frozen_since: None,
        busy_until: None,
        running_since: None,
        idle_ms: None,
        cap_at: None,
        armed: None,
        hold_until: None,
        wanted_at: None,
        absent_since: None,
        attempts: 0,
        shed: None,
        condemned_at: None,
        noticed_at: None,
        saved_as_of: None,
        claim: None,
        // A tombstone that has expired took its token along: the time is later than any token of that life.
        token: u64::try_from(now.millis()).unwrap_or(0),
        due_at: None,
    }
}

/// The record after the observation; equal to `old` when there is nothing to write.
pub(crate) fn step(old: &Record, seen: &Observation, skew: Duration, now: Time) -> Record {
    if claimed_middle(old) {
        return old.clone();
    }
    let mut next = old.clone();
    let moved = old.incarnation.as_ref().is_some_and(|run| *run != seen.incarnation);
    next.incarnation = Some(seen.incarnation.clone());
    next.absent_since = None;
    match settled(seen.state) {
        Some(State::Running) => running(&mut next, old, seen, moved, skew, now),
        Some(state) => resting(&mut next, old, seen, state, moved, skew, now),
        None => {}
    }
    thaw(&mut next, seen, now);
    if let Some(at) = activity(seen, now) {
        active(&mut next, at, Signal::Provider);
    }
    next.busy_until = next.busy_until.max(busy(seen.busy, now));
    next
}

/// A sign of activity: the clock moves forward.
pub(crate) fn active(next: &mut Record, at: Time, source: Signal) {
    if next.last_active.is_none_or(|known| known < at) {
        next.last_active = Some(at);
        next.last_source = Some(source);
    }
    if next.idle_from < at {
        next.idle_from = at;
        forget(next);
    }
}

/// What was decided on its standing still is void.
fn forget(next: &mut Record) {
    next.shed = None;
    next.condemned_at = None;
    next.noticed_at = None;
}

/// The end of a veto that begins now, at most [`MAX_BUSY`] away.
pub(crate) fn busy(busy: Busy, now: Time) -> Option<Time> {
    match busy {
        Busy::Until(until) => Some(until.min(now.plus(MAX_BUSY))).filter(|until| *until > now),
        Busy::No | Busy::Unread => None,
    }
}

fn running(next: &mut Record, old: &Record, seen: &Observation, moved: bool, skew: Duration, now: Time) {
    let begun = known(seen.running_since, now);
    let later = |since: Time| old.running_since.is_some_and(|known| since > known.plus(skew));
    let entered = old.state != State::Running;
    if !moved && !entered && !begun.is_some_and(later) {
        next.running_since = old.running_since.or(begun);
        return;
    }
    // Of another run its beginning is known; of the same one only that it began to run again since the last look.
    let since = if moved || !entered { begun.unwrap_or(now) } else { now };
    next.state = State::Running;
    next.state_since = since;
    next.running_since = Some(since);
    next.idle_from = old.idle_from.max(since);
    forget(next);
    next.attempts = 0;
    // What was refused because it was not known to run was a sign of it all the same.
    if let Some(wanted) = next.wanted_at.take() {
        active(next, wanted, Signal::Heartbeat);
    }
}

fn resting(next: &mut Record, old: &Record, seen: &Observation, state: State, moved: bool, skew: Duration, now: Time) {
    let since = known(seen.state_since, now);
    // It left the state and came back between two looks, so it ran.
    let ran = moved || (old.state == state && since.is_some_and(|since| since > old.state_since.plus(skew)));
    if old.state == state && !ran {
        return;
    }
    let since = since.unwrap_or(now);
    next.state = state;
    next.state_since = since.max(old.state_since);
    next.busy_until = None;
    if ran {
        next.idle_from = old.idle_from.max(since);
        next.running_since = known(seen.running_since, now).or(old.running_since);
        forget(next);
    }
}

/// Frozen counts from when it was first seen so; what thaws gets a whole idle period.
fn thaw(next: &mut Record, seen: &Observation, now: Time) {
    let thawed = next.frozen_since.is_some() && !frozen(seen);
    next.frozen_since = frozen(seen).then(|| next.frozen_since.unwrap_or(now));
    if thawed && next.state == State::Running && next.idle_from < now {
        next.idle_from = now;
        forget(next);
    }
}

/// The record with a new due time, where something changed or it is sooner; never later than what a claim's
/// end or a wish has set. The record of a claim's middle state is left as it is.
pub(crate) fn armed(mut next: Record, old: Option<&Record>, arming: &Arming) -> Record {
    if old.is_some_and(claimed_middle) {
        return next;
    }
    next.idle_ms = arming.idle_ms;
    next.cap_at = arming.cap_at;
    let known = old.and_then(|old| old.due_at);
    let sooner = arming.due_at.is_some_and(|due| known.is_none_or(|known| due < known));
    if old == Some(&next) && !sooner {
        return next;
    }
    let pinned = next.claim.is_some() || next.wanted_at.is_some();
    next.due_at = match (arming.due_at, known) {
        (Some(due), Some(known)) if pinned => Some(due.min(known)),
        (due, known) => due.or(known),
    };
    next.armed = Some(next.idle_from);
    next
}

/// Somebody has a claim on a middle state, live or expired: he, or who comes after him, finishes or abandons
/// what was begun, under the token.
fn claimed_middle(record: &Record) -> bool {
    record.state.is_middle() && record.claim.is_some()
}

/// A state that a record can be in by observation; `None`: the provider is on its way, so ours stays.
fn settled(state: State) -> Option<State> {
    (!state.is_middle() && state != State::Gone).then_some(state)
}

fn frozen(seen: &Observation) -> bool {
    seen.activity == Activity::Frozen
}

/// The provider's own clock of its activity, never ahead of ours.
fn activity(seen: &Observation, now: Time) -> Option<Time> {
    match seen.activity {
        Activity::At(at) => known(Some(at), now),
        Activity::Unknown | Activity::Frozen => None,
    }
}

/// A provider's time, never ahead of ours; its zero is no time.
fn known(time: Option<Time>, now: Time) -> Option<Time> {
    time.filter(|time| time.millis() >= 1).map(|time| time.min(now))
}
