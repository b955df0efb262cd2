//! Sandboxes at Modal as runtimes, over gRPC.
//!
//! ```text
//! look, verbs (the roles) ──► call (one request within its time, at a pace) ──► Modal
//!    └── observe: pure            └── proto: generated from proto/modal.proto
//! ```
//!
//! What differs from what one would expect, and is kept to here: nothing suspends a sandbox, and a terminated one never
//! comes back; its files go with it, unless a snapshot was taken before, which from outside only the first generation's
//! sandboxes give; nothing tells activity; how long one lives was settled when it was made and can't be changed, so that
//! it is told and never written; a listing has no cursor but the time of its last row, and no look shows a sandbox's
//! times; the protocol is Modal's own, and may change without notice.
//!
//! **Invariants.** A listing that can't be read, or does not end, is an error, never an empty page. Only what is ours is
//! terminated, and only where its owner chose that ([`Terminate`]): there is no state but running, so that the backend
//! then rests ([`lifecycle::Capabilities::rests`]). Only questions are asked again, and a termination, which is the same
//! twice, by the same idempotency key. A token is in no log, no error and no `Debug`, and leaves this machine over TLS
//! alone.
//!
//! **Must never know**: policy, records, claims, or why it is asked.

mod call;
mod look;
mod observe;
mod verbs;

/// The protocol.
#[allow(missing_docs, clippy::pedantic, reason = "generated from proto/modal.proto, which has the comments")]
pub mod proto {
    tonic::include_proto!("modal.client");
}

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use backend::{
    Backend, BackendError, Clock,
    provider::{Key, Pace, Scope},
};
use lifecycle::BackendName;

use crate::{call::Api, look::Known};

/// The longest that an act waits for Modal's answer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(110);

/// Whether a running sandbox may be terminated, and what of its files is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminate {
    /// Nothing is ever terminated.
    Never,
    /// One that is idle for long enough by the policy is, after a snapshot of its files, without which it is kept.
    AfterSnapshot,
    /// The same without a snapshot: what the policy does not want saved may be lost.
    AtOnce,
}

/// How a Modal backend is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its configured name.
    pub name: BackendName,
    /// Tells the time.
    pub clock: Clock,
    /// The API: `https://api.modal.com`.
    pub url: String,
    /// A token's id, and its secret.
    pub token: (Key, Key),
    /// The environment whose apps' sandboxes these are.
    pub environment: String,
    /// Which sandboxes are ours: by their tags, and the beginning of their name.
    pub scope: Scope,
    /// Whether one that runs may be terminated.
    pub terminate: Terminate,
    /// At most so many requests in each such span.
    pub rate: (NonZeroU32, Duration),
}

/// The sandboxes of one environment.
pub struct Modal {
    options: Options,
    api: Api,
    /// Where in which listing a sandbox is.
    known: Mutex<BTreeMap<String, Known>>,
}

impl fmt::Debug for Modal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modal").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// Prepares a backend. Nothing is asked yet; an error is a fault of the configuration. Needs a runtime.
pub fn connect(options: Options) -> Result<Modal, BackendError> {
    let (calls, period) = options.rate;
    let api = Api::new(&options.url, options.token.clone(), options.clock.clone(), Pace::new(calls, period))?;
    Ok(Modal { options, api, known: Mutex::default() })
}

/// The backend with the roles that Modal's sandboxes have, of which deletion is its owner's choice.
pub fn backend(modal: Modal) -> Backend {
    let (name, terminate) = (modal.options.name.clone(), modal.options.terminate);
    let backend = Backend::builder(name, "modal", Arc::new(modal));
    match terminate {
        Terminate::Never => backend.build(),
        Terminate::AfterSnapshot | Terminate::AtOnce => backend.rests().deletes().build(),
    }
}
