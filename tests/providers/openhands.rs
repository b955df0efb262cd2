//! OpenHands: the contract on both of its APIs, what each answer comes to, the exact calls, bad input.

mod bad_input;
mod contract;
mod conversations;
mod verbs;

use std::time::Duration;

use backend::{Backend, BackendError, Clock, Outcome, Target};
use backend_rest::{
    Key, Scope,
    openhands::{self, Options, Which, connect},
};
use lifecycle::{BackendName, RuntimeId, policy::Pattern};

use super::{RATE, minutes};
use crate::simulators::{
    Hands,
    openhands::{KEY, OpenHands, Sandbox},
};

type Lab = super::lab::Lab<OpenHands>;

const BOTH: [Which; 2] = [Which::Cloud, Which::Runtime];

impl Lab {
    async fn new(which: Which) -> Self {
        Self::of(OpenHands::default(), |hands, address| backend(which, hands, address)).await
    }

    /// A sandbox, changed, with a conversation of ours that rests for an hour.
    fn add(&self, change: impl FnOnce(&mut Sandbox)) -> RuntimeId {
        let mut state = self.server.state();
        let (id, runtime) = {
            let id = state.add(self.hands.now(), change);
            let runtime = state.sandboxes[&id].runtime.clone();
            state.talk(&id, self.hands.now().minus(Duration::from_hours(1)), |_| {});
            (id, runtime)
        };
        self.id(if self.is_cloud() { &id } else { &runtime })
    }

    fn is_cloud(&self) -> bool {
        self.backend.name.as_str() == "cloud"
    }

    fn running(&self) -> RuntimeId {
        self.add(|_| {})
    }

    fn paused(&self) -> RuntimeId {
        self.add(|sandbox| sandbox.status = "paused")
    }

    async fn suspend(&self, target: &Target) -> Result<Outcome, BackendError> {
        self.backend.suspend.as_ref().unwrap().suspend(target, minutes(self.hands.now())).await
    }

    async fn resume(&self, target: &Target) -> Result<Outcome, BackendError> {
        let resumed = self.backend.suspend.as_ref().unwrap().resume(target, minutes(self.hands.now())).await;
        resumed.map(|outcome| outcome.map(drop))
    }

    async fn delete(&self, target: &Target) -> Result<Outcome, BackendError> {
        let delete = self.backend.delete.as_ref().unwrap();
        let save = lifecycle::policy::WorkspaceRule::Discard;
        let deleted = delete.delete(target, save, minutes(self.hands.now())).await;
        deleted.map(|outcome| outcome.map(drop))
    }

    fn statuses(&self) -> Vec<&'static str> {
        self.server.state().sandboxes.values().map(|sandbox| sandbox.status).collect()
    }
}

/// Our backend for the server at `address`, with what marks the tests' sandboxes as its scope.
fn backend(which: Which, hands: &Hands, address: &str) -> Backend {
    let told = hands.clone();
    let (name, scope) = match which {
        Which::Cloud => {
            ("cloud", Scope { labels: [("team".to_owned(), Pattern::new("a"))].into(), ..Scope::default() })
        }
        Which::Runtime => ("runtime", Scope { name_prefixes: vec!["7Kq2".to_owned()], ..Scope::default() }),
    };
    let options = Options {
        name: BackendName::new(name).unwrap(),
        clock: Clock::new(move || told.now()),
        which,
        url: address.to_owned(),
        key: Key::new(KEY),
        scope,
        rate: RATE,
    };
    openhands::backend(connect(options).unwrap())
}
