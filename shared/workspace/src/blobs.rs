//! Object storage, as two traits: what the host may do, and how a sandbox that has no credentials moves bytes.
//!
//! ```text
//! host (has credentials):  Blobs   put, get, list, delete; begin, sign, complete, abort; sign a read
//! sandbox (has none):      Signer  asks the host for signed requests        Wire  sends them
//! ```
//!
//! A [`Blobs`] is a [`Signer`]; over HTTP another one asks the host. Objects are immutable: a key is written once.

pub mod bound;
pub mod directory;
#[cfg(feature = "http")]
pub mod http;
#[cfg(any(feature = "http", feature = "s3"))]
mod meaning;
#[cfg(feature = "s3")]
pub mod s3;

use std::{fmt, ops::Range};

use async_trait::async_trait;
use bytes::Bytes;

use crate::time::Millis;

/// A store could not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such object.
    #[error("`{0}` is not in the store")]
    Missing(String),
    /// The signed request was sent after its end, or was signed with what is no longer valid: ask for another one.
    #[error("the signed request for `{0}` has expired")]
    Expired(String),
    /// The store is busy or could not be reached: try again, later.
    #[error("the store is busy or could not be reached for `{key}`: {why}")]
    Busy {
        /// Which object.
        key: String,
        /// What it said.
        why: String,
    },
    /// A part or an object is larger or smaller than the store takes, or there are too many of them.
    #[error("`{key}`: {why}")]
    Limit {
        /// Which object.
        key: String,
        /// Which limit.
        why: String,
    },
    /// Something is there already, or an upload's parts are not the ones that were sent.
    #[error("`{key}` was refused: {why}")]
    Refused {
        /// Which object.
        key: String,
        /// What the store said.
        why: String,
    },
}

impl StoreError {
    /// Whether the same request may succeed later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}

/// An upload that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The object that it will be.
    pub key: String,
    /// The store's own name for it.
    pub id: String,
}

/// A request that needs nothing but itself to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Signed {
    /// The object.
    pub key: String,
    /// Where to send it.
    pub url: String,
    /// What to send with it.
    pub headers: Vec<(String, String)>,
    /// When it ends.
    pub until: Millis,
}

/// The URL is a credential, and is not shown.
impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed").field("key", &self.key).field("until", &self.until).finish_non_exhaustive()
    }
}

/// What a store says of a part that it took: to be given back when the upload is completed.
pub type Tag = String;

/// Signs requests for the objects of a workspace.
#[async_trait]
pub trait Signer: Send + Sync {
    /// Begins an upload.
    async fn begin(&self, key: &str) -> Result<Upload, StoreError>;
    /// A request for each of some parts, counted from 1, of these lengths in bytes.
    async fn sign_parts(&self, upload: &Upload, parts: &[(u32, u64)]) -> Result<Vec<Signed>, StoreError>;
    /// Makes the object of its parts. Refused where the key is taken; done again, it is done.
    async fn complete(&self, upload: &Upload, tags: &[Tag]) -> Result<(), StoreError>;
    /// Gives an upload up.
    async fn abort(&self, upload: &Upload) -> Result<(), StoreError>;
    /// A request that writes a whole small object, once.
    async fn sign_put(&self, key: &str, bytes: u64) -> Result<Signed, StoreError>;
    /// A request that reads an object, or ranges of it.
    async fn sign_get(&self, key: &str) -> Result<Signed, StoreError>;
}

/// Sends signed requests.
#[async_trait]
pub trait Wire: Send + Sync {
    /// Writes a part or a small object. A small object whose key is taken is [`StoreError::Refused`].
    async fn put(&self, signed: &Signed, bytes: Bytes) -> Result<Tag, StoreError>;
    /// Reads a range of an object, all of it or an error.
    async fn get(&self, signed: &Signed, range: Range<u64>) -> Result<Vec<u8>, StoreError>;
    /// Reads a whole object of at most `limit` bytes.
    async fn get_all(&self, signed: &Signed, limit: u64) -> Result<Vec<u8>, StoreError>;
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// When it was written, by the store's clock.
    pub written: Millis,
}

/// A store, to whoever holds its credentials.
#[async_trait]
pub trait Blobs: Signer {
    /// Writes a small object, over what is there. For texts that say the same in every version.
    async fn put(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError>;
    /// Reads a whole object of at most `limit` bytes.
    async fn get(&self, key: &str, limit: u64) -> Result<Vec<u8>, StoreError>;
    /// All objects whose keys begin with `prefix`, in the order of their keys.
    async fn list(&self, prefix: &str) -> Result<Vec<Object>, StoreError>;
    /// Deletes an object. One that is not there is deleted.
    async fn delete(&self, key: &str) -> Result<(), StoreError>;
    /// Gives up the uploads below `prefix` that were begun before `before`, and says how many.
    async fn abort_stale(&self, prefix: &str, before: Millis) -> Result<usize, StoreError>;
}
