//! A ledger on a store in memory, with a wire between them that counts units and can break.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use aws_smithy_runtime_api::{
    client::{
        http::{
            HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
            SharedHttpConnector,
        },
        orchestrator::{HttpRequest, HttpResponse},
        runtime_components::RuntimeComponents,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use embedded::Embedded;
use ledger::{Arming, ClaimRequest, ClaimRule, Claimed, Ledger, Options, Registered, Workspaces};
use lifecycle::{
    Action, Activity, BackendName, Busy, FileSizes, Incarnation, Loss, Observation, Ownership, Record, RuntimeId,
    State, Time, Token,
};
use serde_json::Value;
use workspace::{
    commit::{Acquired, After, Commit as _, Committed, Head},
    key::{Key, Name, Sort},
    time::Clock,
};

pub(crate) type Item = HashMap<String, AttributeValue>;

/// Seconds after the scenario's beginning, 2026-11-30T12:00:00Z.
pub(crate) fn at(seconds: i64) -> Time {
    Time::from_millis(1_796_040_000_000 + seconds * 1_000)
}

pub(crate) fn backend() -> BackendName {
    BackendName::new("box").unwrap()
}

pub(crate) fn id(name: &str) -> RuntimeId {
    RuntimeId::new(&backend(), name.as_bytes()).unwrap()
}

/// Jitter off, so that a scenario can say when something comes due; skew 10 s.
pub(crate) fn options() -> Options {
    Options { coalesce: Duration::ZERO, ..Options::default() }
}

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) ledger: Ledger,
    pub(crate) wire: Wire,
}

pub(crate) async fn world() -> World {
    world_with(options()).await
}

pub(crate) async fn world_with(options: Options) -> World {
    let store = embedded::memory().unwrap();
    let wire = Wire::new(&store);
    let client = wire.client();
    let ledger = Ledger::new(client.clone(), options);
    ledger.create_tables().await.unwrap();
    World { client, ledger, wire }
}

impl World {
    /// A registered runtime, observed as run `run-1`, active at 0 s, due at 3,600 s.
    pub(crate) async fn runtime(&self, name: &str) -> Record {
        let labels = BTreeMap::from([("team".to_owned(), "blue".to_owned())]).into();
        let registered = self.ledger.register(&id(name), &labels, due(3_600), at(0)).await.unwrap();
        assert!(matches!(registered, Registered::Done(_)), "{registered:?}");
        self.ledger.observe(&seen(name), due(3_600), at(0)).await.unwrap()
    }

    pub(crate) async fn record(&self, name: &str) -> Record {
        self.ledger.get(&id(name)).await.unwrap().expect("a record")
    }

    /// Claims for a suspend what was quiet up to `cutoff` seconds.
    pub(crate) async fn suspend_claim(&self, name: &str, cutoff: i64, now: i64) -> Claimed {
        let record = self.record(name).await;
        self.ledger.claim(&idle_claim(name, &record, cutoff, now + 60), at(now)).await.unwrap()
    }

    /// A runtime that we have suspended; it was claimed at 2,000 s and settled at 2,010 s.
    pub(crate) async fn suspended(&self, name: &str) -> Record {
        self.runtime(name).await;
        let token = won(self.suspend_claim(name, 0, 2_000).await).token;
        let done = ledger::Completion { ended: ledger::Ended::Suspended, saved_as_of: None, arming: due(9_000) };
        let completed = self.ledger.complete(&id(name), token, &done, at(2_010)).await.unwrap();
        assert_eq!(completed, ledger::Completed::Done { wanted: false });
        self.record(name).await
    }

    pub(crate) async fn item(&self, name: &str) -> Option<Item> {
        self.raw(&format!("runtime/{}", id(name))).await
    }

    pub(crate) async fn raw(&self, pk: &str) -> Option<Item> {
        let key = Item::from([("pk".to_owned(), text(pk)), ("sk".to_owned(), text("record"))]);
        self.client.get_item().table_name("furlough").set_key(Some(key)).send().await.unwrap().item
    }

    /// Writes an item behind the ledger's back.
    pub(crate) async fn put(&self, item: Item) {
        self.client.put_item().table_name("furlough").set_item(Some(item)).send().await.unwrap();
    }

