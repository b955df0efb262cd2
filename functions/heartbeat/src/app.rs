//! The router: what is asked, by whom, with what; and what comes of it.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, stream};
use ledger::{Arming, Heartbeat, Ledger, Registered, Save};
use lifecycle::{BackendName, RuntimeId, Time};
use serde_json::json;
use settings::{Kept, KeptError, Settings};
use telemetry::metrics::{Meter, Metric, Urgency};

use crate::{
    access::{self, Credential, Iam, Speaker},
    answer::Answer,
    body::{self, Batch, Beat, Item, Malformed, Register, Saved},
    hook::{self, Delivery},
    keys::Keys,
    recent::{Recent, Sign},
    route::{self, Misrouted, Route},
};

/// The largest body, in bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// A delivery of the agent server can be larger (5 MiB, by its own limit): so much is let in and not looked at.
const MAX_DELIVERY_BYTES: usize = 8 * 1024 * 1024;

/// Of what is too large so much is read before it is refused.
const MAX_DRAINED_BYTES: usize = 16 * 1024 * 1024;

/// A credential that proves nothing may be under a key that is newer than ours: that is looked for this often.
const NEW_KEYS: Duration = Duration::from_secs(10);

/// Heartbeats of one request that are under way at once.
const CONCURRENCY: usize = 16;

/// The time.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// What of a configuration concerns heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// A heartbeat may be this late.
    pub coalesce: Duration,
    /// The most that any two clocks differ.
    pub skew: Duration,
    /// Of whose backends runtimes are registered.
    pub backends: BTreeSet<BackendName>,
}

impl From<&Settings> for Terms {
    fn from(settings: &Settings) -> Self {
        let backends = settings.backends.iter().map(|backend| backend.name.clone()).collect();
        Self { coalesce: settings.policy.coalesce, skew: settings.policy.skew, backends }
    }
}

/// Everything that answering needs.
pub struct App {
    /// Where records are.
    pub ledger: Ledger,
    /// Who may ask.
    pub keys: Kept<Keys>,
    /// On what terms.
    pub terms: Kept<Terms>,
    /// The time.
    pub clock: Clock,
    /// What is counted.
    pub meter: Meter,
    /// What was recorded a moment ago.
    recent: Recent,
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
    match app.asked(request).await {
        Answered::One(answer) => {
            app.count(&answer);
            answer.into_response()
        }
        Answered::Each(answers) => {
            let answers: Vec<_> = answers
                .into_iter()
                .map(|(id, answer)| {
                    app.count(&answer);
                    let mut told = serde_json::to_value(answer).unwrap_or_default();
                    told["runtime"] = id.to_string().into();
                    told
                })
                .collect();
            Json(json!({ "answers": answers })).into_response()
        }
    }
}

/// What becomes of a request.
enum Answered {
    One(Answer),
    /// In the order of the request.
    Each(Vec<(RuntimeId, Answer)>),
}

impl From<Answer> for Answered {
    fn from(answer: Answer) -> Self {
        Self::One(answer)
    }
}

impl App {
    /// With nothing recorded yet.
    pub fn new(ledger: Ledger, keys: Kept<Keys>, terms: Kept<Terms>, clock: Clock, meter: Meter) -> Self {
        Self { ledger, keys, terms, clock, meter, recent: Recent::default() }
    }

