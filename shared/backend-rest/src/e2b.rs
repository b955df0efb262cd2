//! E2B: sandboxes that pause with their memory, and end at a time.
//!
//! What differs from what one would expect, and is kept to here: nothing tells what goes on in a sandbox; the end of a
//! run kills it, and its files with it, unless it was made otherwise; a timeout of zero does so at once; a pause that
//! failed, or that its caller left, can lose the sandbox, or show what an earlier pause kept as if it were this one;
//! `endAt` is the end of a running one, and the last good pause of a paused one; a listing tells less than a look.

mod look;
mod native;
mod observe;
mod verbs;
mod wire;

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use backend::{Backend, BackendError, Clock, provider::Pace};
use lifecycle::BackendName;
use reqwest::header::HeaderName;

use crate::{
    Key, Scope,
    api::{Api, Credential},
};

/// The longest that an act waits for E2B's answer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(110);

/// How long a run may last that a resume begins: the longest that every plan allows.
const RESUME_FOR: Duration = Duration::from_hours(1);

/// How an E2B backend is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its configured name.
    pub name: BackendName,
    /// Tells the time.
    pub clock: Clock,
    /// The API: `https://api.e2b.app`, or where one's own is.
    pub url: String,
    /// An API key; it belongs to one team.
    pub key: Key,
    /// Which sandboxes are ours: by their metadata, and by the beginning of their template's name.
    pub scope: Scope,
    /// At most so many requests in each such span.
    pub rate: (NonZeroU32, Duration),
}

/// The sandboxes of one team.
pub struct E2b {
    options: Options,
    api: Arc<Api>,
}

impl fmt::Debug for E2b {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("E2b").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// Prepares a backend. Nothing is asked yet; an error is a fault of the configuration.
pub fn connect(options: Options) -> Result<E2b, BackendError> {
    let header = HeaderName::from_static("x-api-key");
    let credential = Credential { header, scheme: "", key: options.key.clone() };
    let (calls, period) = options.rate;
    let api = Api::new("E2B", &options.url, credential, options.clock.clone(), Pace::new(calls, period))?;
    Ok(E2b { options, api: Arc::new(api) })
}

/// The backend with the roles that E2B's sandboxes have.
pub fn backend(e2b: E2b) -> Backend {
    let name = e2b.options.name.clone();
    Backend::builder(name, "e2b", Arc::new(e2b)).suspends().deletes().sets_native().build()
}
