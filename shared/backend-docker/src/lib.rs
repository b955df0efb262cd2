//! Containers behind a Docker Engine API as runtimes: Docker, and podman's compatible one.
//!
//! ```text
//! Docker (the roles) ──► engine (one request, one bounded answer) ──► unix socket ──► dockerd, podman
//!    │       └── observe, scope: pure          wire: the fields that are read, and no other
//!    └── agent ──► backend::openhands ──► the agent server inside, by its published port on this host
//! ```
//!
//! **Invariants.** An engine that is down is an error, never an empty inventory. Every verb looks again just
//! before it acts, and acts only on a container of the scope, in the run and the state that were looked at.
//! A delete never forces, so that a container which somebody started meanwhile is refused by the engine
//! itself: its one compare-and-set. Named volumes and bind mounts stay, and are reported. A suspend never
//! begins what can't end before its deadline. What the engine does not answer is unknown, not done; what it
//! answers is read up to a limit.
//! A container's environment is read for one key, at the moment that needs it, and never kept or logged.
//!
//! **Must never know**: policy, records, claims, or why it is asked.
//!
//! **Why no client library.** bollard 0.21 prints every answer to its debug log, an inspect with the session
//! keys among them; one container in a state that it doesn't know (podman's `stopped`) fails its whole
//! listing; its answers have no limit; and it asks without the version that it negotiated. The ten calls
//! needed are a page over the client that the workspace has anyway.
//!
//! **Why stop and not pause.** A pause frees CPU only: memory stays, which is most of what an idle sandbox
//! costs, and nothing records since when it lasts. A stop keeps the disk, and the engine knows its time.

mod agent;
mod delete;
mod engine;
mod list;
mod observe;
mod scope;
mod suspend;
mod verb;
mod version;
mod wire;

use std::{fmt, sync::Arc, time::Duration};

use backend::{Backend, BackendError, Clock, ErrorKind, openhands::Prober};
use lifecycle::BackendName;

pub use scope::Scope;

use engine::Engine;

/// The socket that is used when none is configured.
pub const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// How long a stop waits by default before it kills. An agent server with a running tool waits for the tool.
pub const DEFAULT_STOP_GRACE: Duration = Duration::from_mins(1);

/// How a Docker backend is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its configured name.
    pub name: BackendName,
    /// Tells the time.
    pub clock: Clock,
    /// `unix://` and an absolute path. `None`: [`DEFAULT_HOST`].
    pub host: Option<String>,
    /// Which containers are ours.
    pub scope: Scope,
    /// Whether containers that OpenHands made are ours too. Off: they are reported as unlabelled.
    pub openhands: bool,
    /// Whether agent servers inside are asked for their activity.
    pub probe: bool,
    /// How long a stop waits before it kills. In whole seconds, rounded up.
    pub stop_grace: Duration,
}

impl Options {
    /// What a newcomer gets: OpenHands' containers on the default socket, asked for their activity.
    pub fn new(name: BackendName, clock: Clock) -> Self {
        Self {
            name,
            clock,
            host: None,
            scope: Scope::default(),
            openhands: true,
            probe: true,
            stop_grace: DEFAULT_STOP_GRACE,
        }
    }
}

/// The containers behind one engine.
pub struct Docker {
    options: Options,
    engine: Engine,
    agents: Prober,
}

impl fmt::Debug for Docker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Docker")
            .field("name", &self.options.name)
            .field("socket", &self.engine.socket())
            .finish_non_exhaustive()
    }
}

/// Prepares a backend. The engine is asked for the first time by the first listing, so that one which is down
/// stops nothing else; an error here is a fault of the configuration.
#[expect(clippy::unused_async, reason = "a backend is connected to, and callers must not depend on how")]
pub async fn connect(options: Options) -> Result<Docker, BackendError> {
    let host = options.host.as_deref().unwrap_or(DEFAULT_HOST);
    let Some(path) = host.strip_prefix("unix://").filter(|path| path.starts_with('/')) else {
        return Err(BackendError::new(
            ErrorKind::Denied,
            format!(
                "`{host}` is not `unix://` and an absolute path: an engine is reached by its socket only, since its \
                 network port gives whoever reaches it the whole machine"
            ),
        ));
    };
    Ok(Docker { engine: Engine::new(path)?, agents: Prober::new(options.clock.clone())?, options })
}

/// The backend with the roles that containers have.
pub fn backend(docker: Docker) -> Backend {
    let (name, probes) = (docker.options.name.clone(), docker.options.probe);
    let builder = Backend::builder(name, "docker", Arc::new(docker)).suspends().deletes();
    if probes { builder.probes().build() } else { builder.build() }
}
