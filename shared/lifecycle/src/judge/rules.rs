//! What a policy says of a runtime in its state, in the order of the checks.

use std::time::Duration;

use super::{Clock, Facts, Judge, Ruling, Trace, earlier, trace::Saw};
use crate::{
    Action, Loss, NativeDeadline, NativeEffect, NativeObserved, Reason, Tier, Time,
    duration::Human,
    policy::{NativeMode, WorkspaceRule},
};

/// A rule and its name in explanations.
pub(super) type Rule<T> = (&'static str, fn(&Judge<'_>, &Facts<'_>, &mut T) -> Ruling);

/// The rules of each state, in order, for a trace of type `T`.
pub(super) struct RulesFor<T>(std::marker::PhantomData<T>);

impl<T: Trace> RulesFor<T> {
    pub(super) const RUNNING: &'static [Rule<T>] = &[
        ("lifetime.max", lifetime),
        ("busy", busy),
        ("probe", probe),
        ("idle.after", idle),
        ("unknown.after", unknown),
        ("retention at rest", resting),
        ("files", files),
    ];
    pub(super) const SUSPENDED: &'static [Rule<T>] =
        &[("busy", busy), ("probe", probe), ("retention.suspended", retention_suspended)];
    pub(super) const ARCHIVED: &'static [Rule<T>] =
        &[("busy", busy), ("probe", probe), ("retention.archived", retention_archived)];
}

/// Neither work under way nor activity extends it.
fn lifetime<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let since = facts.running_since();
    let max = facts.active.and_then(|active| active.limits.lifetime);
    trace.saw(|| limit_saw("running since", since, max, judge.now));
    let Some(max) = max.filter(|_| !judge.unit.can.rests) else { return Ruling::Pass };
    let Some(since) = since else { return Ruling::Wait(Reason::FirstSeen, None) };
    if judge.passed(since, max) {
        return act(judge, facts, Action::Suspend, Reason::Lifetime { max });
    }
    Ruling::Wait(Reason::NotYet { action: Action::Suspend }, Some(judge.due(since, max)))
}

fn busy<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let until = facts.busy_until(judge);
    trace.saw(|| {
        Saw::new(until.map_or("no work known to be under way".to_owned(), |until| format!("busy until {until}")))
    });
    match until {
        Some(until) if judge.now < until => Ruling::Veto(Reason::Busy { until }, Some(until)),
        _ => Ruling::Pass,
    }
}

fn probe<T: Trace>(_: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let unread = facts.unread();
    trace.saw(|| Saw::new(if unread { "asked, and no answer" } else { "no question is open" }));
    if unread { Ruling::Veto(Reason::Unread, None) } else { Ruling::Pass }
}

fn idle<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    trace.saw(|| clock_saw(facts, facts.after, judge.now));
    if judge.unit.can.rests || facts.shortest.is_none() {
        return Ruling::Pass;
    }
    let from = match facts.clock {
        Clock::Since(from) => from,
        Clock::FirstSeen => return Ruling::Wait(Reason::FirstSeen, None),
        Clock::Unknown(_) => return Ruling::Pass,
    };
    match facts.after.filter(|after| judge.passed(from, *after)) {
        Some(after) => match judge.native_suspends(facts, from, after) {
            Some(at) => Ruling::Wait(Reason::NativeFirst { at }, Some(judge.due(at, Duration::ZERO))),
            None => act(judge, facts, Action::Suspend, Reason::Idle { after }),
        },
        None => Ruling::Wait(Reason::Active, judge.idle_due(facts, from, Duration::ZERO)),
    }
}

/// Never seen active: suspended after a time of its own, never deleted.
fn unknown<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let limit = facts.active.and_then(|active| active.limits.unknown);
    let first_seen = facts.record.map(|record| record.first_seen);
    trace.saw(|| limit_saw("first seen", first_seen, limit, judge.now));
    let Clock::Unknown(started) = facts.clock else { return Ruling::Pass };
    let Some(after) = limit.filter(|_| !judge.unit.can.rests) else { return Ruling::Wait(Reason::Unknown, None) };
    let Some(first_seen) = first_seen else { return Ruling::Wait(Reason::FirstSeen, None) };
    let since = first_seen.max(started.unwrap_or(first_seen));
    if judge.passed(since, after) {
        return act(judge, facts, Action::Suspend, Reason::NeverActive { after });
    }
    Ruling::Wait(Reason::Unknown, Some(judge.due(since, after)))
}

