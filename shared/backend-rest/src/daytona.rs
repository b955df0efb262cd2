//! Daytona: sandboxes that stop, archive and are deleted, by us and by their own timers.
//!
//! What differs from what one would expect, and is kept to here: the listing is eventually consistent; `state` alone
//! does not tell what is under way; activity is shown up to two minutes late; every stop writes the clock of
//! activity; a zero means "never", "30 days" or "at once", by the timer that it is in; a stop of an ephemeral
//! sandbox deletes it; a throttled answer has no plain `Retry-After`.

mod look;
mod native;
mod observe;
mod verbs;
mod wire;

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use backend::{Backend, BackendError, Clock, provider::Pace};
use lifecycle::BackendName;
use reqwest::header::AUTHORIZATION;

use crate::{
    Key, Scope,
    api::{Api, Credential},
};

/// The longest that an act waits for Daytona's answer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(40);

/// How a Daytona backend is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its configured name.
    pub name: BackendName,
    /// Tells the time.
    pub clock: Clock,
    /// The API, to and with its `/api`: `https://app.daytona.io/api`, or where one's own server is.
    pub url: String,
    /// An API key; it belongs to one organisation.
    pub key: Key,
    /// Which sandboxes are ours.
    pub scope: Scope,
    /// At most so many requests in each such span.
    pub rate: (NonZeroU32, Duration),
}

/// The sandboxes of one organisation.
pub struct Daytona {
    options: Options,
    api: Api,
}

impl fmt::Debug for Daytona {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daytona").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// Prepares a backend. Nothing is asked yet; an error is a fault of the configuration.
pub fn connect(options: Options) -> Result<Daytona, BackendError> {
    let credential = Credential { header: AUTHORIZATION, scheme: "Bearer ", key: options.key.clone() };
    let (calls, period) = options.rate;
    let api = Api::new("Daytona", &options.url, credential, options.clock.clone(), Pace::new(calls, period))?;
    Ok(Daytona { options, api })
}

/// The backend with the roles that Daytona's sandboxes have.
pub fn backend(daytona: Daytona) -> Backend {
    let name = daytona.options.name.clone();
    Backend::builder(name, "daytona", Arc::new(daytona)).suspends().archives().deletes().sets_native().build()
}
