//! What is known of one runtime of ours that was seen, put together from its sources once.

use std::{sync::Arc, time::Duration};

use super::{Active, Judge};
use crate::{
    Action, Activity, Busy, Evidence, Loss, Observation, Record, Role, Signal, State, Subject, Tier, Time,
    activity::MAX_BUSY, policy::WorkspaceRule,
};

/// A runtime's sources and what follows from them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) seen: &'a Observation,
    pub(crate) record: Option<&'a Record>,
    /// The policy that matches.
    pub(crate) active: Option<&'a Active<'a>>,
    /// `idle.after` as it applies now.
    pub(crate) after: Option<Duration>,
    /// The shortest that it can become.
    pub(crate) shortest: Option<Duration>,
    pub(crate) clock: Clock,
    /// The newest activity that a signal of the policy proves.
    pub(crate) proof: Option<(Time, Signal)>,
}

/// Since when a runtime is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Since then.
    Since(Time),
    /// No signal of the policy was ever seen; it came up, or was touched by us, not before then.
    Unknown(Option<Time>),
    /// A clock is missing and counts from the first sighting, which is now.
    FirstSeen,
}

impl<'a> Facts<'a> {
    /// `None` when the runtime was not seen.
    pub(crate) fn new(judge: &'a Judge<'_>, subject: &'a Subject) -> Option<Self> {
        let seen = subject.seen.as_deref()?;
        let active = judge.matching(&seen.labels);
        let [after, shortest] = active.map_or([None; 2], |active| active.idle_after(&seen.labels));
        let record = subject.record.as_deref();
        let mut facts = Self { subject, seen, record, active, after, shortest, clock: Clock::FirstSeen, proof: None };
        facts.proof = facts.newest_proof();
        facts.clock = facts.clock();
        Some(facts)
    }

    /// The newest activity from the signals that the policy takes.
    fn newest_proof(&self) -> Option<(Time, Signal)> {
        let signals = self.active?.rules.signals;
        let provider = match self.seen.activity {
            Activity::At(at) => Some((at, Signal::Provider)),
            Activity::Unknown | Activity::Frozen => None,
        };
        let probe = self.subject.probe.and_then(|answer| Some((answer.last_active?, Signal::Probe)));
        let record = self.record.and_then(|record| Some((record.last_active?, record.last_source?)));
        [provider, probe, record].into_iter().flatten().filter(|(_, signal)| signals.has(*signal)).max()
    }

    fn clock(&self) -> Clock {
        let frozen = self.seen.activity == Activity::Frozen
            && self.active.is_some_and(|active| active.rules.signals.has(Signal::Provider));
        let started = self.started();
        let woken_outside = self.record.is_some_and(|record| record.state != State::Running);
        if self.seen.state == State::Running && woken_outside && self.shown_start().is_none() {
            return Clock::FirstSeen;
        }
        let proof = self.proof.map(|(at, _)| at);
        match (frozen, self.record.and_then(|record| record.frozen_since), proof) {
            (true, None, _) => Clock::FirstSeen,
            (true, Some(frozen), proof) => Clock::Since(frozen.max(proof.max(started).unwrap_or(frozen))),
            (false, _, Some(proof)) => Clock::Since(proof.max(started.unwrap_or(proof))),
            (false, _, None) => Clock::Unknown(started),
        }
    }

    /// When the backend shows that it came to run.
    fn shown_start(&self) -> Option<Time> {
        let entered = self.seen.state_since.filter(|_| self.seen.state == State::Running);
        self.seen.running_since.max(entered)
    }

    /// Not idle before then, whatever a signal says: after a start, a registration or a wake a full
    /// period passes, and the record's clock only moves forward.
    fn started(&self) -> Option<Time> {
        let record = self.record.map(|record| {
            let times = [Some(record.idle_from), record.running_since, record.wanted_at];
            times.into_iter().flatten().max()
        });
        self.shown_start().max(record.flatten())
    }

    /// When it last started running, as far as anybody knows: what `lifetime.max` counts from.
    pub(crate) fn running_since(&self) -> Option<Time> {
        let known = self.shown_start().max(self.record.and_then(|record| record.running_since));
        let entered = self.record.filter(|record| record.state == State::Running).map(|record| record.state_since);
        known.or(entered)
    }

    /// When it entered the state that the backend shows: the later of what is known of that.
    fn entered(&self) -> Option<Time> {
        let agreed = self.record.filter(|record| record.state == self.seen.state).map(|record| record.state_since);
        agreed.max(self.seen.state_since)
    }

    /// Since when its stage is kept. Activity in it counts as entering it anew.
    pub(crate) fn stage_since(&self) -> Option<Time> {
        let since = self.entered()?;
        let wanted = self.record.and_then(|record| record.wanted_at);
        Some(since.max(self.proof.map_or(since, |(at, _)| at)).max(wanted.unwrap_or(since)))
    }

