//! Modal: the contract, terminations that its owner chose, snapshots, passes, bad input.

mod bad_input;
mod contract;
mod passes;
mod verbs;

use backend::{Backend, Clock, Sighting, Target, provider::Key};
use backend_modal::{Options, Terminate, connect};
use backend_rest::Scope;
use lifecycle::{BackendName, Observation, RuntimeId, policy::Pattern};

use super::{RATE, minutes};
use crate::simulators::{
    Hands,
    modal::{ENVIRONMENT, ModalServer, Sandbox, TOKEN},
};

/// A server, its clock, and our backend for it.
struct Lab {
    server: ModalServer,
    hands: Hands,
    backend: Backend,
}

impl Lab {
    /// Of an owner who chose this.
    async fn of(terminate: Terminate) -> Self {
        let hands = Hands::at("2026-11-30T10:00:00Z");
        let told = hands.clone();
        let server = ModalServer::start(move || told.now()).await;
        let backend = backend(&hands, server.address(), terminate);
        Self { server, hands, backend }
    }

    async fn new() -> Self {
        Self::of(Terminate::AtOnce).await
    }

    /// One of the first generation, changed.
    fn add(&self, change: impl FnOnce(&mut Sandbox)) -> RuntimeId {
        let id = self.server.state().add(self.hands.now(), change);
        self.id(&id)
    }

    fn running(&self) -> RuntimeId {
        self.add(|_| {})
    }

    /// One of the second.
    fn second(&self) -> RuntimeId {
        let id = self.server.state().add_second(self.hands.now(), |_| {});
        self.id(&id)
    }

    fn id(&self, text: &str) -> RuntimeId {
        RuntimeId::new(&self.backend.name, text.as_bytes()).unwrap()
    }

    async fn look(&self, id: &RuntimeId) -> Option<Observation> {
        match self.backend.inspect.inspect(id).await.unwrap() {
            Sighting::Seen(seen) => Some(*seen),
            Sighting::NotThere => None,
        }
    }

    /// A target as it is now. What that asked is not told of.
    async fn target(&self, id: &RuntimeId) -> Target {
        let target = Target::of(&self.look(id).await.unwrap());
        self.server.calls();
        target
    }
}

/// Our backend for the server at `address`, with the tag of the tests' sandboxes as its scope.
fn backend(hands: &Hands, address: &str, terminate: Terminate) -> Backend {
    let told = hands.clone();
    backend_by(Clock::new(move || told.now()), address, terminate)
}

/// The same by any clock.
fn backend_by(clock: Clock, address: &str, terminate: Terminate) -> Backend {
    let options = Options {
        name: BackendName::new("modal").unwrap(),
        clock,
        url: address.to_owned(),
        token: (Key::new(TOKEN.0), Key::new(TOKEN.1)),
        environment: ENVIRONMENT.to_owned(),
        scope: Scope { labels: [("team".to_owned(), Pattern::new("a"))].into(), name_prefixes: Vec::new() },
        terminate,
        rate: RATE,
    };
    backend_modal::backend(connect(options).unwrap())
}
