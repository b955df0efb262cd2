//! The router: which workspace, who asks, with what.

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse as _, Response},
};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use sidecar::protocol::{Code, Refusal};
use subtle::ConstantTimeEq as _;
use tokens::{Keys, Purpose, Token};
use workspace::{blobs::Blobs, commit::Commit, key::Name};

use crate::answer::{Answer, refused};

/// The largest body, in bytes.
pub const MAX_BODY_BYTES: usize = 256 << 10;

/// What a sandbox's token is.
pub const TOKEN: Purpose = Purpose { prefix: "fw1.", domain: "furlough workspace token 1" };

/// Where sidecars find this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(pub String);

/// Everything that answering needs.
pub struct App {
    /// The records.
    pub commit: Arc<dyn Commit>,
    /// The store.
    pub blobs: Arc<dyn Blobs>,
    /// What tokens are signed with; what secret keys are kept with is derived from them.
    pub keys: Keys,
    /// The SHA-256 of each host's token.
    pub hosts: Vec<[u8; 32]>,
    /// Where sidecars ask.
    pub origin: Origin,
    /// How long a lease is given for.
    pub lease: Duration,
    /// How long a sidecar is waited for: less than the HTTP API waits.
    pub patience: Duration,
    /// The way to sidecars. It follows no redirect.
    pub client: reqwest::Client,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App(…)")
    }
}

/// The routes, as one service.
pub fn router(app: Arc<App>) -> Router {
    Router::new().fallback(serve).with_state(app)
}

async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let Some((name, what)) = path.strip_prefix("/workspaces/").and_then(|rest| rest.split_once('/')) else {
        return refused(Code::Missing, "there is nothing here");
    };
    let Ok(name) = Name::new(name) else { return refused(Code::Missing, "that is no workspace's name") };
    if !matches!(what, "lease" | "parts" | "commit" | "init" | "deinit") {
        return refused(Code::Missing, "there is nothing here");
    }
    if request.method() != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    app.asked(&name, what, request).await.unwrap_or_else(Answer::answer)
}

impl App {
    async fn asked(&self, name: &Name, what: &str, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        let by_host = matches!(what, "init" | "deinit");
        let fence = if by_host { self.host(&parts.headers).map(|()| 0) } else { self.sandbox(name, &parts.headers) };
        let fence = fence.ok_or_else(|| Refusal {
            code: Code::Unauthorized,
            detail: "send `Authorization: Bearer TOKEN` with the token of the delivery, or a host's".to_owned(),
        })?;
        let read = axum::body::to_bytes(body, MAX_BODY_BYTES).await;
        let body = read.map_err(|_| Refusal {
            code: Code::Limit,
            detail: format!("the body has more than {MAX_BODY_BYTES} bytes, or broke off"),
        })?;
        Ok(match what {
            "lease" => self.renew(name, fence, read_as(&body)?).await,
            "parts" => self.parts(name, fence, read_as(&body)?).await,
            "commit" => self.settle(name, fence, read_as(&body)?).await,
            "init" => self.init(name, read_as(&body)?).await,
            _ => self.deinit(name, read_as(&body)?).await,
        })
    }

    /// The fence of the lease that a sandbox's token is bound to, if it is of this workspace.
    fn sandbox(&self, name: &Name, headers: &HeaderMap) -> Option<u64> {
        let token = Token::read(TOKEN, bearer(headers)?).ok()?;
        self.keys.proves(TOKEN, &token, name.as_str()).then_some(token.number)
    }

    /// Whether a host asks. Looks through all of them, whichever it is.
    fn host(&self, headers: &HeaderMap) -> Option<()> {
        let digest: [u8; 32] = Sha256::digest(bearer(headers)?.as_bytes()).into();
        let known = self.hosts.iter().fold(false, |known, host| known | bool::from(host.ct_eq(&digest)));
        known.then_some(())
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// serde's own words can quote a value.
fn read_as<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal {
        code: Code::Malformed,
        detail: format!("the body is not what this path takes: line {}, column {}", error.line(), error.column()),
    })
}
