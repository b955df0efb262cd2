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
