//! Why a condition failed, from what stood there. The order is that of what a caller must know first.

use lifecycle::{Record, State, Time};

use crate::{ClaimRequest, ClaimRule, Ledger, Lost};

impl Ledger {
    /// Why `request` lost against `old`. `None`: nothing in the record explains it.
    pub(crate) fn why_not(&self, request: &ClaimRequest, old: &Record, now: Time) -> Option<Lost> {
        if old.state == State::Gone {
            return Some(Lost::Gone);
        }
        if old.epoch != request.epoch || request.token.is_some_and(|token| token != old.token) {
            return Some(self.claimed(old, now).unwrap_or(Lost::Superseded { token: old.token }));
        }
        if old.state != request.from {
            return Some(self.claimed(old, now).unwrap_or(Lost::State { state: old.state }));
        }
        if old.incarnation != request.incarnation {
            return Some(Lost::Moved { incarnation: old.incarnation.clone() });
        }
        if old.hold_until.is_some_and(|hold| hold.holds(now)) {
            return Some(Lost::Held);
        }
        if let Some(claimed) = self.claimed(old, now) {
            return Some(claimed);
        }
        if old.wanted_at.is_some() {
            return Some(Lost::Wanted);
        }
        rule(&request.rule, old, now)
    }

    /// A claim that is live, or ended too short a time ago for clocks that differ.
    pub(crate) fn claimed(&self, old: &Record, now: Time) -> Option<Lost> {
        let until = old.claim.as_ref()?.until;
        (until > self.expired(now)).then(|| Lost::Claimed { until: until.plus(self.options.skew) })
    }
}

fn rule(rule: &ClaimRule, old: &Record, now: Time) -> Option<Lost> {
    let since =
        |since: Option<Time>, cutoff: Time| since.is_none_or(|since| since > cutoff).then_some(Lost::Since { since });
    match *rule {
        ClaimRule::Idle { cutoff } | ClaimRule::Shed { cutoff } => quiet(old, cutoff, now),
        ClaimRule::NeverActive { cutoff } => match old.last_active {
            Some(active) => Some(Lost::Active { idle_from: active.max(old.idle_from) }),
            None => since(Some(old.first_seen), cutoff).or_else(|| quiet(old, cutoff, now)),
        },
        ClaimRule::Lifetime { cutoff } => since(old.running_since, cutoff),
        ClaimRule::Retention { cutoff } => since(Some(old.state_since), cutoff),
        ClaimRule::Notify { cutoff } => quiet(old, cutoff, now)
            .or_else(|| (old.state != State::Running).then(|| since(Some(old.state_since), cutoff)).flatten()),
        ClaimRule::Delete { cutoff, noticed, saved, resting } => {
            let due = match resting {
                Some(cutoff) => quiet(old, cutoff, now),
                None => since(Some(old.state_since), cutoff),
            };
            let told = |latest: Time| old.condemned_at.is_some() && old.noticed_at.is_some_and(|at| at <= latest);
            let kept = |least: Time| old.saved_as_of.is_some_and(|at| at >= least && at >= old.idle_from);
            due.or_else(|| noticed.is_some_and(|latest| !told(latest)).then_some(Lost::NotNoticed))
                .or_else(|| saved.is_some_and(|least| !kept(least)).then_some(Lost::NotSaved))
        }
    }
}

/// No activity after the cutoff, not thawed after it, not busy.
fn quiet(old: &Record, cutoff: Time, now: Time) -> Option<Lost> {
    let idle_from = old.frozen_since.map_or(old.idle_from, |frozen| frozen.max(old.idle_from));
    if idle_from > cutoff {
        return Some(Lost::Active { idle_from });
    }
    old.busy_until.filter(|until| *until > now).map(|until| Lost::Busy { until })
}
