//! Shares, prices and rates.

use std::{num::NonZeroU32, time::Duration};

use lifecycle::policy::MicrosPerHour;
use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{
    log::Problem,
    read::Scalar,
    scalar::{at_least_one, text},
};

/// A whole share of 0 to 100, written `20%`. Zero is decided where it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share(pub(crate) u8);

/// What an hour costs, written `0.08/h` or, by the day, `1.92/d`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price(pub(crate) MicrosPerHour);

/// So many calls per time, written `5/s`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(pub(crate) crate::Rate);

/// The dearest: beyond it, it's a slip.
const MAX_PRICE: u64 = 1_000_000;

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
        let why = format!("not an amount from 0 to {MAX_PRICE} with up to 6 decimals and without a currency");
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
    let micros = whole.parse::<u64>().ok()? * 1_000_000 + format!("{decimals:0<6}").parse::<u64>().ok()?;
    (micros <= MAX_PRICE * 1_000_000).then_some(micros)
}

impl Scalar for Rate {
    const EXPECTED: &'static str = "a rate of at least 1 per second, minute or hour, such as `5/s`";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = text(value, Self::EXPECTED)?;
        let rate = text.split_once('/').and_then(|(calls, unit)| Some((at_least_one(calls)?, unit_of(unit)?)));
        let (calls, per): (NonZeroU32, Duration) =
            rate.ok_or_else(|| Problem::text("not a rate", text, Self::EXPECTED))?;
        Ok(Self(crate::Rate { calls, per }))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^0*[1-9][0-9]*/[smh]$", "examples": ["5/s"] })
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
