//! Providers that behave, on loopback, by a clock of the test's, and that a test can make misbehave.
//!
//! ```text
//! our client, or the provider's own SDK ──► Server (hooks, calls, Date) ──► a Provider: state, time, error bodies
//! ```
//!
//! What each does is from its provider's own source, specification or documents; what of it the official SDK was
//! seen to need is held by `.ci/sdk.py`, which drives the same simulators.

pub(crate) mod cloudflare;
pub(crate) mod daytona;
pub(crate) mod e2b;
pub(crate) mod modal;
pub(crate) mod openhands;

use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Response},
};
use futures::stream;
use lifecycle::Time;
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot};

/// A provider, without its network.
pub(crate) trait Provider: Send + 'static {
    /// What it answers to a request at `now`, after all that it does by itself until then.
    fn answer(&mut self, request: &Asked, now: Time) -> Reply;
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// The parts of the path, decoded.
    pub(crate) path: Vec<String>,
    /// The whole path as it came.
    pub(crate) uri: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    /// The body where it is JSON, else null.
    pub(crate) body: Value,
}

impl Asked {
    /// The last of this name in the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All of this name in the query.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Sent,
}

/// What an answer sends.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    Json(Value),
    Text(&'static str),
    Nothing,
    /// The head of an answer, and then the connection ends.
    BreaksOff,
    /// Bytes for ever.
    Endless,
}

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Sent::Json(body) }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Sent::Nothing }
    }

    pub(crate) fn sending(status: u16, body: Sent) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

/// Called before the provider answers; `None`: it answers as usual.
type Hook<P> = Box<dyn FnMut(&Asked, &mut P) -> Option<Reply> + Send>;

/// A request that waits for the test: whoever sent it may go away meanwhile, and then it does nothing.
struct Gate {
    call: &'static str,
    arrived: oneshot::Sender<()>,
    open: oneshot::Receiver<()>,
}

struct Inner<P> {
    provider: Mutex<P>,
    gate: Mutex<Option<Gate>>,
    hooks: Mutex<Vec<Hook<P>>>,
    calls: Mutex<Vec<String>>,
    now: Box<dyn Fn() -> Time + Send + Sync>,
    /// How far the provider's clock is ahead, in milliseconds.
    ahead: AtomicI64,
}

/// A provider that listens.
pub(crate) struct Server<P> {
    inner: Arc<Inner<P>>,
    address: String,
}

impl<P> Clone for Server<P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), address: self.address.clone() }
    }
}

/// A clock that a test moves.
#[derive(Debug, Clone)]
pub(crate) struct Hands(Arc<AtomicI64>);

