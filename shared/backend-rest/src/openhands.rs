//! OpenHands: sandboxes of OpenHands Cloud or of one's own app server, or runtimes of its Runtime API.
//!
//! What differs from what one would expect, and is kept to here: a sandbox tells no activity, its conversations do, and
//! several may share it; a conversation is shown as running for ever after its server was killed; a pause that failed is
//! answered as if there were no such sandbox; an outage can be shown as if all were missing; the deletion obeys its
//! query and not its path; pages are counted from the newest, so that rows move while they are read; a resume pauses
//! the user's oldest running ones when there are too many. The Runtime API lists what runs and nothing else, and tells
//! no activity at all.

mod cloud;
mod observe;
mod runtime;
mod uses;
mod verbs;
mod wire;

use std::{
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

use async_trait::async_trait;
use backend::{Backend, BackendError, Clock, Inspectable, Listable, Page, PageToken, Sighting, provider::Pace};
use lifecycle::{BackendName, RuntimeId};
use reqwest::header::{AUTHORIZATION, HeaderName};

use self::{cloud::Known, wire::Sandbox};
use crate::{
    Key, Scope,
    api::{Api, Credential, Failure},
    look::{self, Looks},
    paging::Place,
};

/// The longest that an act waits for OpenHands' answer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(90);

/// Which of OpenHands' two APIs is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The app server's, `/api/v1`: OpenHands Cloud and self-hosted ones. It knows the conversations.
    Cloud,
    /// The Runtime API below it, which knows runtimes alone.
    Runtime,
}

/// How an OpenHands backend is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its configured name.
    pub name: BackendName,
    /// Tells the time.
    pub clock: Clock,
    /// Which API.
    pub which: Which,
    /// Where it is: `https://app.all-hands.dev`, `https://runtime.all-hands.dev`, or one's own.
    pub url: String,
    /// An API key; it belongs to one user.
    pub key: Key,
    /// Which sandboxes are ours: by the tags that all their conversations have, and the beginning of their
    /// specification's id. Of the Runtime API's: by the beginning of their session's id.
    pub scope: Scope,
    /// At most so many requests in each such span.
    pub rate: (NonZeroU32, Duration),
}

/// The sandboxes of one user.
pub struct OpenHands {
    options: Options,
    api: Api,
    /// What the conversations told to a listing.
    known: Mutex<Known>,
    /// The server was found to have no pause.
    no_pause: AtomicBool,
}

type Found = look::Found<Sandbox>;

impl fmt::Debug for OpenHands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenHands").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// Prepares a backend. Nothing is asked yet; an error is a fault of the configuration.
pub fn connect(options: Options) -> Result<OpenHands, BackendError> {
    let key = options.key.clone();
    let (who, credential) = match options.which {
        Which::Cloud => ("OpenHands", Credential { header: AUTHORIZATION, scheme: "Bearer ", key }),
        Which::Runtime => {
            ("OpenHands' Runtime API", Credential { header: HeaderName::from_static("x-api-key"), scheme: "", key })
        }
    };
    let (calls, period) = options.rate;
    let api = Api::new(who, &options.url, credential, options.clock.clone(), Pace::new(calls, period))?;
    Ok(OpenHands { options, api, known: Mutex::default(), no_pause: AtomicBool::new(false) })
}

/// The backend with the roles that OpenHands' sandboxes have. None of its own timers can be read or written.
pub fn backend(openhands: OpenHands) -> Backend {
    let name = openhands.options.name.clone();
    Backend::builder(name, "openhands", Arc::new(openhands)).suspends().deletes().build()
}

#[async_trait]
impl Listable for OpenHands {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let place = Place::of(page)?;
        match self.options.which {
            Which::Cloud => self.list_sandboxes(&place).await,
            Which::Runtime => self.list_runtimes(&place).await,
        }
    }
}

#[async_trait]
impl Inspectable for OpenHands {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.sight(id).await
    }
}

#[async_trait]
impl Looks for OpenHands {
    type Raw = Sandbox;

    fn name(&self) -> &BackendName {
        &self.options.name
    }

    async fn ask_for(&self, id: &str, within: Duration) -> Result<Option<Found>, Failure> {
        match self.options.which {
            Which::Cloud => self.ask_for_sandbox(id, within).await,
            Which::Runtime => self.ask_for_runtime(id, within).await,
        }
    }
}
