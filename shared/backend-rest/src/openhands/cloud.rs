//! The app server: sandboxes, and the conversations that tell of them. When it is asked for these it asks the agent
//! servers that run, by a GET that counts as no use (measured on 1.58.2); what does not run is not started for it.

use std::{
    mem,
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use backend::{BackendError, ErrorKind, Page};
use reqwest::Method;
use serde_json::Value;

use super::{
    Found, OpenHands,
    uses::Uses,
    wire::{Sandbox, Status, shown},
};
use crate::{
    api::{ASK, Failure},
    look,
    paging::Place,
    row::{Row, Unread},
};

/// So many pages of conversations are read for one page of a listing, which has half a minute.
const PAGES_AT_ONCE: usize = 20;
/// The most pages of conversations: a hundred thousand of them.
const MAX_PAGES: usize = 1_000;
/// The most that is asked for in a page.
const LIMIT: (&str, &str) = ("limit", "100");

/// Where sandboxes are.
const SANDBOXES: [&str; 3] = ["api", "v1", "sandboxes"];
/// What stands before the place of a page of conversations in a listing; a sandbox's is a number.
const TALKS: &str = "talks ";

/// What a listing knows of conversations. They are read before the first sandbox, since each sandbox needs all of its own.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Of a listing that is still at them.
    reading: Option<Reading>,
    /// Of the last one that has read them all. Whoever acts on what it tells looks by id.
    whole: Option<Arc<Uses>>,
}

#[derive(Debug, Default)]
struct Reading {
    uses: Uses,
    pages: usize,
}

impl OpenHands {
    /// A page of sandboxes, the newest first, with what their conversations tell; the first pages are empty where there
    /// are many conversations. A sandbox that is missing has no runtime: it is left out, and whoever knows it looks by id.
    pub(super) async fn list_sandboxes(&self, place: &Place<'_>) -> Result<Page, BackendError> {
        let talks = match place.cursor {
            None => Some(None),
            Some(cursor) => cursor.strip_prefix(TALKS).map(|talks| Some(talks.to_owned())),
        };
        if let Some(talks) = talks
            && let Some(next) = self.read_all(talks).await?
        {
            return place.page(Vec::new(), Some(&format!("{TALKS}{next}")));
        }
        let from = place.cursor.filter(|cursor| !cursor.starts_with(TALKS));
        let (items, next) = self.page(&["sandboxes", "search"], &[], from, ASK).await?;
        let uses = self.known().whole.clone().ok_or_else(anew)?;
        let read = |item: &Value| match Sandbox::read(item) {
            Ok(sandbox) if sandbox.status == Status::Missing => None,
            Ok(sandbox) => Some(self.observed(sandbox, &uses).map(|found| found.seen)),
            Err(unread) => Some(Err(unread)),
        };
        place.page(items.iter().filter_map(read).collect(), next.as_deref())
    }

    /// A sandbox by id, then its conversations, so that what they tell is the newer.
    pub(super) async fn ask_for_sandbox(&self, id: &str, within: Duration) -> Result<Option<Found>, Failure> {
        let until = self.api.now().plus(within);
        let call = self.api.call(Method::GET, &SANDBOXES).query(&[("id", id)]);
        let answer = self.api.json(&self.api.ask(call, within / 2).await?)?;
        let Some([item]) = answer.as_array().map(Vec::as_slice) else {
            return Err(unread(Unread("it is no list of one sandbox".to_owned())));
        };
        if item.is_null() {
            return Ok(None);
        }
        let sandbox = Sandbox::read(item).map_err(unread)?;
        if sandbox.id != id {
            return Ok(None);
        }
        let left = until.since(self.api.now());
        if sandbox.status == Status::Missing {
            // Said of an outage too; but then this question has no answer, which asks for the state of one at least.
            let call = self.api.call(Method::GET, &["api", "v1", "sandboxes", "search"]).query(&[("limit", "1")]);
            return self.api.ask(call, left).await.map(|_| None).map_err(|failure| doubted(id, failure));
        }
        let mut reading = Reading::default();
        if self.read_on(&mut reading, None, &[("sandbox_id__eq", id)], left).await?.is_some() {
            let why = format!("there are more than {PAGES_AT_ONCE} pages of conversations in one sandbox");
            return Err(unread(Unread(why)));
        }
        self.observed(sandbox, &reading.uses).map(Some).map_err(unread)
    }

