//! The transition table: what each operation does to a record, said without expressions.

use lifecycle::{Signal, State, Tier};

use super::{
    fault::Fault,
    observed::{self, Seen},
    record::{Arm, COALESCE, Claimed, Held, Rec, SKEW, Tick},
};

/// One operation with its arguments. Who asks says what time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Register { arm: Arm },
    Beat { epoch: Option<u8>, busy: Tick },
    Observe { seen: Seen, arm: Arm },
    Probed { run: u8, active: Option<Tick>, busy: Option<Tick> },
    Claim { ask: Ask, rule: Rule },
    TakeOver { token: i32, owner: u8, until: Tick },
    Wake { owner: u8, until: Tick },
    Complete { token: i32, end: End, saved: Option<Tick>, arm: Arm },
    HandOver { token: i32, look_again: Tick },
    Abandon { token: i32, back_to: State, failed: bool, due: Tick },
    Absent { token: i32, state: State, idle_from: Tick },
    Gone { token: i32, since: Tick },
    Noticed { token: i32 },
    Rearm { seen_due: Tick, horizon: Tick },
    Reschedule { token: i32, seen_due: Option<Tick>, arm: Arm },
    Hold { hold: Held },
    Release,
}

/// What every claim says of the runtime that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) epoch: u8,
    pub(crate) run: Option<u8>,
    pub(crate) token: Option<i32>,
    pub(crate) owner: u8,
    pub(crate) until: Tick,
}

/// On what evidence a claim is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    Idle { cutoff: Tick },
    NeverActive { cutoff: Tick },
    Lifetime { cutoff: Tick },
    Retention { cutoff: Tick },
    Delete { cutoff: Tick, noticed: Option<Tick>, saved: Option<Tick>, resting: Option<Tick> },
    Shed { cutoff: Tick },
    Notify { cutoff: Tick },
}

/// How a claim ends well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Stayed,
    Shed(Tier),
    Noticed,
    Suspended,
    Archived,
    Resumed(u8),
    Deleted,
}

/// Why a claim is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    NoRecord,
    Gone,
    State(State),
    Superseded(i32),
    Moved(Option<u8>),
    Claimed(Tick),
    Held,
    Wanted,
    Active(Tick),
    Since(Option<Tick>),
    Busy(Tick),
    NotNoticed,
    NotSaved,
}

/// What the ledger says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A claim is ours; a registration, an observation, a probe or a hold is written.
    Written,
    Lost(Lost),
    ClaimedUntil(Tick),
    Overtaken(Tick),
    Recorded,
    Coalesced,
    Unknown,
    Gone,
    Superseded(u8),
    NotRunning(State, Tick),
    Done {
        wanted: bool,
    },
    Fenced,
    DueAt(Tick),
    Look,
    Yes,
    No,
}

/// The record after the operation, and the answer. A fault is planted in it.
pub(crate) fn apply(fault: Option<Fault>, old: Option<&Rec>, op: &Op, now: Tick) -> (Option<Rec>, Answer) {
    let table = Table { fault, now };
    let Some(old) = old else { return table.without(op) };
    let mut new = *old;
    let answer = match *op {
        Op::Register { arm } => table.register(&mut new, arm),
        Op::Beat { epoch, busy } => table.beat(&mut new, epoch, busy),
        Op::Observe { seen, arm } => {
            new = observed::armed(observed::step(old, &seen, now), Some(old), arm);
            Answer::Written
        }
        Op::Probed { run, active, busy } => table.probed(&mut new, run, active, busy),
        Op::Claim { ask, rule } => table.claim(&mut new, &ask, rule),
        Op::TakeOver { token, owner, until } => table.take_over(&mut new, token, Claimed { owner, until }),
        Op::Wake { owner, until } => table.wake(&mut new, Claimed { owner, until }),
        Op::Complete { token, end, saved, arm } => table.complete(&mut new, token, end, saved, arm),
        Op::HandOver { token, look_again } => table.hand_over(&mut new, token, look_again),
        Op::Abandon { token, back_to, failed, due } => table.abandon(&mut new, token, back_to, failed, due),
        Op::Absent { token, state, idle_from } => table.absent(&mut new, (token, state, idle_from)),
        Op::Gone { token, since } => table.gone(&mut new, token, since),
        Op::Noticed { token } => table.noticed(&mut new, token),
        Op::Rearm { seen_due, horizon } => rearm(&mut new, seen_due, horizon),
        Op::Reschedule { token, seen_due, arm } => reschedule(&mut new, token, seen_due, arm),
        Op::Hold { hold } => table.hold(&mut new, hold),
        Op::Release => yes(new.hold.take().is_some()),
    };
    (Some(new), answer)
}