/// A runtime that runs nothing has no suspended state: both times count from its activity.
fn resting<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let keep = facts.active.and_then(|active| active.limits.suspended);
    let total = facts.after.zip(keep).map(|(after, keep)| after.saturating_add(keep));
    trace.saw(|| clock_saw(facts, total, judge.now));
    if !judge.unit.can.rests || facts.shortest.is_none() {
        return Ruling::Pass;
    }
    let from = match facts.clock {
        Clock::Since(from) => from,
        Clock::FirstSeen => return Ruling::Wait(Reason::FirstSeen, None),
        Clock::Unknown(_) => return Ruling::Pass,
    };
    if let Some(total) = total.filter(|total| judge.passed(from, *total)) {
        return deletion(judge, facts, from, Reason::Idle { after: total });
    }
    let next = keep.and_then(|keep| judge.idle_due(facts, from, keep));
    match (facts.overdue(judge), keep) {
        (None, _) => Ruling::Wait(Reason::Active, next),
        (Some(_), Some(_)) => Ruling::Wait(Reason::NotYet { action: Action::Delete }, next),
        (Some(_), None) => Ruling::Pass,
    }
}

/// Sheds one tier by age, the cheapest to rebuild first.
fn files<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let limits = facts.active.map(|active| [active.limits.caches, active.limits.dependencies]);
    let [caches, dependencies] = limits.unwrap_or_default();
    trace.saw(|| clock_saw(facts, caches.or(dependencies), judge.now));
    let Clock::Since(from) = facts.clock else { return Ruling::Pass };
    let mut next = None;
    let mut waits_for = None;
    for (tier, after) in [(Tier::Caches, caches), (Tier::Dependencies, dependencies)] {
        let Some(after) = after.filter(|_| facts.has_tier(tier)) else { continue };
        let action = Action::Shed(tier);
        if judge.passed(from, after) {
            return act(judge, facts, action, Reason::TierAge { after });
        }
        next = earlier(next, Some(judge.due(from, after)));
        waits_for = waits_for.or(Some(action));
    }
    waits_for.map_or(Ruling::Pass, |action| Ruling::Wait(Reason::NotYet { action }, next))
}

fn retention_suspended<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let action = if judge.unit.can.archive { Action::Archive } else { Action::Delete };
    let keep = facts.active.and_then(|active| active.limits.suspended);
    retention(judge, facts, trace, (action, keep))
}

fn retention_archived<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let keep = facts.active.and_then(|active| active.limits.archived);
    retention(judge, facts, trace, (Action::Delete, keep))
}

fn retention<T: Trace>(
    judge: &Judge<'_>,
    facts: &Facts<'_>,
    trace: &mut T,
    (action, keep): (Action, Option<Duration>),
) -> Ruling {
    let stage = facts.seen.state;
    let since = facts.stage_since();
    trace.saw(|| limit_saw("in this stage since", since, keep, judge.now));
    let Some(keep) = keep else { return Ruling::Pass };
    let Some(since) = since else { return Ruling::Wait(Reason::FirstSeen, None) };
    if !judge.passed(since, keep) {
        return Ruling::Wait(Reason::NotYet { action }, Some(judge.due(since, keep)));
    }
    if let Some(at) = judge.native_ends(facts, action, keep) {
        return Ruling::Wait(Reason::NativeFirst { at }, Some(judge.due(at, Duration::ZERO)));
    }
    let reason = Reason::Retention { stage, keep };
    if action == Action::Delete { deletion(judge, facts, since, reason) } else { act(judge, facts, action, reason) }
}

/// A deletion that is due: only what can be done, is saved, and had its notice since `since`.
fn deletion(judge: &Judge<'_>, facts: &Facts<'_>, since: Time, reason: Reason) -> Ruling {
    if let Some((role, why)) = facts.lacks(judge, Action::Delete) {
        return Ruling::Wait(Reason::Lacks { role, why }, None);
    }
    let Some(rules) = facts.active.map(|active| active.rules) else { return Ruling::Pass };
    if rules.workspace == WorkspaceRule::Save && !judge.unit.can.saves_first && !is_safe(facts, judge.now) {
        return Ruling::Wait(Reason::NotSaved { lost: facts.would_lose() }, None);
    }
    let Some(before) = rules.notice_before_delete else { return Ruling::Act(Action::Delete, reason) };
    match facts.record.and_then(|record| noticed(record.condemned_at?, record.noticed_at?, since)) {
        None => Ruling::Act(Action::Notify, reason),
        Some(sent) if judge.passed(sent, before) => Ruling::Act(Action::Delete, reason),
        Some(sent) => Ruling::Wait(Reason::Notice { sent: Some(sent) }, Some(judge.due(sent, before))),
    }
}

