//! Daytona: the contract, each verb against each answer, its timers, and what it must not be believed.

mod bad_input;
mod contract;
mod native;
mod verbs;

use backend::{Backend, Clock, Sighting, Target};
use backend_rest::{
    Key, Scope,
    daytona::{self, Options, connect},
};
use lifecycle::{BackendName, Observation, RuntimeId, State, policy::Pattern};

use super::{RATE, minutes};
use crate::simulators::{
    Hands, Server,
    daytona::{Daytona, KEY, Sandbox},
};

/// A server, its clock, and our backend for it.
struct Lab {
    server: Server<Daytona>,
    hands: Hands,
    backend: Backend,
}

impl Lab {
    async fn new() -> Self {
        let hands = Hands::at("2026-11-30T10:00:00Z");
        let told = hands.clone();
        let server = Server::start(Daytona::default(), move || told.now()).await;
        let backend = backend(&hands, server.address());
        Self { server, hands, backend }
    }

    /// A sandbox, changed.
    fn add(&self, change: impl FnOnce(&mut Sandbox)) -> RuntimeId {
        let mut state = self.server.state();
        let name = format!("n-{}", state.sandboxes.len());
        let id = state.add(&name, self.hands.now(), change);
        RuntimeId::new(&self.backend.name, id.as_bytes()).unwrap()
    }

    fn running(&self) -> RuntimeId {
        self.add(|_| {})
    }

    fn stopped(&self) -> RuntimeId {
        self.add(|sandbox| (sandbox.state, sandbox.desired) = ("stopped", "stopped"))
    }

    async fn look(&self, id: &RuntimeId) -> Option<Observation> {
        match self.backend.inspect.inspect(id).await.unwrap() {
            Sighting::Seen(seen) => Some(*seen),
            Sighting::NotThere => None,
        }
    }

    async fn target(&self, id: &RuntimeId) -> Target {
        let target = Target::of(&self.look(id).await.unwrap());
        self.server.calls();
        target
    }

    async fn state(&self, id: &RuntimeId) -> Option<State> {
        self.look(id).await.map(|seen| seen.state)
    }

    /// The calls since then that changed something, without the address of the sandbox.
    fn changes(&self) -> Vec<String> {
        let calls = self.server.calls();
        let changes = calls.iter().filter(|call| !call.starts_with("GET "));
        changes.map(|call| call.replace("/api/sandbox/00000000-0000-4000-8000-", "")).collect()
    }
}

/// Our backend for the server at `address`, with the labels of the tests' sandboxes as its scope.
fn backend(hands: &Hands, address: &str) -> Backend {
    let told = hands.clone();
    let options = Options {
        name: BackendName::new("daytona").unwrap(),
        clock: Clock::new(move || told.now()),
        url: format!("{address}/api"),
        key: Key::new(KEY),
        scope: Scope { labels: [("team".to_owned(), Pattern::new("a"))].into(), name_prefixes: Vec::new() },
        rate: RATE,
    };
    daytona::backend(connect(options).unwrap())
}
