//! The lease of a workspace, and the one commit point: a conditional write on its record.
//!
//! **Invariants.** The token grows at every lease that is given and is never reset. A head changes only by
//! [`Commit::commit`], under the token of the lease that is current, and from the generation that the writer knew. Time
//! decides only when somebody else may try; the token decides who wins. A commit that was already done is done.

pub mod directory;

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    key::{Key, Name, Sort},
    time::Millis,
};

/// The current generation of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its manifest.
    pub manifest: Key,
    /// The BLAKE3 of the manifest's bytes, in hexadecimal.
    pub blake3: String,
    /// Counted from 1.
    pub generation: u64,
    /// When the scan of it began.
    pub as_of_ms: Millis,
    /// The content of all its files, in bytes.
    pub bytes: u64,
}

/// The right to be the one writer, until a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Of which workspace.
    pub workspace: Name,
    /// Whose.
    pub owner: String,
    /// What every write under it names.
    pub token: u64,
    /// Until when, by the record keeper's clock.
    pub until_ms: Millis,
}

impl Lease {
    /// Whether its holder may make this the head after generation `replaces`: it is the next one, and its manifest was
    /// written for this workspace, under this token. A head comes from a sandbox, so every keeper looks.
    pub fn check(&self, replaces: u64, head: &Head) -> Result<(), CommitError> {
        let wrong = |why: &str| Err(CommitError { workspace: self.workspace.clone(), why: why.to_owned() });
        let key = &head.manifest;
        if key.sort != Sort::Manifest || key.workspace != self.workspace || key.token != self.token {
            return wrong("the head's manifest was not written for this workspace under this lease");
        }
        if replaces.checked_add(1) != Some(head.generation) || key.generation != head.generation {
            return wrong("the head is not of the generation after the one that it replaces");
        }
        Ok(())
    }
}

/// How an attempt at a lease ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// It is yours, and this is what you write after.
    Granted {
        /// The lease.
        lease: Lease,
        /// The head, if there is one.
        head: Option<Head>,
    },
    /// Somebody else's.
    Held {
        /// Whose.
        owner: String,
        /// Until when; what comes later, and the skew, decides whether it can be taken over.
        until_ms: Millis,
    },
}

/// How a renewal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewed {
    /// Until later.
    Until(Millis),
    /// The lease is another one's, or was released. Stop writing.
    Lost,
}

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// The head is the one that was given, by this write or by an earlier one whose answer was lost.
    Done,
    /// The lease is another one's, or was released. Nothing was changed.
    Fenced,
    /// The head is not of the generation that the writer named. Nothing was changed.
    Moved(Option<Head>),
}

/// What happens to the lease after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It stays.
    Keep,
    /// It ends in the same write.
    Release,
}

/// The record keeper could not be asked, or its record can't be read: nothing is known about what was done. Ask again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record of workspace `{workspace}` could not be asked: {why}")]
pub struct CommitError {
    /// Which.
    pub workspace: Name,
    /// What it said.
    pub why: String,
}

/// Keeps the records of workspaces.
#[async_trait]
pub trait Commit: Send + Sync {
    /// Takes the lease where it is free, released, the owner's own, or over for longer than the skew.
    async fn acquire(&self, workspace: &Name, owner: &str, ttl: Duration) -> Result<Acquired, CommitError>;
    /// Holds it for longer. An expired lease that nobody took is renewed.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Renewed, CommitError>;
    /// Gives it back. One that is no longer held is not held.
    async fn release(&self, lease: &Lease) -> Result<(), CommitError>;
    /// Makes `head` the head, if the lease is current and the head's generation is still `replaces` (0: there is none).
    /// A head that [`Lease::check`] refuses is an error.
    async fn commit(&self, lease: &Lease, replaces: u64, head: &Head, after: After) -> Result<Committed, CommitError>;
    /// The head, if there is one.
    async fn head(&self, workspace: &Name) -> Result<Option<Head>, CommitError>;
    /// The lease, if one is held, over or not.
    async fn lease(&self, workspace: &Name) -> Result<Option<Lease>, CommitError>;
}
