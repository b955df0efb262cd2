//! A provider's simulator by a clock of the test's, and our backend for it.

use backend::{Backend, Sighting, Target};
use lifecycle::{Observation, RuntimeId, State};

use crate::simulators::{Hands, Provider, Server};

/// A server, its clock, and our backend for it.
pub(super) struct Lab<P> {
    pub(super) server: Server<P>,
    pub(super) hands: Hands,
    pub(super) backend: Backend,
}

impl<P: Provider> Lab<P> {
    pub(super) async fn of(provider: P, backend: impl Fn(&Hands, &str) -> Backend) -> Self {
        let hands = Hands::at("2026-11-30T10:00:00Z");
        let told = hands.clone();
        let server = Server::start(provider, move || told.now()).await;
        let backend = backend(&hands, server.address());
        Self { server, hands, backend }
    }

    pub(super) fn id(&self, text: &str) -> RuntimeId {
        RuntimeId::new(&self.backend.name, text.as_bytes()).unwrap()
    }

    pub(super) async fn look(&self, id: &RuntimeId) -> Option<Observation> {
        match self.backend.inspect.inspect(id).await.unwrap() {
            Sighting::Seen(seen) => Some(*seen),
            Sighting::NotThere => None,
        }
    }

    pub(super) async fn state(&self, id: &RuntimeId) -> Option<State> {
        self.look(id).await.map(|seen| seen.state)
    }

    /// A target as it is now. What that asked is not told of.
    pub(super) async fn target(&self, id: &RuntimeId) -> Target {
        let target = Target::of(&self.look(id).await.unwrap());
        self.server.calls();
        target
    }

    /// The calls since the last time that changed something.
    pub(super) fn acts(&self) -> Vec<String> {
        self.server.calls().into_iter().filter(|call| !call.starts_with("GET ")).collect()
    }

    /// Every sandbox that a whole listing shows, and how many pages that took. `between`: after each page.
    pub(super) async fn listed(&self, between: impl Fn()) -> (Vec<RuntimeId>, u32) {
        let (mut seen, mut token, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = self.backend.list.list(token.as_ref()).await.unwrap();
            seen.extend(page.seen.into_iter().map(|seen| seen.id));
            pages += 1;
            between();
            token = page.next;
            if token.is_none() {
                return (seen, pages);
            }
        }
    }
}

/// A provider's own id.
pub(super) fn text(id: &RuntimeId) -> String {
    String::from_utf8(id.provider_id()).unwrap()
}
