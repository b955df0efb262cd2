//! What headers say of time: how long to wait, in each form that providers have for it, and what time it is.

use std::time::Duration;

use jiff::fmt::rfc2822;
use lifecycle::Time;
use reqwest::{
    StatusCode,
    header::{DATE, HeaderMap},
};

/// What is waited when a provider asks for fewer requests and does not say for how long.
const USUAL: Duration = Duration::from_secs(30);
/// The shortest and the longest wait: a provider can't make us hammer it, nor switch us off.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(1);

/// The provider's time.
pub(crate) fn date(headers: &HeaderMap) -> Option<Time> {
    http_date(headers.get(DATE)?.to_str().ok()?)
}

fn http_date(text: &str) -> Option<Time> {
    rfc2822::parse(text).ok().map(|date| date.timestamp().into())
}

/// How long an answer asks to be left alone. `None`: it does not ask.
///
/// Any `Retry-After…` counts: Daytona names the limit that was reached in the header's own name and has no plain
/// one. The longest of them holds, as seconds (whole or not) or as a date; without any, a 429 tells by its
/// `…RateLimit-Reset…`, or not at all.
pub(crate) fn wait(status: StatusCode, headers: &HeaderMap, now: Time) -> Option<Duration> {
    let longest = |named: fn(&str) -> bool| {
        let named = headers.iter().filter(|(name, _)| named(name.as_str()));
        named.filter_map(|(_, value)| span(value.to_str().ok()?.trim(), now)).max()
    };
    let told = longest(|name| name.starts_with("retry-after"));
    let told = match status {
        StatusCode::TOO_MANY_REQUESTS => {
            let reset = || longest(|name| name.contains("ratelimit-reset"));
            Some(told.or_else(reset).unwrap_or(USUAL))
        }
        status if status.is_server_error() => told,
        _ => None,
    };
    told.map(|wait| wait.clamp(SHORTEST, LONGEST))
}

fn span(text: &str, now: Time) -> Option<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => http_date(text).map(|at| at.since(now)),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn waited(status: u16, headers: &[(&'static str, &'static str)]) -> Option<u64> {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let now = http_date("Mon, 30 Nov 2026 10:00:00 GMT").unwrap();
        wait(StatusCode::from_u16(status).unwrap(), &headers.iter().map(pair).collect(), now).map(|wait| wait.as_secs())
    }

    #[test]
    fn each_form_of_retry_after_is_heard() {
        for (headers, seconds) in [
            (&[("retry-after", "7")][..], 7),
            (&[("retry-after-sandbox-lifecycle", "42")], 42),
            (&[("retry-after", "3"), ("retry-after-authenticated", "9")], 9),
            (&[("retry-after", "2.5")], 2),
            (&[("retry-after", "Mon, 30 Nov 2026 10:01:30 GMT")], 90),
            (&[("retry-after", "Mon, 30 Nov 2026 09:00:00 GMT")], 1),
            (&[("ratelimit-reset", "12")], 12),
            (&[("x-ratelimit-reset-authenticated", "13")], 13),
            (&[("retry-after", "soon")], 30),
            (&[("retry-after", "-1")], 30),
            (&[("retry-after", "NaN")], 30),
            (&[("retry-after", "999999999")], 3_600),
            (&[("retry-after", "0")], 1),
            (&[], 30),
        ] {
            assert_eq!(waited(429, headers), Some(seconds), "{headers:?}");
        }
    }

    #[test]
    fn only_an_answer_that_asks_is_waited_for() {
        assert_eq!(waited(503, &[("retry-after", "5")]), Some(5));
        assert_eq!(waited(503, &[]), None);
        assert_eq!(waited(503, &[("ratelimit-reset", "5")]), None, "a limit that was not reached");
        assert_eq!(waited(404, &[("retry-after", "5")]), None);
    }
}
