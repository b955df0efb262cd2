//! Names of backends and runtimes, safe as keys and in URLs.

use std::{fmt, str::FromStr, sync::Arc};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest backend name or provider's id, in bytes before encoding.
pub const MAX_ID_BYTES: usize = 128;

/// What stands as itself in a key; every other byte is percent-encoded (RFC 3986 unreserved).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'~').remove(b'-');

/// A name or an id that can't be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// An empty name or id.
    #[error("{what} is empty; it needs 1 to {MAX_ID_BYTES} bytes")]
    Empty {
        /// Which of the two it was.
        what: &'static str,
    },
    /// More than [`MAX_ID_BYTES`].
    #[error("{what} has {bytes} bytes; at most {MAX_ID_BYTES} are allowed")]
    TooLong {
        /// Which of the two it was.
        what: &'static str,
        /// How long it was.
        bytes: usize,
    },
    /// A character that a backend's name can't have.
    #[error("backend name `{name}` has a character other than A-Z a-z 0-9 . _ ~ -")]
    Alphabet {
        /// The name.
        name: String,
    },
    /// No `/` between the backend and the id.
    #[error("`{text}` is not BACKEND/ID")]
    Shape {
        /// What was read.
        text: String,
    },
    /// An id whose percent-encoding is not the canonical one.
    #[error("`{text}` is not percent-encoded as Furlough writes it")]
    Encoding {
        /// What was read.
        text: String,
    },
}

/// The configured name of a provider account or a local root: `[A-Za-z0-9._~-]{1,128}`.
#[derive(Clone, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "equal by text, as it is hashed; the pointers are a short cut")]
pub struct BackendName(Arc<str>);

impl PartialEq for BackendName {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl BackendName {
    /// Checks length and alphabet.
    pub fn new(name: &str) -> Result<Self, IdError> {
        check_length("backend name", name.len())?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b'-');
        if !name.bytes().all(plain) {
            return Err(IdError::Alphabet { name: name.to_owned() });
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One runtime: the backend that has it, and the provider's id, percent-encoded.
///
/// Text form: `BACKEND/ENCODED-ID`, the same in keys, URLs, plans and on the command line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeId {
    backend: BackendName,
    encoded: Arc<str>,
}

impl RuntimeId {
    /// From the provider's own id, in bytes, since a path need not be UTF-8.
    pub fn new(backend: &BackendName, provider_id: &[u8]) -> Result<Self, IdError> {
        check_length("runtime id", provider_id.len())?;
        let encoded = percent_encode(provider_id, ENCODED).to_string();
        Ok(Self { backend: backend.clone(), encoded: encoded.into() })
    }

    /// The backend that has this runtime.
    pub fn backend(&self) -> &BackendName {
        &self.backend
    }

    /// The provider's id, percent-encoded.
    pub fn encoded(&self) -> &str {
        &self.encoded
    }

    /// The provider's id as the provider writes it.
    pub fn provider_id(&self) -> Vec<u8> {
        percent_decode_str(&self.encoded).collect()
    }
}

fn check_length(what: &'static str, bytes: usize) -> Result<(), IdError> {
    match bytes {
        0 => Err(IdError::Empty { what }),
        1..=MAX_ID_BYTES => Ok(()),
        _ => Err(IdError::TooLong { what, bytes }),
    }
}

impl FromStr for RuntimeId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (backend, encoded) = text.split_once('/').ok_or_else(|| IdError::Shape { text: text.to_owned() })?;
        let decoded: Vec<u8> = percent_decode_str(encoded).collect();
        let id = Self::new(&BackendName::new(backend)?, &decoded)?;
        if id.encoded() != encoded {
            return Err(IdError::Encoding { text: text.to_owned() });
        }
        Ok(id)
    }
}

impl FromStr for BackendName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.backend, self.encoded)
    }
}

impl fmt::Debug for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
as_text!(BackendName);
as_text!(RuntimeId);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_survive_the_text_form(bytes in proptest::collection::vec(any::<u8>(), 1..=MAX_ID_BYTES)) {
            let id = RuntimeId::new(&BackendName::new("b").unwrap(), &bytes).unwrap();
            prop_assert_eq!(id.to_string().parse::<RuntimeId>().unwrap(), id.clone());
            prop_assert_eq!(id.provider_id(), bytes);
        }

        #[test]
        fn one_runtime_has_one_text_form(text in "[ -~]{0,40}") {
            if let Ok(id) = text.parse::<RuntimeId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn limits_are_named() {
        let backend = BackendName::new("b").unwrap();
        assert_eq!(RuntimeId::new(&backend, b"").unwrap_err(), IdError::Empty { what: "runtime id" });
        assert_eq!(
            RuntimeId::new(&backend, &[b'a'; 129]).unwrap_err(),
            IdError::TooLong { what: "runtime id", bytes: 129 }
        );
        assert!(matches!(BackendName::new("a/b"), Err(IdError::Alphabet { .. })));
    }
}
