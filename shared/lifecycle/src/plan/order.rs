//! Keeps verdicts in the order of the inventory although some are decided late.

use super::Kept;
use crate::{Observation, Subject, Time};

/// A runtime on which its backend as a whole has a say, and where its verdict belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) subject: &'a Subject,
    pub(super) seen: &'a Observation,
    pub(super) idle_from: Time,
    /// Its number in the inventory of its backend, which is sorted by id.
    pub(super) at: usize,
    /// How many were kept before it.
    pub(super) before: usize,
}

impl Place<'_> {
    /// The longest idle first, then by id. Numbers instead of ids: comparing those is most of a plan's time.
    pub(super) fn order(&self) -> (Time, usize) {
        (self.idle_from, self.at)
    }
}

/// What was kept late.
pub(super) type Late<'a> = Vec<(Place<'a>, Kept)>;

/// Puts what was kept late to its places in `kept`, of which the part from `start` is of its backend.
pub(super) fn put_back(kept: &mut Vec<Kept>, start: usize, mut late: Late<'_>) {
    if late.is_empty() {
        return;
    }
    late.sort_unstable_by_key(|(place, _)| place.at);
    let mut early = kept.split_off(start).into_iter();
    let mut taken = start;
    for (place, verdict) in late {
        kept.extend(early.by_ref().take(place.before - taken));
        taken = place.before;
        kept.push(verdict);
    }
    kept.extend(early);
}
