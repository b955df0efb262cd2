//! The host, over HTTP: signs requests, keeps the record of the workspace.
//!
//! **Invariants.** The token goes to the host that the delivery names, and no redirect is followed with it; it is in no
//! error. An answer that is not understood is as none: nothing is known about what was done.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use reqwest::{Client, redirect::Policy};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use workspace::{
    Store,
    blobs::{Signed, Signer, StoreError, Tag, Upload, Wire},
    commit::{Acquired, After, Commit, CommitError, Committed, Head, Lease, Renewed},
    key::Name,
    limits::URL_MARGIN,
    time::{Clock, Millis},
};

use crate::{
    activity::beat::Answered,
    delivery::{Activity, Delivery, Token, is_http},
    keeper::Failed,
    protocol::{Ask, Code, Held, Refusal, Renew, Settle, Settled, Told},
    sandbox::{Hosts, Save},
};

/// How long one question may take: an HTTP API gives up after 30 s.
const WITHIN: Duration = Duration::from_secs(35);
/// How long a heartbeat may take.
const BEAT: Duration = Duration::from_secs(10);
/// The most that is read of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Hosts over HTTP.
pub struct HttpHosts {
    client: Client,
    wire: Arc<dyn Wire>,
    clock: Clock,
}

impl HttpHosts {
    /// Over `wire` signed requests are sent.
    pub fn new(wire: Arc<dyn Wire>, clock: Clock) -> Result<Self, Failed> {
        let client = Client::builder().redirect(Policy::none()).timeout(WITHIN).build();
        Ok(Self { client: client.map_err(|error| Failed(format!("no HTTP client: {error}")))?, wire, clock })
    }
}

#[async_trait]
impl Hosts for HttpHosts {
    fn open(&self, delivery: &Delivery) -> Result<(Store, Arc<dyn Commit>), Failed> {
        let base = delivery.host.trim_end_matches('/');
        if !is_http(base) {
            return Err(Failed(format!("the host `{base}` is no HTTP address")));
        }
        let name = &delivery.workspace.name;
        let signed = delivery.signed.iter().cloned().map(Signed::from);
        let host = Arc::new(Host {
            client: self.client.clone(),
            base: format!("{base}/workspaces/{name}"),
            token: delivery.token.clone(),
            signed: Mutex::new(signed.map(|signed| (signed.key.clone(), signed)).collect()),
            clock: self.clock.clone(),
        });
        Ok((Store { signer: host.clone(), wire: self.wire.clone(), clock: self.clock.clone() }, host))
    }

    async fn beat(&self, activity: &Activity, busy_for: Option<Duration>) -> Answered {
        let Activity { runtime, token, host } = activity;
        let url = format!("{}/runtimes/{runtime}/heartbeat", host.trim_end_matches('/'));
        let body = busy_for.map_or_else(|| json!({}), |busy| json!({ "busy_for": format!("{}s", busy.as_secs()) }));
        let request = self.client.post(url).timeout(BEAT).bearer_auth(token.reveal()).json(&body);
        let Ok(answer) = request.send().await else { return Answered::NONE };
        let status = answer.status().as_u16();
        match all(answer).await {
            Ok(body) => Answered::of(status, &body, settings::system::now()),
            Err(_) => Answered::NONE,
        }
    }

    async fn saved(&self, activity: &Activity, save: &Save) -> Result<(), Failed> {
        let Activity { runtime, token, host } = activity;
        let url = format!("{}/runtimes/{runtime}/saved", host.trim_end_matches('/'));
        let Save { workspace, generation, age } = save;
        // Rounded up: what is told is never newer than what is kept.
        let age = format!("{}s", age.as_secs() + 1);
        let body = json!({ "workspace": workspace, "generation": generation, "age": age });
        let request = self.client.post(url).timeout(BEAT).bearer_auth(token.reveal()).json(&body);
        match request.send().await.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => Err(Failed(format!("the host answered with {status}"))),
            Err(error) => Err(Failed(format!("the host did not answer: {}", error.without_url()))),
        }
    }
}

/// The whole body of an answer.
async fn all(mut answer: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| format!("did not answer: {}", error.without_url()))? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER_BYTES {
            return Err(format!("answered with more than {MAX_ANSWER_BYTES} bytes"));
        }
    }
    Ok(body)
}

