//! A small agent server: dormant until its init, guarded by a key after it. It is this test binary, started anew.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode, header::UPGRADE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How the sidecar starts it.
pub(super) fn command() -> Vec<String> {
    let this = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let here = module_path!().split_once("::").unwrap().1;
    let test = format!("{here}::the_agent_server_when_it_is_started_as_one");
    [&*this, &test, "--exact", "--nocapture"].map(str::to_owned).to_vec()
}

#[expect(clippy::disallowed_methods, reason = "a server is told its port and its key by the environment")]
fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::test]
async fn the_agent_server_when_it_is_started_as_one() {
    let (Some("1"), Some(port)) = (told("OH_DEFERRED_INIT").as_deref(), told("PORT")) else { return };
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    axum::serve(listener, router()).await.unwrap();
}

#[derive(Default)]
struct Agent {
    told: Mutex<Option<Map<String, Value>>>,
    /// When its one conversation, which always says that it runs, has moved.
    moved: AtomicUsize,
    commands: Mutex<Vec<Value>>,
}

type Shared = State<Arc<Agent>>;

impl Agent {
    fn told(&self) -> Option<Map<String, Value>> {
        self.told.lock().unwrap().clone()
    }

    fn lets_in(&self, headers: &HeaderMap) -> bool {
        let Some(told) = self.told() else { return false };
        let given = headers.get("X-Session-API-Key").and_then(|key| key.to_str().ok());
        told.contains_key("open")
            || told["session_api_keys"].as_array().unwrap().iter().any(|key| key.as_str() == given)
    }
}

fn router() -> Router {
    let guarded = Router::new()
        .route("/api/conversations/count", get(async || "0"))
        .route("/api/conversations/search", get(conversations))
        .route("/api/bash/bash_events/search", get(commands).put(noted))
        .route("/wait/{*path}", post(wait))
        .route(
            "/move",
            post(async |State(agent): Shared| {
                agent.moved.fetch_add(1, Ordering::SeqCst);
            }),
        )
        .route("/api/conversations/c0/interrupt", post(async || fs::write("interrupted", "yes").unwrap()))
        .route("/told", get(async |State(agent): Shared| Json(agent.told())))
        .route("/variables", get(variables))
        .route("/file/{*path}", get(read).put(write))
        .route("/daemon", post(daemon))
        .route("/die", post(die))
        .route("/echo", post(async |body: Body| body))
        .route("/events", get(events))
        .route("/socket", get(socket));
    let agent = Arc::new(Agent::default());
    let guard = axum::middleware::from_fn_with_state(agent.clone(), guard);
    guarded
        .layer(guard)
        .route("/api/init", get(state).post(init))
        .route("/server_info", get(async || Json(json!({ "uptime": 1 }))))
        .with_state(agent)
}

#[expect(clippy::disallowed_methods, reason = "what a user's code finds in its environment")]
async fn variables() -> Json<BTreeMap<String, String>> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    Json(std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect())
}

async fn conversations(State(agent): Shared) -> Json<Value> {
    let moved = agent.moved.load(Ordering::SeqCst).to_string();
    Json(json!({ "items": [{ "id": "c0", "updated_at": moved }] }))
}

async fn commands(State(agent): Shared) -> Json<Value> {
    Json(json!({ "items": agent.commands.lock().unwrap().iter().rev().collect::<Vec<_>>() }))
}

async fn noted(State(agent): Shared, Json(event): Json<Value>) {
    agent.commands.lock().unwrap().push(event);
}

async fn guard(State(agent): Shared, request: Request, next: axum::middleware::Next) -> Response {
    if agent.lets_in(request.headers()) { next.run(request).await } else { StatusCode::UNAUTHORIZED.into_response() }
}

async fn state(State(agent): Shared) -> Json<Value> {
    let state = if agent.told().is_some() { "ready" } else { "dormant" };
    Json(json!({ "state": state, "error": null }))
}

async fn init(State(agent): Shared, headers: HeaderMap, Json(told): Json<Map<String, Value>>) -> Response {
    let key = super::agent::told("OH_SECRET_KEY").unwrap();
    if headers.get("X-Init-API-Key").is_none_or(|given| given.as_bytes() != key.as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if told.contains_key("bogus") {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    }
    *agent.told.lock().unwrap() = Some(told);
    state(State(agent)).await.into_response()
}

async fn read(Path(path): Path<String>) -> Response {
    fs::read(format!("/{path}")).map_or_else(|_| StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response)
}

async fn write(Path(path): Path<String>, body: Bytes) -> StatusCode {
    let path = format!("/{path}");
    fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
    fs::write(path, body).unwrap();
    StatusCode::OK
}

async fn die() -> StatusCode {
    std::process::exit(1)
}

/// Answers when there is such a file.
async fn wait(Path(path): Path<String>) {
    while !std::path::Path::new(&format!("/{path}")).exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A process below it, which ends only when it is killed; its number.
async fn daemon() -> String {
    let child = tokio::process::Command::new("sleep").arg("600").spawn().unwrap();
    child.id().unwrap().to_string()
}

/// Three events. Each but the first waits until the file of its number is there.
async fn events(headers: HeaderMap) -> Body {
    let folder = headers["x-folder"].to_str().unwrap().to_owned();
    let events = futures_of(0, move |number| {
        let folder = folder.clone();
        async move {
            while number > 0 && !std::path::Path::new(&format!("{folder}/{number}")).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            (number < 3).then(|| Bytes::from(format!("data: {number}\n\n")))
        }
    });
    Body::new(http_body_util::StreamBody::new(events))
}

/// A stream of frames, from what makes each.
fn futures_of<F: Future<Output = Option<Bytes>> + Send + 'static>(
    first: u32,
    make: impl Fn(u32) -> F + Send + 'static,
) -> impl futures::Stream<Item = Result<hyper::body::Frame<Bytes>, Infallible>> + Send {
    futures::stream::unfold((first, make), |(number, make)| async move {
        let bytes = make(number).await?;
        Some((Ok(hyper::body::Frame::data(bytes)), (number + 1, make)))
    })
}

/// Says everything twice.
async fn socket(mut request: Request) -> Response {
    let protocol = request.headers()[UPGRADE].clone();
    let upgrading = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut io = TokioIo::new(upgrading.await.unwrap());
        let mut bytes = [0; 64];
        while let Ok(read @ 1..) = io.read(&mut bytes).await {
            for _ in 0..2 {
                io.write_all(&bytes[..read]).await.unwrap();
            }
        }
    });
    (StatusCode::SWITCHING_PROTOCOLS, [(UPGRADE, protocol)]).into_response()
}
