//! DynamoDB in this process, as an HTTP client of the AWS SDK.
//!
//! ```text
//! aws-sdk-dynamodb ──► HttpClient (here) ──► dynoxide-rs ──► SQLite file, or memory
//! ```
//!
//! **Invariants.** No port is opened here, so no other user of the machine can write. What a caller runs against
//! this client is what it runs against AWS: same requests, same conditions, same errors. A call runs to its
//! end on the caller's task, at its first poll: no thread, no timer, no retry, so that a simulation under
//! paused time is deterministic. Looking ([`open_existing`]) makes nothing and changes nothing.
//!
//! **Must never know**: which tables, keys or conditions its callers use.
//!
//! **Why in line.** A call is one SQLite transaction on a local file, mostly well under a millisecond in
//! memory and one fsync on disk. `spawn_blocking` would give each call a thread and the scheduler the order
//! of concurrent calls. The price: a call blocks its executor thread while another process writes, for at
//! most 5 s (SQLite's busy timeout), and then fails.
//!
//! **Why two processes on one folder work.** Every write is a `BEGIN IMMEDIATE` transaction that reads its
//! condition inside, and SQLite lets one process at a time hold that lock; the others wait for it. Making a
//! table takes several writes, so a lock on the folder gives that to one process at a time; the others wait.

mod connector;
mod error;
mod file;

use std::{path::Path, sync::Arc};

use aws_sdk_dynamodb::{
    Client,
    config::{
        BehaviorVersion, Config, IdentityCache, Region, StalledStreamProtectionConfig, retry::RetryConfig,
        timeout::TimeoutConfig,
    },
};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use dynoxide::Database;

pub use error::EmbeddedError;

use connector::Connector;
use file::Gate;

/// The database file in a data folder.
pub const FILE: &str = "dynamodb.sqlite";

/// A DynamoDB in this process. Clones share it.
#[derive(Clone)]
pub struct Embedded(Connector);

/// Opens the database in `folder`, making both where they are not there yet (the folder for its owner alone).
///
/// Another process may have it open: writes take turns.
pub fn open(folder: &Path) -> Result<Embedded, EmbeddedError> {
    let (database, gate) = file::open(folder)?;
    Ok(Embedded(Connector { database, gate, place: format!("the data folder `{}`", folder.display()).into() }))
}

/// A copy in memory of the database in `folder` as it is now; `None` where there is none.
///
/// Makes no folder and no file and never changes the database, not even its format: what is written to the
/// copy goes nowhere. One trace is possible: where a writer is at work or died at work, SQLite may make its
/// shared-memory file (`-shm`) beside the `-wal` that is there.
pub fn open_existing(folder: &Path) -> Result<Option<Embedded>, EmbeddedError> {
    let copy = file::copy(folder)?;
    Ok(copy.map(|database| alone(database, &format!("a copy of `{}`", folder.display()))))
}

/// An empty one that is gone with its last clone.
pub fn memory() -> Result<Embedded, EmbeddedError> {
    let database = Database::memory().map_err(|cause| error::refused(Path::new(":memory:"), cause))?;
    Ok(alone(database, "the database in memory"))
}

/// Like [`memory`], with a clock (whole seconds since the Unix epoch) for [`Embedded::sweep_expired`].
pub fn memory_with_clock(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Result<Embedded, EmbeddedError> {
    let database = Database::memory_with_clock(Arc::new(file::Clock(clock)))
        .map_err(|cause| error::refused(Path::new(":memory:"), cause))?;
    Ok(alone(database, "the database in memory"))
}

fn alone(database: Database, place: &str) -> Embedded {
    Embedded(Connector { database, gate: Gate(None), place: place.into() })
}

impl Embedded {
    /// A client of the AWS SDK that talks to this database.
    pub fn client(&self) -> Client {
        client_over(self.http_client())
    }

    /// The HTTP client alone, for a caller that configures the SDK itself.
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(self.0.clone())
    }

    /// Answers one request of DynamoDB's API, for a caller that has a port of its own: the value of its `X-Amz-Target`
    /// header and its body in, a status and a body (`application/x-amz-json-1.0`) out. Who may ask is the caller's care.
    pub fn answer(&self, target: &str, body: &[u8]) -> (u16, String) {
        self.0.told(target.strip_prefix(connector::TARGET).unwrap_or(target), body)
    }

    /// Removes what its table's TTL attribute says is past, as AWS does by itself within days. Returns how many.
    pub fn sweep_expired(&self) -> Result<usize, EmbeddedError> {
        self.0.database.sweep_ttl().map_err(|cause| error::refused(Path::new(&*self.0.place), cause))
    }
}

/// A client of the AWS SDK over an HTTP client such as [`Embedded::http_client`], or one that wraps it to
/// count calls or to break some.
///
/// No credentials are involved. Retries are off, since SQLite itself waits for its turn, and so is all that
/// would need a timer: timeouts, stalled-stream protection, the cache of identities.
pub fn client_over(http: SharedHttpClient) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .endpoint_url("http://embedded.invalid")
        .allow_no_auth()
        .identity_cache(IdentityCache::no_cache())
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .http_client(http)
        .build();
    Client::from_conf(config)
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Embedded({})", self.0.place)
    }
}
