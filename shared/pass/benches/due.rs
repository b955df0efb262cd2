//! A pass over many records of which one in a hundred is due: `cargo bench -p pass`.
//!
//! For each size: a tick that reads what is due, looks at it and suspends it, on the embedded ledger in memory and a
//! backend that answers at once; and, as a baseline, the way of a scan: every record read, each looked at, as a monitor does that has
//! no index of what is due. Printed: requests to the ledger, looks at the backend, and the wall time of each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails loudly"
)]

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Config, Region, retry::RetryConfig, timeout::TimeoutConfig},
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    },
    orchestrator::HttpRequest,
    runtime_components::RuntimeComponents,
};
use backend::{
    Backend, BackendError, Bounds, Clock, Inspectable, Listable, Outcome, Page, PageToken, Sighting, Suspendable,
    Target,
};
use embedded::Embedded;
use ledger::{Ledger, Options};
use lifecycle::{
    Activity, BackendName, Busy, FileSizes, Incarnation, Loss, Observation, Ownership, Policy, Rules, RuntimeId,
    SignalSet, State, Survives, Time,
    policy::{Breakers, Budget, Budgets, FileRules, Match, Mode, NativeMode, Retention, WorkspaceRule},
};
use pass::{Gate, Limits, Pass, Unit, Unwatched};

/// 2026-11-30T12:00:00Z.
const START: i64 = 1_796_040_000_000;
const HOUR: Duration = Duration::from_hours(1);

/// Counts the requests that go through it.
#[derive(Debug, Clone)]
struct Counting {
    inner: SharedHttpClient,
    requests: Arc<AtomicU64>,
}

impl HttpClient for Counting {
    fn http_connector(&self, settings: &HttpConnectorSettings, parts: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Counted { inner, requests: self.requests.clone() })
    }
}

#[derive(Debug)]
struct Counted {
    inner: SharedHttpConnector,
    requests: Arc<AtomicU64>,
}

impl HttpConnector for Counted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.call(request)
    }
}

fn client(store: &Embedded, requests: &Arc<AtomicU64>) -> Client {
    let http = Counting { inner: store.http_client(), requests: requests.clone() };
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .endpoint_url("http://counting.invalid")
        .allow_no_auth()
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::disabled())
        .http_client(SharedHttpClient::new(http))
        .build();
    Client::from_conf(config)
}

/// A backend that answers in constant time, so that what is measured is the pass and the ledger. It knows only
/// numbers: runtime `n` was active at the start, and each hundredth half an hour before.
struct Numbers {
    size: usize,
    looks: AtomicU64,
    suspended: Mutex<HashMap<RuntimeId, Time>>,
    clock: Clock,
}

fn name() -> BackendName {
    BackendName::new("box").unwrap()
}

impl Numbers {
    fn observe(&self, number: usize) -> Observation {
        let id = RuntimeId::new(&name(), format!("runtime-{number}").as_bytes()).unwrap();
        let start = Time::from_millis(START);
        let idle = if number.is_multiple_of(100) { HOUR / 2 } else { Duration::ZERO };
        let since = self.suspended.lock().unwrap().get(&id).copied();
        Observation {
            id,
            incarnation: Incarnation::new("run-1"),
            state: if since.is_some() { State::Suspended } else { State::Running },
            state_since: since,
            running_since: Some(start.minus(2 * HOUR)),
            activity: Activity::At(start.minus(idle)),
            busy: Busy::No,
            ownership: Ownership::Ours,
            labels: <_>::default(),
            cannot: Vec::new(),
            loss: Loss::Nothing,
            files: FileSizes::default(),
            native: None,
            sharers: 1,
            about: "".into(),
        }
    }
}

#[async_trait]
impl Listable for Numbers {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let begin: usize = page.map_or(0, |page| page.0.parse().unwrap());
        let end = (begin + 1_000).min(self.size);
        let next = (end < self.size).then(|| PageToken(end.to_string().into()));
        Ok(Page { seen: (begin..end).map(|number| self.observe(number)).collect(), unreadable: Vec::new(), next })
    }
}

#[async_trait]
impl Inspectable for Numbers {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let number = id.encoded().trim_start_matches("runtime-").parse().unwrap();
        Ok(Sighting::Seen(Box::new(self.observe(number))))
    }
}

#[async_trait]
impl Suspendable for Numbers {
    fn survives(&self) -> Survives {
        Survives::Disk
    }

    async fn suspend(&self, target: &Target, _: Bounds) -> Result<Outcome, BackendError> {
        self.suspended.lock().unwrap().insert(target.id.clone(), self.clock.now());
        Ok(Outcome::Done(()))
    }

    async fn resume(&self, target: &Target, _: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        Ok(Outcome::Done(target.incarnation.clone()))
    }
}

