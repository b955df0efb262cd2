//! A provider's own timers: what a policy wants of them, and where they differ from it.
//!
//! A provider's timer knows neither holds, nor notices, nor what was saved. So it never gets a time that
//! is sooner than the policy's, and is never told to delete what a policy wants saved or announced first.

use std::{num::NonZeroU64, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    NativeObserved,
    policy::{NativeMode, Rules, WorkspaceRule},
};

/// A time of at least a millisecond. Zero does not exist here: to one provider it means "never", to
/// another "at once", and "never" is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(NonZeroU64);

impl Span {
    /// `None` for what is shorter than a millisecond.
    pub fn new(duration: Duration) -> Option<Self> {
        NonZeroU64::new(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).map(Self)
    }

    /// The same as a duration.
    pub const fn get(self) -> Duration {
        Duration::from_millis(self.0.get())
    }
}

/// One of a provider's timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// Suspends after a time without activity.
    IdleSuspend,
    /// Archives a time after the suspend.
    Archive,
    /// Deletes a time after the suspend.
    Delete,
}

impl Timer {
    /// Every timer.
    pub const ALL: [Self; 3] = [Self::IdleSuspend, Self::Archive, Self::Delete];
}

/// A provider's timers as a policy wants them. `None`: never by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NativeSettings {
    /// [`Timer::IdleSuspend`].
    pub idle_suspend: Option<Span>,
    /// [`Timer::Archive`].
    pub archive: Option<Span>,
    /// [`Timer::Delete`].
    pub delete: Option<Span>,
}

impl NativeSettings {
    /// One of them.
    pub const fn of(&self, timer: Timer) -> Option<Span> {
        match timer {
            Timer::IdleSuspend => self.idle_suspend,
            Timer::Archive => self.archive,
            Timer::Delete => self.delete,
        }
    }
}

/// A timer that differs from what the policy wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Which.
    pub timer: Timer,
    /// What the policy wants.
    pub want: Option<Span>,
    /// What the provider shows; `None`: never, or zero, which is not told apart.
    pub have: Option<Span>,
    /// What can be done about it.
    pub remedy: Remedy,
}

/// What can be done about a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// The setting can be written.
    Write,
    /// It can't be written for a runtime that exists, and the provider acts at another time than wanted.
    Report,
    /// It can't be written, and the provider never acts: nothing stands behind the loop.
    NoBackstop,
    /// What stands can't be read: whether it is one is not known.
    Unreadable,
}

impl Drift {
    /// Whether the provider would act sooner than the policy allows, or though it should never.
    pub fn is_early(&self) -> bool {
        self.have.is_some_and(|have| self.want.is_none_or(|want| have < want))
    }
}

/// A backstop comes so much later than the loop: half the limit again, at least an hour.
const BACKSTOP_LATER: Duration = Duration::from_hours(1);

/// What `rules` want of a provider's timers; `None`: they are not written at all. The provider counts by
/// its own clock and its own activity, so that our slack for late heartbeats has no part in it.
pub fn wanted(rules: &Rules) -> Option<NativeSettings> {
    let later = |limit: Duration| match rules.native {
        NativeMode::Prefer => limit,
        NativeMode::Backstop | NativeMode::Off => limit.saturating_add((limit / 2).max(BACKSTOP_LATER)),
    };
    let span = |limit: Option<Duration>| limit.and_then(|limit| Span::new(later(limit)));
    // A runtime's own wish moves its limit: the provider must wait for the longest that it can wish.
    let wish = rules.overrides.as_ref().map_or(Duration::ZERO, |overrides| overrides.max);
    let deletes_alone = rules.workspace == WorkspaceRule::Discard && rules.notice_before_delete.is_none();
    let settings = NativeSettings {
        idle_suspend: span(rules.longest_idle_after().map(|longest| longest.max(wish))),
        archive: span(rules.retention.suspended),
        delete: span(stages(rules)).filter(|_| deletes_alone),
    };
    (rules.native != NativeMode::Off).then_some(settings)
}

/// From the suspend to the deletion: with both retentions known, their sum.
fn stages(rules: &Rules) -> Option<Duration> {
    Some(rules.retention.suspended?.saturating_add(rules.retention.archived?))
}

/// Where what a provider shows differs from `want`, which its backend has rounded to what it can hold.
pub fn drift(want: &NativeSettings, shown: &NativeObserved) -> Vec<Drift> {
    let have = NativeSettings {
        idle_suspend: shown.idle_suspend.and_then(Span::new),
        archive: shown.archive.and_then(Span::new),
        delete: shown.delete.and_then(Span::new),
    };
    let differing = Timer::ALL.into_iter().filter(|timer| want.of(*timer) != have.of(*timer));
    let drift = differing.map(|timer| {
        let remedy = match (shown.mutable, have.of(timer)) {
            _ if shown.hidden => Remedy::Unreadable,
            (true, _) => Remedy::Write,
            (false, Some(_)) => Remedy::Report,
            (false, None) => Remedy::NoBackstop,
        };
        Drift { timer, want: want.of(timer), have: have.of(timer), remedy }
    });
    drift.collect()
}
