//! The same case at another time: what a condition compares is what is before and after what, and which fence is whose.

use super::{
    observed::{Active, Seen},
    record::{Arm, Claimed, Held, Rec, Tick},
    table::{Ask, Op, Rule},
    world::Case,
};

/// When every case happens, and the fence of its record.
const NOW: Tick = 50;
const TOKEN: i32 = 7;

/// The case at [`NOW`].
pub(crate) fn shifted((rec, op, now): Case) -> Case {
    let by = By { ticks: NOW - now, token: [rec.map_or(0, |rec| rec.token), TOKEN] };
    (rec.map(|rec| by.rec(rec)), by.op(op), NOW)
}

/// An operation with times relative to `now`, and with fence 0 for the record's.
pub(crate) fn aimed_at(op: Op, token: i32, now: Tick) -> Op {
    By { ticks: now, token: [0, token] }.op(op)
}

struct By {
    ticks: Tick,
    /// The record's fence, before and after.
    token: [i32; 2],
}

impl By {
    fn at(&self, tick: Tick) -> Tick {
        tick + self.ticks
    }

    fn maybe(&self, tick: Option<Tick>) -> Option<Tick> {
        tick.map(|tick| self.at(tick))
    }

    /// The record's own, or another.
    fn token(&self, token: i32) -> i32 {
        if token == self.token[0] { self.token[1] } else { self.token[1] - 1 }
    }

    fn hold(&self, hold: Held) -> Held {
        match hold {
            Held::Until(until) => Held::Until(self.at(until)),
            Held::Forever => Held::Forever,
        }
    }

    fn arm(&self, arm: Arm) -> Arm {
        Arm { cap: self.maybe(arm.cap), due: self.at(arm.due), ..arm }
    }

    fn rec(&self, rec: Rec) -> Rec {
        Rec {
            state_since: self.at(rec.state_since),
            first_seen: self.at(rec.first_seen),
            idle_from: self.at(rec.idle_from),
            last_active: self.maybe(rec.last_active),
            frozen_since: self.maybe(rec.frozen_since),
            busy_until: self.maybe(rec.busy_until),
            running_since: self.maybe(rec.running_since),
            cap_at: self.maybe(rec.cap_at),
            armed: self.maybe(rec.armed),
            hold: rec.hold.map(|hold| self.hold(hold)),
            wanted_at: self.maybe(rec.wanted_at),
            absent_since: self.maybe(rec.absent_since),
            condemned_at: self.maybe(rec.condemned_at),
            noticed_at: self.maybe(rec.noticed_at),
            saved_as_of: self.maybe(rec.saved_as_of),
            claim: rec.claim.map(|claim| Claimed { until: self.at(claim.until), ..claim }),
            token: TOKEN,
            due_at: self.maybe(rec.due_at),
            ..rec
        }
    }

    fn op(&self, op: Op) -> Op {
        match op {
            Op::Register { arm } => Op::Register { arm: self.arm(arm) },
            Op::Beat { .. } | Op::Release => op,
            Op::Observe { seen, arm } => Op::Observe { seen: self.seen(seen), arm: self.arm(arm) },
            Op::Probed { run, active, busy } => Op::Probed { run, active: self.maybe(active), busy: self.maybe(busy) },
            Op::Claim { ask, rule } => {
                let token = ask.token.map(|token| self.token(token));
                Op::Claim { ask: Ask { token, until: self.at(ask.until), ..ask }, rule: self.rule(rule) }
            }
            Op::TakeOver { token, owner, until } => {
                Op::TakeOver { token: self.token(token), owner, until: self.at(until) }
            }
            Op::Wake { owner, until } => Op::Wake { owner, until: self.at(until) },
            Op::Complete { token, end, saved, arm } => {
                Op::Complete { token: self.token(token), end, saved: self.maybe(saved), arm: self.arm(arm) }
            }
            Op::HandOver { token, look_again } => {
                Op::HandOver { token: self.token(token), look_again: self.at(look_again) }
            }
            Op::Abandon { token, back_to, failed, due } => {
                Op::Abandon { token: self.token(token), back_to, failed, due: self.at(due) }
            }
            Op::Absent { token, state, idle_from } => {
                Op::Absent { token: self.token(token), state, idle_from: self.at(idle_from) }
            }
            Op::Gone { token, since } => Op::Gone { token: self.token(token), since: self.at(since) },
            Op::Noticed { token } => Op::Noticed { token: self.token(token) },
            Op::Rearm { seen_due, horizon } => Op::Rearm { seen_due: self.at(seen_due), horizon: self.at(horizon) },
            Op::Reschedule { token, seen_due, arm } => {
                Op::Reschedule { token: self.token(token), seen_due: self.maybe(seen_due), arm: self.arm(arm) }
            }
            Op::Hold { hold } => Op::Hold { hold: self.hold(hold) },
        }
    }

    fn seen(&self, seen: Seen) -> Seen {
        Seen {
            state_since: self.maybe(seen.state_since),
            running_since: self.maybe(seen.running_since),
            active: match seen.active {
                Active::At(at) => Active::At(self.at(at)),
                other => other,
            },
            busy_until: self.maybe(seen.busy_until),
            ..seen
        }
    }

    fn rule(&self, rule: Rule) -> Rule {
        match rule {
            Rule::Idle { cutoff } => Rule::Idle { cutoff: self.at(cutoff) },
            Rule::NeverActive { cutoff } => Rule::NeverActive { cutoff: self.at(cutoff) },
            Rule::Lifetime { cutoff } => Rule::Lifetime { cutoff: self.at(cutoff) },
            Rule::Retention { cutoff } => Rule::Retention { cutoff: self.at(cutoff) },
            Rule::Shed { cutoff } => Rule::Shed { cutoff: self.at(cutoff) },
            Rule::Notify { cutoff } => Rule::Notify { cutoff: self.at(cutoff) },
            Rule::Delete { cutoff, noticed, saved, resting } => Rule::Delete {
                cutoff: self.at(cutoff),
                noticed: self.maybe(noticed),
                saved: self.maybe(saved),
                resting: self.maybe(resting),
            },
        }
    }
}