    /// Forgets a runtime, so that a scenario can begin again on the same tables.
    pub(crate) async fn forget(&self, name: &str) {
        for sk in ["record", "detail"] {
            let key =
                Item::from([("pk".to_owned(), text(&format!("runtime/{}", id(name)))), ("sk".to_owned(), text(sk))]);
            self.client.delete_item().table_name("furlough").set_key(Some(key)).send().await.unwrap();
        }
    }

    /// Changes one attribute behind the ledger's back; `None` removes it.
    pub(crate) async fn tamper(&self, name: &str, attribute: &str, value: Option<AttributeValue>) {
        let mut item = self.item(name).await.unwrap();
        match value {
            Some(value) => drop(item.insert(attribute.to_owned(), value)),
            None => drop(item.remove(attribute)),
        }
        self.put(item).await;
    }

    /// What is due up to `now` seconds, by name.
    pub(crate) async fn due_names(&self, now: i64) -> Vec<String> {
        let due = self.ledger.due(&backend(), at(now), 1_000).await.unwrap();
        due.ids.iter().map(|(id, _)| id.encoded().to_owned()).collect()
    }
}

/// A workspace with so many generations.
pub(crate) async fn committed(ledger: &Ledger, workspace: &str, generations: u64) {
    let keeper = Workspaces::new(ledger.clone(), Clock::new(|| at(0).millis()));
    let workspace = Name::new(workspace).unwrap();
    let Acquired::Granted { lease, .. } = keeper.acquire(&workspace, "sandbox", Duration::from_mins(1)).await.unwrap()
    else {
        panic!("a lease");
    };
    for generation in 1..=generations {
        let key = Key { workspace: workspace.clone(), sort: Sort::Manifest, generation, token: lease.token, nonce: 1 };
        let head = Head { manifest: key, blake3: "ab".repeat(32), generation, as_of_ms: 1, bytes: 1 };
        let done = keeper.commit(&lease, generation - 1, &head, After::Keep).await.unwrap();
        assert_eq!(done, Committed::Done);
    }
}

/// Run `run-1` of a container that runs, of whose activity the backend knows nothing.
pub(crate) fn seen(name: &str) -> Observation {
    Observation {
        id: id(name),
        incarnation: Incarnation::new("run-1"),
        state: State::Running,
        state_since: None,
        running_since: None,
        activity: Activity::Unknown,
        busy: Busy::No,
        ownership: Ownership::Ours,
        labels: BTreeMap::new().into(),
        cannot: Vec::new(),
        loss: Loss::Nothing,
        files: FileSizes::default(),
        native: None,
        sharers: 1,
        about: "a test's runtime".into(),
    }
}

/// Comes due half an hour after its activity, and next at `seconds`.
pub(crate) fn due(seconds: i64) -> Arming {
    Arming { idle_ms: Some(1_800_000), cap_at: None, due_at: Some(at(seconds)) }
}

pub(crate) fn idle_claim(name: &str, record: &Record, cutoff: i64, until: i64) -> ClaimRequest {
    ClaimRequest {
        id: id(name),
        from: State::Running,
        to: State::Suspending,
        epoch: record.epoch,
        incarnation: record.incarnation.clone(),
        token: None,
        rule: ClaimRule::Idle { cutoff: at(cutoff) },
        owner: "pass-1".to_owned(),
        until: at(until),
        action: Action::Suspend,
        reason: r#"{"code":"idle"}"#.to_owned(),
        evidence: "{}".to_owned(),
    }
}

pub(crate) fn won(claimed: Claimed) -> Record {
    match claimed {
        Claimed::Won(record) => *record,
        Claimed::Lost(lost) => panic!("lost: {lost:?}"),
    }
}

pub(crate) fn claim(owner: &str, until: i64) -> lifecycle::Claim {
    lifecycle::Claim { owner: owner.into(), until: at(until) }
}

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn number(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The first token of a runtime that is registered at 0 s and observed.
pub(crate) fn first_token() -> Token {
    u64::try_from(at(0).millis()).unwrap() + 1
}

/// One call over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) operation: String,
    pub(crate) request: Value,
    pub(crate) response: Value,
}

