//! Breakers: when so much looks wrong at once that the fault is more likely ours, a pass only reports.

use super::make::Counts;
use crate::{
    Signal, State,
    judge::{Clock, Facts, Judge},
    verdict::Breaker,
};

/// Running records that live by heartbeats, and those of them that fell silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Silence {
    fed: u64,
    silent: u64,
}

const MILLIONTHS: u64 = 1_000_000;

impl Silence {
    pub(super) fn count(&mut self, facts: &Facts<'_>, judge: &Judge<'_>) {
        let fed = facts
            .record
            .is_some_and(|record| record.state == State::Running && record.last_source == Some(Signal::Heartbeat));
        let judged = facts.seen.state == State::Running && facts.after.is_some();
        if fed && judged && matches!(facts.clock, Clock::Since(_)) {
            self.fed += 1;
            self.silent += u64::from(facts.overdue(judge).is_some());
        }
    }

    /// The share found silent, in millionths; `None` when no record lives by heartbeats.
    fn millionths(self) -> Option<u32> {
        let share = u128::from(self.silent) * u128::from(MILLIONTHS) / u128::from(self.fed).max(1);
        (self.fed > 0).then(|| u32::try_from(share).unwrap_or(u32::MAX))
    }

    pub(super) fn share(self) -> Option<f64> {
        self.millionths().map(|share| f64::from(share) / 1_000_000.0)
    }
}

/// The breaker that is open, if one is.
pub(super) fn tripped(judge: &Judge<'_>, counts: &Counts) -> Option<Breaker> {
    if shrank(judge, counts.ours) {
        return Some(Breaker::InventoryDrop);
    }
    let allowed = judge.policy.breakers.silent?;
    let mean = judge.unit.silent_mean.filter(|mean| (0.0..=1.0).contains(mean)).unwrap_or(0.0);
    let share = counts.silence.share()?;
    (share > mean + f64::from(allowed.get()) / 100.0).then_some(Breaker::Silent)
}

/// Whether a complete inventory is smaller than the last by more than the policy allows. An incomplete
/// one tells nothing of what it lacks.
fn shrank(judge: &Judge<'_>, ours: u64) -> bool {
    let (Some(drop), Some(last)) = (judge.policy.breakers.inventory_drop, judge.unit.last_sweep) else { return false };
    let floor = u128::from(last.count) * u128::from(100 - drop.get());
    judge.unit.listing.complete && u128::from(ours) * 100 < floor
}
