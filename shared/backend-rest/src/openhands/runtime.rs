//! The Runtime API: what runs is listed, what is paused is only there by id, and nothing tells of activity.

use std::time::Duration;

use backend::{BackendError, Page};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{
    Found, OpenHands,
    wire::{Sandbox, Status},
};
use crate::{
    api::{ASK, Failure},
    look,
    paging::Place,
    row::{Row, Unread},
};

/// So many of the one list that there is are shown at a time.
const ROWS: usize = 1_000;

impl OpenHands {
    /// A part of the list, by id: it has no pages of its own, and is asked for anew for each part.
    pub(super) async fn list_runtimes(&self, place: &Place<'_>) -> Result<Page, BackendError> {
        let answer = self.api.json(&self.api.ask(self.api.call(Method::GET, &["list"]).page(), ASK).await?)?;
        let items = Row::of(&answer).and_then(|row| row.list("runtimes")).map_err(unread)?;
        let id = |item: &Value| item.get("runtime_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut rows: Vec<_> = items.iter().map(|item| (id(item), item)).collect();
        rows.retain(|(id, _)| place.cursor.is_none_or(|last| id.as_str() > last));
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        let next = rows.get(ROWS).and_then(|_| rows.get(ROWS - 1)).map(|(id, _)| id.clone());
        rows.truncate(ROWS);
        let read = |(_, item): &(String, &Value)| match Sandbox::read_runtime(item) {
            Ok(runtime) if runtime.status == Status::Missing => None,
            Ok(runtime) => Some(self.observed_runtime(runtime).map(|found| found.seen)),
            Err(unread) => Some(Err(unread)),
        };
        place.page(rows.iter().filter_map(read).collect(), next.as_deref())
    }

    /// A runtime by its id. What was stopped is no more.
    pub(super) async fn ask_for_runtime(&self, id: &str, within: Duration) -> Result<Option<Found>, Failure> {
        let answer = match self.api.ask(self.api.call(Method::GET, &["runtime", id]), within).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let runtime = Sandbox::read_runtime(&self.api.json(&answer)?).map_err(unread)?;
        if runtime.id != id || runtime.status == Status::Missing {
            return Ok(None);
        }
        self.observed_runtime(runtime).map(Some).map_err(unread)
    }

    fn observed_runtime(&self, runtime: Sandbox) -> Result<Found, Unread> {
        let seen = runtime.observation(None, self.pauses(), &self.options, self.api.now())?;
        Ok(look::Found { raw: runtime, seen })
    }
}

fn unread(Unread(why): Unread) -> Failure {
    Failure::Unreadable(format!("the answer of OpenHands' Runtime API can't be read: {why}"))
}
