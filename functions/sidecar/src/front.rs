//! What a sandbox answers: its own few requests, and the agent server's when there is one that serves.
//!
//! | request | answer |
//! |---|---|
//! | `GET /init` | 200 `{"state", "error", "heartbeats"?}`: starting, dormant, initializing, ready, deinitializing, held, soiled; superseded or gone |
//! | `POST /init` with `X-Init-API-Key` | 200 when done, also again by the same; 400 somebody's already; 401; 413; 422; 500 with why; 503 soon |
//! | `POST /deinit` `{"workspace"?, "discard"?}` with the key | 200 when dormant again; 401; 409 another workspace; 422; 500 with why |
//! | `/health`, `/alive`, `/ready`, `/server_info` | also while dormant |
//! | all else | the agent server's answer, or 503 with Retry-After |
//!
//! `/api/init` and `/api/deinit` are the same as `/init` and `/deinit`.
//!
//! **Invariants.** Who has no key changes nothing; keys are compared in constant time. While nobody's, and while
//! somebody comes or goes, nothing but the above is answered.

use std::{path::PathBuf, sync::Arc};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq as _;
use workspace::key::Name;

use crate::{
    activity::Signs,
    delivery::{Delivery, MAX_BODY_BYTES},
    keeper::{Keeper, Reply},
    machine::How,
    pool::Pool,
    proxy::Proxy,
    sandbox::Sandbox,
};

/// The header that the bootstrap key comes in.
pub const INIT_KEY: &str = "X-Init-API-Key";

/// The shortest bootstrap key, in bytes.
pub const MIN_KEY_BYTES: usize = 16;

/// The bootstrap key: who has it may bring and take workspaces. It can't be printed.
#[derive(Clone)]
pub struct InitKey(String);

impl InitKey {
    /// From its text, unless it is blank or shorter than [`MIN_KEY_BYTES`].
    pub fn new(text: &str) -> Option<Self> {
        (text.len() >= MIN_KEY_BYTES && !text.trim().is_empty()).then(|| Self(text.to_owned()))
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        headers.get(INIT_KEY).is_some_and(|given| given.as_bytes().ct_eq(self.0.as_bytes()).into())
    }
}

impl std::fmt::Debug for InitKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InitKey(…)")
    }
}

/// What requests are answered with.
pub struct Front {
    /// Knows where the sidecar is.
    pub keeper: Keeper,
    /// Has the dormant server.
    pub pool: Pool,
    /// Has the server that serves.
    pub sandbox: Arc<Sandbox>,
    /// What `/init` and `/deinit` need.
    pub key: InitKey,
    /// The folders that are given to workspaces.
    pub below: Vec<PathBuf>,
    /// The way to the servers.
    pub proxy: Proxy,
    /// What is noticed on the way.
    pub signs: Signs,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deinit {
    /// Whose it has to be.
    #[serde(default)]
    workspace: Option<Name>,
    #[serde(default)]
    discard: bool,
}

/// The router.
pub fn router(front: Arc<Front>) -> Router {
    Router::new().fallback(answer).with_state(front)
}

async fn answer(State(front): State<Arc<Front>>, request: Request) -> Response {
    let path = request.uri().path();
    match (path.strip_prefix("/api").unwrap_or(path), request.method()) {
        ("/init", &Method::GET) => front.status(),
        ("/init", &Method::POST) => front.init(request).await,
        ("/deinit", &Method::POST) => front.deinit(request).await,
        ("/init" | "/deinit", _) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => front.other(request).await,
    }
}

impl Front {
    /// The state's word; a dormant sidecar whose server is not up yet is starting.
    fn state(&self) -> &'static str {
        match self.keeper.status().state {
            "dormant" if self.pool.spare().is_none() => "starting",
            state => state,
        }
    }

    fn status(&self) -> Response {
        let error = self.keeper.status().error.map(|error| error.to_string());
        let mut told = json!({ "state": self.state(), "error": error });
        if let Some(end) = self.signs.ended() {
            told["heartbeats"] = json!(end.word());
        }
        Json(told).into_response()
    }

    async fn init(&self, request: Request) -> Response {
        let body = match self.body(request).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        match Delivery::read(&body, &self.below) {
            Ok(delivery) => self.reply(self.keeper.init(delivery).await),
            Err(error) => refused(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
        }
    }

    async fn deinit(&self, request: Request) -> Response {
        let body = match self.body(request).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let asked = if body.is_empty() { Ok(Deinit::default()) } else { serde_json::from_slice(&body) };
        let Ok(Deinit { workspace, discard }) = asked else {
            let form = "the body is empty, or has `workspace` and `discard`, and nothing else";
            return refused(StatusCode::UNPROCESSABLE_ENTITY, form);
        };
        let how = if discard { How::Discard } else { How::Save };
        self.reply(self.keeper.deinit(workspace, how).await)
    }

    /// The body of whoever has the key.
    async fn body(&self, request: Request) -> Result<Bytes, Response> {
        if !self.key.is_in(request.headers()) {
            return Err(refused(StatusCode::UNAUTHORIZED, "send the bootstrap key in `X-Init-API-Key`"));
        }
        axum::body::to_bytes(request.into_body(), MAX_BODY_BYTES).await.map_err(|_| {
            let limit = format!("the body has more than {MAX_BODY_BYTES} bytes, or broke off");
            refused(StatusCode::PAYLOAD_TOO_LARGE, &limit)
        })
    }

    fn reply(&self, reply: Reply) -> Response {
        match reply {
            Reply::Done => self.status(),
            Reply::Already(word) => refused(StatusCode::BAD_REQUEST, &format!("server already in state: {word}")),
            Reply::Another => refused(StatusCode::CONFLICT, "the sandbox has another workspace"),
            Reply::Busy(word) => soon(&format!("server in state: {word}")),
            Reply::Failed(why) => refused(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
        }
    }

    async fn other(&self, request: Request) -> Response {
        let state = self.state();
        let serving = self.sandbox.serving().filter(|_| state == "ready");
        let server = match (serving, request.uri().path()) {
            (Some(server), _) => server,
            (None, "/health" | "/alive") => return Json(json!({ "status": "ok" })).into_response(),
            (None, "/ready") if state == "dormant" => return Json(json!({ "status": "ready" })).into_response(),
            (None, "/server_info") if state == "dormant" => match self.pool.spare() {
                Some(spare) => spare,
                None => return soon("server in state: starting"),
            },
            _ => return soon(&format!("server in state: {state}")),
        };
        let signs = (state == "ready").then_some(&self.signs);
        let answer = self.proxy.forward(server.agent.port, request, signs).await;
        answer.unwrap_or_else(|error| refused(StatusCode::BAD_GATEWAY, &error.to_string()))
    }
}

fn refused(status: StatusCode, detail: &str) -> Response {
    (status, Json(json!({ "detail": detail }))).into_response()
}

fn soon(detail: &str) -> Response {
    let mut response: Response<Body> = refused(StatusCode::SERVICE_UNAVAILABLE, detail);
    response.headers_mut().insert(RETRY_AFTER, axum::http::HeaderValue::from_static("1"));
    response
}
