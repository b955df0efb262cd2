//! E2B: the contract, pauses that are believed when they were seen, ends of runs that are put off, bad input.

mod bad_input;
mod contract;
mod native;
mod verbs;

use backend::{Backend, Clock, Sighting, Target};
use backend_rest::{
    Key, Scope,
    e2b::{self, Options, connect},
};
use lifecycle::{BackendName, Observation, RuntimeId, policy::Pattern};

use super::{RATE, minutes};
use crate::simulators::{
    Hands, Server,
    e2b::{E2b, KEY, Sandbox},
};

/// A server, its clock, and our backend for it.
struct Lab {
    server: Server<E2b>,
    hands: Hands,
    backend: Backend,
}

impl Lab {
    async fn new() -> Self {
        let hands = Hands::at("2026-11-30T10:00:00Z");
        let told = hands.clone();
        let server = Server::start(E2b::default(), move || told.now()).await;
        let backend = backend(&hands, server.address());
        Self { server, hands, backend }
    }

    /// A sandbox, changed.
    fn add(&self, change: impl FnOnce(&mut Sandbox)) -> RuntimeId {
        let id = self.server.state().add(self.hands.now(), change);
        RuntimeId::new(&self.backend.name, id.as_bytes()).unwrap()
    }

    fn running(&self) -> RuntimeId {
        self.add(|_| {})
    }

    fn paused(&self) -> RuntimeId {
        let now = self.hands.now();
        self.add(|sandbox| sandbox.paused_since(now))
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
}

/// Our backend for the server at `address`, with the metadata of the tests' sandboxes as its scope.
fn backend(hands: &Hands, address: &str) -> Backend {
    let told = hands.clone();
    let options = Options {
        name: BackendName::new("e2b").unwrap(),
        clock: Clock::new(move || told.now()),
        url: address.to_owned(),
        key: Key::new(KEY),
        scope: Scope { labels: [("team".to_owned(), Pattern::new("a"))].into(), name_prefixes: Vec::new() },
        rate: RATE,
    };
    e2b::backend(connect(options).unwrap())
}
