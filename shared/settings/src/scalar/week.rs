//! Days of the week and hours of the day.

use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{
    log::Problem,
    nearest::nearest,
    read::{Scalar, listed},
    scalar::text,
};

/// Days, Monday first, written `mon-fri` or `sat,sun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days(pub(crate) [bool; 7]);

/// From and to (not including), in minutes of the day, written `08-18` or `22:30-06`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hours {
    pub(crate) from: u16,
    /// Less than `from`: past midnight.
    pub(crate) to: u16,
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Scalar for Days {
    const EXPECTED: &'static str = "days, such as `mon-fri` or `sat,sun`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = text(value, Self::EXPECTED)?;
        let mut days = [false; 7];
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (day(text, first)?, day(text, last)?);
            let length = (last + 7 - first) % 7;
            (first..=first + length).for_each(|day| days[day % 7] = true);
        }
        Ok(Self(days))
    }

    fn schema() -> Value {
        let day = format!("({})", DAYS.join("|"));
        let part = format!("{day}(-{day})?");
        json!({ "type": "string", "pattern": format!("^{part}(,{part})*$"), "examples": ["mon-fri", "sat,sun"] })
    }
}

/// Which day `word` is, in `text`.
fn day(text: &str, word: &str) -> Result<usize, Problem> {
    DAYS.iter().position(|day| *day == word).ok_or_else(|| {
        let lower = word.trim().to_lowercase();
        let begins = DAYS.iter().find(|day| lower.starts_with(**day)).copied();
        let meant = begins.or_else(|| nearest(&lower, DAYS));
        let why = format!("`{}` is not one of {}", word.escape_debug(), listed(&DAYS));
        Problem::text(why, text, Days::EXPECTED).meant(meant)
    })
}

impl Scalar for Hours {
    const EXPECTED: &'static str = "hours from 00 to 24, such as `08-18`, `08:30-17` or, past midnight, `22-06`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = text(value, Self::EXPECTED)?;
        let wrong = |why: &str| Problem::text(why, text, Self::EXPECTED);
        let (from, to) = text.split_once('-').ok_or_else(|| wrong("not FROM-TO"))?;
        let minutes = |part| minute(part).ok_or_else(|| wrong("not hours of a day"));
        let (from, to) = (minutes(from)?, minutes(to)?);
        if from == to || from == 24 * 60 {
            return Err(wrong("no time at all"));
        }
        Ok(Self { from, to })
    }

    fn schema() -> Value {
        let time = "([01][0-9]|2[0-3])(:[0-5][0-9])?";
        let pattern = format!("^{time}-({time}|24(:00)?)$");
        json!({ "type": "string", "pattern": pattern, "examples": ["08-18", "22:30-06"] })
    }
}

/// The minute of the day of `HH` or `HH:MM`, at most 24:00.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':').unwrap_or((text, "00"));
    let two = |text: &str| (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok());
    let (hour, minute): (u16, u16) = (two(hour)??, two(minute)??);
    (minute < 60 && hour * 60 + minute <= 24 * 60).then_some(hour * 60 + minute)
}
