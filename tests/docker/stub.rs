//! A Docker engine that behaves, on a socket of its own, and that a test can make misbehave.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
};
use backend_docker::{Docker, Options, connect};
use futures::stream;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixListener;

/// Inspect bodies by id.
pub(crate) type Containers = BTreeMap<String, Value>;

/// What a test's hook answers instead of the engine.
pub(crate) enum Answer {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A status and any body.
    Text(u16, &'static str),
    /// The head of an answer, and then the connection ends.
    BreaksOff,
    /// A status, and then bytes for ever.
    Endless(u16),
    /// Nothing, ever.
    Never,
}

/// Called before the engine answers a call; `None`: it answers as usual.
type Hook = Box<dyn FnMut(&mut Containers) -> Option<Answer> + Send>;

/// The engine.
pub(crate) struct Engine {
    folder: TempDir,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    containers: Mutex<Containers>,
    calls: Mutex<Vec<String>>,
    hooks: Mutex<Vec<(&'static str, Hook)>>,
}

/// The id of the `n`th container.
pub(crate) fn id(n: usize) -> String {
    format!("{n:064x}")
}

/// A sandbox of OpenHands in `status`, started at ten and finished at eleven.
pub(crate) fn sandbox(status: &str) -> Value {
    json!({
        "Name": "/oh-agent-server-1",
        "Created": "2026-11-30T09:00:00Z",
        "State": {"Status": status, "StartedAt": "2026-11-30T10:00:00Z", "FinishedAt": "2026-11-30T11:00:00Z"},
        "HostConfig": {"AutoRemove": false, "RestartPolicy": {"Name": "no"}, "NetworkMode": "none"},
        "Config": {
            "Image": "agent:1",
            "Labels": {"sandbox_spec_id": "agent:1"},
            "Env": ["PATH=/bin", "OH_SESSION_API_KEYS_0=hush-hush"],
        },
        "Mounts": [],
        "ExecIDs": null,
        "SizeRw": 0,
        "SizeRootFs": 1_984_132,
    })
}

impl Engine {
    /// An engine with these containers, numbered from 1.
    pub(crate) fn with(containers: impl IntoIterator<Item = Value>) -> Self {
        let folder = tempfile::Builder::new().prefix("stub").tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let inner = Arc::new(Inner::default());
        for (n, mut container) in containers.into_iter().enumerate() {
            container["Id"] = id(n + 1).into();
            inner.containers.lock().unwrap().insert(id(n + 1), container);
        }
        let router = Router::new().fallback(answer).with_state(inner.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { folder, inner }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Lets `hook` have the first word on each call whose method and path, without the version, end like `call`.
    pub(crate) fn on(&self, call: &'static str, hook: impl FnMut(&mut Containers) -> Option<Answer> + Send + 'static) {
        self.inner.hooks.lock().unwrap().push((call, Box::new(hook)));
    }

    /// The status of the `n`th container; `None`: it is no more.
    pub(crate) fn status(&self, n: usize) -> Option<String> {
        let containers = self.inner.containers.lock().unwrap();
        containers.get(&id(n)).map(|container| container["State"]["Status"].as_str().unwrap().to_owned())
    }

    /// The calls so far that changed something.
    pub(crate) fn changes(&self) -> Vec<String> {
        let calls = self.inner.calls.lock().unwrap();
        calls.iter().filter(|call| !call.starts_with("GET ")).cloned().collect()
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.inner.calls.lock().unwrap().clone()
    }

    /// The backend for this engine.
    pub(crate) async fn docker(&self, options: Options) -> Docker {
        let host = format!("unix://{}", self.socket().display());
        connect(Options { host: Some(host), ..options }).await.unwrap()
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response<Body> {
    let call = format!("{} {}", request.method(), request.uri());
    inner.calls.lock().unwrap().push(call.clone());
    let path = request.uri().path();
    let method = request.method().as_str();
    let hooked = {
        let mut containers = inner.containers.lock().unwrap();
        let mut hooks = inner.hooks.lock().unwrap();
        let mut mine = hooks
            .iter_mut()
            .filter(|(on, _)| on.split_once(' ').is_some_and(|(verb, end)| verb == method && path.ends_with(end)));
        mine.find_map(|(_, hook)| hook(&mut containers))
    };
    let answer = hooked.unwrap_or_else(|| usual(&mut inner.containers.lock().unwrap(), method, path));
    match answer {
        Answer::Json(status, body) => response(status, body.to_string()),
        Answer::Text(status, body) => response(status, body.to_owned()),
        Answer::BreaksOff => {
            let parts = [Ok("[{\"Id\": "), Err(std::io::Error::other("broken off"))];
            Response::new(Body::from_stream(stream::iter(parts)))
        }
        Answer::Endless(status) => {
            let more = stream::repeat_with(|| Ok::<_, std::io::Error>([b' '; 16 << 10].to_vec()));
            let mut response = Response::new(Body::from_stream(more));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response
        }
        Answer::Never => std::future::pending().await,
    }
}

fn response(status: u16, body: String) -> Response<Body> {
    let body = if status == 204 || status == 304 { Body::empty() } else { Body::from(body) };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// What Docker 20.10 answers.
fn usual(containers: &mut Containers, method: &str, path: &str) -> Answer {
    let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty() && !word.starts_with("v1.")).collect();
    match (method, words.as_slice()) {
        ("GET", ["version"]) => Answer::Json(200, json!({"ApiVersion": "1.41", "MinAPIVersion": "1.12"})),
        ("GET", ["containers", "json"]) => Answer::Json(200, containers.values().map(summary).collect()),
        ("GET", ["volumes", name]) => Answer::Json(404, json!({"message": format!("get {name}: no such volume")})),
        (_, ["containers", id, verb @ ..]) => {
            let Some(container) = containers.get_mut(*id) else {
                return Answer::Json(404, json!({"message": format!("No such container: {id}")}));
            };
            let status = container["State"]["Status"].as_str().unwrap().to_owned();
            let changed = match (method, verb, status.as_str()) {
                ("GET", ["json"], _) => return Answer::Json(200, container.clone()),
                ("POST", ["stop"], "running" | "paused") => "exited",
                ("POST", ["start"], "exited" | "created") => {
                    container["State"]["StartedAt"] = "2026-11-30T11:30:00Z".into();
                    "running"
                }
                ("POST", ["unpause"], "paused") => "running",
                ("POST", ["update"], _) => return Answer::Json(200, json!({"Warnings": null})),
                ("DELETE", [], "running" | "paused") => {
                    return Answer::Json(409, json!({"message": "You cannot remove a running container"}));
                }
                ("DELETE", [], _) => {
                    containers.remove(*id);
                    return Answer::Text(204, "");
                }
                _ => return Answer::Text(304, ""),
            };
            container["State"]["Status"] = changed.into();
            Answer::Text(204, "")
        }
        _ => Answer::Json(404, json!({"message": "page not found"})),
    }
}

fn summary(container: &Value) -> Value {
    json!({
        "Id": container["Id"],
        "Names": [container["Name"]],
        "Image": container["Config"]["Image"],
        "Labels": container["Config"]["Labels"],
        "State": container["State"]["Status"],
        "Created": 1_796_000_000,
    })
}
