//! E2B: the contract, pauses that are believed when they were seen, ends of runs that are put off, bad input.

mod bad_input;
mod contract;
mod native;
mod verbs;

use backend::{Backend, Clock};
use backend_rest::{
    Key, Scope,
    e2b::{self, Options, connect},
};
use lifecycle::{BackendName, RuntimeId, policy::Pattern};

use super::{RATE, minutes};
use crate::simulators::{
    Hands,
    e2b::{E2b, KEY, Sandbox},
};

type Lab = super::lab::Lab<E2b>;

impl Lab {
    async fn new() -> Self {
        Self::of(E2b::default(), backend).await
    }

    /// A sandbox, changed.
    fn add(&self, change: impl FnOnce(&mut Sandbox)) -> RuntimeId {
        let id = self.server.state().add(self.hands.now(), change);
        self.id(&id)
    }

    fn running(&self) -> RuntimeId {
        self.add(|_| {})
    }

    fn paused(&self) -> RuntimeId {
        let now = self.hands.now();
        self.add(|sandbox| sandbox.paused_since(now))
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
