//! Furlough's item for one runtime, as values. The ledger maps it to attributes.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Signal, State, Tier, Time};

/// The number of a registration. A runtime's token is bound to it.
pub type Epoch = u64;

/// The record's fence: +1 at every claim, never reset.
pub type Token = u64;

/// What the backend says tells this run of an id from an earlier one. Opaque, compared whole.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(Arc<str>);

impl Incarnation {
    /// Wraps what the backend says.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to act on a runtime, until a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Which pass holds it.
    pub owner: Arc<str>,
    /// After this it gives nobody the right to act.
    pub until: Time,
}

/// Furlough's record of one runtime. Times are stamped by whoever holds the ledger, never by a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The format of the stored item.
    pub v: u32,
    /// The registration.
    pub epoch: Epoch,
    /// Written only by observation.
    pub incarnation: Option<Incarnation>,
    /// Our state.
    pub state: State,
    /// When it entered that state.
    pub state_since: Time,
    /// When Furlough first saw the runtime: what a missing clock falls back to.
    pub first_seen: Time,
    /// The one clock of every condition.
    pub idle_from: Time,
    /// The newest known activity, as evidence. Absent: never seen active.
    pub last_active: Option<Time>,
    /// Where that came from.
    pub last_source: Option<Signal>,
    /// Since when the backend shows it frozen ([`crate::Activity::Frozen`]); cleared when it no longer does.
    pub frozen_since: Option<Time>,
    /// Vetoes idleness until then.
    pub busy_until: Option<Time>,
    /// When it last started running: what `lifetime.max` counts from.
    pub running_since: Option<Time>,
    /// How long after `idle_from` the record comes due.
    pub idle_ms: Option<u64>,
    /// The earliest hard deadline (lifetime, native).
    pub cap_at: Option<Time>,
    /// The `idle_from` that `due_at` was computed from.
    pub armed: Option<Time>,
    /// Nobody touches it before then.
    pub hold_until: Option<Hold>,
    /// A refused heartbeat asked for it.
    pub wanted_at: Option<Time>,
    /// First sighting of its absence.
    pub absent_since: Option<Time>,
    /// Failed attempts in a row; each makes the next wait longer.
    pub attempts: u32,
    /// The dearest tier shed since it was last active.
    pub shed: Option<Tier>,
    /// When it was condemned, that is: when notice of its deletion was decided.
    pub condemned_at: Option<Time>,
    /// When that notice was delivered.
    pub noticed_at: Option<Time>,
    /// What was saved of it: the start of the scan of the newest complete save.
    pub saved_as_of: Option<Time>,
    /// The live or expired claim.
    pub claim: Option<Claim>,
    /// The fence.
    pub token: Token,
    /// When a tick looks at it next. Absent: it is in no index, which only `gone` may be.
    pub due_at: Option<Time>,
}

/// A hold. An unreadable one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Until then.
    Until(Time),
    /// Until released.
    Forever,
    /// Something stands there that can't be read: it holds until somebody mends it.
    Unreadable,
}

impl Hold {
    /// Whether it holds at `now`.
    pub fn holds(self, now: Time) -> bool {
        match self {
            Self::Until(until) => now < until,
            Self::Forever | Self::Unreadable => true,
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until(until) => write!(f, "until {until}"),
            Self::Forever => f.write_str("until released"),
            Self::Unreadable => f.write_str("that can't be read"),
        }
    }
}

impl Record {
    /// How long after `idle_from` this record comes due, if ever by idleness.
    pub fn idle(&self) -> Option<Duration> {
        self.idle_ms.map(Duration::from_millis)
    }

    /// Whether somebody has the right to act on it at `now`.
    pub fn claimed(&self, now: Time) -> bool {
        self.claim.as_ref().is_some_and(|claim| now < claim.until)
    }
}
