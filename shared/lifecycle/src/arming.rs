//! When a tick must look at a runtime: what the ledger's due index is fed with.

use serde::{Deserialize, Serialize};

use crate::{
    Action, NativeDeadline, Policy, Reason, Subject, Tier, Time, UnitSnapshot,
    judge::{Decision, Facts, Judge, Silent, earlier},
};

/// When a runtime comes due. Never later than what could become true by time alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arming {
    /// How long after its activity clock it can first come due, in milliseconds: the shortest limit that
    /// any rule counts from activity, + coalesce + skew. `None`: no such rule.
    pub idle_ms: Option<u64>,
    /// The earliest hard deadline, which activity can't move (lifetime, the provider's own).
    pub cap_at: Option<Time>,
    /// When a tick must look next. `None`: nothing can come due by time alone; a sweep sees what changes.
    pub due_at: Option<Time>,
}

/// When `subject` comes due under `policy`. Give it the record as it will be written: what has no record
/// yet waits for one.
pub fn arming(subject: &Subject, unit: &UnitSnapshot, policy: &Policy, now: Time) -> Arming {
    Judge::new(unit, policy, now).arming(subject)
}

impl Judge<'_> {
    /// As [`arming`], for many runtimes of one backend.
    pub fn arming(&self, subject: &Subject) -> Arming {
        let judged = self.judge(subject, &mut Silent);
        let claim = subject.record.as_ref().and_then(|record| record.claim.as_ref());
        // A claim that ended gives the right to look, then to finish or abandon, whatever else keeps the runtime.
        let freed = claim.map(|claim| claim.until.plus(self.policy.skew));
        let due_at = match judged.decision {
            Decision::Want(..) => Some(self.now),
            Decision::Keep(Reason::Claimed { .. } | Reason::Middle { .. }, _) => Some(freed.unwrap_or(self.now)),
            Decision::Keep(_, next) => earlier(next, freed),
        };
        match &judged.facts {
            Some(facts) => Arming { idle_ms: self.idle_ms(facts), cap_at: self.cap_at(facts), due_at },
            None => Arming { idle_ms: None, cap_at: None, due_at },
        }
    }

    /// The shortest of all limits that count from activity and have the role that they need.
    fn idle_ms(&self, facts: &Facts<'_>) -> Option<u64> {
        let limits = facts.active?.limits;
        let rests = self.unit.can.rests;
        let idle = match (facts.shortest, rests) {
            (Some(shortest), false) if facts.lacks(self, Action::Suspend).is_none() => Some(shortest),
            (Some(shortest), true) => limits.suspended.map(|keep| shortest.saturating_add(keep)),
            _ => None,
        };
        let files = [limits.caches, limits.dependencies];
        let files = files.into_iter().flatten().min();
        let files = files.filter(|_| facts.lacks(self, Action::Shed(Tier::Caches)).is_none());
        let limit = [idle, files].into_iter().flatten().min()?;
        u64::try_from(limit.saturating_add(self.slack).as_millis()).ok()
    }

    fn cap_at(&self, facts: &Facts<'_>) -> Option<Time> {
        let max = facts.active.and_then(|active| active.limits.lifetime).filter(|_| !self.unit.can.rests);
        let lifetime = facts.running_since().zip(max).map(|(since, max)| self.due(since, max));
        let native = facts.seen.native.as_ref().and_then(|native| native.deadline);
        let native = native.map(|NativeDeadline { at, .. }| at);
        earlier(lifetime, native)
    }
}