/// One workspace's host.
struct Host {
    client: Client,
    base: String,
    token: Token,
    /// What the delivery brought, each for one use: whatever ends early is asked for anew.
    signed: Mutex<HashMap<String, Signed>>,
    clock: Clock,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Host {
    async fn ask<T: DeserializeOwned>(&self, what: &str, body: &impl Serialize) -> Result<T, Refusal> {
        let busy = |detail: String| Refusal { code: Code::Busy, detail };
        let request = self.client.post(format!("{}/{what}", self.base)).bearer_auth(self.token.reveal()).json(body);
        let unsent = |error: reqwest::Error| busy(format!("the host did not answer: {}", error.without_url()));
        let answer = request.send().await.map_err(unsent)?;
        let status = answer.status();
        let body = all(answer).await.map_err(|why| busy(format!("the host {why}")))?;
        let unread = || busy(format!("the host answered with {status} and what is not understood"));
        if status.is_success() {
            serde_json::from_slice(&body).map_err(|_| unread())
        } else {
            Err(serde_json::from_slice(&body).unwrap_or_else(|_| unread()))
        }
    }

    /// What the delivery brought for reading an object, if it is still good.
    fn delivered(&self, key: &str) -> Option<Signed> {
        let signed = self.signed.lock().unwrap_or_else(PoisonError::into_inner).remove(key)?;
        let margin = Millis::try_from(URL_MARGIN.as_millis()).unwrap_or(Millis::MAX);
        (self.clock.now().saturating_add(margin) < signed.until).then_some(signed)
    }

    async fn sign(&self, ask: &Ask) -> Result<Told, StoreError> {
        self.ask("parts", ask).await.map_err(|refusal: Refusal| refusal.of_store(ask.key()))
    }

    async fn signed(&self, ask: &Ask) -> Result<Vec<Signed>, StoreError> {
        match self.sign(ask).await? {
            Told::Signed(signed) => Ok(signed.into_iter().map(Signed::from).collect()),
            _ => Err(other(ask.key())),
        }
    }

    async fn one(&self, ask: &Ask) -> Result<Signed, StoreError> {
        self.signed(ask).await?.pop().ok_or_else(|| other(ask.key()))
    }

    async fn done(&self, ask: &Ask) -> Result<(), StoreError> {
        match self.sign(ask).await? {
            Told::Done => Ok(()),
            _ => Err(other(ask.key())),
        }
    }
}

fn other(key: &str) -> StoreError {
    StoreError::Refused { key: key.to_owned(), why: "the host answered another question".to_owned() }
}

fn unasked(workspace: &Name) -> impl FnOnce(Refusal) -> CommitError {
    move |refusal| CommitError { workspace: workspace.clone(), why: refusal.detail }
}

#[async_trait]
impl Signer for Host {
    async fn begin(&self, key: &str) -> Result<Upload, StoreError> {
        match self.sign(&Ask::Begin { key: key.to_owned() }).await? {
            Told::Upload(id) => Ok(Upload { key: key.to_owned(), id }),
            _ => Err(other(key)),
        }
    }

    async fn sign_parts(&self, upload: &Upload, parts: &[(u32, u64)]) -> Result<Vec<Signed>, StoreError> {
        self.signed(&Ask::parts(upload, parts)).await
    }

    async fn complete(&self, upload: &Upload, tags: &[Tag]) -> Result<(), StoreError> {
        let Upload { key, id } = upload.clone();
        self.done(&Ask::Complete { key, upload: id, tags: tags.to_vec() }).await
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        let Upload { key, id } = upload.clone();
        self.done(&Ask::Abort { key, upload: id }).await
    }

    async fn sign_put(&self, key: &str, bytes: u64) -> Result<Signed, StoreError> {
        self.one(&Ask::Put { key: key.to_owned(), bytes }).await
    }

    async fn sign_get(&self, key: &str) -> Result<Signed, StoreError> {
        if let Some(signed) = self.delivered(key) {
            return Ok(signed);
        }
        self.one(&Ask::Get { key: key.to_owned() }).await
    }
}

/// A sandbox holds the one lease that it was given, and asks for no other.
fn not_here(workspace: &Name) -> CommitError {
    CommitError { workspace: workspace.clone(), why: "a sandbox can't ask for that".to_owned() }
}

#[async_trait]
impl Commit for Host {
    async fn acquire(&self, workspace: &Name, _: &str, _: Duration) -> Result<Acquired, CommitError> {
        Err(not_here(workspace))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Renewed, CommitError> {
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let held: Held =
            self.ask("lease", &Renew { lease: lease.clone(), ttl_ms }).await.map_err(unasked(&lease.workspace))?;
        Ok(held.into())
    }

    async fn release(&self, lease: &Lease) -> Result<(), CommitError> {
        let _: Settled =
            self.ask("commit", &Settle::Release { lease: lease.clone() }).await.map_err(unasked(&lease.workspace))?;
        Ok(())
    }

    async fn commit(&self, lease: &Lease, replaces: u64, head: &Head, after: After) -> Result<Committed, CommitError> {
        let release = after == After::Release;
        let settle = Settle::Commit { lease: lease.clone(), replaces, head: head.clone(), release };
        let settled: Settled = self.ask("commit", &settle).await.map_err(unasked(&lease.workspace))?;
        Ok(settled.into())
    }

    async fn head(&self, workspace: &Name) -> Result<Option<Head>, CommitError> {
        Err(not_here(workspace))
    }

    async fn lease(&self, workspace: &Name) -> Result<Option<Lease>, CommitError> {
        Err(not_here(workspace))
    }
}
