//! Amounts, times and foreign text, as people read them.

use std::{borrow::Cow, fmt::Write, time::Duration};

use lifecycle::{Time, duration::Human};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The largest unit, for narrow columns: `16d`, `3h`, `45s`.
pub(crate) fn age(duration: Duration) -> String {
    let secs = duration.as_secs();
    match secs {
        DAY.. => format!("{}d", secs / DAY),
        HOUR.. => format!("{}h", secs / HOUR),
        MINUTE.. => format!("{}m", secs / MINUTE),
        _ => format!("{secs}s"),
    }
}

/// `in 3d 4h`, `2h ago`, `now`.
pub(crate) fn relative(time: Time, now: Time) -> String {
    if time == Time::MAX {
        return "never".to_owned();
    }
    match (time.since(now), now.since(time)) {
        (Duration::ZERO, Duration::ZERO) => "now".to_owned(),
        (Duration::ZERO, past) => format!("{} ago", Human(past)),
        (future, _) => format!("in {}", Human(future)),
    }
}

/// `2026-11-30 13:45 UTC`.
pub(crate) fn clock(time: Time) -> String {
    let text = time.to_string();
    match text.split_once('T') {
        Some((date, rest)) => format!("{date} {} UTC", rest.get(..5).unwrap_or(rest)),
        None => text,
    }
}

/// Decimal units, one place: `1.2 GB`, `640 B`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut whole, mut unit) = (u128::from(bytes) * 10 / 1000, 0);
    while whole >= 10_000 && unit + 1 < UNITS.len() {
        whole /= 1000;
        unit += 1;
    }
    match whole {
        0..100 => format!("{}.{} {}", whole / 10, whole % 10, UNITS[unit]),
        _ => format!("{} {}", whole / 10, UNITS[unit]),
    }
}

/// Millionths of a currency unit, to the cent, or to what is left of it: `3.20`, `0.004`.
pub(crate) fn money(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    if whole > 0 || part == 0 || part >= 100_000 {
        return format!("{whole}.{:02}", part / 10_000);
    }
    let text = format!("{whole}.{part:06}");
    text.trim_end_matches('0').to_owned()
}

/// `1 runtime`, `3 runtimes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Foreign text with nothing in it that a terminal obeys: control characters and those that change
/// the direction of text are shown as escapes. A worktree's name is written by an agent.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    let unsafe_char = |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if !text.contains(unsafe_char) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if unsafe_char(c) {
            // Writing to a String can't fail.
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// `text` cut to `width` characters, its middle shown as `…`: the end of a path says the most.
pub(crate) fn clip(text: &str, width: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= width || width < 3 {
        return Cow::Borrowed(text);
    }
    let head = (width - 1) / 3;
    let tail = width - 1 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    Cow::Owned(format!("{start}…{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_never_round_up() {
        let cases = [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (9_999, "9.9 kB"), (10_400, "10 kB"), (999_999, "999 kB")];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(bytes(1_250_000_000), "1.2 GB");
        assert_eq!(bytes(u64::MAX), "18 EB");
        assert_eq!([money(0), money(3_200_000), money(4_000), money(250_000)], ["0.00", "3.20", "0.004", "0.25"]);
    }

    #[test]
    fn times_are_told_from_now() {
        let now = Time::from_millis(1_764_500_000_000);
        assert_eq!(relative(now, now), "now");
        assert_eq!(relative(now.plus(Duration::from_secs(90)), now), "in 1m 30s");
        assert_eq!(relative(now.minus(Duration::from_secs(90)), now), "1m 30s ago");
        assert_eq!(clock(now), "2025-11-30 10:53 UTC");
    }

    #[test]
    fn a_terminal_obeys_nothing_that_an_agent_named() {
        assert_eq!(safe("plain — café"), "plain — café");
        assert_eq!(safe("a\u{1b}[2Jb\r\n\u{202e}c"), "a\\u{1b}[2Jb\\r\\n\\u{202e}c");
    }

    #[test]
    fn a_clipped_path_keeps_its_end() {
        assert_eq!(clip("/tmp/conversation-worktrees/abc/shop", 16), "/tmp/…s/abc/shop");
        assert_eq!(clip("short", 16), "short");
    }
}
