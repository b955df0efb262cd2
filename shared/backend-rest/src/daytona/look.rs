//! Listing and looking.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Inspectable, Listable, Page, PageToken, Sighting};
use lifecycle::{BackendName, RuntimeId};
use reqwest::{Method, StatusCode};

use super::{
    Daytona,
    wire::{Sandbox, Status},
};
use crate::{
    api::{ASK, Answer, Failure},
    look::{self, Looks},
    paging::Place,
    row::{Row, Unread},
};

pub(super) type Found = look::Found<Sandbox>;

#[async_trait]
impl Listable for Daytona {
    /// By the time of creation, the one key that does not change while pages are read. The listing lags behind the
    /// truth: whoever acts on a row looks by id first, and a row that is not there proves nothing.
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let place = Place::of(page)?;
        let mut call = self.api.call(Method::GET, &["sandbox"]).page();
        call = call.query(&[("limit", "200"), ("sort", "createdAt"), ("order", "asc")]);
        if let Some(cursor) = place.cursor {
            call = call.query(&[("cursor", cursor)]);
        }
        let answer = self.api.json(&self.api.ask(call, ASK).await?)?;
        let unread = |Unread(why)| Failure::Unreadable(format!("Daytona's listing can't be read: {why}"));
        let row = Row::of(&answer).map_err(unread)?;
        let (items, next) = (row.list("items").map_err(unread)?, row.maybe_text("nextCursor").map_err(unread)?);
        let read = |item| Sandbox::read(item)?.observation(&self.options, self.api.now());
        let rows = items.iter().filter(|item| !is_destroyed(item)).map(read).collect();
        place.page(rows, next)
    }
}

fn is_destroyed(item: &serde_json::Value) -> bool {
    item.get("state").and_then(serde_json::Value::as_str) == Some("destroyed")
}

#[async_trait]
impl Inspectable for Daytona {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.sight(id).await
    }
}

#[async_trait]
impl Looks for Daytona {
    type Raw = Sandbox;

    fn name(&self) -> &BackendName {
        &self.options.name
    }

    /// Daytona says also while it can't look that there is none, which is why nobody takes one such answer for the
    /// end of a sandbox.
    async fn ask_for(&self, sandbox: &str, within: Duration) -> Result<Option<Found>, Failure> {
        let answer = match self.api.ask(self.api.call(Method::GET, &["sandbox", sandbox]), within).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let found = self.read(&answer)?;
        // It is also found by its name, which another one may have by now.
        Ok((found.raw.id == sandbox && found.raw.status != Status::Destroyed).then_some(found))
    }
}

impl Daytona {
    /// A sandbox in an answer.
    pub(super) fn read(&self, answer: &Answer) -> Result<Found, Failure> {
        let read = |value| {
            let raw = Sandbox::read(value)?;
            let seen = raw.observation(&self.options, self.api.now())?;
            Ok(Found { raw, seen })
        };
        read(&self.api.json(answer)?)
            .map_err(|Unread(why)| Failure::Unreadable(format!("Daytona's answer can't be read: {why}")))
    }
}
