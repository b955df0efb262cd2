//! Delete: without force, with the volumes that were made for the container, and nothing else.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use backend::{BackendError, Bounds, Deletable, Deleted, Outcome, Target};
use lifecycle::{Loss, State, policy::WorkspaceRule};
use reqwest::StatusCode;

use crate::{
    Docker,
    engine::{ASK, Failure},
    observe::Status,
    verb::{Found, Look, Miss},
    wire::{Inspected, Mount},
};

/// What a removal may take at least.
const REMOVE: Duration = Duration::from_secs(5);

#[async_trait]
impl Deletable for Docker {
    async fn delete(
        &self,
        target: &Target,
        save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let left = self.time_for("a removal", REMOVE, bounds)?;
        let found = match self.to_delete(target, Look::Measured, left).await? {
            Ok(found) => found,
            Err(outcome) => return Ok(outcome),
        };
        if save == WorkspaceRule::Save
            && let Some(why) = unsaved(&found.raw)
        {
            return Ok(Outcome::Refused(why.into()));
        }
        let measured = found.raw;
        // Measuring takes its time: look again, so that what is removed is what was looked at.
        let left = self.time_for("a removal", REMOVE, bounds)?;
        if let Err(outcome) = self.to_delete(target, Look::Quick, left).await? {
            return Ok(outcome);
        }
        let left = self.time_for("a removal", REMOVE, bounds)?;
        match self.engine.delete(&format!("/containers/{}?v=true&force=false", measured.id), left).await {
            Ok(()) => Ok(Outcome::Done(self.deleted(&measured).await)),
            Err(Failure::NotAsked(error)) => Err(error),
            Err(failure) if failure.is_not_there() => Ok(Outcome::Gone),
            Err(failure @ Failure::Said { .. }) => Ok(self.not_deleted(target, &failure, bounds).await),
            Err(failure) => Ok(Outcome::Unknown(failure.words().into())),
        }
    }
}

impl Docker {
    /// The container, if it is still the one to delete and nothing runs in it.
    async fn to_delete(
        &self,
        target: &Target,
        look: Look,
        left: Duration,
    ) -> Result<Result<Found, Outcome<Deleted>>, BackendError> {
        let found = match self.find(target, look, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(Err(miss.outcome())),
        };
        if found.status == Status::Removing {
            return Ok(Err(Outcome::Pending));
        }
        // Whatever the target says: what runs is never deleted.
        if found.state() != State::Suspended {
            return Ok(Err(found.moved().outcome()));
        }
        Ok(found.aimed(target).map_err(Miss::outcome))
    }

    /// The engine said no. What is there now tells why, since Docker and podman answer differently.
    async fn not_deleted(&self, target: &Target, failure: &Failure, bounds: Bounds) -> Outcome<Deleted> {
        let conflict = matches!(failure, Failure::Said { status: StatusCode::CONFLICT, .. });
        match self.find(target, Look::Quick, bounds.deadline.since(self.now())).await {
            Ok(Err(miss)) => miss.outcome(),
            Ok(Ok(found)) if found.status == Status::Removing => Outcome::Pending,
            Ok(Ok(found)) if !found.same_run(target) || found.state() != target.state => found.moved().outcome(),
            // It stands still and may not be removed: somebody else is removing it, and has only just begun.
            Ok(Ok(_)) if conflict => Outcome::Pending,
            Ok(Ok(_)) | Err(_) => Outcome::Unknown(failure.words().into()),
        }
    }

    async fn deleted(&self, was: &Inspected) -> Deleted {
        let mut kept: Vec<Arc<str>> = Vec::new();
        for mount in was.mounts.iter().filter(|mount| mount.kind != "tmpfs") {
            if !mount.is_anonymous() || self.is_still_there(mount).await {
                kept.push(mount.about().into());
            }
        }
        Deleted { saved: None, undo: None, kept, bytes: was.written().unwrap_or_default() }
    }

    /// Whether a volume outlived its container: another one may use it too.
    async fn is_still_there(&self, mount: &Mount) -> bool {
        self.engine.get::<serde_json::Value>(&format!("/volumes/{}", mount.name), ASK).await.is_ok()
    }
}

/// Why a delete that must lose nothing is refused.
fn unsaved(container: &Inspected) -> Option<String> {
    let lost = match container.loss() {
        Loss::Nothing => return None,
        Loss::Unknown => "the engine did not measure what was written in it".to_owned(),
        Loss::Work(work) => work.join(", "),
    };
    Some(format!(
        "container `{}` is not saved: {lost}; `workspace = \"discard\"` lets it be lost",
        container.bare_name()
    ))
}
