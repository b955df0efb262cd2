//! Listing by app, and looking.
//!
//! A listing has no cursor: the next page is of what was made before the last row of this one, until there is none.
//! Whether "before" takes in the same moment is not known, and several can be made in one: so a page begins with the
//! moment at which the last one ended, and what of it was shown is left out.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use backend::{
    BackendError, ErrorKind, Inspectable, Listable, Miss, Page, PageToken, Sighting, Target, provider::ours,
};
use lifecycle::{Observation, RuntimeId};
use tonic::Code;

use crate::{
    Modal,
    call::{ASK, Again, Failure},
    observe::{is_first, observation},
    proto::{AppListRequest, SandboxInfo, SandboxListRequest, SandboxWaitRequest},
};

/// More pages than an app has.
const MAX_PAGES: u32 = 10_000;
/// More apps than an environment has.
const MAX_APPS: usize = 10_000;
/// The most of one page.
const MAX_ROWS: usize = 1_000;
/// Of so many sandboxes it is remembered where they are; of more, it is read anew.
const REMEMBERED: usize = 100_000;
/// Where in which listing a sandbox is.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    app: String,
    created_at: f64,
}

/// Where a listing is: the app, how many pages of it were read, the time of the oldest row so far, and which rows of that
/// time were shown.
struct Place {
    app: String,
    number: u32,
    oldest: f64,
    shown: BTreeSet<String>,
}

impl Place {
    fn begin(app: String) -> Self {
        Self { app, number: 0, oldest: f64::INFINITY, shown: BTreeSet::new() }
    }

    fn of(token: &PageToken) -> Result<Self, BackendError> {
        let mut parts = token.0.split(' ');
        let place = (|| {
            let app = parts.next().filter(|app| !app.is_empty())?.to_owned();
            let (number, oldest) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Self { app, number, oldest, shown: parts.map(str::to_owned).collect() })
        })();
        place.ok_or_else(|| wrong("a page was asked for by a token that is none of ours"))
    }

    fn token(&self) -> PageToken {
        let shown: String = self.shown.iter().flat_map(|id| [" ", id.as_str()]).collect();
        PageToken(format!("{} {} {}{shown}", self.app, self.number, self.oldest).into())
    }

    /// The place after these rows. A page that does not lead back would lead on for ever.
    fn after(mut self, rows: &[SandboxInfo]) -> Result<Self, BackendError> {
        self.number += 1;
        if self.number >= MAX_PAGES {
            return Err(wrong(&format!("the listing of an app did not end within {MAX_PAGES} pages")));
        }
        if rows.iter().any(|row| row.created_at > self.oldest) {
            return Err(wrong("a page does not lead further back, so the listing would never end"));
        }
        let oldest = rows.iter().map(|row| row.created_at).fold(self.oldest, f64::min);
        if oldest < self.oldest {
            self.shown.clear();
        }
        self.oldest = oldest;
        self.shown
            .extend(rows.iter().filter(|row| row.created_at.total_cmp(&oldest).is_eq()).map(|row| row.id.clone()));
        Ok(self)
    }
}

#[async_trait]
impl Listable for Modal {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let Some(token) = page else {
            let next = self.app_after("").await?.map(|app| Place::begin(app).token());
            return Ok(Page { seen: Vec::new(), unreadable: Vec::new(), next });
        };
        let place = Place::of(token)?;
        let rows = self.rows(&place).await?;
        let mut page = self.read(&rows);
        page.next = if rows.is_empty() {
            self.app_after(&place.app).await?.map(|app| Place::begin(app).token())
        } else {
            Some(place.after(&rows)?.token())
        };
        Ok(page)
    }
}

#[async_trait]
impl Inspectable for Modal {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let found = self.look(id).await?;
        Ok(found.map_or(Sighting::NotThere, |seen| Sighting::Seen(Box::new(seen))))
    }
}

impl Modal {
    /// The app after this one, in the order of their ids: one that is made or removed meanwhile moves no other.
    async fn app_after(&self, app: &str) -> Result<Option<String>, BackendError> {
        let question = AppListRequest { environment_name: self.options.environment.clone() };
        let answer = self
            .api
            .ask(("AppList", Again::Yes), question, ASK, async |mut client, question| client.app_list(question).await)
            .await?;
        if answer.apps.len() > MAX_APPS {
            return Err(wrong(&format!("the environment has {} apps; at most {MAX_APPS} are read", answer.apps.len())));
        }
        let ids: BTreeSet<String> = answer.apps.into_iter().map(|app| app.app_id).collect();
        if ids.iter().any(|id| id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(wrong("an app's id can't be read"));
        }
        Ok(ids.into_iter().find(|id| id.as_str() > app))
    }

    async fn page(&self, app: &str, before: f64) -> Result<Vec<SandboxInfo>, BackendError> {
        let question = SandboxListRequest {
            app_id: app.to_owned(),
            before_timestamp: before,
            environment_name: String::new(),
            include_finished: false,
            tags: Vec::new(),
        };
        let call = ("SandboxListV2", Again::Yes);
        let answer =
            self.api.ask_v2(call, question, ASK, async |mut client, question| client.sandbox_list_v2(question).await);
        let rows = answer.await?.sandboxes;
        if rows.len() > MAX_ROWS {
            return Err(wrong(&format!("a page has {} rows; at most {MAX_ROWS} are read", rows.len())));
        }
        if rows.iter().any(|row| !row.created_at.is_finite()) {
            return Err(wrong("a row was made at no time, so that no page can follow it"));
        }
        Ok(rows)
    }

