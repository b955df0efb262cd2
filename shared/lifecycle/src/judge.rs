//! Judges one runtime at a time under the rules of one backend at one moment.
//!
//! ```text
//! Subject ─► whose is it? is it there? ─► Facts ─► guards ─► rules of its state ─► Decision
//! ```
//!
//! [`crate::plan`] and [`crate::explain`] run this same code; the latter with a [`Trace`] that listens.
//! What concerns a backend as a whole (pause, breakers, budgets, the disk) is decided afterwards, in `plan`.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    Action, Ownership, Policy, Reason, State, Subject, Time, UnitSnapshot,
    policy::{Percent, Rules},
    snapshot::Disk,
    state::Tier,
};

pub(crate) mod facts;
mod guards;
mod rules;
pub(crate) mod trace;

pub(crate) use facts::{Clock, Facts};
use rules::RulesFor;
pub(crate) use trace::{Silent, Trace};

/// One backend's part of a policy at one moment: what is the same for all its runtimes is worked out once.
#[derive(Debug)]
pub struct Judge<'a> {
    pub(crate) unit: &'a UnitSnapshot,
    pub(crate) policy: &'a Policy,
    pub(crate) now: Time,
    /// What time alone must exceed beyond a limit.
    pub(crate) slack: Duration,
    active: Vec<Active<'a>>,
}

/// A `[[policy]]` that can match runtimes of this backend.
#[derive(Debug)]
pub(crate) struct Active<'a> {
    pub(crate) rules: &'a Rules,
    /// The other limits. Here and below zero is no limit, wherever it slipped in.
    pub(crate) limits: Limits,
    /// `idle.after` at this moment.
    after: Option<Duration>,
    /// The shortest that it ever is.
    shortest: Option<Duration>,
    /// When it next changes.
    pub(crate) change: Option<Time>,
    /// The disk budget, when the disk is over it.
    pub(crate) over_disk: Option<Percent>,
}

/// The limits of a policy that are the same at any time; `None`: never.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) unknown: Option<Duration>,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) suspended: Option<Duration>,
    pub(crate) archived: Option<Duration>,
    pub(crate) caches: Option<Duration>,
    pub(crate) dependencies: Option<Duration>,
}

impl Limits {
    fn of(rules: &Rules) -> Self {
        let some = |limit: Option<Duration>| limit.filter(|limit| !limit.is_zero());
        let caches = some(rules.files.caches);
        Self {
            unknown: some(rules.unknown_after),
            lifetime: some(rules.lifetime_max),
            suspended: some(rules.retention.suspended),
            archived: some(rules.retention.archived),
            caches,
            // What is dearer to rebuild never goes sooner.
            dependencies: some(rules.files.dependencies).map(|limit| caches.map_or(limit, |caches| limit.max(caches))),
        }
    }
}

/// What is decided of one runtime, before its backend as a whole is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Keep(Reason, Option<Time>),
    Want(Action, Reason),
}

/// A decision and what the backend's totals need to know of it.
#[derive(Debug)]
pub(crate) struct Judged<'a> {
    pub(crate) decision: Decision,
    /// `None`: not ours, or not seen.
    pub(crate) facts: Option<Facts<'a>>,
    /// It may give up this tier for this disk budget.
    pub(crate) spare: Option<(Tier, Percent)>,
}

/// What one rule says. The first `Act` or `Veto` decides; else the runtime waits.
#[derive(Debug)]
pub(crate) enum Ruling {
    /// It does not concern this runtime.
    Pass,
    /// Not now, for this reason, and not before then.
    Wait(Reason, Option<Time>),
    /// Not now, whatever the rules after it say.
    Veto(Reason, Option<Time>),
    /// Now.
    Act(Action, Reason),
}

impl<'a> Judge<'a> {
    /// The rules of `policy` for the runtimes of `unit` at `now`.
    pub fn new(unit: &'a UnitSnapshot, policy: &'a Policy, now: Time) -> Self {
        let matching = policy.rules.iter().filter(|rules| rules.matches.backend(&unit.backend));
        let active = matching
            .map(|rules| Active {
                rules,
                limits: Limits::of(rules),
                after: rules.idle_after_at(now),
                shortest: rules.shortest_idle_after(),
                change: rules.next_window_change(now),
                over_disk: rules.disk_budget.filter(|budget| unit.disk.is_some_and(|disk| over(disk, *budget))),
            })
            .collect();
        Self { unit, policy, now, slack: policy.slack(), active }
    }

    /// Judges one runtime.
    pub(crate) fn judge<'s, T: Trace>(&'s self, subject: &'s Subject, trace: &mut T) -> Judged<'s> {
        if let Err(reason) = self.reach(subject) {
            let ruling = Ruling::Veto(reason, None);
            trace.step("scope", &ruling, || trace::Saw::of(subject));
            return Judged { decision: decided(ruling), facts: None, spare: None };
        }
        let Some(facts) = Facts::new(self, subject) else {
            return Judged { decision: Decision::Keep(Reason::Gone, None), facts: None, spare: None };
        };
        let (decision, vetoed) = self.decide(&facts, trace);
        let spare = if vetoed { None } else { self.spare(&facts) };
        Judged { decision, facts: Some(facts), spare }
    }

