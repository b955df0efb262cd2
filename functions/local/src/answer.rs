//! What a command answers: text for people, one JSON document for programs, and an exit code.

use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// All done.
    Done,
    /// Done, but some were refused, left, or are still under way, each by name.
    Refused,
    /// Failed, or a backend could not be asked.
    Failed,
    /// Bad usage, or a fault in the configuration.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
        })
    }
}

/// What a command answers.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub(crate) struct Answer {
    /// For people, ready to print. No line feed at its end.
    pub(crate) text: String,
    /// For programs.
    pub(crate) json: Value,
    /// How it ended.
    pub(crate) exit: Exit,
}

impl Answer {
    /// All done.
    pub(crate) fn done(text: impl Into<String>, json: impl Serialize) -> Self {
        Self { text: text.into(), json: to_json(json), exit: Exit::Done }
    }

    /// The same answer with another end, if that is a worse one.
    pub(crate) fn ending(self, exit: Exit) -> Self {
        Self { exit: self.exit.max(exit), ..self }
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    /// For programs: `unknown_runtime`.
    pub(crate) code: &'static str,
    /// For people: what happened and what to do next. May have several lines.
    pub(crate) message: String,
    /// How the command ends.
    pub(crate) exit: Exit,
}

/// The words of a fault: a text, or an error's own.
pub(crate) struct Message(String);

impl<T: std::fmt::Display> From<T> for Message {
    fn from(told: T) -> Self {
        Self(told.to_string())
    }
}

impl Fault {
    /// Something failed.
    pub(crate) fn failed(code: &'static str, message: impl Into<Message>) -> Self {
        Self { code, message: message.into().0, exit: Exit::Failed }
    }

    /// It was asked wrongly.
    pub(crate) fn usage(code: &'static str, message: impl Into<Message>) -> Self {
        Self { code, message: message.into().0, exit: Exit::Usage }
    }

    /// It can be done, but not as things stand.
    pub(crate) fn refused(code: &'static str, message: impl Into<Message>) -> Self {
        Self { code, message: message.into().0, exit: Exit::Refused }
    }

    /// The document on stdout under `--json`.
    pub(crate) fn json(&self) -> Value {
        json!({ "error": { "code": self.code, "message": self.message } })
    }
}

/// A value of ours as JSON. Ours have text keys only, so this can't fail; `null` if it ever did.
pub(crate) fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
