//! What is wrong with a configuration, where, and what to write instead.

use std::{fmt, ops::Range};

use serde::Serialize;

use crate::log::Problem;

/// A line of the file is shown up to so many characters round its fault.
const EXCERPT: usize = 120;

/// Whether the configuration can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It can, and may not say what its author means.
    Warning,
    /// It can't.
    Error,
}

/// One fault. `Display` shows it with its line, as compilers do; serialised, it is one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Whether it prevents the use of the file.
    pub severity: Severity,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The key, such as `policy[0].idle.after`; lists count from 0. Empty for faults of syntax.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub expected: Option<String>,
    /// What is there.
    pub found: Option<String>,
    /// The nearest right name.
    pub nearest: Option<String>,
    /// The line, or the part of a long one that matters. `None` where it may hold a secret.
    pub excerpt: Option<Excerpt>,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// The text.
    pub text: String,
    /// How many of its characters come before the fault.
    pub before: usize,
    /// How many characters the fault has, at least one.
    pub width: usize,
}

/// Every fault of a file, in its order. `Display` shows them all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Faults {
    /// The name of the file.
    pub file: String,
    /// The faults, at least one, each an error: what a broken file may mean is not guessed at.
    pub faults: Vec<Fault>,
    /// How many more there are than [`MAX_FAULTS`](crate::MAX_FAULTS).
    pub omitted: usize,
}

impl Fault {
    pub(crate) fn locate(text: &str, severity: Severity, key: &str, span: &Range<usize>, problem: Problem) -> Self {
        let place = Place::of(text, span);
        let Problem { what: problem, expected, found, nearest } = problem;
        // A webhook's address is often its own password.
        let excerpt = (!key.starts_with("notify")).then(|| place.excerpt());
        let key = key.to_owned();
        Self { severity, line: place.number, column: place.before + 1, key, problem, expected, found, nearest, excerpt }
    }

    /// Writes the fault with `file` before its line.
    fn write(&self, file: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let key = if self.key.is_empty() { String::new() } else { format!("`{}`: ", self.key) };
        let margin = " ".repeat(self.line.to_string().len());
        write!(f, "{severity}: {key}{}\n{margin}--> {file}:{}:{}", self.problem, self.line, self.column)?;
        if let Some(Excerpt { text, before, width }) = &self.excerpt {
            // Tabs stay tabs, so that the mark stands below what it marks.
            let indent: String = text.chars().take(*before).map(|c| if c == '\t' { c } else { ' ' }).collect();
            write!(f, "\n{margin} |\n{} | {text}\n{margin} | {indent}{}", self.line, "^".repeat(*width))?;
        }
        if let Some(expected) = self.expected.as_ref().filter(|expected| !self.problem.contains(expected.as_str())) {
            write!(f, "\n{margin} = expected {expected}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "\n{margin} = did you mean `{nearest}`?")?;
        }
        Ok(())
    }

    /// The fault as text, with the name of its file.
    pub fn in_file<'a>(&'a self, file: &'a str) -> impl fmt::Display + 'a {
        InFile { fault: self, file }
    }
}

struct InFile<'a> {
    fault: &'a Fault,
    file: &'a str,
}

impl fmt::Display for InFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.write(self.file, f)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            fault.write(&self.file, f)?;
        }
        if self.omitted > 0 {
            write!(f, "\n\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// Where a span stands in a text, in lines and characters.
struct Place<'a> {
    number: usize,
    line: &'a str,
    before: usize,
    width: usize,
}

impl<'a> Place<'a> {
    fn of(text: &'a str, span: &Range<usize>) -> Self {
        // What is missing at the very end is shown at the end of the last line, not on one after it.
        let last = text.strip_suffix('\n').unwrap_or(text).len();
        let start = floor(text, span.start.min(last));
        let end = floor(text, span.end).max(start);
        let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[begin..].lines().next().unwrap_or_default();
        // `\r\n` is no part of a line, and may be where the fault is.
        let start = start.min(begin + line.len());
        let stop = end.clamp(start, begin + line.len());
        Self {
            number: text[..start].matches('\n').count() + 1,
            line,
            before: text[begin..start].chars().count(),
            width: text[start..stop].chars().count().max(1),
        }
    }

    fn excerpt(&self) -> Excerpt {
        let long = self.line.chars().nth(EXCERPT).is_some();
        let skip = if long { self.before.saturating_sub(EXCERPT / 2) } else { 0 };
        let cleaned = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
        let text: String = self.line.chars().skip(skip).take(EXCERPT).map(cleaned).collect();
        let before = self.before - skip;
        Excerpt { text, before, width: self.width.min(EXCERPT.saturating_sub(before)).max(1) }
    }
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
