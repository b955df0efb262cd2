//! The injected clock.

use std::{fmt, sync::Arc};

use lifecycle::Time;

/// Tells the time. The real one is made in `settings`; a simulation makes its own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Time + Send + Sync>);

impl Clock {
    /// From whatever tells the time.
    pub fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// A clock that stands still.
    pub fn fixed(now: Time) -> Self {
        Self::new(move || now)
    }

    /// The time now.
    pub fn now(&self) -> Time {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
