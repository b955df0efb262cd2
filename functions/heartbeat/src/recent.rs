//! What a warm environment remembers: heartbeats that it recorded a moment ago, so that the next ones need no table.
//!
//! It answers only within `coalesce` of a heartbeat that it recorded itself. No rule that activity can stop claims a
//! runtime so soon after one, so that what is answered here is never a false OK.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use lifecycle::{RuntimeId, Time, record::Epoch};

/// The most runtimes that are remembered: about 2 MB.
const CAPACITY: usize = 10_000;

/// Heartbeats that were recorded a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<HashMap<RuntimeId, Seen>>);

#[derive(Debug, Clone)]
struct Seen {
    epoch: Option<Epoch>,
    at: Time,
    busy_until: Option<Time>,
}

/// A sign of activity, as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sign {
    /// Of which registration, where that was said.
    pub(crate) epoch: Option<Epoch>,
    /// Work is under way until then.
    pub(crate) busy_until: Option<Time>,
}

impl Recent {
    /// Until when nothing new can be said, if `sign` says nothing new.
    pub(crate) fn covers(&self, id: &RuntimeId, sign: &Sign, coalesce: Duration, now: Time) -> Option<Time> {
        let seen = self.lock();
        let seen = seen.get(id).filter(|seen| seen.epoch == sign.epoch)?;
        let next = seen.at.plus(coalesce);
        let busy = sign.busy_until.is_none_or(|until| seen.busy_until.is_some_and(|known| until <= known));
        (now >= seen.at && now < next && busy).then_some(next)
    }

    /// Remembers what was recorded.
    pub(crate) fn record(&self, id: &RuntimeId, sign: Sign, coalesce: Duration, now: Time) {
        let mut all = self.lock();
        if all.len() >= CAPACITY && !all.contains_key(id) {
            all.retain(|_, seen| now < seen.at.plus(coalesce));
            if all.len() >= CAPACITY {
                return;
            }
        }
        let known = all.get(id).filter(|seen| seen.epoch == sign.epoch);
        let busy_until = sign.busy_until.max(known.and_then(|seen| seen.busy_until));
        all.insert(id.clone(), Seen { epoch: sign.epoch, at: now, busy_until });
    }

    /// Forgets a runtime, which is no longer as it was.
    pub(crate) fn forget(&self, id: &RuntimeId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RuntimeId, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COALESCE: Duration = Duration::from_secs(30);

    fn at(second: i64) -> Time {
        Time::from_millis(1_000_000 + second * 1_000)
    }

    fn id(number: usize) -> RuntimeId {
        format!("b/{number}").parse().unwrap()
    }

    fn sign(epoch: Option<Epoch>, busy_until: Option<Time>) -> Sign {
        Sign { epoch, busy_until }
    }

    #[test]
    fn it_answers_within_coalesce_of_what_was_recorded_and_no_longer() {
        let recent = Recent::default();
        let plain = sign(Some(1), None);
        assert_eq!(recent.covers(&id(1), &plain, COALESCE, at(0)), None);
        recent.record(&id(1), plain, COALESCE, at(0));
        assert_eq!(recent.covers(&id(1), &plain, COALESCE, at(0)), Some(at(30)));
        assert_eq!(recent.covers(&id(1), &plain, COALESCE, at(29)), Some(at(30)));
        assert_eq!(recent.covers(&id(1), &plain, COALESCE, at(30)), None);
        assert_eq!(recent.covers(&id(1), &plain, COALESCE, at(-1)), None, "a clock that went back proves nothing");
        assert_eq!(recent.covers(&id(2), &plain, COALESCE, at(1)), None);
    }

    #[test]
    fn another_registration_and_a_longer_veto_are_news() {
        let recent = Recent::default();
        recent.record(&id(1), sign(Some(1), Some(at(600))), COALESCE, at(0));
        assert_eq!(recent.covers(&id(1), &sign(Some(2), None), COALESCE, at(1)), None);
        assert_eq!(recent.covers(&id(1), &sign(None, None), COALESCE, at(1)), None);
        assert_eq!(recent.covers(&id(1), &sign(Some(1), Some(at(601))), COALESCE, at(1)), None);
        assert!(recent.covers(&id(1), &sign(Some(1), Some(at(600))), COALESCE, at(1)).is_some());
        recent.record(&id(1), sign(Some(1), None), COALESCE, at(2));
        assert!(recent.covers(&id(1), &sign(Some(1), Some(at(600))), COALESCE, at(3)).is_some(), "the veto stands");
        recent.forget(&id(1));
        assert_eq!(recent.covers(&id(1), &sign(Some(1), None), COALESCE, at(3)), None);
    }

    #[test]
    fn it_does_not_grow_past_its_capacity_and_forgets_what_is_old() {
        let recent = Recent::default();
        for number in 0..CAPACITY + 5 {
            recent.record(&id(number), sign(None, None), COALESCE, at(0));
        }
        assert_eq!(recent.lock().len(), CAPACITY);
        recent.record(&id(CAPACITY + 9), sign(None, None), COALESCE, at(31));
        assert_eq!(recent.lock().len(), 1);
    }
}