    /// Whether the runtime is ours and there; else why it is kept.
    fn reach(&self, subject: &Subject) -> Result<(), Reason> {
        if *subject.id.backend() != self.unit.backend {
            return Err(Reason::Foreign);
        }
        match (&subject.seen, &subject.record) {
            (Some(seen), _) => match seen.ownership {
                Ownership::Ours => Ok(()),
                Ownership::Unlabelled => Err(Reason::Unlabelled),
                Ownership::Foreign => Err(Reason::Foreign),
            },
            (None, Some(record)) if record.state == State::Gone => Err(Reason::Gone),
            (None, _) if !self.unit.listing.complete => Err(Reason::Inventory),
            (None, record) => Err(Reason::Absent { since: record.as_ref().and_then(|record| record.absent_since) }),
        }
    }

    /// The first guard or rule that decides, else what the runtime waits for; and whether something vetoed.
    fn decide<T: Trace>(&self, facts: &Facts<'_>, trace: &mut T) -> (Decision, bool) {
        let mut wait = Wait::default();
        let mut first = None;
        let rules = match facts.seen.state {
            State::Running => RulesFor::<T>::RUNNING,
            State::Suspended => RulesFor::<T>::SUSPENDED,
            State::Archived => RulesFor::<T>::ARCHIVED,
            _ => &[],
        };
        for (name, rule) in RulesFor::<T>::GUARDS.iter().chain(rules) {
            let ruling = rule(self, facts, trace);
            trace.ruled(name, &ruling);
            match ruling {
                Ruling::Wait(reason, next) if first.is_none() => wait.note(reason, next),
                Ruling::Veto(reason, next) if first.is_none() => {
                    first = Some((Decision::Keep(reason, earlier(wait.next, next)), true));
                }
                act @ Ruling::Act(..) if first.is_none() => first = Some((decided(act), false)),
                Ruling::Pass | Ruling::Wait(..) | Ruling::Veto(..) | Ruling::Act(..) => {}
            }
            if first.is_some() && !T::FULL {
                break;
            }
        }
        first.unwrap_or_else(|| (wait.keep(facts.seen.state), false))
    }

    /// The cheapest tier that a runtime which is idle past its limit still has, where the disk is over budget.
    fn spare(&self, facts: &Facts<'_>) -> Option<(Tier, Percent)> {
        let budget = facts.active?.over_disk.filter(|_| self.unit.can.files && facts.seen.state == State::Running)?;
        facts.overdue(self)?;
        let tier = facts.next_tier().filter(|_| facts.lacks(self, Action::Shed(Tier::Caches)).is_none())?;
        Some((tier, budget))
    }

    /// The first policy that matches `labels`.
    pub(crate) fn matching(&self, labels: &BTreeMap<String, String>) -> Option<&Active<'a>> {
        self.active.iter().find(|active| active.rules.matches.labels(labels))
    }
}

impl Active<'_> {
    /// `idle.after` as it applies to one runtime now, and the shortest that it can become: its own wish
    /// within bounds, where the policy gives a limit at all. A wish that can't be read is the longest.
    pub(crate) fn idle_after(&self, labels: &BTreeMap<String, String>) -> [Option<Duration>; 2] {
        let wish = self.rules.overrides.as_ref().and_then(|overrides| {
            let text = labels.get(&*overrides.label)?;
            let wish = crate::duration::parse(text).ok().filter(|wish| !wish.is_zero());
            Some(wish.map_or(overrides.max, |wish| wish.max(overrides.min).min(overrides.max)))
        });
        match wish {
            Some(wish) => [self.after.and(Some(wish)), self.shortest.and(Some(wish))],
            None => [self.after, self.shortest],
        }
    }
}

/// What a runtime waits for: the strongest reason so far, and the earliest time.
#[derive(Default)]
struct Wait {
    reason: Option<Reason>,
    next: Option<Time>,
}

impl Wait {
    /// The first reason stays, but "not yet" gives way to one that says more.
    fn note(&mut self, reason: Reason, next: Option<Time>) {
        self.next = earlier(self.next, next);
        if matches!(self.reason, None | Some(Reason::NotYet { .. })) {
            self.reason = Some(reason);
        }
    }

    fn keep(self, state: State) -> Decision {
        Decision::Keep(self.reason.unwrap_or(Reason::NoRule { state }), self.next)
    }
}

fn decided(ruling: Ruling) -> Decision {
    match ruling {
        Ruling::Act(action, reason) => Decision::Want(action, reason),
        Ruling::Wait(reason, next) | Ruling::Veto(reason, next) => Decision::Keep(reason, next),
        Ruling::Pass => Decision::Keep(Reason::NoPolicy, None),
    }
}

/// The earlier of two times, of which each may be never.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether more of the disk is used than `budget`.
pub(crate) fn over(disk: Disk, budget: Percent) -> bool {
    disk.used > budget.of(disk.total)
}
