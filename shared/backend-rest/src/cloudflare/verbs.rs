//! Destroying, by the Worker, and confirmed by Cloudflare's own listing.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Bounds, Deletable, Deleted, Outcome, Target};
use lifecycle::{State, policy::WorkspaceRule};
use reqwest::{Method, StatusCode};

use super::{Cloudflare, wire};
use crate::{
    api::Failure,
    look::Looks,
    row::{Row, Unread},
    verb::{aimed, failed, moved, same_run, unread},
};

/// A container is killed, and tunnels and mounts are taken down before that.
const DESTROY: Duration = Duration::from_secs(30);
/// What a look before the act and one after it take.
const LOOK: Duration = Duration::from_secs(10);

#[async_trait]
impl Deletable for Cloudflare {
    /// From running, since there is no other state; that its owner allows it is why this role is there. Nothing is saved
    /// here: whether it was saved is settled before this is asked.
    async fn delete(
        &self,
        target: &Target,
        _save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        self.api.time_for("a destruction", DESTROY + 2 * LOOK, bounds)?;
        let found = match self.find(target, LOOK).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if found.seen.state == State::Deleting {
            return Ok(Outcome::Pending);
        }
        if let Err(miss) = aimed(&found.seen, target, &[State::Running]) {
            return Ok(miss.outcome());
        }
        let call = self.worker.call(Method::POST, &["v1", "instances", &found.raw.id, "destroy"]);
        match self.worker.act(call, DESTROY).await {
            Ok(answer) => Ok(match has_ended(self.worker.json(&answer)) {
                Ok(true) => self.confirmed(target, Outcome::Done(Deleted::default()), bounds).await,
                Ok(false) => Outcome::Pending,
                Err(why) => unread(why),
            }),
            // Its container ended before, and the listing is late.
            Err(failure) if failure.is(StatusCode::CONFLICT) => {
                Ok(self.confirmed(target, Outcome::AlreadyDone, bounds).await)
            }
            Err(failure) => failed(failure),
        }
    }
}

impl Cloudflare {
    /// Once Cloudflare lists it no more. Its listing is some seconds late: till then it is under way.
    async fn confirmed(&self, target: &Target, ended: Outcome<Deleted>, bounds: Bounds) -> Outcome<Deleted> {
        match self.look(&target.id, bounds.deadline.since(self.api.now()).min(LOOK)).await {
            Ok(None) => ended,
            Ok(Some(found)) if found.seen.state == State::Running && !same_run(&found.seen, target) => {
                moved(&found.seen).outcome()
            }
            Ok(Some(_)) => Outcome::Pending,
            Err(failure) => Outcome::Unknown(failure.words().into()),
        }
    }
}

/// Whether the container ended, by the Worker's answer.
fn has_ended(body: Result<serde_json::Value, Failure>) -> Result<bool, String> {
    let body = body.map_err(|failure| failure.words())?;
    let ended = Row::of(&body).and_then(|row| wire::ended(row.maybe_row("after")?));
    ended.map_err(|Unread(why)| format!("the companion Worker's answer can't be read: {why}"))
}
