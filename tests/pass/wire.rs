//! Every call of a pass, to the ledger and to the backend, in one line: counted, interleaved, or the last one of
//! a process that dies there.

use std::{
    future::{Future, pending},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Config, Region, retry::RetryConfig, timeout::TimeoutConfig},
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    },
    orchestrator::HttpRequest,
    runtime_components::RuntimeComponents,
};
use backend::{
    Archivable, Backend, BackendError, Bounds, Deletable, Deleted, FileReclaimable, Inspectable, Listable, Outcome,
    Page, PageToken, Probe, Probed, Recoverable, Shed, Sighting, Suspendable, Target, Trashed,
};
use embedded::Embedded;
use lifecycle::{Incarnation, RuntimeId, Survives, Tier, Time, policy::WorkspaceRule, snapshot::Disk};
use tokio::sync::Notify;

/// The line of calls. Clones are the same line.
#[derive(Clone, Default)]
pub(crate) struct Line(Arc<Inner>);

#[derive(Default)]
struct Inner {
    calls: Mutex<Vec<String>>,
    crash: Mutex<Option<usize>>,
    died: Notify,
    /// The seed of the interleaving; 0: none.
    seed: AtomicU64,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

impl Line {
    /// The process dies at the call that has `nth` before it: after its effect, before its answer.
    pub(crate) fn dies(&self, nth: usize) {
        self.0.calls.lock().unwrap().clear();
        *self.0.crash.lock().unwrap() = Some(nth);
    }

    /// Each call waits for a number of turns that the seed says, so that two passes mix.
    pub(crate) fn mixes(&self, seed: u64) {
        self.0.seed.store(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Ordering::Relaxed);
    }

    /// The calls since the line was made or last told to die.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.calls.lock().unwrap().clone()
    }

    /// Runs to the end, or to where the process dies; then nothing of it is left. Whether it came to its end.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.0.died.notified() => None,
        }
    }

    async fn call<T>(&self, what: String, call: impl Future<Output = T>) -> T {
        for _ in 0..self.turns() {
            tokio::task::yield_now().await;
        }
        let nth = {
            let mut calls = self.0.calls.lock().unwrap();
            calls.push(what);
            calls.len() - 1
        };
        let answer = call.await;
        if *self.0.crash.lock().unwrap() == Some(nth) {
            self.0.died.notify_one();
            return pending().await;
        }
        answer
    }

    /// 0 to 3, by a linear congruential step (Knuth, MMIX).
    fn turns(&self) -> u64 {
        let step = |seed: u64| {
            (seed != 0).then(|| seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        self.0.seed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).map_or(0, |seed| (seed >> 33) % 4)
    }

    /// A client of `store` over this line.
    pub(crate) fn client(&self, store: &Embedded) -> Client {
        let http = Wire { inner: store.http_client(), line: self.clone() };
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("local"))
            .endpoint_url("http://wire.invalid")
            .allow_no_auth()
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .http_client(SharedHttpClient::new(http))
            .build();
        Client::from_conf(config)
    }

    /// A backend over this line, with the roles that it has (not the provider's timers, and no execution).
    pub(crate) fn backend(&self, inner: Backend) -> Backend {
        Backend {
            name: inner.name,
            kind: inner.kind,
            rests: inner.rests,
            list: self.over(inner.list),
            inspect: self.over(inner.inspect),
            probe: inner.probe.map(|role| self.over(role) as _),
            suspend: inner.suspend.map(|role| self.over(role) as _),
            archive: inner.archive.map(|role| self.over(role) as _),
            delete: inner.delete.map(|role| self.over(role) as _),
            files: inner.files.map(|role| self.over(role) as _),
            undo: inner.undo.map(|role| self.over(role) as _),
            native: None,
            execute: None,
        }
    }

    fn over<R: ?Sized>(&self, role: Arc<R>) -> Arc<Over<R>> {
        Arc::new(Over { role, line: self.clone() })
    }
}

#[derive(Debug, Clone)]
struct Wire {
    inner: SharedHttpClient,
    line: Line,
}

impl HttpClient for Wire {
    fn http_connector(&self, settings: &HttpConnectorSettings, parts: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Hop { line: self.line.clone(), inner })
    }
}

#[derive(Debug)]
struct Hop {
    line: Line,
    inner: SharedHttpConnector,
}

impl HttpConnector for Hop {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let (line, inner) = (self.line.clone(), self.inner.clone());
        HttpConnectorFuture::new(async move { line.call(operation, inner.call(request)).await })
    }
}

/// A role over the line.
struct Over<R: ?Sized> {
    role: Arc<R>,
    line: Line,
}

#[async_trait]
impl Listable for Over<dyn Listable> {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        self.line.call("list".into(), self.role.list(page)).await
    }

    async fn disk(&self) -> Result<Option<Disk>, BackendError> {
        self.line.call("disk".into(), self.role.disk()).await
    }
}

#[async_trait]
impl Inspectable for Over<dyn Inspectable> {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.line.call("inspect".into(), self.role.inspect(id)).await
    }
}

#[async_trait]
impl Probed for Over<dyn Probed> {
    async fn probe(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Probe>, BackendError> {
        self.line.call("probe".into(), self.role.probe(target, bounds)).await
    }
}

#[async_trait]
impl Suspendable for Over<dyn Suspendable> {
    fn survives(&self) -> Survives {
        self.role.survives()
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        self.line.call("suspend".into(), self.role.suspend(target, bounds)).await
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        self.line.call("resume".into(), self.role.resume(target, bounds)).await
    }
}

#[async_trait]
impl Archivable for Over<dyn Archivable> {
    fn archive_survives(&self) -> Survives {
        self.role.archive_survives()
    }

    async fn archive(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        self.line.call("archive".into(), self.role.archive(target, bounds)).await
    }
}

#[async_trait]
impl Deletable for Over<dyn Deletable> {
    fn saves_first(&self) -> bool {
        self.role.saves_first()
    }

    async fn delete(
        &self,
        target: &Target,
        save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        self.line.call("delete".into(), self.role.delete(target, save, bounds)).await
    }
}

#[async_trait]
impl FileReclaimable for Over<dyn FileReclaimable> {
    async fn shed(&self, target: &Target, tier: Tier, bounds: Bounds) -> Result<Outcome<Shed>, BackendError> {
        self.line.call("shed".into(), self.role.shed(target, tier, bounds)).await
    }
}

#[async_trait]
impl Recoverable for Over<dyn Recoverable> {
    async fn trashed(&self) -> Result<Vec<Trashed>, BackendError> {
        self.line.call("trashed".into(), self.role.trashed()).await
    }

    async fn undo(&self, entry: &str) -> Result<Outcome<Trashed>, BackendError> {
        self.line.call("undo".into(), self.role.undo(entry)).await
    }

    async fn empty(&self, entry: &str) -> Result<Outcome, BackendError> {
        self.line.call("empty".into(), self.role.empty(entry)).await
    }

    async fn forget_saves(&self, before: Time) -> Result<Vec<Arc<str>>, BackendError> {
        self.line.call("forget saves".into(), self.role.forget_saves(before)).await
    }
}
