//! Listing and looking.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Inspectable, Listable, Page, PageToken, Sighting, Target};
use lifecycle::{Observation, RuntimeId};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{E2b, wire::Sandbox};
use crate::{
    api::{ASK, Answer, Failure},
    paging::Place,
    row::Unread,
    verb::{Miss, ours},
};

/// A sandbox as it was found.
pub(super) struct Found {
    pub(super) raw: Sandbox,
    pub(super) seen: Observation,
}

#[async_trait]
impl Listable for E2b {
    /// Both states are asked for by name: a listing of its own accord once left the paused ones out. From the oldest
    /// run on: what is resumed meanwhile moves to the end, where it comes twice and is not missed.
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let place = Place::of(page)?;
        let mut call = self.api.call(Method::GET, &["v2", "sandboxes"]).page();
        call = call.query(&[("state", "running,paused"), ("order", "asc"), ("limit", "100")]);
        if let Some(cursor) = place.cursor {
            call = call.query(&[("nextToken", cursor)]);
        }
        let answer = self.api.ask(call, ASK).await?;
        let next = answer.headers.get("x-next-token").and_then(|token| token.to_str().ok());
        let Value::Array(items) = self.api.json(&answer)? else {
            return Err(Failure::Unreadable("E2B's listing can't be read: it is no list".to_owned()).into());
        };
        let read = |item| Sandbox::read(item)?.observation(&self.options, self.api.now());
        place.page(items.iter().map(read).collect(), next)
    }
}

#[async_trait]
impl Inspectable for E2b {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let found = self.look(id, ASK).await?;
        Ok(found.map_or(Sighting::NotThere, |found| Sighting::Seen(Box::new(found.seen))))
    }
}

impl E2b {
    /// Looks at one sandbox. `Ok(None)`: E2B says that there is none, which it also says for a moment of one that
    /// is being paused.
    pub(super) async fn look(&self, id: &RuntimeId, within: Duration) -> Result<Option<Found>, Failure> {
        let provider_id = id.provider_id();
        let Some(sandbox) = std::str::from_utf8(&provider_id).ok().filter(|_| *id.backend() == self.options.name)
        else {
            return Ok(None);
        };
        let answer = match self.api.ask(self.api.call(Method::GET, &["sandboxes", sandbox]), within).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let found = self.read(&answer)?;
        Ok((found.raw.id == sandbox).then_some(found))
    }

    fn read(&self, answer: &Answer) -> Result<Found, Failure> {
        let read = |value| {
            let raw = Sandbox::read(value)?;
            let seen = raw.observation(&self.options, self.api.now())?;
            Ok(Found { raw, seen })
        };
        read(&self.api.json(answer)?)
            .map_err(|Unread(why)| Failure::Unreadable(format!("E2B's answer can't be read: {why}")))
    }

    /// Looks for the target and refuses what is not ours: the last check before each act.
    pub(super) async fn find(&self, target: &Target, within: Duration) -> Result<Result<Found, Miss>, BackendError> {
        let Some(found) = self.look(&target.id, within).await? else { return Ok(Err(Miss::Gone)) };
        Ok(ours(&found.seen).map(|()| found))
    }
}
