//! Looks by id: the same for every provider, but for how it is asked.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Sighting, Target};
use lifecycle::{BackendName, Observation, RuntimeId};

use crate::{
    api::{ASK, Failure},
    verb::{Miss, moved, ours, same_run},
};

/// A sandbox as it was found.
pub(crate) struct Found<R> {
    pub(crate) raw: R,
    pub(crate) seen: Observation,
}

/// A provider that shows one sandbox by id.
#[async_trait]
pub(crate) trait Looks: Sync {
    /// A sandbox in the provider's own words.
    type Raw: Send;

    /// The backend's configured name.
    fn name(&self) -> &BackendName;

    /// Asks for the sandbox of this id. `Ok(None)`: the provider says that there is none.
    async fn ask_for(&self, id: &str, within: Duration) -> Result<Option<Found<Self::Raw>>, Failure>;

    /// Looks at one sandbox. What was never one of this backend's is not there.
    async fn look(&self, id: &RuntimeId, within: Duration) -> Result<Option<Found<Self::Raw>>, Failure> {
        let provider_id = id.provider_id();
        match std::str::from_utf8(&provider_id).ok().filter(|_| id.backend() == self.name()) {
            Some(sandbox) => self.ask_for(sandbox, within).await,
            None => Ok(None),
        }
    }

    /// Looks for the target and refuses what is not ours: the last check before each act.
    async fn find(&self, target: &Target, within: Duration) -> Result<Result<Found<Self::Raw>, Miss>, BackendError> {
        let Some(found) = self.look(&target.id, within).await? else { return Ok(Err(Miss::Gone)) };
        Ok(ours(&found.seen).map(|()| found))
    }

    /// Looks for the run that the target is, in whatever state.
    async fn find_run(
        &self,
        target: &Target,
        within: Duration,
    ) -> Result<Result<Found<Self::Raw>, Miss>, BackendError> {
        let found = self.find(target, within).await?;
        Ok(found.and_then(|found| if same_run(&found.seen, target) { Ok(found) } else { Err(moved(&found.seen)) }))
    }

    /// What `Inspectable` tells.
    async fn sight(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let found = self.look(id, ASK).await?;
        Ok(found.map_or(Sighting::NotThere, |found| Sighting::Seen(Box::new(found.seen))))
    }
}
