//! Asks an OpenHands agent server for its activity, without leaving a trace.
//!
//! ```text
//! Prober::probe ─► GET /server_info                      idle_time, uptime: first, before any other call
//!               ─► GET /api/conversations/search         execution_status, updated_at   503 ─► GET /api/init
//!               ─► GET /api/bash/bash_events/search      commands, and whether each has ended
//!               ─► Evidence ─► Probe { last_active, busy }
//! ```
//!
//! **Invariants.** A probe makes only GETs: none of these moves `idle_time` (measured on 1.58.2). What can't be read
//! is an error, never idleness. What was not asked for want of pages counts at its worst. A veto is bounded by the
//! time that its work can have been begun plus [`MAX_BUSY`], since `running` can be a lie for ever. The
//! session key is in no `Debug`, message or URL.
//!
//! **Why it doubts `idle_time`.** It is one number a process and grows during a tool call, a background command, a
//! frozen time and the time dormant; `POST /api/init` does not reset it. So it only proves activity, is never taken
//! earlier than the last change of state, and proves nothing at all on a server that was dormant and has seen no
//! event since it started: when that one was initialised is not told.
//!
//! **Not seen**: commands on a conversation's own bash route, except through `idle_time`, which their start
//! resets: to ask for them would load the conversation, which changes it.

mod evidence;
mod http;
mod reading;

use std::{fmt, sync::Arc};

use lifecycle::{Time, activity::MAX_BUSY};

use self::{
    evidence::Evidence,
    http::{Http, Reply},
    reading::{Command, Conversation, InitState, Malformed},
};
use crate::{BackendError, Bounds, Clock, ErrorKind, Probe};

/// Pages of conversations or commands that one probe reads, of 100 each.
const MAX_PAGES: usize = 20;
/// Commands whose end one probe asks for.
const MAX_LOOKUPS: usize = 32;
/// Conversations that are interrupted by one call.
const MAX_INTERRUPTS: usize = 100;

/// A server's session key. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    /// Wraps the value of `OH_SESSION_API_KEYS_0`.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(…)")
    }
}

/// Where an agent server is, and what it is asked with.
#[derive(Debug, Clone)]
pub struct AgentServer {
    base: reqwest::Url,
    key: Option<SessionKey>,
}

impl AgentServer {
    /// `base`: `http://127.0.0.1:32768`, without user, password, query or fragment.
    pub fn new(base: &str, key: Option<SessionKey>) -> Result<Self, BackendError> {
        let wrong = |why: &str| BackendError::new(ErrorKind::Local, format!("the agent server's address {why}"));
        let base = reqwest::Url::parse(base).map_err(|error| wrong(&format!("is no URL: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(wrong(&format!("has the scheme `{}`; it needs `http` or `https` and a host", base.scheme())));
        }
        let extra = !base.username().is_empty() || base.password().is_some();
        if extra || base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("has a user, a query or a fragment; give the host and the port alone"));
        }
        Ok(Self { base, key })
    }
}

/// What [`Prober::interrupt_running`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interrupted {
    /// Conversations that were running and were interrupted.
    pub interrupted: u32,
    /// Conversations said to be running that the server did not know: the lie of a crash.
    pub unknown: u32,
}

/// Asks agent servers. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Prober {
    http: Http,
    clock: Clock,
}

/// What the conversations' route told.
enum Conversations {
    Told(Vec<Conversation>),
    Dormant,
    Initializing,
}

impl Prober {
    /// One that goes through no proxy and follows no redirect.
    pub fn new(clock: Clock) -> Result<Self, BackendError> {
        Ok(Self { http: Http::new(clock.clone())?, clock })
    }

    /// Asks for its activity. `since`: its last change of state, where known; no activity is told to be earlier.
    ///
    /// A dormant server proves no activity and is not busy: nobody uses it yet, and what `idle_time` counts there is
    /// the time since the process started. One that is being initialised just now is active.
    pub async fn probe(
        &self,
        server: &AgentServer,
        since: Option<Time>,
        bounds: Bounds,
    ) -> Result<Probe, BackendError> {
        let info = match self.http.get(server, "server_info", &[], bounds).await? {
            Reply::Body(body) => reading::server_info(&body).map_err(|why| malformed("server_info", &why))?,
            other => return Err(other.refused("server_info")),
        };
        let mut evidence = Evidence::at(self.clock.now());
        match self.conversations(server, bounds).await? {
            Conversations::Dormant => return Ok(evidence.probe(None)),
            Conversations::Initializing => {
                evidence.active(self.clock.now());
                return Ok(evidence.probe(since));
            }
            Conversations::Told(conversations) => evidence.conversations(&conversations),
        }
        if !info.untouched() || !self.was_dormant(server, bounds).await? {
            evidence.active(evidence.now().minus(info.idle));
        }
        self.commands(server, bounds, &mut evidence).await?;
        Ok(evidence.probe(since))
    }

    /// Interrupts every running conversation, so that a stop need not wait for a tool. Counts as activity:
    /// only for a suspend that is decided. `POST …/interrupt` ends the tool in 0.3 s, `pause` waits for it
    /// (measured on 1.58.2).
    pub async fn interrupt_running(&self, server: &AgentServer, bounds: Bounds) -> Result<Interrupted, BackendError> {
        let mut done = Interrupted::default();
        let Conversations::Told(conversations) = self.conversations(server, bounds).await? else { return Ok(done) };
        for conversation in conversations.iter().filter(|conversation| conversation.working).take(MAX_INTERRUPTS) {
            let path = format!("api/conversations/{}/interrupt", conversation.id);
            match self.http.post(server, &path, bounds).await? {
                Reply::Body(_) => done.interrupted += 1,
                Reply::NotFound => done.unknown += 1,
                other => return Err(other.refused("interrupt")),
            }
        }
        Ok(done)
    }