/// The table for one moment.
struct Table {
    fault: Option<Fault>,
    now: Tick,
}

impl Table {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Where there is no record.
    fn without(&self, op: &Op) -> (Option<Rec>, Answer) {
        let now = self.now;
        match *op {
            Op::Register { arm } => {
                let mut new = Rec::unseen(now);
                self.begin(&mut new, arm);
                (Some(new), Answer::Written)
            }
            Op::Observe { seen, arm } => {
                (Some(observed::armed(observed::fresh(&seen, now), None, arm)), Answer::Written)
            }
            Op::Hold { hold } => {
                let unseen = Rec::unseen(now);
                let held = Rec { hold: Some(hold), due_at: Some(now), armed: Some(now), ..unseen };
                (Some(held), Answer::Written)
            }
            Op::Beat { .. } => (None, Answer::Unknown),
            Op::Probed { .. } | Op::Claim { .. } | Op::TakeOver { .. } | Op::Wake { .. } => {
                (None, Answer::Lost(Lost::NoRecord))
            }
            Op::Complete { .. } | Op::HandOver { .. } | Op::Abandon { .. } | Op::Gone { .. } => (None, Answer::Fenced),
            Op::Absent { .. } | Op::Noticed { .. } | Op::Reschedule { .. } | Op::Release => (None, Answer::No),
            Op::Rearm { .. } => (None, Answer::Look),
        }
    }

    fn register(&self, rec: &mut Rec, arm: Arm) -> Answer {
        if let Some(claim) = rec.claim.filter(|_| rec.is_claimed(self.now) && !self.has(Fault::RegisterUnderAClaim)) {
            return Answer::ClaimedUntil(claim.until + SKEW);
        }
        if let Some(until) = self.overtaken(rec) {
            return Answer::Overtaken(until);
        }
        self.begin(rec, arm);
        Answer::Written
    }

    /// What the record knows is of after the registration was sent: from when on one would be of after that.
    fn overtaken(&self, rec: &Rec) -> Option<Tick> {
        let is_back = |at: Tick| at > self.now && !self.has(Fault::RegisterSetsTheClock);
        if rec.state == State::Running {
            return Some(rec.idle_from - SKEW).filter(|until| is_back(*until));
        }
        let rested = rec.state_since > self.now - SKEW && !self.has(Fault::RegisterOverARest);
        let rested = rested.then_some(rec.state_since + SKEW);
        rested.max(Some(rec.idle_from).filter(|at| is_back(*at)))
    }

    /// A new life. The run is what was observed last, and since when it runs, if it does; a hold holds on, a save stays
    /// where it is. What was heard by a clock that is ahead stands, and so does what it told of work.
    fn begin(&self, rec: &mut Rec, arm: Arm) {
        let ahead = rec.idle_from > self.now && !self.has(Fault::RegisterSetsTheClock);
        let now = if ahead { rec.idle_from } else { self.now };
        let runs = rec.state == State::Running;
        *rec = Rec {
            epoch: rec.epoch + 1,
            token: if self.has(Fault::TokenReset) { 1 } else { rec.token + 1 },
            run: rec.run,
            first_seen: rec.first_seen,
            hold: rec.hold,
            saved_as_of: rec.saved_as_of,
            busy_until: rec.busy_until.filter(|_| ahead),
            state_since: if runs { rec.state_since } else { now },
            running_since: Some(if runs { rec.running_since.unwrap_or(rec.state_since) } else { now }),
            last_active: Some(now),
            last_source: Some(Signal::Heartbeat),
            idle: arm.idle,
            cap_at: arm.cap,
            armed: Some(now),
            due_at: Some(arm.due),
            ..Rec::unseen(now)
        };
    }

