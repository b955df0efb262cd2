//! One fleet for an hour on two designs: Furlough's, and that of a monitor with an index of states.
//!
//! ```text
//!             ┌─ heartbeats, conditional ─► ledger ◄─ due index, a tick a minute, a sweep an hour ─ pass
//! Fleet (t) ──┤
//!             └─ writes, unconditional ──► table ◄── index (status, last activity), a scan each 5 minutes ─ loop
//! ```
//!
//! Both on the embedded engine, through the AWS SDK, with the same half hour until idle; a [`meter`] between them counts
//! requests and the units that the engine tells. The engine shows no lag of an index, no throttling and no network, so a
//! wall time is that of the work and not of AWS. [`monitor`] is the peer's design rebuilt in our words, with what it
//! lacks for large fleets (pages) added and without its second index, which costs it one more unit a heartbeat.
//!
//! **What is not compared** is what the designs give for it: the monitor has no claim, no second look, no audit, and stops
//! what came back between its query and its loop.

pub(crate) mod fleet;
pub(crate) mod furlough;
pub(crate) mod meter;
pub(crate) mod monitor;

use std::time::{Duration, Instant};

use meter::{Meter, Spent};

/// What a part of the hour took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) spent: Spent,
    pub(crate) wall: Duration,
}

/// An hour of a fleet on one of the designs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Hour {
    /// Signs of life that came in, and those that were written.
    pub(crate) heartbeats: Part,
    /// What looked for idle ones and stopped them.
    pub(crate) ticks: Part,
    /// What looks over everything once an hour; the monitor does so in each of its rounds.
    pub(crate) sweep: Part,
    /// How many were stopped.
    pub(crate) stopped: u64,
}

impl Hour {
    /// All of it.
    pub(crate) fn whole(&self) -> Part {
        let parts = [self.heartbeats, self.ticks, self.sweep];
        Part {
            spent: parts.iter().fold(Spent::default(), |sum, part| sum.and(part.spent)),
            wall: parts.iter().map(|part| part.wall).sum(),
        }
    }
}

/// Adds what was spent since the last time.
fn add(part: &mut Part, meter: &Meter, wall: Duration) {
    part.spent = part.spent.and(meter.take());
    part.wall += wall;
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall time")]
fn now() -> Instant {
    Instant::now()
}
