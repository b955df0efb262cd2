//! What keeps a runtime whatever its state and its policy say, in the order of the checks.

use super::{
    Facts, Judge, Ruling, Trace,
    rules::{Rule, RulesFor},
    trace::Saw,
};
use crate::{Reason, State, Time, activity::MAX_BUSY, policy::HOLD_LABEL, record::Hold};

impl<T: Trace> RulesFor<T> {
    pub(super) const GUARDS: &'static [Rule<T>] = &[
        ("gone", gone),
        ("incarnation", moved),
        ("claim", claimed),
        ("middle state", middle),
        ("hold", held),
        ("wanted", wanted),
        ("backing off", backing_off),
        ("policy", policy),
    ];
}

fn gone<T: Trace>(_: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    trace.saw(|| Saw::new(format!("state {}", facts.seen.state)));
    if facts.seen.state == State::Gone { Ruling::Veto(Reason::Gone, None) } else { Ruling::Pass }
}

/// Another run than the record's, or one that came back after its record had ended: first to be observed.
fn moved<T: Trace>(_: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let recorded = facts.record.and_then(|record| record.incarnation.as_ref());
    trace.saw(|| {
        let recorded = recorded.map_or("none", |incarnation| incarnation.as_str());
        Saw::new(format!("incarnation {}, recorded {recorded}", facts.seen.incarnation.as_str()))
    });
    let ended = facts.record.is_some_and(|record| record.state == State::Gone);
    if ended || recorded.is_some_and(|incarnation| *incarnation != facts.seen.incarnation) {
        return Ruling::Veto(Reason::Moved, None);
    }
    Ruling::Pass
}

fn claimed<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let claim = facts.record.and_then(|record| record.claim.as_ref());
    trace.saw(|| {
        Saw::new(claim.map_or("no claim".to_owned(), |claim| format!("claim of {} until {}", claim.owner, claim.until)))
    });
    match claim {
        Some(claim) if judge.now < claim.until => {
            Ruling::Veto(Reason::Claimed { until: claim.until }, Some(claim.until))
        }
        _ => Ruling::Pass,
    }
}

/// On its way by a claim that has ended, or by the provider: to be looked at, never acted on.
fn middle<T: Trace>(_: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let recorded = facts.record.map(|record| record.state);
    let states = [Some(facts.seen.state), recorded];
    trace.saw(|| {
        let recorded = recorded.map_or("none", State::as_str);
        Saw::new(format!("state {}, recorded {recorded}", facts.seen.state))
    });
    match states.into_iter().flatten().find(|state| state.is_middle()) {
        Some(state) => Ruling::Veto(Reason::Middle { state }, None),
        None => Ruling::Pass,
    }
}

fn held<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let label = facts.seen.labels.get(HOLD_LABEL);
    let recorded = facts.record.and_then(|record| record.hold_until);
    trace.saw(|| match (label, recorded) {
        (None, None) => Saw::new("no hold"),
        (label, recorded) => Saw::new(format!(
            "recorded hold {}, label {}",
            recorded.map_or("none".to_owned(), |hold| hold.to_string()),
            label.map_or("none", String::as_str)
        )),
    });
    if label.is_none() && recorded.is_none() {
        return Ruling::Pass;
    }
    let written = label.map(|text| text.parse::<Time>().map_or(Hold::Unreadable, Hold::Until));
    let holds = [recorded, written].into_iter().flatten().filter(|hold| hold.holds(judge.now));
    match holds.max_by_key(strength) {
        None => Ruling::Pass,
        Some(Hold::Unreadable) => Ruling::Veto(Reason::HoldUnreadable, None),
        Some(Hold::Forever) => Ruling::Veto(Reason::Held { until: None }, None),
        Some(Hold::Until(until)) => Ruling::Veto(Reason::Held { until: Some(until) }, Some(until)),
    }
}

fn strength(hold: &Hold) -> (u8, Time) {
    match hold {
        Hold::Until(until) => (0, *until),
        Hold::Forever => (1, Time::MAX),
        Hold::Unreadable => (2, Time::MAX),
    }
}

/// Somebody asked for it and was refused. Bounded: what nobody asks for again within 12 h is not wanted.
fn wanted<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let wanted = facts.record.and_then(|record| record.wanted_at);
    trace.saw(|| match wanted {
        Some(_) => Saw::at("wanted", wanted, judge.now),
        None => Saw::new("nobody asked for it"),
    });
    match wanted.map(|at| at.plus(MAX_BUSY)) {
        Some(until) if judge.now < until => Ruling::Veto(Reason::Wanted, Some(until)),
        _ => Ruling::Pass,
    }
}

fn backing_off<T: Trace>(judge: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    let attempts = facts.record.map_or(0, |record| record.attempts);
    trace.saw(|| Saw::new(format!("{attempts} failed attempts")));
    let due = facts.record.and_then(|record| record.due_at).filter(|due| judge.now < *due);
    match due {
        Some(due) if attempts > 0 => Ruling::Veto(Reason::BackingOff { attempts }, Some(due)),
        _ => Ruling::Pass,
    }
}

fn policy<T: Trace>(_: &Judge<'_>, facts: &Facts<'_>, trace: &mut T) -> Ruling {
    trace.saw(|| match facts.active {
        Some(active) => Saw::new(format!("policy `{}`", active.rules.name)),
        None => Saw::new("no policy matches its backend and labels"),
    });
    if facts.active.is_none() { Ruling::Veto(Reason::NoPolicy, None) } else { Ruling::Pass }
}
