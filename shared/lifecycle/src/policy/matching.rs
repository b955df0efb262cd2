//! Which runtimes a `[[policy]]` applies to.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Serialize, Serializer};

use crate::BackendName;

/// A text in which `*` stands for any run of characters, also an empty one. Nothing else is special.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Any text is a pattern.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
        let mut rest = rest;
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return rest.ends_with(part);
            }
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        true
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// What a `[[policy]]` applies to: every condition must hold; none means everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Match {
    /// One of these names the backend; empty: any backend.
    pub backend: Vec<Pattern>,
    /// Each of these labels is there, with a value that matches.
    pub labels: BTreeMap<String, Pattern>,
}

impl Match {
    /// Whether it can apply to any runtime of `backend`.
    pub fn backend(&self, backend: &BackendName) -> bool {
        self.backend.is_empty() || self.backend.iter().any(|pattern| pattern.matches(backend.as_str()))
    }

    /// Whether it applies to a runtime with `labels`, its backend being matched already.
    pub fn labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, pattern)| labels.get(key).is_some_and(|value| pattern.matches(value)))
    }
}
