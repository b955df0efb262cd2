//! Makes the plan: judges each runtime, then looks at each backend as a whole.

use super::{
    BackendNote, Headline, Item, Kept, PLAN_VERSION, Plan, Saves, breaker, budget, disk,
    order::{self, Late, Place},
};
use crate::{
    Action, Observation, Ownership, Policy, Reason, Snapshot, State, Subject, Tier, Time, UnitSnapshot,
    judge::{Decision, Facts, Judge, Judged, Silent},
    policy::{Percent, Prices},
    verdict::Breaker,
};

/// What would be done with each runtime of `snapshot` under `policy` at `now`.
///
/// Total: each runtime is in `items` or in `kept`, once. The order of the inventory changes nothing.
pub fn plan(snapshot: &Snapshot, policy: &Policy, now: Time) -> Plan {
    let mut plan = Plan {
        version: PLAN_VERSION,
        made_at: now,
        expires_at: now.plus(policy.plan_valid),
        policy: policy.hash(),
        headline: Headline::default(),
        backends: Vec::with_capacity(snapshot.units.len()),
        items: Vec::new(),
        kept: Vec::with_capacity(snapshot.units.iter().map(|unit| unit.subjects().len()).sum()),
        digest: None,
        notes: serde::de::IgnoredAny,
    };
    let mut units: Vec<_> = snapshot.units.iter().collect();
    units.sort_by(|a, b| a.backend.cmp(&b.backend));
    let mut tally = Tally::default();
    for unit in units {
        let judge = Judge::new(unit, policy, now);
        let note = plan_unit(&judge, &mut plan, &mut tally);
        plan.backends.push(note);
    }
    plan.items.sort_by(|a, b| {
        let order = |item: &Item| (priority(item.action), item.evidence.idle_from);
        order(a).cmp(&order(b)).then_with(|| a.runtime.cmp(&b.runtime))
    });
    plan.headline = tally.headline(&plan.items);
    plan
}

/// What can be taken back most easily comes first, so that a pass that ends early did that.
const fn priority(action: Action) -> u8 {
    match action {
        Action::Notify => 0,
        Action::Shed(_) => 1,
        Action::Suspend => 2,
        Action::Archive => 3,
        Action::Delete => 4,
    }
}

/// An act that a judgement asks for, before the backend as a whole is looked at.
pub(super) struct Want<'a> {
    pub(super) place: Place<'a>,
    pub(super) action: Action,
    pub(super) reason: Reason,
}

/// A runtime that is kept, unless the disk needs its spare tier.
pub(super) struct Spare<'a> {
    pub(super) place: Place<'a>,
    pub(super) tier: Tier,
    pub(super) budget: Percent,
    pub(super) kept: Kept,
}

/// What is counted over a unit while its runtimes are judged.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) ours: u64,
    foreign: u64,
    unlabelled: u64,
    pub(super) silence: breaker::Silence,
}

fn plan_unit(judge: &Judge<'_>, plan: &mut Plan, tally: &mut Tally) -> BackendNote {
    let unit = judge.unit;
    let prices = judge.policy.prices.get(&unit.backend).copied().unwrap_or_default();
    let (mut wants, mut spares, mut counts) = (Vec::new(), Vec::new(), Counts::default());
    let start = plan.kept.len();
    for (at, subject) in unit.subjects().iter().enumerate() {
        let judged = judge.judge(subject, &mut Silent);
        counts.count(subject, &judged, judge);
        tally.count(&judged, judge, prices);
        let place = judged.facts.as_ref().map(|facts| {
            let (seen, idle_from) = (facts.seen, facts.idle_from(judge.now));
            Place { subject, seen, idle_from, at, before: plan.kept.len() }
        });
        match (judged.decision, place, judged.spare) {
            (Decision::Want(action, reason), Some(place), _) => wants.push(Want { place, action, reason }),
            (Decision::Keep(reason, next), Some(place), Some((tier, budget))) => {
                spares.push(Spare { place, tier, budget, kept: kept(subject, reason, next) });
            }
            (Decision::Keep(reason, next), ..) => plan.kept.push(kept(subject, reason, next)),
            (Decision::Want(_, reason), None, _) => plan.kept.push(kept(subject, reason, None)),
        }
    }
    let tripped = breaker::tripped(judge, &counts);
    let (within, late) = as_a_whole(judge, (wants, spares), counts.ours, tripped);
    plan.items.extend(within.into_iter().filter_map(|want| item(judge, want, prices)));
    order::put_back(&mut plan.kept, start, late);
    counts.note(unit, tripped)
}