    /// What comes at this place and was not shown. The page takes in the time of the last one's oldest row, since others
    /// may be of that time; when it has nothing else, the next one begins before it.
    async fn rows(&self, place: &Place) -> Result<Vec<SandboxInfo>, BackendError> {
        let news = |mut rows: Vec<SandboxInfo>| {
            rows.retain(|row| !place.shown.contains(&row.id));
            rows
        };
        if place.number == 0 {
            return self.page(&place.app, 0.0).await;
        }
        let rows = news(self.page(&place.app, place.oldest.next_up()).await?);
        if rows.is_empty() { Ok(news(self.page(&place.app, place.oldest.next_down()).await?)) } else { Ok(rows) }
    }

    fn read(&self, rows: &[SandboxInfo]) -> Page {
        let (mut seen, mut unreadable, mut ids) = (Vec::new(), Vec::<Arc<str>>::new(), BTreeSet::new());
        let now = self.api.now();
        for row in rows {
            match observation(row, &self.options, now) {
                Ok(Some(observation)) if ids.insert(observation.id.clone()) => {
                    self.remember(row);
                    seen.push(observation);
                }
                Ok(_) => {}
                Err(why) => unreadable.push(format!("{why}: kept").into()),
            }
        }
        Page { seen, unreadable, next: None }
    }

    fn remember(&self, row: &SandboxInfo) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(row.id.clone(), Known { app: row.app_id.clone(), created_at: row.created_at });
    }

    /// Looks at one sandbox. What was never one of this backend's is not there.
    async fn look(&self, id: &RuntimeId) -> Result<Option<Observation>, BackendError> {
        let provider_id = id.provider_id();
        let sandbox = std::str::from_utf8(&provider_id).ok().filter(|_| id.backend() == &self.options.name);
        let Some(sandbox) = sandbox else { return Ok(None) };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(sandbox).cloned();
        if let Some(known) = known
            && let Some(seen) = self.in_its_listing(sandbox, &known).await?
        {
            return Ok(Some(seen));
        }
        if self.has_ended(sandbox).await? {
            return Ok(None);
        }
        self.found(sandbox).await
    }

    /// The same, with an end to all that it asks.
    pub(crate) async fn look_within(
        &self,
        id: &RuntimeId,
        within: Duration,
    ) -> Result<Option<Observation>, BackendError> {
        let late = |_| {
            let why = format!("a look at `{id}` was not answered within {} s", within.as_secs());
            BackendError::new(ErrorKind::Unreachable, why)
        };
        tokio::time::timeout(within, self.look(id)).await.map_err(late)?
    }

    /// Looks for the target and refuses what is not ours: the last check before each act.
    pub(crate) async fn find(
        &self,
        target: &Target,
        within: Duration,
    ) -> Result<Result<Observation, Miss>, BackendError> {
        let Some(seen) = self.look_within(&target.id, within).await? else { return Ok(Err(Miss::Gone)) };
        Ok(ours(&seen).map(|()| seen))
    }

    /// The page that begins with it. Its tags can change, and are only shown there.
    async fn in_its_listing(&self, sandbox: &str, known: &Known) -> Result<Option<Observation>, BackendError> {
        let rows = self.page(&known.app, known.created_at.next_up()).await?;
        let row = rows.iter().find(|row| row.id == sandbox);
        let read = |row| observation(row, &self.options, self.api.now()).map_err(|why| wrong(&why));
        Ok(row.map(read).transpose()?.flatten())
    }

    /// Asks how it ended, and waits for nothing.
    async fn has_ended(&self, sandbox: &str) -> Result<bool, BackendError> {
        let question = SandboxWaitRequest { sandbox_id: sandbox.to_owned(), timeout: 0.0 };
        let answer = if is_first(sandbox) {
            let call = ("SandboxWait", Again::Yes);
            self.api.ask(call, question, ASK, async |mut client, question| client.sandbox_wait(question).await).await
        } else {
            let call = ("SandboxWaitV2", Again::Yes);
            let send = async |mut client: crate::call::Client, question| client.sandbox_wait_v2(question).await;
            self.api.ask_v2(call, question, ASK, send).await
        };
        match answer {
            Ok(answer) => match answer.result.map_or(0, |result| result.status) {
                0 => Ok(false),
                1..=10 => Ok(true),
                _ => Err(wrong("it ended in a way that this version does not know")),
            },
            Err(failure) if failure.is(Code::NotFound) => Ok(true),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads the listing until it is found: Modal shows its times nowhere else.
    async fn found(&self, sandbox: &str) -> Result<Option<Observation>, BackendError> {
        let mut token = None;
        loop {
            let page = self.list(token.as_ref()).await?;
            let found = page.seen.into_iter().find(|seen| seen.id.provider_id() == sandbox.as_bytes());
            if found.is_some() {
                return Ok(found);
            }
            token = page.next;
            if token.is_none() {
                let why = format!("Modal says that `{sandbox}` runs, and lists it in no app of the environment");
                return Err(Failure::Unreadable(why).into());
            }
        }
    }
}

fn wrong(why: &str) -> BackendError {
    BackendError::new(ErrorKind::Malformed, format!("Modal's answer can't be used: {why}"))
}