impl Call {
    /// The write units that the store says it has used, indexes included.
    pub(crate) fn units(&self) -> f64 {
        let used = &self.response["ConsumedCapacity"];
        used["WriteCapacityUnits"].as_f64().or_else(|| used["CapacityUnits"].as_f64()).unwrap_or(0.0)
    }
}

/// How a call goes wrong.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The store refuses it with this error code; nothing is done.
    Before(&'static str),
    /// It is done, and the answer is lost.
    After,
    /// A batch leaves all but this many of its keys unprocessed.
    Unprocessed(usize),
}

type Decide = dyn Fn(&str, usize) -> Option<Fault> + Send + Sync;

/// Between the SDK and the store: asks for the consumed capacity, keeps each call, and breaks some.
#[derive(Clone)]
pub(crate) struct Wire {
    inner: SharedHttpClient,
    calls: Arc<Mutex<Vec<Call>>>,
    faults: Arc<Mutex<Option<Arc<Decide>>>>,
}

impl Wire {
    pub(crate) fn new(store: &Embedded) -> Self {
        Self { inner: store.http_client(), calls: Arc::default(), faults: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        embedded::client_over(SharedHttpClient::new(self.clone()))
    }

    /// The calls since the last time this was asked.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    /// Breaks calls: told the operation and how many calls there were since, from 0.
    pub(crate) fn breaks(&self, decide: impl Fn(&str, usize) -> Option<Fault> + Send + Sync + 'static) {
        self.calls();
        *self.faults.lock().unwrap() = Some(Arc::new(decide));
    }

    pub(crate) fn mends(&self) {
        *self.faults.lock().unwrap() = None;
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, settings: &HttpConnectorSettings, parts: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Hop { wire: self.clone(), inner })
    }
}

#[derive(Debug)]
struct Hop {
    wire: Wire,
    inner: SharedHttpConnector,
}

impl HttpConnector for Hop {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap().to_owned();
        let operation = target.rsplit('.').next().unwrap().to_owned();
        let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let count = self.wire.calls.lock().unwrap().len();
        let faults = self.wire.faults.lock().unwrap().clone();
        let fault = faults.and_then(|decide| decide(&operation, count));
        if !operation.contains("Table") && !operation.contains("TimeToLive") {
            body["ReturnConsumedCapacity"] = "INDEXES".into();
        }
        let kept = set_aside(&mut body, fault.as_ref());
        *request.body_mut() = SdkBody::from(body.to_string());
        let asked = body.clone();
        let (wire, inner) = (self.wire.clone(), self.inner.clone());
        HttpConnectorFuture::new(async move {
            if let Some(Fault::Before(code)) = fault {
                let refusal = serde_json::json!({ "__type": code, "message": "broken by the test" });
                wire.keep(operation, asked, refusal.clone());
                return Ok(answer(400, &refusal));
            }
            let response = inner.call(request).await?;
            let mut told: Value = serde_json::from_slice(response.body().bytes().unwrap()).unwrap();
            let status = response.status().as_u16();
            if let Some(kept) = kept {
                if kept == asked["RequestItems"] {
                    told["Responses"] = serde_json::json!({});
                }
                told["UnprocessedKeys"] = kept;
            }
            wire.keep(operation, asked, told.clone());
            match fault {
                Some(Fault::After) => Ok(answer(500, &serde_json::json!({ "__type": "InternalServerError" }))),
                _ => Ok(answer(status, &told)),
            }
        })
    }
}

/// Takes keys out of a batch, to be told as unprocessed.
fn set_aside(body: &mut Value, fault: Option<&Fault>) -> Option<Value> {
    let Some(Fault::Unprocessed(processed)) = fault else { return None };
    if *processed == 0 {
        return Some(body["RequestItems"].clone());
    }
    let keys = body["RequestItems"]["furlough"]["Keys"].as_array_mut().unwrap();
    let aside = keys.split_off((*processed).min(keys.len()));
    (!aside.is_empty()).then(|| serde_json::json!({ "furlough": { "Keys": aside } }))
}

fn answer(status: u16, body: &Value) -> HttpResponse {
    HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::from(body.to_string()))
}

impl Wire {
    fn keep(&self, operation: String, request: Value, response: Value) {
        self.calls.lock().unwrap().push(Call { operation, request, response });
    }
}
