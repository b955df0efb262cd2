//! Notices: a signed POST per event, retried with bounds.
//!
//! A deletion waits for the delivery of its notice, so a delivery is what the receiver acknowledged
//! (2xx) and nothing else. The receiver can trust an event by its signature, and drop a repeated one by
//! its `id`, which is the same at each retry.

use async_trait::async_trait;
use lifecycle::{Action, BackendName, PolicyHash, Reason, RuntimeId, Time};
use serde::Serialize;

mod webhook;

pub use webhook::{SIGNATURE_HEADER, TIMESTAMP_HEADER, Webhook, sign};

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A runtime will be deleted, not before `delete_after`.
    Notice,
    /// An act was done.
    Done,
    /// A runtime was called back.
    Woken,
}

/// One event: the body of the POST, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Names it: the same at each retry.
    pub id: String,
    /// What is told.
    pub event: EventKind,
    /// Of which runtime.
    pub runtime: RuntimeId,
    /// Of which backend.
    pub backend: BackendName,
    /// What was or will be done; `None`: nothing by a plan (a wake).
    pub action: Option<Action>,
    /// Why.
    pub reason: Option<Reason>,
    /// For people: a path, an image.
    pub about: String,
    /// A deletion comes not before this.
    pub delete_after: Option<Time>,
    /// The policy that it was decided under.
    pub policy: PolicyHash,
    /// When it was decided.
    pub at: Time,
}

/// An event that was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotifyError {
    /// The receiver can't be spoken to as configured.
    #[error("notify.url: {0}")]
    Configuration(String),
    /// The receiver said no, and would again.
    #[error("the receiver at `{host}` answered {status}; a notice counts only after a 2xx")]
    Refused {
        /// The receiver's host; the path may be a secret.
        host: String,
        /// Its answer.
        status: u16,
    },
    /// It did not answer, or was not able to, at any of the tries.
    #[error("the receiver at `{host}` did not take it in {tries} tries: {why}")]
    Undelivered {
        /// The receiver's host; the path may be a secret.
        host: String,
        /// How often it was tried.
        tries: u32,
        /// What happened at the last.
        why: String,
    },
}

/// Delivers events.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Delivers one event; `Ok` means that the receiver acknowledged it.
    async fn deliver(&self, event: &Event) -> Result<(), NotifyError>;
}