/// When notice was delivered, if it was given for this deletion: since condemned, and since last in use.
fn noticed(condemned: Time, sent: Time, since: Time) -> Option<Time> {
    (sent >= condemned && sent >= since).then_some(sent)
}

/// Nothing would be lost, or all was saved since its last activity (by the start of the scan).
fn is_safe(facts: &Facts<'_>, now: Time) -> bool {
    let saved = facts.record.and_then(|record| record.saved_as_of);
    facts.seen.loss == Loss::Nothing || saved.is_some_and(|saved| saved >= facts.idle_from(now))
}

fn act(judge: &Judge<'_>, facts: &Facts<'_>, action: Action, reason: Reason) -> Ruling {
    match facts.lacks(judge, action) {
        Some((role, why)) => Ruling::Wait(Reason::Lacks { role, why }, None),
        None => Ruling::Act(action, reason),
    }
}

impl Judge<'_> {
    /// The first moment at which a runtime idle since `from` can be past `idle.after + more`: under the
    /// limit of the present window, or at the next change under the shortest of all.
    fn idle_due(&self, facts: &Facts<'_>, from: Time, more: Duration) -> Option<Time> {
        let due = |after: Duration| self.due(from, after.saturating_add(more));
        let change = facts.active.and_then(|active| active.change);
        let changed = change.zip(facts.shortest).map(|(change, shortest)| change.max(due(shortest)));
        earlier(facts.after.map(due), changed)
    }

    /// When the provider suspends it by itself, if it has a limit no longer than ours and is not overdue.
    fn native_suspends(&self, facts: &Facts<'_>, from: Time, after: Duration) -> Option<Time> {
        let native = preferred(facts)?;
        native.idle_suspend.filter(|limit| self.enforces(*limit, after))?;
        self.not_overdue(native, NativeEffect::Suspend).filter(|at| *at >= from)
    }

    /// The same for what ends a stage.
    fn native_ends(&self, facts: &Facts<'_>, action: Action, keep: Duration) -> Option<Time> {
        let native = preferred(facts)?;
        let (limit, effect) = match action {
            Action::Archive => (native.archive, NativeEffect::Archive),
            _ => (native.delete, NativeEffect::Destroy),
        };
        limit.filter(|limit| self.enforces(*limit, keep))?;
        self.not_overdue(native, effect)
    }

    /// Whether a provider's limit is ours: no longer, but for what it rounds up. Zero is no limit.
    fn enforces(&self, limit: Duration, ours: Duration) -> bool {
        !limit.is_zero() && limit <= ours.saturating_add(self.slack)
    }

    fn not_overdue(&self, native: &NativeObserved, wanted: NativeEffect) -> Option<Time> {
        let NativeDeadline { at, effect } = native.deadline?;
        (effect == wanted && !self.passed(at, Duration::ZERO)).then_some(at)
    }
}

/// The provider's settings, where the policy leaves to it what it does by itself.
fn preferred<'f>(facts: &Facts<'f>) -> Option<&'f NativeObserved> {
    let active = facts.active.filter(|active| active.rules.native == NativeMode::Prefer);
    active.and(facts.seen.native.as_deref())
}

fn limit_saw(what: &str, at: Option<Time>, limit: Option<Duration>, now: Time) -> Saw {
    let mut saw = Saw::at(what, at, now);
    saw.text.push_str(&limit.map_or(", no limit".to_owned(), |limit| format!(", limit {}", Human(limit))));
    saw
}

fn clock_saw(facts: &Facts<'_>, limit: Option<Duration>, now: Time) -> Saw {
    let from = match facts.clock {
        Clock::Since(from) => Some(from),
        Clock::Unknown(_) | Clock::FirstSeen => None,
    };
    let mut saw = limit_saw("idle since", from, limit, now);
    if let (Some(_), Some((_, signal))) = (from, facts.proof) {
        saw.text = format!("{}, last seen active by {signal}", saw.text);
    }
    saw
}