    fn beat(&self, rec: &mut Rec, epoch: Option<u8>, busy: Tick) -> Answer {
        let now = self.now;
        if rec.state == State::Gone {
            return Answer::Gone;
        }
        if epoch.is_some_and(|epoch| epoch != rec.epoch) {
            return Answer::Superseded(rec.epoch);
        }
        if rec.state != State::Running && !self.has(Fault::BeatInAMiddleState) {
            return self.want(rec);
        }
        let busy = Some(now + busy).filter(|_| busy > 0);
        let longer = busy > rec.busy_until;
        let fresh = rec.idle_from < now || self.has(Fault::ClockBackwards);
        if longer {
            rec.busy_until = busy;
        }
        if fresh {
            (rec.idle_from, rec.last_active, rec.last_source) = (now, Some(now), Some(Signal::Heartbeat));
            (rec.shed, rec.absent_since, rec.frozen_since) = (None, None, None);
            (rec.condemned_at, rec.noticed_at) = (None, None);
        }
        if fresh || longer { Answer::Recorded } else { Answer::Coalesced }
    }

    /// A heartbeat that is refused asks for the runtime, once per coalesce.
    fn want(&self, rec: &mut Rec) -> Answer {
        let now = self.now;
        let known = rec.wanted_at.filter(|wanted| *wanted > now - COALESCE);
        if known.is_none() {
            rec.wanted_at = Some(now).filter(|_| !self.has(Fault::WishForgotten));
            if !self.has(Fault::WishNotDue) {
                rec.due_at = Some(now);
            }
        }
        Answer::NotRunning(rec.state, known.unwrap_or(now))
    }

    fn probed(&self, rec: &mut Rec, of: u8, active: Option<Tick>, busy: Option<Tick>) -> Answer {
        match rec.state {
            State::Gone => Answer::Lost(Lost::Gone),
            State::Running if rec.run == Some(of) => {
                if let Some(at) = active {
                    observed::active(rec, at.min(self.now), Signal::Probe);
                }
                rec.busy_until = rec.busy_until.max(busy.filter(|until| *until > self.now));
                Answer::Written
            }
            State::Running => Answer::Lost(Lost::Moved(rec.run)),
            state => Answer::Lost(Lost::State(state)),
        }
    }

    fn claim(&self, rec: &mut Rec, ask: &Ask, rule: Rule) -> Answer {
        if let Some(lost) = self.refused(rec, ask).or_else(|| self.too_new(rec, rule)) {
            return Answer::Lost(lost);
        }
        rec.state = ask.to;
        if matches!(rule, Rule::Notify { .. }) {
            rec.condemned_at = rec.condemned_at.or(Some(self.now));
        }
        self.take(rec, Claimed { owner: ask.owner, until: ask.until })
    }

    /// What a claim demands whatever its rule.
    fn refused(&self, rec: &Rec, ask: &Ask) -> Option<Lost> {
        let claimed = self.claimed(rec);
        if rec.state == State::Gone {
            return Some(Lost::Gone);
        }
        if rec.epoch != ask.epoch || ask.token.is_some_and(|token| token != rec.token) {
            return Some(claimed.unwrap_or(Lost::Superseded(rec.token)));
        }
        if rec.state != ask.from {
            return Some(claimed.unwrap_or(Lost::State(rec.state)));
        }
        if rec.run != ask.run {
            return Some(Lost::Moved(rec.run));
        }
        if rec.is_held(self.now) && !self.has(Fault::HoldIgnored) {
            return Some(Lost::Held);
        }
        claimed.or_else(|| (rec.wanted_at.is_some() && !self.has(Fault::WishIgnored)).then_some(Lost::Wanted))
    }

