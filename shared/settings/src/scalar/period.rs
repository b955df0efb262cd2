//! Durations with units: `30m`, `1h30m`, `2w`.

use std::time::Duration;

use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{log::Problem, nearest::nearest, read::Scalar, scalar::text};

/// A duration with units, from the largest to the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) Duration);

/// Longest first. Months and years have no one length, and are no units.
const UNITS: [&str; 6] = ["w", "d", "h", "m", "s", "ms"];

/// How people also write them.
const OTHER_NAMES: [(&str, &str); 21] = [
    ("week", "w"),
    ("weeks", "w"),
    ("wk", "w"),
    ("day", "d"),
    ("days", "d"),
    ("hour", "h"),
    ("hours", "h"),
    ("hr", "h"),
    ("hrs", "h"),
    ("min", "m"),
    ("mins", "m"),
    ("minute", "m"),
    ("minutes", "m"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("millis", "ms"),
    ("millisecond", "ms"),
    ("milliseconds", "ms"),
];

/// A century: longer ones are slips, and far from where arithmetic ends.
const LONGEST: Duration = Duration::from_hours(36_500 * 24);

impl Scalar for Period {
    const EXPECTED: &'static str = "a duration with units (w, d, h, m, s, ms), such as `30m`, `7d` or `1h30m`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        if let DeValue::Integer(number) = value {
            let found = format!("the bare number {number}");
            return Err(Problem::new(format!("{found} has no unit")).wanting(Self::EXPECTED).having(found));
        }
        let text = text(value, Self::EXPECTED)?;
        let (why, meant) = match lifecycle::duration::parse(text) {
            Ok(duration) if duration <= LONGEST => return Ok(Self(duration)),
            Ok(_) => ("longer than `36500d`, the longest".to_owned(), None),
            Err(_) => diagnose(text),
        };
        Err(Problem::text(why, text, Self::EXPECTED).meant(meant))
    }

    fn schema() -> Value {
        // The order of the units, a pattern would only say at great length.
        let pattern = "^[0-9]+(w|d|h|m|s|ms)( ?[0-9]+(d|h|m|s|ms))*$";
        json!({ "type": "string", "pattern": pattern, "examples": ["30m", "7d", "1h30m"] })
    }
}

/// Why `text` is no duration, and what may be meant. The grammar itself is `lifecycle`'s.
fn diagnose(text: &str) -> (String, Option<String>) {
    let mut rest = text;
    let mut allowed = 0;
    while !rest.is_empty() {
        let (number, tail) = split(rest, |c| c.is_ascii_digit());
        let (unit, tail) = split(tail, char::is_alphabetic);
        rest = tail.strip_prefix(' ').unwrap_or(tail);
        if number.is_empty() || unit.is_empty() {
            break;
        }
        let Some(index) = UNITS.iter().position(|name| *name == unit) else {
            let meant =
                meant(unit).map(|right| text.replacen(&format!("{number}{unit}"), &format!("{number}{right}"), 1));
            return (format!("`{unit}` is not a unit of time"), meant);
        };
        if index < allowed {
            return (format!("`{unit}` is out of order; units go from the largest to the smallest, each once"), None);
        }
        allowed = index + 1;
    }
    ("not whole numbers with a unit each".to_owned(), None)
}

/// The longest beginning of which every character `is`, and the rest.
fn split(text: &str, is: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is(c)).unwrap_or(text.len()))
}

/// The unit that `word` may be meant for.
fn meant(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let names = || OTHER_NAMES.iter().map(|(name, _)| *name).chain(UNITS);
    let name = names().find(|name| *name == lower).or_else(|| nearest(&lower, names()))?;
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, unit)| *unit).or(Some(name))
}
