//! A host over a store in a folder, and sandboxes that have only its address.

use std::{
    collections::HashSet,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::{extract::Request, middleware::Next};
use bytes::Bytes;
use clap::Parser as _;
use reqwest::StatusCode;
use serde_json::{Value, json};
use settings::Kept;
use sidecar::{InitKey, Options, Sidecar, host::HttpHosts};
use telemetry::metrics::Meter;
use tempfile::TempDir;
use tokens::{Key, Keys};
use workspace::{
    blobs::{Signed, StoreError, Tag, Wire, directory::Directory},
    commit::{Commit as _, Lease, directory::DirectoryCommit},
    key::Name,
    time::Clock,
};
use workspace_function::{App, Origin, TOKEN, router};

use super::agent;

pub(super) const HOST: &str = "the token of a host";
pub(super) const INIT_KEY: &str = "a bootstrap key of some length";
pub(super) const SESSION_KEY: &str = "a session key";
const TTL: Duration = Duration::from_mins(1);
const LOOKS: u32 = 4_800;

fn clock() -> Clock {
    Clock::new(|| settings::system::now().millis())
}

pub(super) fn keys(text: &str) -> Keys {
    Keys { newest: Key::new(&format!("{text} key that is long enough, surely")).unwrap(), previous: None }
}

fn document() -> workspace_function::keys::Keys {
    let digest = |token: &str| tokens::document::Digest::of(token).to_string();
    let host = |token: &str| json!({ "name": "a host", "token_sha256": digest(token) });
    let key = "a key that is long enough, surely";
    let text = json!({ "workspace_keys": key, "hosts": [host("another host"), host(HOST)] }).to_string();
    workspace_function::keys::Keys::read(&text).unwrap()
}

pub(super) struct Host {
    pub(super) base: String,
    pub(super) client: reqwest::Client,
    pub(super) commit: Arc<DirectoryCommit>,
    pub(super) blobs: Directory,
    asked: Arc<AtomicUsize>,
    folder: TempDir,
}

impl Host {
    pub(super) async fn new() -> Self {
        Self::patient(Duration::from_secs(25)).await
    }

    pub(super) async fn patient(patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Directory::new(folder.path().join("blobs"), [7; 32], 1, TTL, clock());
        let commit = Arc::new(DirectoryCommit::new(folder.path().join("records"), clock(), Duration::from_secs(1)));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let app = App {
            commit: commit.clone(),
            blobs: Arc::new(blobs.clone()),
            keys: Kept::fixed(document()),
            clock: Arc::new(settings::system::now),
            meter: Meter::new(|_| {}),
            origin: Origin(base.clone()),
            lease: TTL,
            patience,
            client: client.clone(),
        };
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let counted = axum::middleware::from_fn(move |request: Request, next: Next| {
            if request.uri().path().ends_with("/parts") {
                count.fetch_add(1, Ordering::SeqCst);
            }
            next.run(request)
        });
        let routes = router(Arc::new(app)).layer(counted);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { base, client, commit, blobs, asked, folder }
    }

    pub(super) async fn post(&self, path: &str, token: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.client.post(format!("{}/workspaces/{path}", self.base)).bearer_auth(token).json(body);
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    /// Brings workspace `w` to a sandbox.
    pub(super) async fn init(&self, sandbox: &Sandbox) -> (StatusCode, Value) {
        self.post("w/init", HOST, &sandbox.asked()).await
    }

    pub(super) async fn deinit(&self, sandbox: &Sandbox) -> (StatusCode, Value) {
        self.post("w/deinit", HOST, &json!({ "sidecar": sandbox.base, "init_key": INIT_KEY })).await
    }

    pub(super) async fn lease(&self) -> Option<Lease> {
        self.commit.lease(&Name::new("w").unwrap()).await.unwrap()
    }

    pub(super) async fn generation(&self) -> u64 {
        self.commit.head(&Name::new("w").unwrap()).await.unwrap().map_or(0, |head| head.generation)
    }

    /// How often sandboxes asked for something to be signed or settled in the store, since the last time.
    pub(super) fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    /// The token of a sandbox.
    pub(super) fn token(name: &str, fence: u64) -> String {
        keys("a").sign(TOKEN, name, fence).reveal(TOKEN)
    }

    /// Everything that the store and the records have, as bytes.
    pub(super) fn kept(&self) -> Vec<u8> {
        let (mut bytes, mut folders) = (Vec::new(), vec![self.folder.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.metadata().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    bytes.extend(std::fs::read(entry.path()).unwrap());
                }
            }
        }
        bytes
    }
}

/// A sandbox, whose sidecar is told where the host is by what it delivers.
pub(super) struct Sandbox {
    pub(super) base: String,
    pub(super) owner: String,
    pub(super) root: PathBuf,
    pub(super) client: reqwest::Client,
    _scratch: TempDir,
}

impl Sandbox {
    pub(super) async fn new(host: &Host, root: &Path) -> Self {
        let flags = ["--guarded-path", "/told", "--"].map(str::to_owned);
        Self::with(host, root, flags.into_iter().chain(agent::command())).await
    }

    /// Of a sidecar with these flags.
    pub(super) async fn with(host: &Host, root: &Path, flags: impl Iterator<Item = String>) -> Self {
        Self::over(Arc::new(host.blobs.clone()), host, root, flags).await
    }

    /// One for which every signed read has ended when it is first sent.
    pub(super) async fn late(host: &Host, root: &Path) -> Self {
        let flags = ["--guarded-path", "/told", "--"].map(str::to_owned);
        let wire = Arc::new(Late { inner: host.blobs.clone(), seen: Mutex::default() });
        Self::over(wire, host, root, flags.into_iter().chain(agent::command())).await
    }

    async fn over(wire: Arc<dyn Wire>, host: &Host, root: &Path, flags: impl Iterator<Item = String>) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let options = Options::try_parse_from(std::iter::once("sidecar".to_owned()).chain(flags)).unwrap();
        let below = vec![root.parent().unwrap().to_owned()];
        let options = Options { scratch: scratch.path().to_owned(), below, ..options };
        let hosts = HttpHosts::new(wire, clock()).unwrap();
        let (router, _) = Sidecar::start(&options, InitKey::new(INIT_KEY).unwrap(), Arc::new(hosts), None);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let owner = scratch.path().file_name().unwrap().to_str().unwrap().to_owned();
        let sandbox = Self { base, owner, root: root.to_owned(), client: host.client.clone(), _scratch: scratch };
        sandbox.until_state("dormant").await;
        sandbox
    }

    /// How a host asks for it.
    pub(super) fn asked(&self) -> Value {
        json!({
            "sidecar": self.base, "init_key": INIT_KEY, "owner": self.owner,
            "roots": { "project": self.root }, "agent": { "session_api_keys": [SESSION_KEY] },
        })
    }

    pub(super) async fn state(&self) -> String {
        let state: Value = self.client.get(format!("{}/init", self.base)).send().await.unwrap().json().await.unwrap();
        state["state"].as_str().unwrap().to_owned()
    }

    /// A real child process works in real time: what is waited for is looked at again, up to a limit.
    pub(super) async fn until_state(&self, state: &str) {
        for _ in 0..LOOKS {
            if self.state().await == state {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not {state} within {} s", LOOKS / 20);
    }

    /// What the agent server was told.
    pub(super) async fn told(&self) -> Value {
        let request = self.client.get(format!("{}/told", self.base)).header("X-Session-API-Key", SESSION_KEY);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// A file of the workspace, by whoever works in it.
    pub(super) async fn write(&self, name: &str, text: &str) {
        let url = format!("{}/file{}", self.base, self.root.join(name).display());
        let request = self.client.put(url).header("X-Session-API-Key", SESSION_KEY).body(text.to_owned());
        assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
    }
}

/// A wire that comes too late with the first read of every object.
struct Late {
    inner: Directory,
    seen: Mutex<HashSet<String>>,
}

impl Late {
    fn check(&self, signed: &Signed) -> Result<(), StoreError> {
        let is_first = self.seen.lock().unwrap().insert(signed.key.clone());
        if is_first { Err(StoreError::Expired(signed.key.clone())) } else { Ok(()) }
    }
}

#[async_trait]
impl Wire for Late {
    async fn put(&self, signed: &Signed, bytes: Bytes) -> Result<Tag, StoreError> {
        self.inner.put(signed, bytes).await
    }

    async fn get(&self, signed: &Signed, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        self.check(signed)?;
        self.inner.get(signed, range).await
    }

    async fn get_all(&self, signed: &Signed, limit: u64) -> Result<Vec<u8>, StoreError> {
        self.check(signed)?;
        Wire::get_all(&self.inner, signed, limit).await
    }
}

/// Where a workspace is, in every sandbox.
pub(super) fn root() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("workspace/project");
    (folder, root)
}