impl Hands {
    pub(crate) fn at(text: &str) -> Self {
        Self(Arc::new(AtomicI64::new(text.parse::<Time>().unwrap().millis())))
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl<P: Provider> Server<P> {
    /// Listens at a free port of this machine.
    pub(crate) async fn start(provider: P, now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner {
            provider: Mutex::new(provider),
            gate: Mutex::default(),
            hooks: Mutex::default(),
            calls: Mutex::default(),
            now: Box::new(now),
            ahead: AtomicI64::new(0),
        });
        let router = Router::new().fallback(answer::<P>).with_state(inner.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { inner, address }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The provider's state, to look at or to change behind everybody's back.
    pub(crate) fn state(&self) -> MutexGuard<'_, P> {
        self.inner.provider.lock().unwrap()
    }

    /// Lets `hook` have the first word on each request.
    pub(crate) fn on(&self, hook: impl FnMut(&Asked, &mut P) -> Option<Reply> + Send + 'static) {
        self.inner.hooks.lock().unwrap().push(Box::new(hook));
    }

    /// Answers so to every request whose method and path begin like `call`.
    pub(crate) fn always(&self, call: &'static str, reply: Reply) {
        self.on(move |asked, _| is(asked, call).then(|| reply.clone()));
    }

    /// Answers so to the next such request alone.
    pub(crate) fn once(&self, call: &'static str, reply: Reply) {
        let mut left = Some(reply);
        self.on(move |asked, _| if is(asked, call) { left.take() } else { None });
    }

    /// Keeps the next such request waiting. The first tells that it is there, the second lets it go on.
    pub(crate) fn hold(&self, call: &'static str) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let ((arrived, there), (opened, open)) = (oneshot::channel(), oneshot::channel());
        *self.inner.gate.lock().unwrap() = Some(Gate { call, arrived, open });
        (there, opened)
    }

    /// The provider behaves again.
    pub(crate) fn behave(&self) {
        self.inner.hooks.lock().unwrap().clear();
    }

    /// The provider's clock is so far ahead of the test's; negative: behind.
    pub(crate) fn clock_ahead(&self, seconds: i64) {
        self.inner.ahead.store(seconds * 1_000, Ordering::SeqCst);
    }

    /// Every request since the last time that this was asked, as `GET /path?query`.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.calls.lock().unwrap())
    }
}

fn is(asked: &Asked, call: &str) -> bool {
    format!("{} {}", asked.method, asked.uri).starts_with(call)
}

async fn answer<P: Provider>(State(inner): State<Arc<Inner<P>>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let uri = parts.uri.path().to_owned();
    let call = format!("{} {}", parts.method, parts.uri);
    let asked = Asked {
        method: parts.method.to_string(),
        path: uri.split('/').filter(|part| !part.is_empty()).map(decoded).collect(),
        uri,
        query: pairs(parts.uri.query().unwrap_or_default()),
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    };
    inner.calls.lock().unwrap().push(call);
    let gate = inner.gate.lock().unwrap().take_if(|gate| is(&asked, gate.call));
    if let Some(gate) = gate {
        gate.arrived.send(()).unwrap();
        gate.open.await.unwrap();
    }
    let now = Time::from_millis((inner.now)().millis() + inner.ahead.load(Ordering::SeqCst));
    let reply = {
        let mut provider = inner.provider.lock().unwrap();
        let mut hooks = inner.hooks.lock().unwrap();
        let hooked = hooks.iter_mut().find_map(|hook| hook(&asked, &mut provider));
        hooked.unwrap_or_else(|| provider.answer(&asked, now))
    };
    sent(reply, now)
}

fn sent(reply: Reply, now: Time) -> Response<Body> {
    let mut response = Response::builder().status(reply.status).header("date", http_date(now));
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let broken = || stream::iter([Ok("{"), Err(std::io::Error::other("the connection ends"))]);
    let body = match reply.body {
        Sent::Json(value) => {
            response = response.header("content-type", "application/json; charset=utf-8");
            Body::from(value.to_string())
        }
        Sent::Text(text) => Body::from(text),
        Sent::Nothing => Body::empty(),
        Sent::BreaksOff => Body::from_stream(broken()),
        Sent::Endless => Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(" ".repeat(1 << 16)))),
    };
    response.body(body).unwrap()
}

/// As HTTP writes a time.
fn http_date(time: Time) -> String {
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = time.to_string();
    let part = |from: usize, to: usize| text[from..to].parse::<usize>().unwrap();
    // 1970-01-01 was a Thursday.
    let day = usize::try_from(time.millis().div_euclid(86_400_000) + 4).unwrap() % 7;
    format!("{}, {} {} {} {} GMT", days[day], &text[8..10], months[part(5, 7) - 1], &text[..4], &text[11..19])
}

/// A part of a URL, decoded; `+` is a blank in a query alone.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A cursor that says nothing.
fn opaque(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// What such a cursor was made of.
fn seen_through(cursor: &str) -> Option<String> {
    let byte = |at: usize| u8::from_str_radix(cursor.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..cursor.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

/// A query's pairs, in their order.
pub(crate) fn pairs(query: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(&key.replace('+', " ")), decoded(&value.replace('+', " ")))
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect()
}

/// Texts by name.
pub(crate) fn labels(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
