//! Secrets: where they are, and a value that can't be printed.

use std::fmt;

use crate::Address;

/// Where a secret is. It is read at its use, so that a configuration can be checked where it isn't.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In the environment, under this name.
    Env(String),
    /// On AWS, at this address: the functions read it there.
    Stored(Address),
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable `{name}`"),
            Self::Stored(address) => write!(f, "`{address}`"),
        }
    }
}

/// A secret. `Debug` shows nothing of it, there is no `Display`, and it can't be serialised.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A secret, or `None` where it is blank.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self(text))
    }

    /// The secret itself, for the one call that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
