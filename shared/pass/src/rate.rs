//! The pace at which a backend is called: its rate is shared with the product, which needs room.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use lifecycle::Time;
use tokio::{
    sync::Mutex,
    time::{Interval, MissedTickBehavior, interval},
};

/// At most one call per gap, and none after the backend said "too many requests".
///
/// Even spacing and no bursts: the provider counts the product's calls too, and a burst of ours would
/// push theirs over the limit. The gap is measured on the runtime's timer, which a simulation drives.
#[derive(Debug, Default)]
pub struct Gate {
    gap: Option<Duration>,
    interval: Mutex<Option<Interval>>,
    /// Milliseconds since the epoch before which nothing is asked; 0: no such time.
    closed_until: AtomicI64,
}

impl Gate {
    /// At most `calls` per `period`. A rate of zero does not exist: `settings` refuses it.
    pub fn per(calls: std::num::NonZeroU32, period: Duration) -> Self {
        Self { gap: Some(period / calls.get()).filter(|gap| !gap.is_zero()), ..Self::default() }
    }

    /// No limit: a local engine, a disk.
    pub fn open() -> Self {
        Self::default()
    }

    /// Waits for this call's turn.
    pub async fn turn(&self) {
        let Some(gap) = self.gap else { return };
        let mut slot = self.interval.lock().await;
        let interval = slot.get_or_insert_with(|| {
            let mut interval = interval(gap);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        interval.tick().await;
    }

    /// The backend said not before then. The rest is left to a later pass.
    pub fn close(&self, until: Time) {
        self.closed_until.fetch_max(until.millis(), Ordering::Relaxed);
    }

    /// Until when nothing is asked, if that is still to come.
    pub fn closed(&self, now: Time) -> Option<Time> {
        let until = Time::from_millis(self.closed_until.load(Ordering::Relaxed));
        (now < until).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn the_first_call_goes_at_once_and_the_next_waits_for_its_gap() {
        let gate = Gate::per(NonZeroU32::MIN, Duration::from_hours(1));
        gate.turn().await;
        assert!(gate.turn().now_or_never().is_none());
        let open = Gate::open();
        assert!(open.turn().now_or_never().is_some() && open.turn().now_or_never().is_some());
    }

    #[test]
    fn too_many_requests_closes_it_until_then_and_never_sooner() {
        let at = |seconds: i64| Time::from_millis(seconds * 1_000);
        let gate = Gate::open();
        assert_eq!(gate.closed(at(0)), None);
        gate.close(at(60));
        gate.close(at(30));
        assert_eq!((gate.closed(at(59)), gate.closed(at(60))), (Some(at(60)), None));
    }
}
