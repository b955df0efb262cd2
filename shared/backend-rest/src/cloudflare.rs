//! Cloudflare: containers behind Durable Objects, listed by Cloudflare's API and ended by a Worker of the account's own.
//!
//! What differs from what one would expect, and is kept to here: nothing keeps a container's files when it stops, so it
//! is never suspended, and what has stopped is no runtime any more, though it stays listed; the API lists and nothing
//! else, some seconds late; nothing tells activity; every request to a container starts it and renews its timer, so
//! that only its Durable Object is asked, by three calls that do neither; how long it may idle (`sleepAfter`) can be
//! written and not read back, and a value that is another one begins its time anew.
//!
//! **Why a running one can be deleted here.** There is no other state to delete it from. So the backend has the role only
//! where its owner says so ([`Options::destroy_running`]), and then it rests ([`lifecycle::Capabilities::rests`]): it goes
//! when it was idle for as long as an idle and a suspended one are kept together, and only while its record says that
//! nobody used it since.

mod look;
mod native;
mod observe;
mod verbs;
mod wire;

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use backend::{Backend, BackendError, Clock, provider::Pace};
use lifecycle::BackendName;
use reqwest::header::AUTHORIZATION;

use self::native::Written;
use crate::{
    Key, Scope,
    api::{Api, Credential},
};

/// The longest that an act waits for Cloudflare's answer.
pub const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Whether a running sandbox may be destroyed, files and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestroyRunning {
    /// Nothing is ever deleted.
    Never,
    /// One that is idle for long enough by the policy is.
    WhenIdle,
}

/// How a Cloudflare backend is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its configured name.
    pub name: BackendName,
    /// Tells the time.
    pub clock: Clock,
    /// The API: `https://api.cloudflare.com/client/v4`.
    pub url: String,
    /// A token that may read containers.
    pub key: Key,
    /// The account's id.
    pub account: String,
    /// The container application's id.
    pub application: String,
    /// Where the companion Worker is (`infra/cloudflare/worker.mjs`), bound to that application's class.
    pub worker: String,
    /// The Worker's key.
    pub worker_key: Key,
    /// Which sandboxes are ours: by the beginning of their name. They have no labels.
    pub scope: Scope,
    /// Whether one that runs may be destroyed.
    pub destroy_running: DestroyRunning,
    /// At most so many requests in each such span.
    pub rate: (NonZeroU32, Duration),
}

/// The sandboxes of one container application.
pub struct Cloudflare {
    options: Options,
    api: Api,
    worker: Api,
    /// What this process wrote of `sleepAfter`, which can't be read back.
    written: Mutex<BTreeMap<String, Written>>,
}

impl fmt::Debug for Cloudflare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloudflare").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// Prepares a backend. Nothing is asked yet; an error is a fault of the configuration.
pub fn connect(options: Options) -> Result<Cloudflare, BackendError> {
    let bearer = |key: &Key| Credential { header: AUTHORIZATION, scheme: "Bearer ", key: key.clone() };
    let (calls, period) = options.rate;
    let pace = Pace::new(calls, period);
    let to = |who, url: &str, key: &Key| Api::new(who, url, bearer(key), options.clock.clone(), pace.clone());
    let api = to("Cloudflare", &options.url, &options.key)?;
    let worker = to("the companion Worker", &options.worker, &options.worker_key)?;
    Ok(Cloudflare { options, api, worker, written: Mutex::default() })
}

/// The backend with the roles that Cloudflare's sandboxes have, of which deletion is its owner's choice.
pub fn backend(cloudflare: Cloudflare) -> Backend {
    let (name, destroy) = (cloudflare.options.name.clone(), cloudflare.options.destroy_running);
    let backend = Backend::builder(name, "cloudflare", Arc::new(cloudflare)).sets_native();
    match destroy {
        DestroyRunning::Never => backend.build(),
        DestroyRunning::WhenIdle => backend.rests().deletes().build(),
    }
}
