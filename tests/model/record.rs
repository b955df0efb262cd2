//! A record in small numbers: the same attributes as the ledger's, in seconds after the beginning.

use lifecycle::{Signal, State, Tier};

/// Seconds after the beginning.
pub(crate) type Tick = i16;

/// The most that two clocks of the model differ, and how late a heartbeat may be.
pub(crate) const SKEW: Tick = 1;
pub(crate) const COALESCE: Tick = 1;

/// Every attribute of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Rec {
    pub(crate) epoch: u8,
    pub(crate) run: Option<u8>,
    pub(crate) state: State,
    pub(crate) state_since: Tick,
    pub(crate) first_seen: Tick,
    pub(crate) idle_from: Tick,
    pub(crate) last_active: Option<Tick>,
    pub(crate) last_source: Option<Signal>,
    pub(crate) frozen_since: Option<Tick>,
    pub(crate) busy_until: Option<Tick>,
    pub(crate) running_since: Option<Tick>,
    pub(crate) idle: Option<Tick>,
    pub(crate) cap_at: Option<Tick>,
    pub(crate) armed: Option<Tick>,
    pub(crate) hold: Option<Held>,
    pub(crate) wanted_at: Option<Tick>,
    pub(crate) absent_since: Option<Tick>,
    pub(crate) attempts: u8,
    pub(crate) shed: Option<Tier>,
    pub(crate) condemned_at: Option<Tick>,
    pub(crate) noticed_at: Option<Tick>,
    pub(crate) saved_as_of: Option<Tick>,
    pub(crate) claim: Option<Claimed>,
    pub(crate) token: i32,
    pub(crate) due_at: Option<Tick>,
}

/// A hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Held {
    Until(Tick),
    Forever,
}

/// A claim: of which pass, until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Claimed {
    pub(crate) owner: u8,
    pub(crate) until: Tick,
}

/// When to look at a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Arm {
    pub(crate) idle: Option<Tick>,
    pub(crate) cap: Option<Tick>,
    pub(crate) due: Tick,
}

impl Arm {
    pub(crate) fn at(due: Tick) -> Self {
        Self { idle: Some(2), cap: None, due }
    }
}

impl Rec {
    /// What stands for a runtime that nobody has seen.
    pub(crate) fn unseen(now: Tick) -> Self {
        Self {
            epoch: 0,
            run: None,
            state: State::Running,
            state_since: now,
            first_seen: now,
            idle_from: now,
            last_active: None,
            last_source: None,
            frozen_since: None,
            busy_until: None,
            running_since: None,
            idle: None,
            cap_at: None,
            armed: None,
            hold: None,
            wanted_at: None,
            absent_since: None,
            attempts: 0,
            shed: None,
            condemned_at: None,
            noticed_at: None,
            saved_as_of: None,
            claim: None,
            token: i32::from(now) * 1_000,
            due_at: None,
        }
    }

    /// Whether somebody's claim is live, or ended too short a time ago for clocks that differ.
    pub(crate) fn is_claimed(&self, now: Tick) -> bool {
        self.claim.is_some_and(|claim| claim.until > now - SKEW)
    }

    pub(crate) fn is_held(&self, now: Tick) -> bool {
        self.hold.is_some_and(|hold| match hold {
            Held::Until(until) => now < until,
            Held::Forever => true,
        })
    }
}
