//! The agent server inside a container: where it is, what it tells, and how its work is ended before a stop.

use std::time::Duration;

use crate::{
    Docker,
    engine::ASK,
    observe::{Status, time},
    scope::is_openhands,
    verb::{Found, Look},
    wire::{Event, Inspected, Keyed, Published},
};
use async_trait::async_trait;
use backend::{
    BackendError, Bounds, Outcome, Probe, Probed, Target,
    openhands::{AgentServer, SessionKey},
};
use lifecycle::Time;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The port that an agent server listens on when its command line names none.
const PORT: u16 = 8000;

/// What interrupting may take of a suspend. A server that takes longer is stopped with its work under way.
pub(crate) const INTERRUPT: Duration = Duration::from_secs(8);

#[async_trait]
impl Probed for Docker {
    /// Refused where no agent server is known inside, or it can't be reached from this host: such a container's
    /// activity stays unknown.
    async fn probe(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Probe>, BackendError> {
        let left = bounds.left(self.now())?;
        let found = match self.find(target, Look::Quick, left).await?.and_then(|found| found.aimed(target)) {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if found.status != Status::Running {
            let why = format!("container `{}` does not run: nothing in it can answer", found.raw.bare_name());
            return Ok(Outcome::Refused(why.into()));
        }
        let server = match self.agent_server(&found).await? {
            Ok(server) => server,
            Err(why) => return Ok(Outcome::Refused(why.into())),
        };
        let since = time(&found.raw.state.started_at).max(self.last_unpause(&found).await);
        let probe = self.agents.probe(&server, since, bounds).await?;
        // A port is free again when its container ends: what answered must be what was aimed at.
        match self.find(target, Look::Quick, ASK).await?.and_then(|found| found.aimed(target)) {
            Ok(_) => Ok(Outcome::Done(probe)),
            Err(miss) => Ok(miss.outcome()),
        }
    }
}

impl Docker {
    /// The agent server inside with its key, or why there is none to ask.
    async fn agent_server(&self, found: &Found) -> Result<Result<AgentServer, String>, BackendError> {
        let raw = &found.raw;
        let keyed: Keyed = self.engine.get(&format!("/containers/{}/json", raw.id), ASK).await?;
        let key = keyed.config.key.0;
        if key.is_none() && !is_openhands(raw.bare_name(), &raw.config.labels) {
            return Ok(Err(format!("no agent server is known in container `{}`", raw.bare_name())));
        }
        match address(raw) {
            Ok(address) => AgentServer::new(&address, key.map(SessionKey::new)).map(Ok),
            Err(why) => Ok(Err(why)),
        }
    }

    /// When it was last unpaused, if the engine still remembers: it keeps its last 256 events, until it restarts.
    /// A server counts the time for which it was frozen as idle.
    async fn last_unpause(&self, found: &Found) -> Option<Time> {
        self.events(&found.raw, "unpause").await?.iter().map(Event::at).max()
    }

    /// The events of a kind in this run of a container, of those that the engine still remembers.
    pub(crate) async fn events(&self, raw: &Inspected, kind: &str) -> Option<Vec<Event>> {
        let filters = serde_json::json!({"container": [raw.id], "event": [kind]}).to_string();
        let started = time(&raw.state.started_at)?.millis() / 1_000;
        let until = self.now().millis() / 1_000;
        let path = format!(
            "/events?since={started}&until={until}&filters={}",
            utf8_percent_encode(&filters, NON_ALPHANUMERIC)
        );
        self.engine.lines(&path, ASK).await.ok()
    }

    /// Interrupts what runs inside, so that the stop need not wait for a tool, or kill it. Best effort: a server
    /// that can't be asked is stopped all the same, which is what was decided.
    pub(crate) async fn interrupt(&self, found: &Found, bounds: Bounds) {
        if found.status != Status::Running {
            return;
        }
        let deadline = bounds.deadline.min(self.now().plus(INTERRUPT));
        let interrupted = match self.agent_server(found).await {
            Ok(Ok(server)) => self.agents.interrupt_running(&server, Bounds { deadline }).await,
            Ok(Err(_)) => return,
            Err(error) => Err(error),
        };
        let container = found.raw.bare_name();
        match interrupted {
            Ok(done) => tracing::debug!(
                backend = %self.options.name, container, conversations = done.interrupted,
                "running conversations were interrupted before the stop"
            ),
            Err(error) => tracing::warn!(
                backend = %self.options.name, container, reason = %error,
                "running conversations could not be interrupted: the stop ends them after its grace"
            ),
        }
    }
}

/// Where this host reaches the agent server of a container. Loopback only: the key goes there, and an engine
/// behind a socket of this machine publishes its ports on this machine.
fn address(raw: &Inspected) -> Result<String, String> {
    let port = raw.config.agent_port.unwrap_or(PORT);
    if raw.host_config.network_mode == "host" {
        return Ok(format!("http://127.0.0.1:{port}"));
    }
    let published = raw.network_settings.ports.get(&format!("{port}/tcp")).and_then(Option::as_deref);
    let published = published.unwrap_or_default();
    let loopback = |published: &Published| {
        let host = match published.host_ip.as_str() {
            "" | "0.0.0.0" | "127.0.0.1" => "127.0.0.1",
            "::" | "::1" => "[::1]",
            _ => return None,
        };
        let port: u16 = published.host_port.parse().ok().filter(|port| *port > 0)?;
        Some(format!("http://{host}:{port}"))
    };
    published.iter().find_map(loopback).ok_or_else(|| {
        let name = raw.bare_name();
        format!("port {port} of container `{name}` is not published on this host's loopback: its agent can't be asked")
    })
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
