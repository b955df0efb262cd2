//! The heartbeat routes on a store in memory, with a clock of their own.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use heartbeat::{App, Iam, Terms, keys};
use ledger::Options;
use lifecycle::{BackendName, Record};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use settings::{Kept, Origin, OriginError, Text};
use telemetry::metrics::Meter;
use tokio::net::TcpListener;

use crate::ledger::fixture::{World, at, world_with};

pub(crate) const KEY: &str = "a key of the runtimes that is long enough";
pub(crate) const NEWER: &str = "a newer key of the runtimes, long enough";
pub(crate) const HOST: &str = "the token of a host of every backend";
pub(crate) const BOUND: &str = "the token of a host of another backend";
pub(crate) const COALESCE: u64 = 30;

/// A document of keys that a test can change.
pub(crate) struct Document(Mutex<String>);

#[async_trait]
impl Origin for Document {
    async fn read(&self, _known: Option<&str>) -> Result<Option<Text>, OriginError> {
        Ok(Some(Text { text: self.0.lock().unwrap().clone(), version: None }))
    }
}

pub(crate) struct Served {
    pub(crate) world: World,
    url: String,
    now: Arc<AtomicI64>,
    document: Arc<Document>,
    client: Client,
}

/// An answer: its status, its seconds of Retry-After, the method of Allow, and its body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u64>,
    pub(crate) allow: Option<String>,
    pub(crate) body: Value,
}

impl Told {
    /// The status and the word for programs.
    pub(crate) fn code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or("none"))
    }

    pub(crate) fn token(&self) -> String {
        self.body["token"].as_str().expect("a token").to_owned()
    }
}

/// Whose gateway is before the routes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gateway {
    None,
    Iam,
}

pub(crate) async fn served() -> Served {
    served_behind(Gateway::None).await
}

pub(crate) async fn served_behind(gateway: Gateway) -> Served {
    let world = world_with(Options { coalesce: Duration::from_secs(COALESCE), ..Options::default() }).await;
    let now = Arc::new(AtomicI64::new(at(0).millis()));
    let document = Arc::new(Document(Mutex::new(document(&[KEY]))));
    let terms = Terms {
        coalesce: Duration::from_secs(COALESCE),
        skew: Duration::from_secs(10),
        backends: [BackendName::new("box").unwrap()].into(),
    };
    let clock = Arc::clone(&now);
    let app = App::new(
        world.ledger.clone(),
        Kept::new(Arc::clone(&document) as _, Duration::from_mins(1), keys::Keys::read),
        Kept::fixed(terms),
        Arc::new(move || lifecycle::Time::from_millis(clock.load(Ordering::Relaxed))),
        Meter::new(|_| {}),
    );
    let routes = heartbeat::router(Arc::new(app));
    let principal = axum::Extension(Iam("arn:aws:iam::123456789012:role/host".to_owned()));
    let routes = if gateway == Gateway::Iam { routes.layer(principal) } else { routes };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    let client = Client::builder().no_proxy().build().unwrap();
    world.wire.calls();
    Served { world, url, now, document, client }
}

fn document(runtime_keys: &[&str]) -> String {
    let host = |name: &str, token: &str, backends: &str| json!({ "name": name, "token_sha256": keys::digest(token), "backends": [backends] });
    let hosts = [host("all", HOST, "*"), host("bound", BOUND, "other")];
    json!({ "runtime_keys": runtime_keys, "hosts": hosts }).to_string()
}

impl Served {
    /// Seconds after the scenario's beginning.
    pub(crate) fn now(&self, seconds: i64) {
        self.now.store(at(seconds).millis(), Ordering::Relaxed);
    }

    pub(crate) fn rotate(&self, runtime_keys: &[&str]) {
        *self.document.0.lock().unwrap() = document(runtime_keys);
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, token: Option<&str>, body: Vec<u8>) -> Told {
        let mut request = self.client.request(method, format!("{}{path}", self.url)).body(body);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let retry_after = header("retry-after").map(|seconds| seconds.parse().unwrap());
        let (status, allow) = (response.status().as_u16(), header("allow"));
        Told { status, retry_after, allow, body: response.json().await.unwrap() }
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &Value) -> Told {
        self.ask(Method::POST, path, Some(token), body.to_string().into_bytes()).await
    }

    pub(crate) async fn beat(&self, name: &str, token: &str) -> Told {
        self.post(&format!("/runtimes/box/{name}/heartbeat"), token, &json!({})).await
    }

    /// Registers, and returns the runtime's token.
    pub(crate) async fn register(&self, name: &str) -> String {
        let told = self.ask(Method::PUT, &format!("/runtimes/box/{name}"), Some(HOST), Vec::new()).await;
        assert_eq!(told.code(), (200, "registered"), "{told:?}");
        told.token()
    }

    pub(crate) async fn record(&self, name: &str) -> Record {
        self.world.record(name).await
    }
}