    /// The one clock, where there is one; else the newest time that can stand for it.
    pub(crate) fn idle_from(&self, now: Time) -> Time {
        match self.clock {
            Clock::Since(from) | Clock::Unknown(Some(from)) => from,
            Clock::Unknown(None) | Clock::FirstSeen => self.seen.state_since.unwrap_or(now),
        }
    }

    /// For how long it has been idle, if that is longer than its limit.
    pub(crate) fn overdue(&self, judge: &Judge<'_>) -> Option<Duration> {
        let (Clock::Since(from), Some(after)) = (self.clock, self.after) else { return None };
        judge.passed(from, after).then(|| judge.now.since(from))
    }

    /// Until when work under way vetoes: at most 12 h after it was seen.
    pub(crate) fn busy_until(&self, judge: &Judge<'_>) -> Option<Time> {
        let looked = judge.unit.listing.at;
        let shown = [Some(self.seen.busy), self.subject.probe.map(|answer| answer.busy)];
        let shown = shown.into_iter().flatten().filter_map(|busy| match busy {
            Busy::Until(until) => Some(until.min(looked.plus(MAX_BUSY))),
            Busy::No | Busy::Unread => None,
        });
        let told = self.record.and_then(|record| {
            let last = record.idle_from.max(record.last_active.unwrap_or(record.idle_from));
            Some(record.busy_until?.min(last.plus(MAX_BUSY)))
        });
        shown.chain(told).max()
    }

    /// Whether it was asked and did not answer.
    pub(crate) fn unread(&self) -> bool {
        let probe = self.subject.probe.map(|answer| answer.busy);
        self.seen.busy == Busy::Unread || probe == Some(Busy::Unread)
    }

    /// Why the backend, or this runtime, can't do `action`; `None`: it can.
    pub(crate) fn lacks(&self, judge: &Judge<'_>, action: Action) -> Option<(Role, Option<Arc<str>>)> {
        let role = action.role()?;
        if let Some(cannot) = self.seen.cannot.iter().find(|cannot| cannot.role == role) {
            return Some((role, Some(cannot.why.clone())));
        }
        let can = &judge.unit.can;
        let has = match role {
            Role::Suspend => can.suspend.is_some(),
            Role::Archive => can.archive,
            Role::Delete => can.delete,
            Role::Files => can.files,
            Role::List | Role::Inspect | Role::Probe | Role::Undo => true,
        };
        (!has).then_some((role, None))
    }

    /// Whether `tier` is there to be shed: not shed since it was last active, and not measured as empty.
    pub(crate) fn has_tier(&self, tier: Tier) -> bool {
        let shed = self.record.and_then(|record| record.shed);
        shed < Some(tier) && self.seen.files.of(tier) != Some(0)
    }

    /// The tier that is cheapest to rebuild of those still there.
    pub(crate) fn next_tier(&self) -> Option<Tier> {
        [Tier::Caches, Tier::Dependencies].into_iter().find(|tier| self.has_tier(*tier))
    }

    /// What a deletion would lose for people, where the backend can tell.
    pub(crate) fn would_lose(&self) -> Vec<Arc<str>> {
        match &self.seen.loss {
            Loss::Work(what) => what.clone(),
            Loss::Nothing | Loss::Unknown => Vec::new(),
        }
    }

    /// What a verdict to act rests on.
    pub(crate) fn evidence(&self, now: Time) -> Evidence {
        let idle_from = self.idle_from(now);
        Evidence {
            idle_from,
            idle: now.since(idle_from),
            last_active: self.proof.map(|(at, _)| at),
            source: self.proof.map(|(_, signal)| signal),
            state_since: self.entered(),
            running_since: self.running_since(),
            policy: self.active.map_or_else(|| "".into(), |active| active.rules.name.clone()),
            would_lose: self.would_lose(),
            workspace: self.active.map_or(WorkspaceRule::Save, |active| active.rules.workspace),
            about: self.seen.about.clone(),
        }
    }
}

impl Judge<'_> {
    /// Whether more than `limit` and the slack has passed since `from`.
    pub(crate) fn passed(&self, from: Time, limit: Duration) -> bool {
        self.now.since(from) > limit.saturating_add(self.slack)
    }

    /// The first moment at which [`Judge::passed`]: strictly more than the limit and the slack.
    pub(crate) fn due(&self, from: Time, limit: Duration) -> Time {
        const STRICTLY: Duration = Duration::from_millis(1);
        from.plus(limit.saturating_add(self.slack).saturating_add(STRICTLY))
    }
}
