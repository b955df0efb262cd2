//! Values without keys of their own: how each is written, and what a wrong one is told.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use lifecycle::{
    Signal,
    policy::{Mode, NativeMode, WorkspaceRule},
};
use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{
    OpenHandsApi, TerminateRunning,
    log::Problem,
    nearest::nearest,
    read::{Scalar, listed},
};

mod period;
mod quantity;
mod week;

pub(crate) use period::Period;
pub(crate) use quantity::{Price, Rate, Share};
pub(crate) use week::{Days, Hours};

/// The longest text, in bytes.
const MAX_TEXT: usize = 4096;

/// A text that is not empty and can be shown on one line.
#[derive(Debug, Clone)]
pub(crate) struct Text(pub(crate) String);

/// A path. Relative ones are to the file's folder, `~/` is the home.
#[derive(Debug, Clone)]
pub(crate) struct PathText(pub(crate) PathBuf);

/// A whole number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) u32);

/// `true` or `false`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

/// A time zone.
#[derive(Debug, Clone)]
pub(crate) struct Zone(pub(crate) TimeZone);

/// One of a few words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<T>(pub(crate) T);

/// The words and what each means.
pub(crate) trait Words: Copy + 'static {
    const EXPECTED: &'static str;
    const WORDS: &'static [(&'static str, Self)];
}

/// The text of `value`, which must not be empty.
pub(crate) fn text<'a>(value: &'a DeValue<'_>, expected: &str) -> Result<&'a str, Problem> {
    match value {
        DeValue::String(text) if !text.is_empty() => Ok(text),
        _ => Err(Problem::expected(expected, value)),
    }
}

impl Scalar for Text {
    const EXPECTED: &'static str = "a text";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = text(value, Self::EXPECTED)?;
        if text.len() > MAX_TEXT {
            let why = format!("{} bytes are too long; at most {MAX_TEXT} are allowed", text.len());
            return Err(Problem::text(why, text, Self::EXPECTED));
        }
        if text.chars().any(char::is_control) {
            return Err(Problem::text("it has a control character", text, "a text on one line"));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": MAX_TEXT })
    }
}

impl Scalar for PathText {
    const EXPECTED: &'static str = "a path";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        Text::parse(value)
            .map(|text| Self(text.0.into()))
            .map_err(|problem| Problem { expected: Some(Self::EXPECTED.to_owned()), ..problem })
    }

    fn schema() -> Value {
        <Text as Scalar>::schema()
    }
}

impl Scalar for Count {
    const EXPECTED: &'static str = "a whole number of at least 0";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let DeValue::Integer(number) = value else { return Err(Problem::expected(Self::EXPECTED, value)) };
        let parsed = u32::from_str_radix(number.as_str(), number.radix());
        parsed.map(Self).map_err(|_| {
            let expected = format!("a whole number from 0 to {}", u32::MAX);
            Problem::expected(&expected, value)
        })
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

impl Scalar for Flag {
    const EXPECTED: &'static str = "`true` or `false`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value {
            DeValue::Boolean(value) => Ok(Self(*value)),
            _ => Err(Problem::expected(Self::EXPECTED, value)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl Scalar for Zone {
    const EXPECTED: &'static str = "a time zone of the IANA database, such as `Europe/Berlin` or `UTC`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let name = text(value, Self::EXPECTED)?;
        let database = jiff::tz::db();
        // A fixed zone would otherwise be found by more than its name ("Etc/Unknown" is no zone at all).
        let known = database.get(name).ok().filter(|zone| !zone.is_unknown());
        known.map(Self).ok_or_else(|| {
            let names: Vec<String> = database.available().map(|name| name.to_string()).collect();
            let meant = nearest(name, names.iter().map(String::as_str)).or_else(|| city(name, &names));
            Problem::text("no such time zone", name, Self::EXPECTED).meant(meant)
        })
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// The zone whose city is `name`: `Berlin`, `berlin`.
fn city<'a>(name: &str, zones: &'a [String]) -> Option<&'a str> {
    let of = |zone: &str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
    zones.iter().map(String::as_str).find(|zone| of(zone))
}

impl<T: Words> Scalar for Word<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let word = text(value, Self::EXPECTED)?;
        let found = T::WORDS.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| Self(*value)).ok_or_else(|| {
            let names: Vec<_> = T::WORDS.iter().map(|(name, _)| *name).collect();
            let meant = nearest(word, names.iter().copied());
            Problem::text(format!("not one of {}", listed(&names)), word, Self::EXPECTED).meant(meant)
        })
    }

    fn schema() -> Value {
        let names: Vec<_> = T::WORDS.iter().map(|(name, _)| *name).collect();
        json!({ "type": "string", "enum": names })
    }
}

impl Words for Mode {
    const EXPECTED: &'static str = "`report` or `enforce`";
    const WORDS: &'static [(&'static str, Self)] = &[("report", Self::Report), ("enforce", Self::Enforce)];
}

impl Words for WorkspaceRule {
    const EXPECTED: &'static str = "`save` or `discard`";
    const WORDS: &'static [(&'static str, Self)] = &[("save", Self::Save), ("discard", Self::Discard)];
}

impl Words for OpenHandsApi {
    const EXPECTED: &'static str = "`cloud` or `runtime`";
    const WORDS: &'static [(&'static str, Self)] = &[("cloud", Self::Cloud), ("runtime", Self::Runtime)];
}

impl Words for TerminateRunning {
    const EXPECTED: &'static str = "`never`, `snapshot` or `discard`";
    const WORDS: &'static [(&'static str, Self)] =
        &[("never", Self::Never), ("snapshot", Self::Snapshot), ("discard", Self::Discard)];
}

impl Words for NativeMode {
    const EXPECTED: &'static str = "`prefer`, `backstop` or `off`";
    const WORDS: &'static [(&'static str, Self)] =
        &[("prefer", Self::Prefer), ("backstop", Self::Backstop), ("off", Self::Off)];
}

impl Words for Signal {
    const EXPECTED: &'static str = "`heartbeat`, `provider` or `probe`";
    const WORDS: &'static [(&'static str, Self)] =
        &[("heartbeat", Self::Heartbeat), ("provider", Self::Provider), ("probe", Self::Probe)];
}
