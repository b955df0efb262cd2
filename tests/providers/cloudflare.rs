//! Cloudflare: the contract, destruction that its owner chose, timers that can't be read, bad input, the real Worker.

mod bad_input;
mod contract;
mod native;
mod verbs;
#[cfg(feature = "engines")]
mod worker;

use backend::{Backend, Clock};
use backend_rest::{
    Key, Scope,
    cloudflare::{self, DestroyRunning, Options, connect},
};
use lifecycle::{BackendName, RuntimeId};

use super::{RATE, minutes};
use crate::simulators::{
    Hands,
    cloudflare::{ACCOUNT, APPLICATION, Cloudflare, KEY, Sandbox, WORKER_KEY, places},
};

type Lab = super::lab::Lab<Cloudflare>;

impl Lab {
    /// Of an owner who lets idle ones be destroyed.
    async fn new() -> Self {
        Self::of(Cloudflare::default(), |hands, address| backend(hands, address, DestroyRunning::WhenIdle)).await
    }

    /// Of one who does not.
    async fn keeping() -> Self {
        Self::of(Cloudflare::default(), |hands, address| backend(hands, address, DestroyRunning::Never)).await
    }

    /// A sandbox, changed.
    fn add(&self, change: impl FnOnce(&mut Sandbox)) -> RuntimeId {
        let id = self.server.state().add(self.hands.now(), change);
        self.id(&id)
    }

    fn running(&self) -> RuntimeId {
        self.add(|_| {})
    }
}

/// One's place at the Worker.
fn at_worker(id: &RuntimeId, verb: &str) -> String {
    format!("/worker/v1/instances/{}/{verb}", id.encoded())
}

/// How our backend is set up for the server at `address`, of which the sandboxes named `agent-…` are ours.
fn options(hands: &Hands, address: &str, destroy_running: DestroyRunning) -> Options {
    let (told, (url, worker)) = (hands.clone(), places(address));
    Options {
        name: BackendName::new("cloudflare").unwrap(),
        clock: Clock::new(move || told.now()),
        url,
        key: Key::new(KEY),
        account: ACCOUNT.to_owned(),
        application: APPLICATION.to_owned(),
        worker,
        worker_key: Key::new(WORKER_KEY),
        scope: Scope { name_prefixes: vec!["agent-".to_owned()], ..Scope::default() },
        destroy_running,
        rate: RATE,
    }
}

fn backend(hands: &Hands, address: &str, destroy_running: DestroyRunning) -> Backend {
    cloudflare::backend(connect(options(hands, address, destroy_running)).unwrap())
}
