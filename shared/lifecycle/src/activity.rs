//! What is known of a runtime's activity, and from where.

use serde::{Deserialize, Serialize};

use crate::Time;

/// Where a sign of activity came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Sent to us, stamped on arrival.
    Heartbeat,
    /// Told by the backend: a provider's clock, git's and the conversation's own files.
    Provider,
    /// Told by the agent server inside.
    Probe,
}

impl Signal {
    /// The word in policies, records and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeat",
            Self::Provider => "provider",
            Self::Probe => "probe",
        }
    }
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which signals a policy takes as activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SignalSet {
    /// Our heartbeats.
    pub heartbeat: bool,
    /// The backend's own clock.
    pub provider: bool,
    /// The agent server's answer.
    pub probe: bool,
}

impl SignalSet {
    /// All signals: one fresh signal of any kind keeps a runtime.
    pub const ALL: Self = Self { heartbeat: true, provider: true, probe: true };

    /// Whether `signal` is in it.
    pub const fn has(self, signal: Signal) -> bool {
        match signal {
            Signal::Heartbeat => self.heartbeat,
            Signal::Provider => self.provider,
            Signal::Probe => self.probe,
        }
    }
}

/// What a backend can tell of the last activity of a runtime.
///
/// A signal *proves activity*; that none was seen proves nothing, so `Unknown` is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// The backend can't tell. Never idle.
    Unknown,
    /// The newest sign of activity.
    At(Time),
    /// Nothing can run in it (a paused container, say), and the backend does not tell since when:
    /// idle since we first saw it so, never since earlier.
    Frozen,
}

/// Whether work is under way, which vetoes idleness for a bounded time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Busy {
    /// No work is known to be under way.
    No,
    /// Work is under way; the veto ends then (at most 12 h after it was seen).
    Until(Time),
    /// It was asked and did not answer: keep.
    Unread,
}

impl Busy {
    /// What two sources tell together: the one that keeps for longer. A missing answer stays missing.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unread, _) | (_, Self::Unread) => Self::Unread,
            (Self::Until(one), Self::Until(other)) => Self::Until(one.max(other)),
            (Self::No, busy) | (busy, Self::No) => busy,
        }
    }
}

/// The longest time for which `busy` vetoes without being renewed.
pub const MAX_BUSY: std::time::Duration = std::time::Duration::from_hours(12);
