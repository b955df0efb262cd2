//! Listing and looking.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Inspectable, Listable, Page, PageToken, Sighting};
use lifecycle::{BackendName, RuntimeId};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{E2b, wire::Sandbox};
use crate::{
    api::{ASK, Answer, Failure},
    look::{self, Looks},
    paging::Place,
    row::Unread,
};

pub(super) type Found = look::Found<Sandbox>;

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
        self.sight(id).await
    }
}

#[async_trait]
impl Looks for E2b {
    type Raw = Sandbox;

    fn name(&self) -> &BackendName {
        &self.options.name
    }

    /// E2B says also for a moment of one that is being paused that there is none.
    async fn ask_for(&self, sandbox: &str, within: Duration) -> Result<Option<Found>, Failure> {
        let answer = match self.api.ask(self.api.call(Method::GET, &["sandboxes", sandbox]), within).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let found = self.read(&answer)?;
        Ok((found.raw.id == sandbox).then_some(found))
    }
}

impl E2b {
    fn read(&self, answer: &Answer) -> Result<Found, Failure> {
        let read = |value| {
            let raw = Sandbox::read(value)?;
            let seen = raw.observation(&self.options, self.api.now())?;
            Ok(Found { raw, seen })
        };
        read(&self.api.json(answer)?)
            .map_err(|Unread(why)| Failure::Unreadable(format!("E2B's answer can't be read: {why}")))
    }
}
