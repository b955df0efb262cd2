//! Durations with units: `30m`, `1h30m`, `2w`.

use std::time::Duration;

use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{log::Problem, nearest::nearest, read::Scalar, scalar::text};

/// A duration with units, from the largest to the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) Duration);

/// Longest first, with milliseconds. Months and years have no one length, and are no units.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

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
const MAX_MILLIS: u64 = 36_500 * 86_400_000;

impl Scalar for Period {
    const EXPECTED: &'static str = "a duration with units (w, d, h, m, s, ms), such as `30m`, `7d` or `1h30m`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        if let DeValue::Integer(number) = value {
            let found = format!("the bare number {number}");
            return Err(Problem::new(format!("{found} has no unit")).wanting(Self::EXPECTED).having(found));
        }
        let text = text(value, Self::EXPECTED)?;
        read(text).map_err(|(why, meant)| Problem::text(why, text, Self::EXPECTED).meant(meant))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
                "minLength": 2, "examples": ["30m", "7d", "1h30m"] })
    }
}

/// Why it is none, and what may be meant.
type Wrong = (String, Option<String>);

fn read(text: &str) -> Result<Period, Wrong> {
    let mut rest = text;
    let mut millis: u64 = 0;
    let mut allowed = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let letters = rest[digits..].find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len() - digits);
        let (number, unit) = (&rest[..digits], &rest[digits..digits + letters]);
        rest = &rest[digits + letters..];
        let index = unit_of(text, number, unit)?;
        if index < allowed {
            return Err((
                format!("`{unit}` is out of order; units go from the largest to the smallest, each once"),
                None,
            ));
        }
        allowed = index + 1;
        let of_unit = number.parse::<u64>().ok().and_then(|number| number.checked_mul(UNITS[index].1));
        millis = of_unit
            .and_then(|more| millis.checked_add(more))
            .filter(|total| *total <= MAX_MILLIS)
            .ok_or_else(too_long)?;
    }
    Ok(Period(Duration::from_millis(millis)))
}

fn too_long() -> Wrong {
    ("longer than 36500d, the longest".to_owned(), None)
}

/// Which of [`UNITS`] `unit` is, in `text` after `number`.
fn unit_of(text: &str, number: &str, unit: &str) -> Result<usize, Wrong> {
    if number.is_empty() {
        return Err(("a number is missing".to_owned(), None));
    }
    if unit.is_empty() {
        return Err((format!("`{number}` has no unit, and only whole numbers are read"), None));
    }
    UNITS.iter().position(|(name, _)| *name == unit).ok_or_else(|| {
        let lower = unit.to_lowercase();
        let named = OTHER_NAMES.iter().find(|(name, _)| *name == lower).map(|(_, unit)| *unit);
        let meant = named.or_else(|| nearest(unit, UNITS.iter().map(|(name, _)| *name)));
        let slip = || nearest(&lower, OTHER_NAMES.iter().map(|(name, _)| *name));
        let meant = meant.or_else(|| OTHER_NAMES.iter().find(|(name, _)| Some(*name) == slip()).map(|(_, unit)| *unit));
        let why = format!("`{unit}` is not a unit of time");
        (why, meant.map(|right| text.replacen(&format!("{number}{unit}"), &format!("{number}{right}"), 1)))
    })
}
