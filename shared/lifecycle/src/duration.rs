//! Durations as people write and read them: `45m`, `1h 30m`, `14d`.

use std::{fmt, time::Duration};

/// Units from the longest, each with its length in milliseconds. A month or a year has no fixed length.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration; write a whole number with a unit (w, d, h, m, s, ms), as `45m` or `1h30m`")]
pub struct DurationError {
    /// What was read.
    pub text: String,
}

/// Reads a duration strictly: whole numbers, each with a unit, units from the longest to the shortest
/// and each at most once, a space allowed between two of them. At most `u64::MAX` milliseconds.
/// `0s` is a duration here; whether zero has a meaning is for the caller to say.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    millis(text).map(Duration::from_millis).ok_or_else(|| DurationError { text: text.to_owned() })
}

fn millis(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut total = 0_u64;
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let (unit, tail) = tail.split_at(letters);
        let (_, length) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*length)?)?;
        if tail.is_empty() {
            return Some(total);
        }
        rest = tail.strip_prefix(' ').unwrap_or(tail);
    }
}

/// Prints a duration for people: its two longest units, rounded down. Weeks are days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Human(pub Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&written(self.0, 2))
    }
}

/// The duration in days and shorter units: of the `most` units from the longest that it has, those that are not zero.
fn written(duration: Duration, most: usize) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let counts = UNITS[1..].iter().map(|(name, length)| {
        let count = rest / length;
        rest %= length;
        (count, name)
    });
    let parts: Vec<_> = counts
        .skip_while(|(count, _)| *count == 0)
        .take(most)
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count}{name}"))
        .collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// As text in JSON, whole milliseconds, lossless: for `#[serde(with = …)]`.
pub mod text {
    use std::{borrow::Cow, time::Duration};

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes all units that are not zero.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::written(*duration, usize::MAX))
    }

    /// Reads what [`super::parse`] reads.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        super::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_people_write() {
        let ok = |text| parse(text).unwrap();
        assert_eq!(ok("45m"), Duration::from_mins(45));
        assert_eq!(ok("1h30m"), Duration::from_mins(90));
        assert_eq!(ok("2w 3d"), Duration::from_hours(17 * 24));
        assert_eq!(ok("1500ms"), Duration::from_millis(1_500));
        assert_eq!(ok("0s"), Duration::ZERO);
        for text in [
            "",
            " ",
            "45",
            "m",
            "-5m",
            "5M",
            "1.5h",
            "5 m",
            "1m1h",
            "5m5m",
            "5m ",
            " 5m",
            "9999999999999999w",
            "5mo",
            "٣m",
        ] {
            assert_eq!(parse(text), Err(DurationError { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn what_people_read() {
        let human = |seconds| Human(Duration::from_secs(seconds)).to_string();
        assert_eq!(human(0), "0s");
        assert_eq!(human(30 * 60), "30m");
        assert_eq!(human(3 * 86_400 + 2 * 3_600 + 59), "3d 2h");
        assert_eq!(human(3 * 86_400 + 59), "3d");
        assert_eq!(human(365 * 86_400), "365d");
    }

    proptest! {
        #[test]
        fn json_keeps_every_millisecond(millis in any::<u64>()) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&written(duration, usize::MAX)), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            let _ = parse(&text);
        }
    }
}
