//! The faults found so far, and how one is told.

use std::ops::Range;

use toml::de::DeValue;

use crate::fault::{Fault, Faults, Severity};

/// So many faults are kept; the rest is counted. A file of junk must not fill the memory or the screen.
pub const MAX_FAULTS: usize = 100;

/// Values are shown up to so many characters.
const SHOWN: usize = 60;

/// Collects the faults of one text.
pub(crate) struct Log<'a> {
    text: &'a str,
    name: &'a str,
    errors: Vec<(usize, Fault)>,
    warnings: Vec<(usize, Fault)>,
    /// Errors beyond the limit.
    omitted: usize,
}

/// What is wrong, without where.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    pub(crate) nearest: Option<String>,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), expected: None, found: None, nearest: None }
    }

    /// A value of another type.
    pub(crate) fn expected(expected: &str, value: &DeValue<'_>) -> Self {
        let found = describe(value);
        Self::new(format!("expected {expected}, found {found}")).wanting(expected).having(found)
    }

    /// A text that can't be what it should be.
    pub(crate) fn text(why: impl std::fmt::Display, text: &str, expected: &str) -> Self {
        let shown = shown(text);
        Self::new(format!("{shown}: {why}")).wanting(expected).having(shown)
    }

    pub(crate) fn wanting(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(crate) fn having(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    pub(crate) fn meant(mut self, nearest: Option<impl Into<String>>) -> Self {
        self.nearest = nearest.map(Into::into);
        self
    }
}

/// The text in backticks and quotes, cut to what fits a line.
pub(crate) fn shown(text: &str) -> String {
    let mut cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("`{}`", cut.escape_debug())
}

/// A value, for people.
pub(crate) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.is_empty() => "an empty text".to_owned(),
        DeValue::String(text) => format!("the text {}", shown(text)),
        DeValue::Integer(number) => format!("the number {}", shown(&number.to_string())),
        DeValue::Float(number) => format!("the number {}", shown(number.as_str())),
        DeValue::Boolean(value) => format!("`{value}`"),
        DeValue::Datetime(time) => format!("the time {}", shown(&time.to_string())),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

impl<'a> Log<'a> {
    pub(crate) fn new(text: &'a str, name: &'a str) -> Self {
        Self { text, name, errors: Vec::new(), warnings: Vec::new(), omitted: 0 }
    }

    /// The file can't be used.
    pub(crate) fn error(&mut self, path: &str, span: &Range<usize>, problem: Problem) {
        self.push(Severity::Error, path, span, problem);
    }

    /// The file can be used, and says something that its author may not mean.
    pub(crate) fn warn(&mut self, path: &str, span: &Range<usize>, problem: Problem) {
        self.push(Severity::Warning, path, span, problem);
    }

    fn push(&mut self, severity: Severity, path: &str, span: &Range<usize>, problem: Problem) {
        let kept = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if kept.len() < MAX_FAULTS {
            kept.push((span.start, Fault::locate(self.text, severity, path, span, problem)));
        } else if severity == Severity::Error {
            self.omitted += 1;
        }
    }

    /// The warnings, where there is no error. A broken file gets no warnings: many would come of its errors.
    pub(crate) fn finish(self) -> Result<Vec<Fault>, Faults> {
        if self.errors.is_empty() { Ok(in_order(self.warnings)) } else { Err(self.into_faults()) }
    }

    /// The errors.
    pub(crate) fn into_faults(self) -> Faults {
        Faults { file: self.name.to_owned(), faults: in_order(self.errors), omitted: self.omitted }
    }

    /// Whether further errors are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= MAX_FAULTS
    }

    /// Whether `path` or a key below it has an error already, so that what follows from that one is not told too.
    pub(crate) fn told(&self, path: &str) -> bool {
        self.errors.iter().any(|(_, fault)| fault.key.starts_with(path))
    }

    pub(crate) fn failed(&self) -> bool {
        !self.errors.is_empty()
    }
}

fn in_order(mut found: Vec<(usize, Fault)>) -> Vec<Fault> {
    found.sort_by_key(|(start, _)| *start);
    found.into_iter().map(|(_, fault)| fault).collect()
}
