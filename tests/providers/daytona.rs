//! Daytona: the contract, each verb against each answer, its timers, and what it must not be believed.

mod bad_input;
mod contract;
mod native;
mod verbs;

use backend::{Backend, Clock};
use backend_rest::{
    Key, Scope,
    daytona::{self, Options, connect},
};
use lifecycle::{BackendName, RuntimeId, policy::Pattern};

use super::{RATE, minutes};
use crate::simulators::{
    Hands,
    daytona::{Daytona, KEY, Sandbox},
};

type Lab = super::lab::Lab<Daytona>;

impl Lab {
    async fn new() -> Self {
        Self::of(Daytona::default(), backend).await
    }

    /// A sandbox, changed.
    fn add(&self, change: impl FnOnce(&mut Sandbox)) -> RuntimeId {
        let mut state = self.server.state();
        let name = format!("n-{}", state.sandboxes.len());
        let id = state.add(&name, self.hands.now(), change);
        self.id(&id)
    }

    fn running(&self) -> RuntimeId {
        self.add(|_| {})
    }

    fn stopped(&self) -> RuntimeId {
        self.add(|sandbox| (sandbox.state, sandbox.desired) = ("stopped", "stopped"))
    }

    /// The calls since then that changed something, without the address of the sandbox.
    fn changes(&self) -> Vec<String> {
        self.acts().iter().map(|call| call.replace("/api/sandbox/00000000-0000-4000-8000-", "")).collect()
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
