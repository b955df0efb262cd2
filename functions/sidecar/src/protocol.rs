//! What a sidecar and its host say to one another, as JSON: `POST {host}/workspaces/{name}/lease`, `/parts`, `/commit`.
//!
//! Each is asked with `Authorization: Bearer TOKEN`, the token of the delivery, and answered with 200 and what is told
//! here, or with another status and a [`Refusal`]. An unknown field is refused.

use serde::{Deserialize, Serialize};
use workspace::{
    blobs::{Signed, StoreError, Tag, Upload},
    commit::{Committed, Head, Lease, Renewed},
    time::Millis,
};

/// The body of `/lease`: hold it for longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// The lease.
    pub lease: Lease,
    /// For how long from now.
    pub ttl_ms: u64,
}

/// What is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// It is held until then.
    UntilMs(Millis),
    /// It is another one's.
    Lost,
}

/// The body of `/parts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Begin an upload.
    Begin {
        /// Of which object.
        key: String,
    },
    /// Sign for parts of it: their numbers, and how many bytes each has.
    Parts {
        /// Of which object.
        key: String,
        /// Which upload.
        upload: String,
        /// Which parts.
        parts: Vec<(u32, u64)>,
    },
    /// Make the object of its parts.
    Complete {
        /// Which object.
        key: String,
        /// Which upload.
        upload: String,
        /// What the store said of each part.
        tags: Vec<Tag>,
    },
    /// Give the upload up.
    Abort {
        /// Of which object.
        key: String,
        /// Which.
        upload: String,
    },
    /// Sign for writing a small object.
    Put {
        /// Which.
        key: String,
        /// How many bytes it has.
        bytes: u64,
    },
    /// Sign for reading an object.
    Get {
        /// Which.
        key: String,
    },
}

/// What is told of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The upload was begun under this name.
    Upload(String),
    /// Requests that need nothing but themselves.
    Signed(Vec<Request>),
    /// It was done.
    Done,
}

/// A signed request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The object.
    pub key: String,
    /// Where to send it. It is a credential.
    pub url: String,
    /// What to send with it.
    pub headers: Vec<(String, String)>,
    /// When it ends.
    pub until_ms: Millis,
}

/// The body of `/commit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Settle {
    /// Make this the head, after that generation.
    Commit {
        /// Under which lease.
        lease: Lease,
        /// After which generation; 0: there is none.
        replaces: u64,
        /// The head.
        head: Head,
        /// Whether the lease ends with it.
        release: bool,
    },
    /// End the lease.
    Release {
        /// Which.
        lease: Lease,
    },
}

/// What is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It is so.
    Done,
    /// The lease is another one's.
    Fenced,
    /// The head is another one.
    Moved(Option<Head>),
}

/// Why something was not done, for a program and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// For a program.
    pub code: Code,
    /// For people: what happened, and what to do.
    pub detail: String,
}

/// What kind of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The token proves nothing.
    Unauthorized,
    /// The body is none, or too large.
    Malformed,
    /// There is no such thing.
    Missing,
    /// The store's request has ended.
    Expired,
    /// Not now: again later.
    Busy,
    /// Too large, or too many.
    Limit,
    /// It is not allowed, or taken.
    Refused,
}

impl From<Signed> for Request {
    fn from(Signed { key, url, headers, until }: Signed) -> Self {
        Self { key, url, headers, until_ms: until }
    }
}

impl From<Request> for Signed {
    fn from(Request { key, url, headers, until_ms }: Request) -> Self {
        Self { key, url, headers, until: until_ms }
    }
}

impl From<Renewed> for Held {
    fn from(renewed: Renewed) -> Self {
        match renewed {
            Renewed::Until(until) => Self::UntilMs(until),
            Renewed::Lost => Self::Lost,
        }
    }
}

impl From<Held> for Renewed {
    fn from(held: Held) -> Self {
        match held {
            Held::UntilMs(until) => Self::Until(until),
            Held::Lost => Self::Lost,
        }
    }
}

impl From<Committed> for Settled {
    fn from(committed: Committed) -> Self {
        match committed {
            Committed::Done => Self::Done,
            Committed::Fenced => Self::Fenced,
            Committed::Moved(head) => Self::Moved(head),
        }
    }
}

impl From<Settled> for Committed {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Done => Self::Done,
            Settled::Fenced => Self::Fenced,
            Settled::Moved(head) => Self::Moved(head),
        }
    }
}

impl Ask {
    /// The object that it is about.
    pub fn key(&self) -> &str {
        match self {
            Self::Begin { key }
            | Self::Parts { key, .. }
            | Self::Complete { key, .. }
            | Self::Abort { key, .. }
            | Self::Put { key, .. }
            | Self::Get { key } => key,
        }
    }

    /// Of an upload that was begun.
    pub fn parts(upload: &Upload, parts: &[(u32, u64)]) -> Self {
        Self::Parts { key: upload.key.clone(), upload: upload.id.clone(), parts: parts.to_vec() }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let (code, detail) = match error {
            StoreError::Missing(_) => (Code::Missing, "it is not in the store".to_owned()),
            StoreError::Expired(_) => (Code::Expired, "the signed request has expired".to_owned()),
            StoreError::Busy { why, .. } => (Code::Busy, why),
            StoreError::Limit { why, .. } => (Code::Limit, why),
            StoreError::Refused { why, .. } => (Code::Refused, why),
        };
        Self { code, detail }
    }
}

impl Refusal {
    /// As the store's, about this object.
    pub fn of_store(self, key: &str) -> StoreError {
        let Self { code, detail: why } = self;
        let key = key.to_owned();
        match code {
            Code::Missing => StoreError::Missing(key),
            Code::Expired => StoreError::Expired(key),
            Code::Busy => StoreError::Busy { key, why },
            Code::Limit => StoreError::Limit { key, why },
            Code::Unauthorized | Code::Malformed | Code::Refused => StoreError::Refused { key, why },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_store_says_is_the_same_on_both_sides() {
        let why = || "so".to_owned();
        for error in [
            StoreError::Missing("k".to_owned()),
            StoreError::Expired("k".to_owned()),
            StoreError::Busy { key: "k".to_owned(), why: why() },
            StoreError::Limit { key: "k".to_owned(), why: why() },
            StoreError::Refused { key: "k".to_owned(), why: why() },
        ] {
            assert_eq!(Refusal::from(error.clone()).of_store("k"), error);
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(serde_json::from_str::<Ask>(r#"{"get":{"key":"k"}}"#).is_ok());
        assert!(serde_json::from_str::<Ask>(r#"{"get":{"key":"k","as":"x"}}"#).is_err());
        assert!(serde_json::from_str::<Ask>(r#"{"get":{"key":"k"},"put":{"key":"k","bytes":1}}"#).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = serde_json::from_slice::<Ask>(&body);
            let _ = serde_json::from_slice::<Settle>(&body);
            let _ = serde_json::from_slice::<Renew>(&body);
        }
    }
}
