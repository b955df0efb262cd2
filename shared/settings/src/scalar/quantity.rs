//! Shares, prices and rates.

use std::{num::NonZeroU32, time::Duration};

use lifecycle::policy::MicrosPerHour;
use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{log::Problem, read::Scalar, scalar::text};

/// A whole share of 0 to 100, written `20%`. Zero is decided where it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share(pub(crate) u8);

/// What an hour costs, written `0.08/h` or, by the day, `1.92/d`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price(pub(crate) MicrosPerHour);

/// So many calls per time, written `5/s`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(pub(crate) crate::Rate);

impl Scalar for Share {
    const EXPECTED: &'static str = "a whole share from `0%` to `100%`, such as `20%`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        if let DeValue::Integer(number) = value {
            let meant = format!("{number}%");
            let meant = share(&meant).map(|_| meant);
            return Err(Problem::expected(Self::EXPECTED, value).meant(meant));
        }
        let text = text(value, Self::EXPECTED)?;
        share(text).map(Self).ok_or_else(|| Problem::text("not a share", text, Self::EXPECTED))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^([0-9]{1,2}|100)%$", "examples": ["20%"] })
    }
}

fn share(text: &str) -> Option<u8> {
    let digits = text.strip_suffix('%')?;
    let plain = (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().filter(|share| *share <= 100)
}

impl Scalar for Price {
    const EXPECTED: &'static str = "a price by the hour or the day, such as `0.08/h` or `2/d`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = text(value, Self::EXPECTED)?;
        let (amount, hours) = match text.split_once('/') {
            Some((amount, "h")) => (amount, 1),
            Some((amount, "d")) => (amount, 24),
            _ => return Err(Problem::text("not per `h` or `d`", text, Self::EXPECTED)),
        };
        let why = "not an amount of up to 7 digits and 6 decimals, without a currency";
        let micros = micros(amount).ok_or_else(|| Problem::text(why, text, Self::EXPECTED))?;
        Ok(Self(micros / hours))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{1,7}(\\.[0-9]{1,6})?/[hd]$", "examples": ["0.08/h"] })
    }
}

/// Millionths, from a decimal number.
fn micros(amount: &str) -> Option<u64> {
    let (whole, decimals) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole, 7) || !digits(decimals, 6) {
        return None;
    }
    Some(whole.parse::<u64>().ok()? * 1_000_000 + format!("{decimals:0<6}").parse::<u64>().ok()?)
}

impl Scalar for Rate {
    const EXPECTED: &'static str = "a rate of at least 1 per second, minute or hour, such as `5/s`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = text(value, Self::EXPECTED)?;
        let rate = text.split_once('/').and_then(|(calls, unit)| {
            let plain = (1..=9).contains(&calls.len()) && calls.bytes().all(|b| b.is_ascii_digit());
            let calls: NonZeroU32 = plain.then(|| calls.parse().ok()).flatten()?;
            Some(crate::Rate { calls, per: unit_of(unit)? })
        });
        rate.map(Self).ok_or_else(|| Problem::text("not a rate", text, Self::EXPECTED))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[1-9][0-9]{0,8}/[smh]$", "examples": ["5/s"] })
    }
}

fn unit_of(unit: &str) -> Option<Duration> {
    match unit {
        "s" => Some(Duration::from_secs(1)),
        "m" => Some(Duration::from_mins(1)),
        "h" => Some(Duration::from_hours(1)),
        _ => None,
    }
}