    fn claimed(&self, rec: &Rec) -> Option<Lost> {
        let until = rec.claim?.until;
        let free = match self.fault {
            Some(Fault::SkewLeftOut) => until <= self.now,
            Some(Fault::ClaimOverALiveOne) => true,
            _ => !rec.is_claimed(self.now),
        };
        (!free).then_some(Lost::Claimed(until + SKEW))
    }

    fn too_new(&self, rec: &Rec, rule: Rule) -> Option<Lost> {
        match rule {
            Rule::Idle { cutoff } | Rule::Shed { cutoff } => self.active(rec, cutoff),
            Rule::NeverActive { cutoff } => match rec.last_active {
                Some(active) => Some(Lost::Active(active.max(rec.idle_from))),
                None => since(Some(rec.first_seen), cutoff).or_else(|| self.active(rec, cutoff)),
            },
            Rule::Lifetime { cutoff } => since(rec.running_since, cutoff),
            Rule::Retention { cutoff } => since(Some(rec.state_since), cutoff),
            Rule::Notify { cutoff } => self.active(rec, cutoff).or_else(|| {
                let rests = rec.state != State::Running;
                since(Some(rec.state_since), cutoff).filter(|_| rests)
            }),
            Rule::Delete { cutoff, noticed, saved, resting } => {
                let due = match resting {
                    Some(cutoff) => self.active(rec, cutoff),
                    None => since(Some(rec.state_since), cutoff),
                };
                let told = |by| rec.condemned_at.is_some() && rec.noticed_at.is_some_and(|at| at <= by);
                let kept = |from| rec.saved_as_of.is_some_and(|at| at >= from && at >= rec.idle_from);
                due.or_else(|| noticed.filter(|by| !told(*by)).map(|_| Lost::NotNoticed))
                    .or_else(|| saved.filter(|from| !kept(*from)).map(|_| Lost::NotSaved))
            }
        }
    }

    /// Active, thawed or at work since the cutoff.
    fn active(&self, rec: &Rec, cutoff: Tick) -> Option<Lost> {
        let idle_from = rec.frozen_since.map_or(rec.idle_from, |frozen| frozen.max(rec.idle_from));
        if idle_from > cutoff && !self.has(Fault::ActivityIgnored) {
            return Some(Lost::Active(idle_from));
        }
        let busy = rec.busy_until.filter(|until| *until > self.now);
        busy.map(Lost::Busy)
    }

    /// The claim is written. It stays in the due index, past its end and the skew.
    fn take(&self, rec: &mut Rec, claim: Claimed) -> Answer {
        rec.claim = Some(claim);
        rec.token += 1;
        rec.due_at = match self.fault {
            Some(Fault::ClaimLeavesTheIndex) => None,
            Some(Fault::ClaimDueTooLate) => Some(claim.until + SKEW + 1),
            _ => Some(claim.until + SKEW),
        };
        Answer::Written
    }

    fn take_over(&self, rec: &mut Rec, expected: i32, claim: Claimed) -> Answer {
        if let Some(lost) = self.claimed(rec) {
            return Answer::Lost(lost);
        }
        match rec.state {
            _ if rec.token == expected && rec.claim.is_some() => self.take(rec, claim),
            State::Gone => Answer::Lost(Lost::Gone),
            _ if rec.token != expected => Answer::Lost(Lost::Superseded(rec.token)),
            state => Answer::Lost(Lost::State(state)),
        }
    }

