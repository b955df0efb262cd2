//! A sidecar, its sandbox, and a host's store.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use clap::Parser as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sidecar::{
    Delivery, InitKey, Options, Sidecar,
    activity::beat::Answered,
    delivery::Activity,
    keeper::Failed,
    sandbox::{Hosts, Save},
};
use tempfile::TempDir;
use workspace::{
    Store,
    blobs::{Signed, StoreError, Tag, Wire, directory::Directory},
    commit::{Acquired, Commit, Lease, directory::DirectoryCommit},
    key::Name,
    time::Clock,
};

use super::agent;

pub(super) const KEY: &str = "a bootstrap key of some length";
const TTL: Duration = Duration::from_mins(1);
/// What is waited for is there within this, or never.
const LOOKS: u32 = 600;

/// The host's side: a store and its records, and a wire that can be cut.
pub(super) struct Host {
    pub(super) commit: Arc<DirectoryCommit>,
    pub(super) cut: AtomicBool,
    /// Heartbeats: under which token, and for how long there will be work.
    beats: Mutex<Vec<(String, Option<Duration>)>>,
    /// What was told to be kept.
    pub(super) saves: Mutex<Vec<Save>>,
    /// What each is answered with.
    pub(super) answer: Mutex<Answered>,
    blobs: Directory,
    _folder: TempDir,
}

impl Host {
    pub(super) fn new() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::new(|| settings::system::now().millis());
        let blobs = Directory::new(folder.path().join("blobs"), [7; 32], 1, TTL, clock.clone());
        let commit = DirectoryCommit::new(folder.path().join("records"), clock, Duration::from_secs(1));
        let (beats, saves, answer) =
            (Mutex::default(), Mutex::default(), Mutex::new(Answered::Taken { wait: Duration::ZERO }));
        Arc::new(Self {
            commit: Arc::new(commit),
            cut: AtomicBool::new(false),
            beats,
            saves,
            answer,
            blobs,
            _folder: folder,
        })
    }

    /// The heartbeats since the last time.
    pub(super) fn beats(&self) -> Vec<(String, Option<Duration>)> {
        std::mem::take(&mut self.beats.lock().unwrap())
    }

    pub(super) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }

    /// What a host would deliver to this sandbox.
    pub(super) async fn delivery(&self, name: &str, sandbox: &Lab) -> Value {
        let name = Name::new(name).unwrap();
        let granted = self.commit.acquire(&name, &sandbox.owner, TTL).await.unwrap();
        let Acquired::Granted { lease, head } = granted else { panic!("{granted:?}") };
        let Lease { token, .. } = lease;
        json!({
            "workspace": { "name": name, "roots": { "project": sandbox.root() } },
            "token": format!("token {token} of {name}"), "host": "http://host.example", "lease": lease, "head": head,
            "agent": { "session_api_keys": [session_key(name.as_str())], "secret_key": format!("secret of {name}") },
        })
    }

    pub(super) async fn generation(&self, name: &str) -> u64 {
        self.commit.head(&Name::new(name).unwrap()).await.unwrap().map_or(0, |head| head.generation)
    }
}

pub(super) fn session_key(name: &str) -> String {
    format!("session key of {name}")
}

struct Wired(Arc<Host>);

#[async_trait]
impl Hosts for Wired {
    fn open(&self, _: &Delivery) -> Result<(Store, Arc<dyn Commit>), Failed> {
        let clock = Clock::new(|| settings::system::now().millis());
        let wire = Arc::new(Self(self.0.clone()));
        Ok((Store { signer: Arc::new(self.0.blobs.clone()), wire, clock }, self.0.commit.clone()))
    }

    async fn beat(&self, activity: &Activity, busy_for: Option<Duration>) -> Answered {
        self.0.beats.lock().unwrap().push((activity.token.reveal().to_owned(), busy_for));
        *self.0.answer.lock().unwrap()
    }

    async fn saved(&self, _: &Activity, save: &Save) -> Result<(), Failed> {
        self.0.saves.lock().unwrap().push(save.clone());
        Ok(())
    }
}

impl Wired {
    fn check(&self, signed: &Signed) -> Result<(), StoreError> {
        let refused = || StoreError::Refused { key: signed.key.clone(), why: "the wire is cut".to_owned() };
        if self.0.cut.load(Ordering::SeqCst) { Err(refused()) } else { Ok(()) }
    }
}

#[async_trait]
impl Wire for Wired {
    async fn put(&self, signed: &Signed, bytes: Bytes) -> Result<Tag, StoreError> {
        self.check(signed)?;
        self.0.blobs.put(signed, bytes).await
    }

    async fn get(&self, signed: &Signed, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        self.check(signed)?;
        self.0.blobs.get(signed, range).await
    }

