//! Listing and looking.

use std::sync::Arc;

use async_trait::async_trait;
use backend::{BackendError, Inspectable, Listable, Page, PageToken, Sighting};
use futures::{StreamExt, stream};
use lifecycle::{Observation, Ownership, RuntimeId};

use crate::{
    Docker,
    engine::{ASK, Failure},
    verb::Look,
    wire::{Inspected, Row, Summary},
};

/// The most of one page.
const PAGE: usize = 1_000;

/// How many containers are looked at together: each look takes the engine about a millisecond.
const LOOKS: usize = 8;

/// What became of one row.
enum Looked {
    Read(Box<Observation>),
    Unreadable(String),
    Vanished,
}

#[async_trait]
impl Listable for Docker {
    /// The engine knows no pages: each page lists anew and goes on after the last id of the one before, so
    /// that a container appears at most once whatever comes and goes meanwhile.
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        if page.is_none() {
            self.engine.negotiate().await?;
        }
        let rows: Vec<Row> = self.engine.list("/containers/json?all=true", ASK).await?;
        let (mut summaries, mut unreadable) = (Vec::new(), Vec::new());
        for row in rows {
            match row {
                Row::Read(summary) => summaries.push(summary),
                Row::Unread(_) if page.is_some() => {}
                Row::Unread(row) => unreadable.push(Arc::from(unread(&row))),
            }
        }
        let after = page.map(|token| &*token.0).unwrap_or_default();
        summaries.retain(|summary| summary.id.as_str() > after);
        summaries.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        summaries.dedup_by(|one, other| one.id == other.id);
        let more = summaries.len() > PAGE;
        summaries.truncate(PAGE);
        let next = summaries.last().filter(|_| more).map(|last| PageToken(last.id.as_str().into()));
        let mut looks = stream::iter(summaries.into_iter().map(|summary| self.seen(summary))).buffered(LOOKS);
        let mut seen = Vec::new();
        while let Some(look) = looks.next().await {
            match look? {
                Looked::Read(observation) => seen.push(*observation),
                Looked::Unreadable(why) => unreadable.push(why.into()),
                Looked::Vanished => {}
            }
        }
        Ok(Page { seen, unreadable, next })
    }
}

#[async_trait]
impl Inspectable for Docker {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let Some(mut raw) = self.look(id, Look::Measured, ASK).await? else { return Ok(Sighting::NotThere) };
        self.running_execs(&mut raw).await?;
        match raw.observation(&self.options, self.now()) {
            Ok(observation) => Ok(Sighting::Seen(Box::new(observation))),
            Err(why) => Err(Failure::Unreadable(why).into()),
        }
    }
}

impl Docker {
    /// Looks into a container of ours. Others are taken as the listing has them.
    ///
    /// An engine that went away ends the listing; one container that can't be read is reported.
    async fn seen(&self, summary: Summary) -> Result<Looked, BackendError> {
        let ownership = self.options.scope.ownership(self.options.openhands, summary.bare_name(), &summary.labels);
        if ownership != Ownership::Ours {
            return Ok(read(summary.observation(&self.options.name, ownership)));
        }
        match self.inspected(&summary.id).await {
            Ok(raw) => Ok(read(raw.observation(&self.options, self.now()))),
            Err(failure) if failure.is_not_there() => Ok(Looked::Vanished),
            Err(failure @ (Failure::Said { .. } | Failure::Unreadable(_))) => {
                Ok(Looked::Unreadable(format!("container `{}`: {}", summary.bare_name(), failure.words())))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    async fn inspected(&self, container: &str) -> Result<Inspected, Failure> {
        let mut raw: Inspected = self.engine.get(&format!("/containers/{container}/json"), ASK).await?;
        self.running_execs(&mut raw).await?;
        Ok(raw.unmeasured())
    }
}

fn read(observation: Result<Observation, String>) -> Looked {
    match observation {
        Ok(observation) => Looked::Read(Box::new(observation)),
        Err(why) => Looked::Unreadable(why),
    }
}

fn unread(row: &serde_json::Value) -> String {
    match row.get("Id").and_then(serde_json::Value::as_str) {
        Some(id) => format!("container `{}` is listed in a shape that this version does not know: kept", clip(id)),
        None => "a container is listed without an id: kept".to_owned(),
    }
}

/// Enough of an id for people.
fn clip(id: &str) -> &str {
    id.char_indices().nth(12).map_or(id, |(at, _)| &id[..at])
}
