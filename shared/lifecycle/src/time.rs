//! Points in time, at the precision that the ledger stores.

use std::{fmt, str::FromStr, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time in whole milliseconds since the Unix epoch (UTC).
///
/// Milliseconds, and no finer: a record holds milliseconds, so a finer value would differ from the
/// one that a plan was made on, and the plan's own evidence would look as if it had moved.
/// Text form: RFC 3339. Arithmetic saturates, so that a decision is total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// 9999-01-01T00:00:00Z: RFC 3339 has four digits for the year.
    pub const MAX: Self = Self(253_370_764_800_000);
    /// 0000-01-01T00:00:00Z.
    pub const MIN: Self = Self(-62_167_219_200_000);

    /// From milliseconds since the Unix epoch, clamped to what RFC 3339 can say.
    pub const fn from_millis(millis: i64) -> Self {
        match millis {
            ..-62_167_219_200_000 => Self::MIN,
            253_370_764_800_001.. => Self::MAX,
            millis => Self(millis),
        }
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This time and `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// This time and `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(millis))
    }

    /// How long before `self` `earlier` was; zero when it was not before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The same point as a jiff timestamp.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        Self::from_millis(timestamp.as_millisecond())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

impl FromStr for Time {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Timestamp>().map(Self::from)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_panicking() {
        assert_eq!(Time::MAX.plus(Duration::MAX), Time::MAX);
        assert_eq!(Time::MIN.minus(Duration::MAX), Time::MIN);
        assert_eq!(Time::MIN.since(Time::MAX), Duration::ZERO);
    }

    #[test]
    fn text_keeps_every_millisecond() {
        for millis in [0, 1, -1, 1_764_500_000_123, Time::MAX.millis(), Time::MIN.millis()] {
            let time = Time::from_millis(millis);
            assert_eq!(time.to_string().parse::<Time>().unwrap(), time, "{millis}");
        }
    }
}
