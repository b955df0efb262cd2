//! The pace of requests: what a provider allows is shared with the product, which needs room.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    time::{Interval, MissedTickBehavior, interval},
};

/// At most one request per gap, evenly and without bursts, over all calls of one backend.
#[derive(Debug, Clone)]
pub struct Pace {
    /// `None`: shorter than the timer's own step, which would be waited instead.
    gap: Option<Duration>,
    interval: Arc<Mutex<Option<Interval>>>,
}

impl Pace {
    /// At most `calls` per `period`.
    pub fn new(calls: NonZeroU32, period: Duration) -> Self {
        let gap = Some(period / calls.get()).filter(|gap| *gap >= Duration::from_millis(1));
        Self { gap, interval: Arc::default() }
    }

    /// Waits for this request's turn.
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
}