    async fn asked(&self, request: Request) -> Answered {
        let (parts, body) = request.into_parts();
        let route = match route::read(parts.method.as_str(), parts.uri.path()) {
            Ok(Route::Health) => return Answer::new(StatusCode::OK, "alive").into(),
            Ok(route) => route,
            Err(misrouted) => return elsewhere(misrouted).into(),
        };
        let bytes = match read(body, &route).await {
            Ok(bytes) => bytes,
            Err(answer) => return answer.into(),
        };
        let credential = Credential::of(&parts.headers, parts.extensions.get::<Iam>());
        let terms = match self.terms().await {
            Ok(terms) => terms,
            Err(answer) => return answer.into(),
        };
        let asked = Asked { app: self, credential, terms, now: (self.clock)() };
        match route {
            Route::Register(id) => asked.register(&id, bytes.as_deref()).await.unwrap_or_else(|answer| answer).into(),
            Route::Heartbeat(id) => asked.heartbeat(&id, bytes.as_deref()).await.unwrap_or_else(|answer| answer).into(),
            Route::Saved(id) => asked.saved(&id, bytes.as_deref()).await.unwrap_or_else(|answer| answer).into(),
            Route::Events(id) => asked.delivery(&id, bytes.as_deref(), hook::events).await.into(),
            Route::Conversation(id) => asked.delivery(&id, bytes.as_deref(), hook::conversation).await.into(),
            Route::Batch => match asked.batch(bytes.as_deref()).await {
                Ok(answers) => Answered::Each(answers),
                Err(answer) => answer.into(),
            },
            Route::Health => Answer::new(StatusCode::OK, "alive").into(),
        }
    }

    /// The terms as they are now. Of a newer configuration that can't be used the log says why, and an alarm tells.
    async fn terms(&self) -> Result<Arc<Terms>, Answer> {
        let now = (self.clock)();
        let reading = self.terms.get(now).await.map_err(|error| self.unready("the configuration", &error))?;
        self.faulty("the configuration", reading.fault.as_deref(), now);
        Ok(reading.value)
    }

    async fn keys(&self, age: Option<Duration>) -> Result<Arc<Keys>, Answer> {
        let now = (self.clock)();
        let reading = match age {
            Some(age) => self.keys.within(age, now).await,
            None => self.keys.get(now).await,
        };
        let reading = reading.map_err(|error| self.unready("the keys", &error))?;
        self.faulty("the keys", reading.fault.as_deref(), now);
        Ok(reading.value)
    }

    fn faulty(&self, what: &str, fault: Option<&str>, now: Time) {
        if let Some(fault) = fault {
            tracing::error!(fault, "{what} can't be used as they are now; the last good ones stay");
            self.meter.count(Metric::ConfigFault, Urgency::Later, now.millis());
        }
    }

    fn unready(&self, what: &str, error: &KeptError) -> Answer {
        tracing::error!(%error, "{what} can't be read, and there are none from before");
        self.meter.count(Metric::ConfigFault, Urgency::Now, (self.clock)().millis());
        Answer::unavailable("the service is not ready; send it again")
    }

    fn count(&self, answer: &Answer) {
        let (metric, urgency) = match (answer.status.as_u16(), answer.code) {
            (_, "alive" | "saved") => return,
            (_, "registered") => (Metric::Registrations, Urgency::Later),
            (200, "coalesced") => (Metric::HeartbeatsCoalesced, Urgency::Later),
            (200, _) => (Metric::HeartbeatsRecorded, Urgency::Later),
            (401 | 403, _) => (Metric::HeartbeatsUnauthorized, Urgency::Later),
            (_, "unknown_runtime" | "gone" | "superseded" | "not_running" | "claimed" | "overtaken" | "not_there") => {
                (Metric::HeartbeatsRefused, Urgency::Later)
            }
            (400..500, _) => (Metric::HeartbeatsMalformed, Urgency::Later),
            _ => (Metric::HeartbeatsFailed, Urgency::Now),
        };
        self.meter.count(metric, urgency, (self.clock)().millis());
    }
}

fn elsewhere(misrouted: Misrouted) -> Answer {
    match misrouted {
        Misrouted::NotFound => Answer::refused(StatusCode::NOT_FOUND, "unknown_path", "there is nothing here"),
        Misrouted::Method(method) => Answer::only(method),
        Misrouted::Name(why) => Answer::refused(StatusCode::BAD_REQUEST, "malformed", why),
    }
}

