//! Amounts as people read them, and text that can't disturb what it is shown in.

use std::fmt;

/// Bytes: `9.9 MB`, in powers of 1,000 as disks are sold and `df -H` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("PB", 15), ("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)];
        let unit = units.into_iter().map(|(name, power)| (name, 10_u64.pow(power))).find(|(_, size)| self.0 >= *size);
        match unit {
            Some((name, size)) => f.pad(&format!("{}.{} {name}", self.0 / size, self.0 % size / (size / 10))),
            None => f.pad(&format!("{} B", self.0)),
        }
    }
}

/// Millionths of the unit of money in which prices are configured: `0.08`, to the cent, or to the first
/// figures of what is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money(pub u64);

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, millionths) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if self.0 == 0 || self.0 >= 10_000 {
            f.pad(&format!("{whole}.{:02}", millionths / 10_000))
        } else {
            f.pad(format!("{whole}.{millionths:06}").trim_end_matches('0'))
        }
    }
}

/// A name or a line from outside, with nothing in it that moves a terminal's cursor or hides text.
pub(super) fn plain(text: &str) -> String {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if hides(c) { '\u{fffd}' } else { c }).collect()
}

/// The same as a cell of a Markdown table, in which no mark-up of the text's own takes effect.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        if matches!(c, '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '!' | '#' | '&' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