    fn observed(&self, sandbox: Sandbox, uses: &Uses) -> Result<Found, Unread> {
        let in_it = |Unread(why)| Unread(format!("sandbox `{}`: {why}", shown(&sandbox.id)));
        let told = uses.of(&sandbox.id).map_err(in_it)?;
        let seen = sandbox.observation(told, self.pauses(), &self.options, self.api.now())?;
        Ok(look::Found { raw: sandbox, seen })
    }

    /// Reads on in all conversations, from the beginning or from there. Where to go on; `None`: all were read.
    async fn read_all(&self, from: Option<String>) -> Result<Option<String>, BackendError> {
        let mut reading = match from {
            None => Reading::default(),
            Some(_) => self.known().reading.take().ok_or_else(anew)?,
        };
        let next = self.read_on(&mut reading, from, &[], ASK).await?;
        let mut known = self.known();
        match next {
            Some(_) => known.reading = Some(reading),
            None => known.whole = Some(Arc::new(mem::take(&mut reading.uses).whole())),
        }
        Ok(next)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads some pages of the conversations that match, those within others too: they work in the same sandbox.
    /// `within`: for each page.
    async fn read_on(
        &self,
        reading: &mut Reading,
        from: Option<String>,
        matching: &[(&str, &str)],
        within: Duration,
    ) -> Result<Option<String>, Failure> {
        let query = [matching, &[("include_sub_conversations", "true")]].concat();
        let mut cursor = from;
        for _ in 0..PAGES_AT_ONCE {
            if reading.pages >= MAX_PAGES {
                return Err(unread(Unread(format!("there are more than {MAX_PAGES} pages of conversations"))));
            }
            reading.pages += 1;
            let (items, next) = self.page(&["app-conversations", "search"], &query, cursor.as_deref(), within).await?;
            for item in &items {
                let nowhere = |Unread(why)| Unread(format!("a conversation of which nobody knows the sandbox: {why}"));
                reading.uses.add(item).map_err(nowhere).map_err(unread)?;
            }
            if next.is_none() {
                return Ok(None);
            }
            if next == cursor {
                return Err(unread(Unread("a page of conversations names itself as the next one".to_owned())));
            }
            cursor = next;
        }
        Ok(cursor)
    }

    /// The rows of a page, and where the next one begins.
    async fn page(
        &self,
        place: &[&str],
        query: &[(&str, &str)],
        cursor: Option<&str>,
        within: Duration,
    ) -> Result<(Vec<Value>, Option<String>), Failure> {
        let mut call = self.api.call(Method::GET, &[&["api", "v1"], place].concat()).page();
        call = call.query(&[query, &[LIMIT]].concat());
        if let Some(cursor) = cursor {
            call = call.query(&[("page_id", cursor)]);
        }
        let answer = self.api.json(&self.api.ask(call, within).await?)?;
        let row = Row::of(&answer).map_err(unread)?;
        let next = row.maybe_text("next_page_id").map_err(unread)?.map(str::to_owned);
        Ok((row.list("items").map_err(unread)?.to_vec(), next))
    }
}

/// What a page needs was told to another process, or to none.
fn anew() -> BackendError {
    let why = "the listing was begun elsewhere, and what its conversations told is not here: begin it anew";
    BackendError::new(ErrorKind::Malformed, why)
}

fn unread(Unread(why): Unread) -> Failure {
    Failure::Unreadable(format!("OpenHands' answer can't be read: {why}"))
}

/// A sandbox that is shown as missing by a server that can't tell.
fn doubted(id: &str, failure: Failure) -> Failure {
    let told = BackendError::from(failure);
    let id = shown(id);
    let why = format!(
        "OpenHands shows `{id}` as missing, and can't tell of its sandboxes just now ({told}): not taken for gone"
    );
    Failure::NotAsked(BackendError::new(told.kind, why))
}