    fn wake(&self, rec: &mut Rec, claim: Claimed) -> Answer {
        if let Some(lost) = self.claimed(rec).filter(|_| !self.has(Fault::WakeBesideAClaim)) {
            return Answer::Lost(lost);
        }
        match rec.state {
            State::Suspended | State::Archived => {
                rec.state = State::Resuming;
                (rec.condemned_at, rec.noticed_at) = (None, None);
                self.take(rec, claim)
            }
            State::Gone => Answer::Lost(Lost::Gone),
            state => Answer::Lost(Lost::State(state)),
        }
    }

    fn is_own(&self, rec: &Rec, token: i32) -> bool {
        rec.claim.is_some() && (rec.token == token || self.has(Fault::EndWithoutToken))
    }

    fn complete(&self, rec: &mut Rec, token: i32, end: End, saved: Option<Tick>, arm: Arm) -> Answer {
        let into = match end {
            End::Stayed | End::Shed(_) | End::Noticed => None,
            End::Suspended => Some(State::Suspended),
            End::Archived => Some(State::Archived),
            End::Resumed(_) => Some(State::Running),
            End::Deleted => Some(State::Gone),
        };
        if !self.is_own(rec, token) {
            return told_again(rec, token, into);
        }
        match end {
            End::Deleted => {
                self.bury(rec);
                return Answer::Done { wanted: false };
            }
            End::Resumed(run) => self.resume(rec, run),
            End::Suspended | End::Archived => self.settle(rec, into.unwrap_or(rec.state)),
            End::Shed(tier) => rec.shed = Some(tier),
            End::Noticed if rec.condemned_at.is_some() && rec.wanted_at.is_none() => rec.noticed_at = Some(self.now),
            End::Noticed | End::Stayed => {}
        }
        let now = rec.wanted_at.is_some() && !self.has(Fault::EndOverAWish);
        (rec.claim, rec.attempts, rec.armed) = (None, 0, Some(rec.idle_from));
        (rec.idle, rec.cap_at) = (arm.idle, arm.cap);
        rec.due_at = Some(if now { self.now } else { arm.due });
        rec.saved_as_of = saved.or(rec.saved_as_of);
        Answer::Done { wanted: rec.wanted_at.is_some() }
    }

    fn settle(&self, rec: &mut Rec, state: State) {
        (rec.state, rec.state_since) = (state, self.now);
        (rec.busy_until, rec.frozen_since) = (None, None);
        if self.has(Fault::OwnTraceCounts) {
            rec.idle_from = self.now;
        }
    }

    fn resume(&self, rec: &mut Rec, run: u8) {
        let now = self.now;
        (rec.state, rec.state_since, rec.running_since, rec.idle_from) = (State::Running, now, Some(now), now);
        rec.run = Some(run);
        (rec.wanted_at, rec.absent_since, rec.shed, rec.condemned_at) = (None, None, None, None);
        (rec.noticed_at, rec.busy_until, rec.frozen_since) = (None, None, None);
    }

    /// A tombstone: nothing in it can come due, be claimed or be held.
    fn bury(&self, rec: &mut Rec) {
        (rec.state, rec.state_since) = (State::Gone, self.now);
        (rec.claim, rec.attempts, rec.wanted_at) = (None, 0, None);
        (rec.condemned_at, rec.noticed_at, rec.busy_until, rec.frozen_since) = (None, None, None, None);
        (rec.hold, rec.due_at, rec.armed, rec.idle, rec.cap_at) = (None, None, None, None, None);
        rec.absent_since = None;
    }

    fn hand_over(&self, rec: &mut Rec, token: i32, look_again: Tick) -> Answer {
        match rec.claim {
            Some(claim) if rec.token == token => {
                rec.claim = Some(Claimed { until: self.now, ..claim });
                rec.due_at = Some(look_again.max(self.now + SKEW));
                Answer::Done { wanted: rec.wanted_at.is_some() }
            }
            _ => Answer::Fenced,
        }
    }

