//! What an observation makes of a record: forward only.

use lifecycle::{Signal, State};

use super::record::{Arm, Rec, SKEW, Tick};

/// What a backend shows of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) run: u8,
    pub(crate) state: State,
    pub(crate) state_since: Option<Tick>,
    pub(crate) running_since: Option<Tick>,
    pub(crate) active: Active,
    pub(crate) busy_until: Option<Tick>,
}

/// What it knows of its activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Active {
    Unknown,
    Frozen,
    At(Tick),
}

impl Seen {
    /// The state that a record can be in by it; on its way it tells none.
    fn settled(&self) -> Option<State> {
        [State::Running, State::Suspended, State::Archived].into_iter().find(|state| *state == self.state)
    }

    /// Never ahead of our clock.
    fn activity(&self, now: Tick) -> Option<Tick> {
        match self.active {
            Active::At(at) => Some(at.min(now)),
            Active::Unknown | Active::Frozen => None,
        }
    }

    fn begun(&self, now: Tick) -> Option<Tick> {
        self.running_since.map(|since| since.min(now))
    }

    fn entered(&self, now: Tick) -> Option<Tick> {
        self.state_since.map(|since| since.min(now))
    }

    fn busy(&self, now: Tick) -> Option<Tick> {
        self.busy_until.filter(|until| *until > now)
    }

    fn is_frozen(&self) -> bool {
        self.active == Active::Frozen
    }
}

/// The record of what was never seen before.
pub(crate) fn fresh(seen: &Seen, now: Tick) -> Rec {
    let state = seen.settled().unwrap_or(State::Running);
    let runs = state == State::Running;
    let begun = seen.begun(now);
    let entered = seen.entered(now);
    let active = seen.activity(now);
    Rec {
        run: Some(seen.run),
        state,
        state_since: begun.filter(|_| runs).or(entered).unwrap_or(now),
        idle_from: active.map_or(now, |at| begun.filter(|_| runs).map_or(at, |begun| begun.max(at))),
        last_active: active,
        last_source: active.map(|_| Signal::Provider),
        frozen_since: seen.is_frozen().then_some(now),
        busy_until: seen.busy(now),
        running_since: begun,
        ..Rec::unseen(now)
    }
}

/// A claim on a middle state is its holder's to end.
fn is_anothers(rec: &Rec) -> bool {
    rec.claim.is_some() && rec.state.is_middle()
}

/// The record after the observation.
pub(crate) fn step(old: &Rec, seen: &Seen, now: Tick) -> Rec {
    let mut new = *old;
    if is_anothers(old) {
        return new;
    }
    let another = old.run.is_some_and(|run| run != seen.run);
    new.run = Some(seen.run);
    new.absent_since = None;
    match seen.settled() {
        Some(State::Running) => runs(&mut new, old, seen, another, now),
        Some(state) => rests(&mut new, old, seen, (state, another), now),
        None => {}
    }
    let thaws = new.frozen_since.is_some() && !seen.is_frozen();
    new.frozen_since = if seen.is_frozen() { new.frozen_since.or(Some(now)) } else { None };
    if thaws && new.state == State::Running && new.idle_from < now {
        new.idle_from = now;
        void(&mut new);
    }
    if let Some(at) = seen.activity(now) {
        active(&mut new, at, Signal::Provider);
    }
    new.busy_until = new.busy_until.max(seen.busy(now));
    new
}

fn runs(new: &mut Rec, old: &Rec, seen: &Seen, another: bool, now: Tick) {
    let begun = seen.begun(now);
    let came_up = old.state != State::Running;
    let again = begun.zip(old.running_since).is_some_and(|(begun, known)| begun > known + SKEW);
    if !(another || came_up || again) {
        new.running_since = old.running_since.or(begun);
        return;
    }
    let since = if came_up && !another { now } else { begun.unwrap_or(now) };
    (new.state, new.state_since, new.running_since) = (State::Running, since, Some(since));
    new.idle_from = old.idle_from.max(since);
    void(new);
    new.attempts = 0;
    if let Some(wanted) = new.wanted_at.take() {
        active(new, wanted, Signal::Heartbeat);
    }
}

fn rests(new: &mut Rec, old: &Rec, seen: &Seen, (state, another): (State, bool), now: Tick) {
    let entered = seen.entered(now);
    let again = old.state == state && entered.is_some_and(|since| since > old.state_since + SKEW);
    let ran = another || again;
    if old.state == state && !ran {
        return;
    }
    let since = entered.unwrap_or(now);
    (new.state, new.state_since, new.busy_until) = (state, since.max(old.state_since), None);
    if ran {
        new.idle_from = old.idle_from.max(since);
        new.running_since = seen.begun(now).or(old.running_since);
        void(new);
    }
}

/// A sign of activity: clocks move forward.
pub(crate) fn active(rec: &mut Rec, at: Tick, source: Signal) {
    if rec.last_active < Some(at) {
        (rec.last_active, rec.last_source) = (Some(at), Some(source));
    }
    if rec.idle_from < at {
        rec.idle_from = at;
        void(rec);
    }
}

/// What was decided on its standing still is void.
fn void(rec: &mut Rec) {
    (rec.shed, rec.condemned_at, rec.noticed_at) = (None, None, None);
}

/// A new due time where something changed or it is sooner; never later than a claim's end or a wish has set.
pub(crate) fn armed(mut new: Rec, old: Option<&Rec>, arm: Arm) -> Rec {
    if old.is_some_and(is_anothers) {
        return new;
    }
    (new.idle, new.cap_at) = (arm.idle, arm.cap);
    let known = old.and_then(|old| old.due_at);
    if old == Some(&new) && known.is_some_and(|known| known <= arm.due) {
        return new;
    }
    let pinned = new.claim.is_some() || new.wanted_at.is_some();
    new.due_at = Some(known.filter(|_| pinned).map_or(arm.due, |known| known.min(arm.due)));
    new.armed = Some(new.idle_from);
    new
}
