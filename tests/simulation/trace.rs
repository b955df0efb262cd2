//! Who did what, when: one line an event, readable, and the same for the same seed.

use std::fmt::Write as _;

use lifecycle::{RuntimeId, Time};

use super::scenario::start;

/// One thing that happened.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) at: Time,
    pub(crate) who: String,
    /// `None`: it concerns the backend as a whole.
    pub(crate) runtime: Option<RuntimeId>,
    pub(crate) what: String,
}

/// What is written down of a run. The many runs that nobody reads write nothing.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) kept: bool,
    pub(crate) lines: Vec<Line>,
}

/// The end of what is printed of a violation.
const SHOWN: usize = 120;

impl Trace {
    pub(crate) fn note(&mut self, at: Time, who: &str, runtime: Option<&RuntimeId>, what: impl FnOnce() -> String) {
        if self.kept {
            let (who, runtime) = (who.to_owned(), runtime.cloned());
            self.lines.push(Line { at, who, runtime, what: what() });
        }
    }

    /// All of it, or the end of what concerns one runtime and its backend as a whole.
    pub(crate) fn text(&self, about: Option<&RuntimeId>) -> String {
        let concerns = |line: &&Line| about.is_none() || line.runtime.is_none() || line.runtime.as_ref() == about;
        let lines: Vec<_> = self.lines.iter().filter(concerns).collect();
        let skipped = if about.is_some() { lines.len().saturating_sub(SHOWN) } else { 0 };
        let mut text = String::new();
        for Line { at, who, runtime, what } in &lines[skipped..] {
            let id = runtime.as_ref().map_or("-", RuntimeId::encoded);
            let _ = writeln!(text, "{} {who:<14} {id:<3} {what}", offset(*at));
        }
        text
    }
}

/// Since the beginning of the run, as `+01:02:03.456`.
pub(crate) fn offset(at: Time) -> String {
    let millis = at.millis() - start().millis();
    let (sign, millis) = (if millis < 0 { '-' } else { '+' }, millis.abs());
    let (hours, minutes, seconds) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1_000 % 60);
    format!("{sign}{hours:02}:{minutes:02}:{seconds:02}.{:03}", millis % 1_000)
}