    /// Every conversation that can matter, the newest first.
    async fn conversations(&self, server: &AgentServer, bounds: Bounds) -> Result<Conversations, BackendError> {
        const PATH: &str = "api/conversations/search";
        let (mut told, mut next) = (Vec::<Conversation>::new(), None);
        for _ in 0..MAX_PAGES {
            let mut query = vec![("limit", "100"), ("sort_order", "UPDATED_AT_DESC")];
            query.extend(next.as_deref().map(|next| ("page_id", next)));
            let page = match self.http.get(server, PATH, &query, bounds).await? {
                Reply::Body(body) => reading::conversations(&body).map_err(|why| malformed(PATH, &why))?,
                Reply::Unavailable if told.is_empty() => return self.unavailable(server, bounds).await,
                other => return Err(other.refused(PATH)),
            };
            told.extend(page.items);
            let newest_first = told.windows(2).all(|pair| pair[0].updated_at >= pair[1].updated_at);
            let past = |last: &Conversation| last.updated_at.plus(MAX_BUSY) <= self.clock.now();
            let Some(id) = page.next else { return Ok(Conversations::Told(told)) };
            if newest_first && told.last().is_some_and(past) {
                return Ok(Conversations::Told(told));
            }
            next = Some(id);
        }
        let limit = MAX_PAGES * 100;
        let why = format!("more than {limit} conversations of late; no more are asked for");
        Err(malformed(PATH, &Malformed::because(&why)))
    }

    /// Why the routes below `/api` answer 503.
    async fn unavailable(&self, server: &AgentServer, bounds: Bounds) -> Result<Conversations, BackendError> {
        match self.init_state(server, bounds).await? {
            Some(InitState::Dormant) => Ok(Conversations::Dormant),
            Some(InitState::Initializing) => Ok(Conversations::Initializing),
            Some(InitState::Ready) | None => Err(Reply::Unavailable.refused("api/conversations/search")),
        }
    }

    /// Whether the server began dormant, so that the time before its init is in `idle_time`.
    async fn was_dormant(&self, server: &AgentServer, bounds: Bounds) -> Result<bool, BackendError> {
        Ok(self.init_state(server, bounds).await?.is_some())
    }

    /// `None`: the server was not started for deferred init.
    async fn init_state(&self, server: &AgentServer, bounds: Bounds) -> Result<Option<InitState>, BackendError> {
        const PATH: &str = "api/init";
        match self.http.get(server, PATH, &[], bounds).await? {
            Reply::Body(body) => reading::init(&body).map(Some).map_err(|why| malformed(PATH, &why)),
            Reply::NotFound => Ok(None),
            other => Err(other.refused(PATH)),
        }
    }

    /// Commands, newest first, as far back as one can still be running or have ended after what is known.
    async fn commands(
        &self,
        server: &AgentServer,
        bounds: Bounds,
        evidence: &mut Evidence,
    ) -> Result<(), BackendError> {
        const PATH: &str = "api/bash/bash_events/search";
        let (mut next, mut lookups, mut oldest) = (None, 0, None);
        for _ in 0..MAX_PAGES {
            let mut query = vec![("kind__eq", "BashCommand"), ("sort_order", "TIMESTAMP_DESC"), ("limit", "100")];
            query.extend(next.as_deref().map(|next| ("page_id", next)));
            let page = match self.http.get(server, PATH, &query, bounds).await? {
                Reply::Body(body) => reading::commands(&body).map_err(|why| malformed(PATH, &why))?,
                other => return Err(other.refused(PATH)),
            };
            for command in &page.items {
                evidence.active(command.begun);
                if !evidence.can_matter(command) {
                    continue;
                }
                lookups += 1;
                let ended = if lookups > MAX_LOOKUPS { None } else { self.ended(server, command, bounds).await? };
                evidence.command(command, ended);
            }
            let Some(id) = page.next else { return Ok(()) };
            if !page.items.is_sorted_by(|newer, older| newer.begun >= older.begun) {
                return Err(malformed(PATH, &Malformed::because("the commands are not the newest first")));
            }
            oldest = page.items.last().map(|command| command.begun);
            if oldest.is_some_and(|oldest| evidence.nothing_before_matters(oldest)) {
                return Ok(());
            }
            next = Some(id);
        }
        evidence.anything_before(oldest);
        Ok(())
    }

    /// When a command ended; `None`: it has not, or what it wrote is too much to be read.
    async fn ended(
        &self,
        server: &AgentServer,
        command: &Command,
        bounds: Bounds,
    ) -> Result<Option<Time>, BackendError> {
        const PATH: &str = "api/bash/bash_events/search";
        let query = [
            ("kind__eq", "BashOutput"),
            ("command_id__eq", command.id.as_str()),
            ("sort_order", "TIMESTAMP_DESC"),
            ("limit", "1"),
        ];
        match self.http.get(server, PATH, &query, bounds).await? {
            Reply::Body(body) => reading::ended(&body, &command.id).map_err(|why| malformed(PATH, &why)),
            Reply::TooLarge => Ok(None),
            other => Err(other.refused(PATH)),
        }
    }
}

fn malformed(path: &str, why: &Malformed) -> BackendError {
    BackendError::new(ErrorKind::Malformed, format!("the agent server's answer to `/{path}` can't be read: {why}"))
}
