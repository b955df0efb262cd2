//! Plans of faults: by name, and by seed.

use std::{collections::BTreeMap, time::Duration};

use super::{Call, Fault, Plan, Verb};
use crate::{BackendError, ErrorKind};

/// Faults of chosen calls.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Script {
    calls: BTreeMap<(Verb, u64), Fault>,
    always: BTreeMap<Verb, Fault>,
}

impl Script {
    /// Nothing fails.
    pub fn new() -> Self {
        Self::default()
    }

    /// The call of `verb` that has `nth` before it fails so.
    pub fn at(mut self, verb: Verb, nth: u64, fault: Fault) -> Self {
        self.calls.insert((verb, nth), fault);
        self
    }

    /// Every call of `verb` fails so, unless another fault is said for it.
    pub fn always(mut self, verb: Verb, fault: Fault) -> Self {
        self.always.insert(verb, fault);
        self
    }
}

impl Plan for Script {
    fn fault(&mut self, call: &Call) -> Option<Fault> {
        self.calls.get(&(call.verb, call.nth)).or_else(|| self.always.get(&call.verb)).cloned()
    }
}

/// Faults by seed: the same seed gives the same faults for the same calls, whatever their order among verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeded {
    /// All randomness.
    pub seed: u64,
    /// How many calls in a thousand fail.
    pub per_mille: u64,
}

impl Plan for Seeded {
    fn fault(&mut self, call: &Call) -> Option<Fault> {
        let verb = Verb::ALL.iter().position(|verb| *verb == call.verb).unwrap_or_default() as u64;
        let mut draws = Draws(self.seed ^ mix(verb.wrapping_add(1)) ^ mix(call.nth.wrapping_mul(0x1_0000_0001)));
        (draws.below(1_000) < self.per_mille).then(|| any_fault(call.verb, &mut draws))
    }
}

fn any_fault(verb: Verb, draws: &mut Draws) -> Fault {
    match draws.below(if verb == Verb::List { 7 } else { 4 }) {
        0 => Fault::Before(any_error(draws)),
        1 => Fault::TimesOut,
        2 => Fault::Lost,
        3 => Fault::After(any_error(draws)),
        4 => Fault::Short(usize::try_from(draws.below(3)).unwrap_or_default()),
        5 => Fault::Doubled,
        _ => Fault::Partial("something could not be read".into()),
    }
}

fn any_error(draws: &mut Draws) -> BackendError {
    let kind = match draws.below(5) {
        0 => ErrorKind::Unreachable,
        1 => ErrorKind::Denied,
        2 => ErrorKind::Throttled { retry_after: Duration::from_secs(1 + draws.below(60)) },
        3 => ErrorKind::Malformed,
        _ => ErrorKind::Local,
    };
    BackendError::new(kind, format!("a planted fault: {kind:?}"))
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % limit
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
