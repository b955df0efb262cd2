//! Who is in the fleet, and when each of them gives a sign of life.

/// The length of what is compared, in seconds.
pub(crate) const HOUR: i64 = 3_600;

/// A runtime is idle after so many seconds.
pub(crate) const IDLE: i64 = 30 * 60;

/// How a runtime spends the hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// An agent at work: a sign of life each 30 s.
    Works,
    /// Somebody comes by: each 10 min.
    Visited,
    /// The last sign was at the beginning.
    Silent,
    /// Suspended long ago.
    AtRest,
}

/// So many runtimes, of which in each hundred 2 work, 8 are visited, 1 falls silent, and the rest are at rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fleet {
    pub(crate) size: u32,
}

impl Fleet {
    pub(crate) fn runtimes(self) -> impl Iterator<Item = (u32, Way)> {
        (0..self.size).map(|number| {
            let way = match number % 100 {
                0..2 => Way::Works,
                2..10 => Way::Visited,
                10 => Way::Silent,
                _ => Way::AtRest,
            };
            (number, way)
        })
    }

    /// How many fall silent.
    pub(crate) fn silent(self) -> u64 {
        self.runtimes().filter(|(_, way)| *way == Way::Silent).count() as u64
    }

    /// Who gives a sign of life in this second. At 0 to 599 s each that runs does so once, spread evenly.
    pub(crate) fn signs(self, second: i64) -> impl Iterator<Item = u32> {
        self.runtimes().filter_map(move |(number, way)| {
            let first = i64::from(number) * 7 % every(Way::Visited)?;
            let gives = match way {
                Way::AtRest => false,
                Way::Silent => second == first,
                Way::Works | Way::Visited => second >= first && (second - first) % every(way)? == 0,
            };
            gives.then_some(number)
        })
    }
}

/// The seconds between two signs of life.
fn every(way: Way) -> Option<i64> {
    match way {
        Way::Works => Some(30),
        Way::Visited => Some(600),
        Way::Silent | Way::AtRest => None,
    }
}
