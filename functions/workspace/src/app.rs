//! The router: which workspace, who asks, with what.

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header::AUTHORIZATION},
    response::Response,
    routing::any,
};
use lifecycle::Time;
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use settings::{Kept, Reading};
use sidecar::protocol::{Code, Refusal};
use telemetry::metrics::{Meter, Metric, Urgency};
use tokens::{Purpose, Token};
use workspace::{blobs::Blobs, commit::Commit, key::Name};

use crate::{
    answer::{Answer, only_post, refused},
    keys::Keys,
};

/// The largest body, in bytes.
pub const MAX_BODY_BYTES: usize = 256 << 10;

/// A credential that proves nothing may be under a key that is newer than ours: that is looked for this often.
const NEW_KEYS: Duration = Duration::from_secs(10);

/// How long a connection to a sidecar may take.
const CONNECT: Duration = Duration::from_secs(5);

/// What a sandbox's token is.
pub const TOKEN: Purpose = Purpose { prefix: "fw1.", domain: "furlough workspace token 1" };

/// Where sidecars find this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(pub String);

/// The principal that the gateway has authenticated by IAM, in a request's extensions: a host, for the paths that its
/// policy allows. Only whoever runs the router can put it there: no header does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iam(pub String);

/// Everything that answering needs.
pub struct App {
    /// The records.
    pub commit: Arc<dyn Commit>,
    /// The store.
    pub blobs: Arc<dyn Blobs>,
    /// Who may ask, and what tokens are signed with.
    pub keys: Kept<Keys>,
    /// The time.
    pub clock: Arc<dyn Fn() -> Time + Send + Sync>,
    /// What is counted.
    pub meter: Meter,
    /// Where sidecars ask.
    pub origin: Origin,
    /// How long a lease is given for.
    pub lease: Duration,
    /// How long a sidecar is waited for: less than the HTTP API waits.
    pub patience: Duration,
    /// The way to sidecars ([`client`]).
    pub client: reqwest::Client,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App(…)")
    }
}

/// The way to sidecars. It follows no redirect: a sandbox could send a key elsewhere.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder().redirect(Policy::none()).connect_timeout(CONNECT).build()
}

/// The routes, as one service.
pub fn router(app: Arc<App>) -> Router {
    Router::new().fallback(serve).with_state(app)
}

/// The same, beside others.
pub fn routes(app: Arc<App>) -> Router {
    Router::new().route("/workspaces/{*asked}", any(serve)).with_state(app)
}

async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = match Route::of(request.uri().path()) {
        Err(why) => refused(Code::Missing, why),
        Ok(_) if request.method() != Method::POST => only_post(),
        Ok(route) => app.asked(&route, request).await.unwrap_or_else(Answer::answer),
    };
    app.count(answer.status());
    answer
}

/// What is asked of which workspace.
struct Route {
    name: Name,
    what: What,
}

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// To hold a lease for longer.
    Lease,
    /// To have requests signed, and uploads begun and ended.
    Parts,
    /// To make a generation the head, or to give the lease back.
    Commit,
    /// To bring it to a sandbox.
    Init,
    /// To take it away.
    Deinit,
}

/// Each, by the end of its path.
pub const ASKED: [(&str, What); 5] = [
    ("lease", What::Lease),
    ("parts", What::Parts),
    ("commit", What::Commit),
    ("init", What::Init),
    ("deinit", What::Deinit),
];

impl Route {
    fn of(path: &str) -> Result<Self, &'static str> {
        let nothing = "there is nothing here";
        let (name, what) = path.strip_prefix("/workspaces/").and_then(|rest| rest.split_once('/')).ok_or(nothing)?;
        let what = ASKED.iter().find(|(path, _)| *path == what).ok_or(nothing)?.1;
        Ok(Self { name: Name::new(name).map_err(|_| "that is no workspace's name")?, what })
    }
}

impl App {
    async fn asked(&self, Route { name, what }: &Route, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        let (iam, bearer) = (parts.extensions.get::<Iam>().is_some(), bearer(&parts.headers));
        let by_host = matches!(what, What::Init | What::Deinit);
        let (keys, fence) = self
            .proved(
                |keys| {
                    if by_host { (iam || keys.host(bearer?)).then_some(0) } else { sandbox(keys, name, bearer?) }
                },
            )
            .await?;
        let read = axum::body::to_bytes(body, MAX_BODY_BYTES).await;
        let body = read.map_err(|_| Refusal {
            code: Code::Limit,
            detail: format!("the body has more than {MAX_BODY_BYTES} bytes, or broke off"),
        })?;
        Ok(match what {
            What::Lease => self.renew(name, fence, read_as(&body)?).await,
            What::Parts => self.parts(name, fence, read_as(&body)?).await,
            What::Commit => self.settle(name, fence, read_as(&body)?).await,
            What::Init => self.init(name, &keys.signing, read_as(&body)?).await,
            What::Deinit => self.deinit(name, read_as(&body)?).await,
        })
    }

    /// What the request proves by the keys that we have, or by newer ones.
    async fn proved<T>(&self, prove: impl Fn(&Keys) -> Option<T>) -> Result<(Arc<Keys>, T), Refusal> {
        for age in [None, Some(NEW_KEYS)] {
            let keys = self.keys(age).await?;
            if let Some(proved) = prove(&keys) {
                return Ok((keys, proved));
            }
        }
        let detail = "send `Authorization: Bearer TOKEN` with the token of the delivery, or a host's".to_owned();
        Err(Refusal { code: Code::Unauthorized, detail })
    }

    async fn keys(&self, age: Option<Duration>) -> Result<Arc<Keys>, Refusal> {
        let now = (self.clock)();
        let reading = match age {
            Some(age) => self.keys.within(age, now).await,
            None => self.keys.get(now).await,
        };
        match reading {
            Ok(Reading { value, fault: None }) => Ok(value),
            Ok(Reading { value, fault: Some(fault) }) => {
                tracing::error!(%fault, "the keys can't be used as they are now; the last good ones stay");
                self.meter.count(Metric::ConfigFault, Urgency::Later, now.millis());
                Ok(value)
            }
            Err(error) => {
                tracing::error!(%error, "the keys can't be read, and there are none from before");
                self.meter.count(Metric::ConfigFault, Urgency::Now, now.millis());
                Err(Refusal { code: Code::Busy, detail: "the service is not ready; ask again".to_owned() })
            }
        }
    }

    /// What a sandbox did not take is not our side's fault.
    fn count(&self, status: StatusCode) {
        let (metric, urgency) = match status.as_u16() {
            200..400 => (Metric::WorkspaceRequests, Urgency::Later),
            400..500 | 502 => (Metric::WorkspaceRefused, Urgency::Later),
            _ => (Metric::WorkspaceFailed, Urgency::Now),
        };
        self.meter.count(metric, urgency, (self.clock)().millis());
    }
}

/// The fence of the lease that a sandbox's token is bound to, if it is of this workspace.
fn sandbox(keys: &Keys, name: &Name, bearer: &str) -> Option<u64> {
    let token = Token::read(TOKEN, bearer).ok()?;
    keys.signing.proves(TOKEN, &token, name.as_str()).then_some(token.number)
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
