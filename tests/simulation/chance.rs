//! All randomness of a run: streams that one seed and a name give.

use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// One stream. An actor has its own, so that what one draws does not move what another does.
///
/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) fn named(seed: u64, name: &str) -> Self {
        // FNV-1a: a stream's name is short, and any spread will do.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(AtomicU64::new(mix(seed) ^ hash))
    }

    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        mix(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// 0 to `limit` - 1.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True so often in a thousand.
    pub(crate) fn mille(&self, often: u64) -> bool {
        self.below(1_000) < often
    }

    pub(crate) fn millis(&self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(range.start() + self.below(range.end() - range.start() + 1))
    }

    pub(crate) fn seconds(&self, range: RangeInclusive<u64>) -> Duration {
        self.millis(range.start() * 1_000..=range.end() * 1_000)
    }

    pub(crate) fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap_or_default()]
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