/// Reads a body. `None`: a delivery that is too large to be looked at; that it came says enough.
///
/// What is too large is read to its end all the same, within bounds: who is answered while he sends may never read it.
async fn read(body: Body, route: &Route) -> Result<Option<Vec<u8>>, Answer> {
    let hook = matches!(route, Route::Events(_) | Route::Conversation(_));
    let most = if hook { MAX_DELIVERY_BYTES } else { MAX_BODY_BYTES };
    let (mut stream, mut bytes, mut seen) = (body.into_data_stream(), Vec::new(), 0);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| malformed(&Malformed("the body broke off".to_owned())))?;
        seen += chunk.len();
        if seen > MAX_DRAINED_BYTES {
            break;
        }
        if seen <= MAX_BODY_BYTES {
            bytes.extend_from_slice(&chunk);
        }
    }
    if seen > most {
        let message = format!("the body has more than {most} bytes");
        return Err(Answer::refused(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    Ok((seen <= MAX_BODY_BYTES).then_some(bytes))
}

fn malformed(malformed: &Malformed) -> Answer {
    Answer::refused(StatusCode::BAD_REQUEST, "malformed", malformed.to_string())
}

/// One request.
struct Asked<'a> {
    app: &'a App,
    credential: Credential,
    terms: Arc<Terms>,
    now: Time,
}

impl Asked<'_> {
    fn ledger(&self) -> Ledger {
        self.app.ledger.timed(self.terms.coalesce, self.terms.skew)
    }

    /// What the credential is good for, by the keys that we have, or by newer ones.
    async fn proved<T>(&self, prove: impl Fn(&Keys) -> Option<Result<T, Answer>>) -> Result<T, Answer> {
        if self.credential == Credential::None {
            return Err(access::unauthorized());
        }
        if let Some(proved) = prove(&*self.app.keys(None).await?) {
            return proved;
        }
        let newer = self.app.keys(Some(NEW_KEYS)).await?;
        prove(&newer).unwrap_or_else(|| Err(access::unauthorized()))
    }

    async fn register(&self, id: &RuntimeId, bytes: Option<&[u8]>) -> Result<Answer, Answer> {
        self.proved(|keys| self.credential.registers(keys, id)).await?;
        let asked: Register = body::read(bytes.unwrap_or_default()).map_err(|error| malformed(&error))?;
        asked.check().map_err(|error| malformed(&error))?;
        if !self.terms.backends.contains(id.backend()) {
            let message = format!("no backend is called `{}` in the configuration", id.backend());
            return Err(Answer::refused(StatusCode::NOT_FOUND, "unknown_backend", message));
        }
        self.app.recent.forget(id);
        // Due at once: the next tick has the policy, and arms it.
        let arming = Arming { due_at: Some(self.now), ..Arming::default() };
        let registered = self.ledger().register(id, &Arc::new(asked.labels), arming, self.now).await;
        let registered = registered.map_err(|error| failed(id, &error))?;
        let Registered::Done(record) = &registered else {
            let refused = Answer::not_registered(&registered, self.now);
            return Err(refused.unwrap_or_else(|| Answer::unavailable("send it again")));
        };
        let token = self.app.keys(None).await?.sign(id, record.epoch);
        tracing::info!(runtime = %id, epoch = record.epoch, "registered");
        Ok(Answer {
            epoch: Some(record.epoch),
            token: Some(token.reveal().into()),
            next: Some(self.now.plus(self.terms.coalesce)),
            ..Answer::new(StatusCode::OK, "registered")
        })
    }

    async fn heartbeat(&self, id: &RuntimeId, bytes: Option<&[u8]>) -> Result<Answer, Answer> {
        let speaker = self.proved(|keys| self.credential.speaks(keys, id)).await?;
        let Beat { busy_for } = body::read(bytes.unwrap_or_default()).map_err(|error| malformed(&error))?;
        Ok(self.sign(id, speaker, busy_for, None).await)
    }

    /// The runtime's work is kept. No sign of activity: saving is no work.
    async fn saved(&self, id: &RuntimeId, bytes: Option<&[u8]>) -> Result<Answer, Answer> {
        let speaker = self.proved(|keys| self.credential.speaks(keys, id)).await?;
        let Saved { workspace, generation, age } =
            body::read(bytes.unwrap_or_default()).map_err(|error| malformed(&error))?;
        let save = Save { workspace, generation, age };
        let saved = self.ledger().saved(id, speaker.epoch(), &save, self.now).await;
        Ok(Answer::saved(&saved.map_err(|error| failed(id, &error))?, self.terms.coalesce, self.now))
    }

    async fn batch(&self, bytes: Option<&[u8]>) -> Result<Vec<(RuntimeId, Answer)>, Answer> {
        let batch: Batch = body::read(bytes.unwrap_or_default()).map_err(|error| malformed(&error))?;
        batch.check().map_err(|error| malformed(&error))?;
        let answers = stream::iter(batch.heartbeats).map(|item| async move {
            let id = item.runtime.clone();
            let answer = self.item(item).await.unwrap_or_else(|answer| answer);
            (id, answer)
        });
        Ok(answers.buffered(CONCURRENCY).collect().await)
    }

    async fn item(&self, item: Item) -> Result<Answer, Answer> {
        let Item { runtime, token, busy_for } = item;
        let own = token.map(Credential::Runtime);
        let credential = own.as_ref().unwrap_or(&self.credential);
        let asked = Asked { credential: credential.clone(), terms: Arc::clone(&self.terms), ..*self };
        let speaker = asked.proved(|keys| asked.credential.speaks(keys, &runtime)).await?;
        Ok(self.sign(&runtime, speaker, busy_for, None).await)
    }

    /// A delivery of the agent server: that it came is a sign of activity, whatever is in it.
    async fn delivery(
        &self,
        id: &RuntimeId,
        bytes: Option<&[u8]>,
        read: fn(&[u8]) -> Result<Delivery, serde_json::Error>,
    ) -> Answer {
        let speaker = match self.proved(|keys| self.credential.speaks(keys, id)).await {
            Ok(speaker) => speaker,
            Err(answer) => return answer,
        };
        let delivery = match bytes.map(read) {
            None => Delivery::default(),
            Some(Ok(delivery)) => delivery,
            Some(Err(error)) => {
                let (line, column) = (error.line(), error.column());
                let message = format!("the body is no JSON of the agent server: line {line}, column {column}");
                return malformed(&Malformed(message));
            }
        };
        let busy_for = delivery.running.then_some(hook::RUNNING_FOR);
        self.sign(id, speaker, busy_for, delivery.newest.as_deref()).await
    }

    /// Records a sign of activity, unless a moment ago the same was recorded here.
    async fn sign(&self, id: &RuntimeId, speaker: Speaker, busy_for: Option<Duration>, newest: Option<&str>) -> Answer {
        let busy_until = busy_for.filter(|busy| !busy.is_zero()).map(|busy| self.now.plus(busy));
        let sign = Sign { epoch: speaker.epoch(), busy_until };
        let (recent, coalesce) = (&self.app.recent, self.terms.coalesce);
        if let Some(next) = recent.covers(id, &sign, coalesce, self.now) {
            return Answer::coalesced(next);
        }
        let ledger = self.ledger();
        let told = match newest {
            Some(mark) => ledger.heartbeat_once(id, speaker.epoch(), busy_for, mark, self.now).await,
            None => ledger.heartbeat(id, speaker.epoch(), busy_for, self.now).await,
        };
        let told = match told {
            Ok(told) => told,
            Err(error) => return failed(id, &error),
        };
        match told {
            Heartbeat::Recorded => recent.record(id, sign, coalesce, self.now),
            Heartbeat::Coalesced => {}
            _ => recent.forget(id),
        }
        Answer::heartbeat(&told, coalesce, self.now)
    }
}

fn failed(id: &RuntimeId, error: &ledger::LedgerError) -> Answer {
    tracing::error!(runtime = %id, %error, "a sign of activity could not be recorded");
    Answer::ledger(error)
}
