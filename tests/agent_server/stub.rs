//! A server on a free port of this machine that gives the answers that it was told to.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
};
use backend::openhands::{AgentServer, SessionKey};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

/// One answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    answers: bool,
}

impl Answer {
    pub(super) fn json(body: &Value) -> Self {
        Self::status(200, body)
    }

    pub(super) fn status(status: u16, body: &Value) -> Self {
        Self::text(status, &body.to_string())
    }

    pub(super) fn text(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: body.to_owned(), answers: true }
    }

    /// The request is read, and no answer comes.
    pub(super) fn never() -> Self {
        Self { answers: false, ..Self::text(200, "") }
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn status_code(&self) -> u16 {
        self.status
    }

    fn response(self) -> Response<Body> {
        let builder = Response::builder().status(StatusCode::from_u16(self.status).unwrap());
        let builder = self.headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, value));
        builder.body(Body::from(self.body)).unwrap()
    }
}

#[derive(Debug, Default)]
struct Told {
    key: String,
    answers: BTreeMap<String, Answer>,
    requests: Vec<String>,
}

/// The server. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Stub {
    base: String,
    told: Arc<Mutex<Told>>,
    serving: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Stub {
    /// One that wants this key below `/api`, but not for `/api/init`.
    pub(super) async fn start(key: &str) -> Self {
        let told = Arc::new(Mutex::new(Told { key: key.to_owned(), ..Told::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(told.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, told, serving }
    }

    pub(super) fn base(&self) -> String {
        self.base.clone()
    }

    pub(super) fn server(&self, key: Option<&str>) -> AgentServer {
        AgentServer::new(&self.base, key.map(SessionKey::new)).unwrap()
    }

    pub(super) fn set(&self, path: &str, answer: Answer) {
        self.told.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// The page of this `page_id`.
    pub(super) fn set_page(&self, path: &str, page_id: &str, answer: Answer) {
        self.set(&format!("{path}?page_id={page_id}"), answer);
    }

    /// What a command has written.
    pub(super) fn set_output(&self, command: &str, answer: Answer) {
        self.set(&format!("/api/bash/bash_events/search?command_id__eq={command}"), answer);
    }

    /// Every request so far, oldest first: method, path and query.
    pub(super) fn requests(&self) -> Vec<String> {
        self.told.lock().unwrap().requests.clone()
    }

    /// Stops listening.
    pub(super) async fn stop(mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }
}

/// What tells an answer from another of the same path.
fn variant(query: &str) -> Option<&str> {
    query.split('&').find(|pair| pair.starts_with("page_id=") || pair.starts_with("command_id__eq="))
}

async fn answer(State(told): State<Arc<Mutex<Told>>>, request: Request) -> Response<Body> {
    let (uri, path) = (request.uri(), request.uri().path());
    let answer = {
        let mut told = told.lock().unwrap();
        told.requests.push(format!("{} {uri}", request.method()));
        let open = !path.starts_with("/api/") || path == "/api/init";
        let key = request.headers().get("x-session-api-key").map(|key| key.as_bytes().to_owned());
        if !open && key.as_deref() != Some(told.key.as_bytes()) {
            Some(Answer::text(401, r#"{"detail":"Unauthorized"}"#))
        } else {
            let named = uri.query().and_then(variant).map(|variant| format!("{path}?{variant}"));
            told.answers.get(&named.unwrap_or_else(|| path.to_owned())).cloned()
        }
    };
    match answer {
        Some(answer) if !answer.answers => std::future::pending().await,
        Some(answer) => answer.response(),
        None => Answer::text(404, r#"{"detail":"Not Found"}"#).response(),
    }
}