    fn abandon(&self, rec: &mut Rec, token: i32, back_to: State, failed: bool, due: Tick) -> Answer {
        if !self.is_own(rec, token) {
            return told_again(rec, token, Some(back_to));
        }
        let enters = back_to == State::Running && rec.state != State::Running;
        (rec.state, rec.claim) = (back_to, None);
        rec.attempts += u8::from(failed);
        let mut due = due;
        if enters {
            rec.wanted_at = None;
            if !self.has(Fault::AbandonLeavesTheClock) {
                (rec.idle_from, rec.armed) = (self.now, Some(self.now));
            }
        } else if rec.wanted_at.is_some() && !failed {
            due = self.now;
        }
        rec.due_at = Some(due);
        Answer::Done { wanted: rec.wanted_at.is_some() }
    }

    fn absent(&self, rec: &mut Rec, read: (i32, State, Tick)) -> Answer {
        let as_read = read == (rec.token, rec.state, rec.idle_from);
        let first = as_read && rec.state != State::Gone && rec.absent_since.is_none() && !rec.is_claimed(self.now);
        if first {
            rec.absent_since = Some(self.now);
        }
        yes(first)
    }

    fn gone(&self, rec: &mut Rec, token: i32, since: Tick) -> Answer {
        let apart = since < self.now || self.has(Fault::SecondSightingDropped);
        if rec.token != token || rec.absent_since != Some(since) || !apart || rec.is_claimed(self.now) {
            return Answer::Fenced;
        }
        self.bury(rec);
        Answer::Done { wanted: false }
    }

    fn noticed(&self, rec: &mut Rec, token: i32) -> Answer {
        let stands = rec.token == token && rec.condemned_at.is_some();
        if stands {
            rec.noticed_at = Some(self.now);
        }
        yes(stands)
    }

    fn hold(&self, rec: &mut Rec, hold: Held) -> Answer {
        if rec.state == State::Gone {
            return Answer::Gone;
        }
        rec.hold = Some(hold);
        if !self.has(Fault::CondemnedAfterAHold) {
            (rec.condemned_at, rec.noticed_at) = (None, None);
        }
        Answer::Written
    }
}

/// Our own end, told again: the token is still ours, no claim is left, and the state is what we wrote.
fn told_again(rec: &Rec, token: i32, into: Option<State>) -> Answer {
    if rec.token == token && rec.claim.is_none() && into.is_none_or(|state| state == rec.state) {
        return Answer::Done { wanted: rec.wanted_at.is_some() };
    }
    Answer::Fenced
}

fn since(since: Option<Tick>, cutoff: Tick) -> Option<Lost> {
    since.is_none_or(|since| since > cutoff).then_some(Lost::Since(since))
}

fn rearm(rec: &mut Rec, seen_due: Tick, horizon: Tick) -> Answer {
    let was_active = rec.armed.is_some_and(|armed| rec.idle_from > armed);
    let as_seen = rec.state == State::Running && rec.due_at == Some(seen_due);
    let free = rec.cap_at.is_none_or(|cap| cap > horizon) && rec.claim.is_none();
    match rec.idle {
        Some(idle) if as_seen && was_active && free => {
            (rec.due_at, rec.armed) = (Some(rec.idle_from + idle), Some(rec.idle_from));
            Answer::DueAt(rec.idle_from + idle)
        }
        _ => Answer::Look,
    }
}

fn reschedule(rec: &mut Rec, token: i32, seen_due: Option<Tick>, arm: Arm) -> Answer {
    let as_seen = rec.token == token && seen_due.is_none_or(|seen| rec.due_at == Some(seen));
    let stands = as_seen && rec.state != State::Gone;
    if stands {
        (rec.due_at, rec.armed) = (Some(arm.due), Some(rec.idle_from));
        (rec.idle, rec.cap_at) = (arm.idle, arm.cap);
    }
    yes(stands)
}

fn yes(it_is: bool) -> Answer {
    if it_is { Answer::Yes } else { Answer::No }
}
