//! One unit's part of a pass: who, until when, and what is asked of whom.

use std::time::Duration;

use ledger::Ledger;
use lifecycle::{BackendName, Claim, Policy, Rules, Time};

use crate::{Limits, Pass, Unit, call::Calls};

/// What every step of a unit's part of a pass is given.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) pass: &'a Pass,
    pub(crate) unit: &'a Unit,
    /// After this nothing new is begun.
    pub(crate) deadline: Time,
}

impl<'a> Context<'a> {
    pub(crate) fn now(&self) -> Time {
        self.pass.clock.now()
    }

    pub(crate) fn name(&self) -> &'a BackendName {
        &self.unit.backend.name
    }

    pub(crate) fn ledger(&self) -> &'a Ledger {
        &self.pass.ledger
    }

    pub(crate) fn policy(&self) -> &'a Policy {
        &self.pass.policy
    }

    pub(crate) fn limits(&self) -> &'a Limits {
        &self.pass.limits
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.limits().concurrency.max(1)
    }

    pub(crate) fn calls(&self) -> Calls<'a> {
        Calls { unit: self.unit, clock: &self.pass.clock, limits: &self.pass.limits }
    }

    /// Why nothing new is begun, if that is so.
    pub(crate) fn out_of_time(&self) -> Option<String> {
        if self.pass.watch.stopped() {
            return Some("the pass was interrupted".to_owned());
        }
        let now = self.now();
        if now >= self.deadline {
            return Some("the pass was out of time".to_owned());
        }
        self.unit.gate.closed(now).map(|until| format!("the backend asked to wait until {until}"))
    }

    /// Until when a claim made now lasts: two looks and as long again for the ledger's answers, the act, and
    /// the difference of two clocks.
    pub(crate) fn claim_until(&self, now: Time) -> Time {
        let limits = self.limits();
        let looks = limits.look_timeout.saturating_mul(3);
        now.plus(looks.saturating_add(limits.act_timeout)).plus(self.policy().skew)
    }

    /// By when every call under such a claim has ended.
    pub(crate) fn act_until(&self, until: Time) -> Time {
        until.minus(self.policy().skew)
    }

    /// From when another hand may have what this one has: its end, by whichever clock.
    pub(crate) fn freed(&self, claim: &Claim) -> Time {
        claim.until.plus(self.policy().skew)
    }

    /// How far apart two sightings of an absence are at least, by whichever clocks: else they could be of one moment.
    pub(crate) fn apart(&self) -> Duration {
        self.limits().absent_apart.saturating_add(self.policy().skew)
    }

    /// How long a runtime that failed so often waits.
    pub(crate) fn backoff(&self, attempts: u32) -> Duration {
        let limits = self.limits();
        let doubled = limits.backoff.saturating_mul(1_u32.checked_shl(attempts.min(31)).unwrap_or(u32::MAX));
        doubled.min(limits.backoff_max)
    }

    /// The rules that apply to a runtime with these labels.
    pub(crate) fn rules(&self, labels: &lifecycle::observation::Labels) -> Option<&'a Rules> {
        let mut rules = self.policy().rules.iter();
        rules.find(|rules| rules.matches.backend(self.name()) && rules.matches.labels(labels))
    }
}