/// Splits what is wanted, and could be spared, into what is done and what is kept for the backend's sake.
fn as_a_whole<'a>(
    judge: &Judge<'_>,
    (mut wants, spares): (Vec<Want<'a>>, Vec<Spare<'a>>),
    ours: u64,
    tripped: Option<Breaker>,
) -> (Vec<Want<'a>>, Late<'a>) {
    let paused = judge.unit.paused.then_some(Reason::Paused);
    if let Some(reason) = paused.or(tripped.map(|breaker| Reason::Breaker { breaker })) {
        let wants = wants.into_iter().map(|want| (want.place, kept(want.place.subject, reason.clone(), None)));
        return (Vec::new(), wants.chain(spares.into_iter().map(|spare| (spare.place, spare.kept))).collect());
    }
    let mut late = disk::shed(judge, &mut wants, spares);
    let within = budget::cut(judge, ours, wants, &mut late);
    (within, late)
}

pub(super) fn kept(subject: &Subject, reason: Reason, next_check: Option<Time>) -> Kept {
    let native = subject.seen.as_ref().and_then(|seen| seen.native.as_deref());
    Kept {
        runtime: subject.id.clone(),
        reason,
        next_check,
        native_deadline: native.and_then(|native| native.deadline),
        native_hidden: native.is_some_and(|native| native.hidden),
    }
}

/// The act with its evidence, gathered once more from the same facts; `None` never comes.
fn item(judge: &Judge<'_>, want: Want<'_>, prices: Prices) -> Option<Item> {
    let Want { place, action, reason } = want;
    let facts = Facts::new(judge, place.subject)?;
    Some(Item {
        runtime: facts.subject.id.clone(),
        action,
        reason,
        evidence: facts.evidence(judge.now),
        epoch: facts.record.map(|record| record.epoch),
        incarnation: facts.seen.incarnation.clone(),
        token: facts.record.map(|record| record.token),
        state: facts.seen.state,
        saves: saves(facts.seen, action, prices),
        native_deadline: facts.seen.native.as_ref().and_then(|native| native.deadline),
        native_hidden: facts.seen.native.as_ref().is_some_and(|native| native.hidden),
    })
}

/// What an act saves: the difference of the prices of its two states, and bytes where they were measured.
pub(super) fn saves(seen: &Observation, action: Action, prices: Prices) -> Saves {
    let present = match seen.state {
        State::Running => prices.running,
        State::Suspended => prices.suspended,
        _ => 0,
    };
    let (micros_per_hour, tier) = match action {
        Action::Suspend => (present.saturating_sub(prices.suspended), None),
        Action::Archive => (present, None),
        Action::Delete => (present, Some(Tier::Runtime)),
        Action::Shed(tier) => (0, Some(tier)),
        Action::Notify => (0, None),
    };
    Saves { micros_per_hour, bytes: tier.and_then(|tier| seen.files.of(tier)).unwrap_or(0) }
}

impl Counts {
    pub(super) fn count(&mut self, subject: &Subject, judged: &Judged<'_>, judge: &Judge<'_>) {
        match (&judged.facts, &subject.seen) {
            (Some(facts), _) => {
                self.ours += 1;
                self.silence.count(facts, judge);
            }
            (None, Some(seen)) if seen.ownership == Ownership::Unlabelled => self.unlabelled += 1,
            (None, Some(_)) => self.foreign += 1,
            (None, None) => {}
        }
    }

    fn note(self, unit: &UnitSnapshot, breaker: Option<Breaker>) -> BackendNote {
        BackendNote {
            backend: unit.backend.clone(),
            listing: unit.listing.clone(),
            ours: self.ours,
            foreign: self.foreign,
            unlabelled: self.unlabelled,
            silent_share: self.silence.share(),
            breaker,
            paused: unit.paused,
        }
    }
}

/// What the headline sums up, over all backends.
#[derive(Default)]
struct Tally {
    runtimes: u64,
    idle: u64,
    idle_ms: u128,
    /// Millionths of a currency unit times milliseconds per hour.
    cost: u128,
}

const MS_PER_HOUR: u128 = 3_600_000;

impl Tally {
    fn count(&mut self, judged: &Judged<'_>, judge: &Judge<'_>, prices: Prices) {
        let Some(facts) = &judged.facts else { return };
        self.runtimes += 1;
        if let Some(idle) = facts.overdue(judge).filter(|_| facts.seen.state == State::Running) {
            self.idle += 1;
            self.idle_ms += idle.as_millis();
            self.cost += idle.as_millis().saturating_mul(u128::from(prices.running));
        }
    }

    fn headline(self, items: &[Item]) -> Headline {
        let hundredths = u32::try_from(self.idle_ms * 100 / MS_PER_HOUR).unwrap_or(u32::MAX);
        Headline {
            runtimes: self.runtimes,
            idle: self.idle,
            idle_hours: f64::from(hundredths) / 100.0,
            idle_cost_micros: u64::try_from(self.cost / MS_PER_HOUR).unwrap_or(u64::MAX),
            saves: items.iter().fold(Saves::default(), |sum, item| sum.plus(item.saves)),
        }
    }
}
