//! Amounts, times and foreign text, as people read them.

use std::{borrow::Cow, fmt::Write, time::Duration};

use lifecycle::{Time, duration::Human};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Two units, none below a second: what people ask for is an age, not a measurement.
pub(crate) fn lasted(duration: Duration) -> String {
    Human(Duration::from_secs(duration.as_secs())).to_string()
}

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
        (Duration::ZERO, past) => format!("{} ago", lasted(past)),
        (future, _) => format!("in {}", lasted(future)),
    }
}

/// One unit, for narrow columns: `25m ago`, `now`.
pub(crate) fn ago(time: Time, now: Time) -> String {
    match now.since(time) {
        past if past < Duration::from_secs(1) => "now".to_owned(),
        past => format!("{} ago", age(past)),
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

/// `1 runtime`, `3 runtimes`, `2 entries`, `4 passes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) if noun.ends_with('s') => format!("{number} {noun}es"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// Foreign text with nothing in it that a terminal obeys: control characters and those that change
/// the direction of text are shown as escapes. A worktree's name is written by an agent.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    let unsafe_char = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
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
