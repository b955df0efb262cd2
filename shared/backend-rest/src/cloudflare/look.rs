//! Listing and looking, by Cloudflare's API.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Inspectable, Listable, Page, PageToken, Sighting};
use lifecycle::{BackendName, RuntimeId};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{Cloudflare, wire::Instance};
use crate::{
    api::{ASK, Answer, Call, Failure},
    look::{self, Looks},
    paging::Place,
    row::{Row, Unread},
};

pub(super) type Found = look::Found<Instance>;

#[async_trait]
impl Listable for Cloudflare {
    /// What has a container: those that have none stay listed for ever otherwise.
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let place = Place::of(page)?;
        let mut call = self.instances(&["instances-v2"]).page();
        call = call.query(&[("state", "active"), ("per_page", "1000")]);
        if let Some(cursor) = place.cursor {
            call = call.query(&[("page_token", cursor)]);
        }
        let body = self.asked(&self.api.ask(call, ASK).await?)?;
        let read = |item| Instance::read(item)?.observation(&self.options, self.api.now());
        let rows = || -> Result<_, Unread> {
            let row = Row::of(&body)?;
            let next = row.maybe_row("result_info")?.map(|info| info.maybe_text("next_page_token")).transpose()?;
            let items = row.list("result")?.iter().filter_map(|item| read(item).transpose());
            Ok((items.collect(), next.flatten().filter(|next| !next.is_empty())))
        };
        let (rows, next) = rows().map_err(|Unread(why)| unreadable("listing", &why))?;
        place.page(rows, next)
    }
}

#[async_trait]
impl Inspectable for Cloudflare {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.sight(id).await
    }
}

#[async_trait]
impl Looks for Cloudflare {
    type Raw = Instance;

    fn name(&self) -> &BackendName {
        &self.options.name
    }

    async fn ask_for(&self, id: &str, within: Duration) -> Result<Option<Found>, Failure> {
        let answer = match self.api.ask(self.instances(&["instances", id]), within).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let body = self.asked(&answer)?;
        let read = || -> Result<_, Unread> {
            let raw = Instance::read(&body["result"])?;
            let seen = raw.observation(&self.options, self.api.now())?;
            Ok(seen.filter(|_| raw.id == id).map(|seen| Found { raw, seen }))
        };
        read().map_err(|Unread(why)| unreadable("answer", &why))
    }
}

impl Cloudflare {
    fn instances(&self, below: &[&str]) -> Call {
        let application = ["accounts", &self.options.account, "containers", "applications", &self.options.application];
        self.api.call(Method::GET, &[&application[..], below].concat())
    }

    /// An answer's body, when it says of itself that it is one.
    fn asked(&self, answer: &Answer) -> Result<Value, Failure> {
        let body = self.api.json(answer)?;
        if body["success"] == true { Ok(body) } else { Err(unreadable("answer", "it says that it is no success")) }
    }
}

fn unreadable(what: &str, why: &str) -> Failure {
    Failure::Unreadable(format!("Cloudflare's {what} can't be read: {why}"))
}