/// Suspends after an hour; no budget stands in the way.
fn policy() -> Policy {
    let budget = Some(Budget { max: None, min: u32::MAX, per: HOUR });
    Policy {
        mode: Mode::Enforce,
        coalesce: Duration::ZERO,
        skew: Duration::from_secs(10),
        trash_keep: HOUR,
        plan_valid: HOUR,
        rules: vec![Rules {
            name: "all".into(),
            matches: Match::default(),
            idle_after: Some(HOUR),
            signals: SignalSet::ALL,
            unknown_after: None,
            lifetime_max: None,
            retention: Retention::default(),
            notice_before_delete: None,
            files: FileRules::default(),
            disk_budget: None,
            workspace: WorkspaceRule::Save,
            native: NativeMode::Off,
            overrides: None,
            windows: Vec::new(),
        }],
        prices: <_>::default(),
        budgets: Budgets { suspend: budget, archive: budget, delete: budget, shed: budget },
        breakers: Breakers::default(),
    }
}

struct Measured {
    requests: u64,
    looks: u64,
    acts: usize,
    wall: Duration,
}

/// A fleet of `size` under a ledger that has swept it; one in a hundred falls due 40 minutes later.
struct Fleet {
    hands: Arc<AtomicI64>,
    numbers: Arc<Numbers>,
    requests: Arc<AtomicU64>,
    pass: Pass,
}

impl Fleet {
    async fn new(size: usize) -> Self {
        let hands = Arc::new(AtomicI64::new(START));
        let clock = {
            let hands = hands.clone();
            Clock::new(move || Time::from_millis(hands.load(Ordering::Relaxed)))
        };
        let store = embedded::memory().unwrap();
        let requests = Arc::new(AtomicU64::new(0));
        let ledger = Ledger::new(client(&store, &requests), Options { coalesce: Duration::ZERO, ..Options::default() });
        ledger.create_tables().await.unwrap();
        let numbers =
            Arc::new(Numbers { size, looks: AtomicU64::new(0), suspended: <_>::default(), clock: clock.clone() });
        let backend = Backend::builder(name(), "numbers", numbers.clone()).suspends().build();
        let pass = Pass {
            ledger,
            units: vec![Unit { backend, gate: Gate::open() }],
            policy: Arc::new(policy()),
            clock,
            owner: "bench".to_owned(),
            limits: Limits { max_items: size.max(1), duration: 24 * HOUR, sweep_every: 24 * HOUR, ..Limits::default() },
            notifier: None,
            watch: Arc::new(Unwatched),
        };
        let swept = pass.run().await;
        assert_eq!(swept.report.backends[0].note.ours, u64::try_from(size).unwrap());
        Self { hands, numbers, requests, pass }
    }

    async fn measured(&self, acts: impl AsyncFnOnce() -> usize) -> Measured {
        self.hands.fetch_add(40 * 60 * 1_000, Ordering::Relaxed);
        let (requests, looks) = (self.requests.load(Ordering::Relaxed), self.numbers.looks.load(Ordering::Relaxed));
        #[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall time")]
        let begun = std::time::Instant::now();
        let acts = acts().await;
        let wall = begun.elapsed();
        Measured {
            requests: self.requests.load(Ordering::Relaxed) - requests,
            looks: self.numbers.looks.load(Ordering::Relaxed) - looks,
            acts,
            wall,
        }
    }
}

/// A tick.
async fn due(size: usize) -> Measured {
    let fleet = Fleet::new(size).await;
    let measured = fleet.measured(async || fleet.pass.run().await.report.entries.len()).await;
    assert_eq!(fleet.numbers.suspended.lock().unwrap().len(), size / 100);
    measured
}

/// The same without an index: a scan over every record, and a look at each that runs.
async fn scan(size: usize) -> Measured {
    let fleet = Fleet::new(size).await;
    let name = name();
    let backend = &fleet.pass.units[0].backend;
    fleet
        .measured(async || {
            let (mut cursor, mut idle) = (None, 0);
            loop {
                let page = fleet.pass.ledger.records(&name, cursor.take()).await.unwrap();
                for (id, _) in page.records {
                    let record = fleet.pass.ledger.get(&id).await.unwrap().unwrap();
                    let _ = backend.inspect.inspect(&id).await.unwrap();
                    idle += usize::from(fleet.pass.clock.now().since(record.idle_from) > HOUR);
                }
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => return idle,
                }
            }
        })
        .await
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("| records | due | how | ledger requests | looks | acts | wall |");
    println!("|---|---|---|---|---|---|---|");
    for size in [1_000, 10_000, 100_000] {
        let print = |how: &str, measured: &Measured| {
            let Measured { requests, looks, acts, wall } = measured;
            println!("| {size} | {} | {how} | {requests} | {looks} | {acts} | {wall:.3?} |", size / 100);
        };
        print("due index", &runtime.block_on(due(size)));
        print("scan, decide only", &runtime.block_on(scan(size)));
    }
}