    async fn get_all(&self, signed: &Signed, limit: u64) -> Result<Vec<u8>, StoreError> {
        self.check(signed)?;
        Wire::get_all(&self.0.blobs, signed, limit).await
    }
}

/// A sandbox with a sidecar in it.
pub(super) struct Lab {
    pub(super) owner: String,
    pub(super) base: String,
    pub(super) client: reqwest::Client,
    pub(super) sidecar: Sidecar,
    folder: TempDir,
    root: PathBuf,
}

impl Lab {
    /// At rest, with its root in a folder of its own.
    pub(super) async fn new(host: &Arc<Host>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace/project");
        Self::start(host, folder, root, Duration::from_hours(1)).await
    }

    /// With its root where another one has it: as in another sandbox, where paths are the same.
    pub(super) async fn like(other: &Self, host: &Arc<Host>) -> Self {
        Self::start(host, tempfile::tempdir().unwrap(), other.root.clone(), Duration::from_hours(1)).await
    }

    pub(super) async fn pushing_every(host: &Arc<Host>, push_every: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace/project");
        Self::start(host, folder, root, push_every).await
    }

    /// One that looks for work often, and pushes soon after it.
    pub(super) async fn watching(host: &Arc<Host>, save_after: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace/project");
        let often = |options| Options { save_after, look_every: Duration::from_millis(20), ..options };
        Self::start_with(host, folder, root, often).await
    }

    async fn start(host: &Arc<Host>, folder: TempDir, root: PathBuf, push_every: Duration) -> Self {
        Self::start_with(host, folder, root, |options| Options { push_every, ..options }).await
    }

    async fn start_with(
        host: &Arc<Host>,
        folder: TempDir,
        root: PathBuf,
        change: impl FnOnce(Options) -> Options,
    ) -> Self {
        let below = root.parent().unwrap().to_owned();
        let flags = ["sidecar", "--guarded-path", "/told", "--"].map(str::to_owned);
        let options = Options::try_parse_from(flags.into_iter().chain(agent::command())).unwrap();
        let options = Options { scratch: folder.path().to_owned(), below: vec![below], ..change(options) };
        let key = InitKey::new(KEY).unwrap();
        let (router, sidecar) = Sidecar::start(&options, key, Arc::new(Wired(host.clone())), None);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let owner = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let lab = Self { owner, base, client, sidecar, folder, root };
        lab.until_state("dormant").await;
        lab
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The sidecar's own folder.
    pub(super) fn scratch(&self) -> &Path {
        self.folder.path()
    }

    pub(super) async fn until_state(&self, state: &str) {
        until(state, async || self.state().await["state"] == state).await;
    }

    pub(super) async fn state(&self) -> Value {
        self.client.get(format!("{}/init", self.base)).send().await.unwrap().json().await.unwrap()
    }

    pub(super) async fn post(&self, path: &str, key: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.client.post(format!("{}{path}", self.base)).header("X-Init-API-Key", key);
        let answer = request.json(body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    pub(super) async fn init(&self, delivery: &Value) -> (StatusCode, Value) {
        self.post("/init", KEY, delivery).await
    }

    pub(super) async fn deinit(&self) -> (StatusCode, Value) {
        self.post("/deinit", KEY, &json!({})).await
    }

    /// As the user of `name`, through the sidecar.
    pub(super) async fn ask(&self, name: &str, method: Method, path: &str, body: &str) -> (StatusCode, String) {
        let request = self.client.request(method, format!("{}{path}", self.base));
        let request = request.header("X-Session-API-Key", session_key(name)).body(body.to_owned());
        let answer = request.send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    pub(super) async fn get(&self, name: &str, path: &str) -> (StatusCode, String) {
        self.ask(name, Method::GET, path, "").await
    }

    pub(super) async fn variables(&self, name: &str) -> BTreeMap<String, String> {
        serde_json::from_str(&self.get(name, "/variables").await.1).unwrap()
    }

    pub(super) async fn write(&self, name: &str, path: &Path, text: &str) {
        let written = self.ask(name, Method::PUT, &format!("/file{}", path.display()), text).await;
        assert_eq!(written, (StatusCode::OK, String::new()));
    }

    /// The files of the workspace, as they are on the disk.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
                if entry.metadata().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    let path = entry.path().strip_prefix(&self.root).unwrap().to_str().unwrap().to_owned();
                    files.insert(path, fs::read_to_string(entry.path()).unwrap());
                }
            }
        }
        files
    }
}

/// A real child process works in real time: what is waited for is looked at again, up to a limit.
pub(super) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..LOOKS {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within {} s: {what}", LOOKS / 20);
}

pub(super) fn ready() -> (StatusCode, Value) {
    (StatusCode::OK, json!({ "state": "ready", "error": null }))
}

pub(super) fn refused(status: StatusCode, detail: &str) -> (StatusCode, Value) {
    (status, json!({ "detail": detail }))
}
