//! A pass over many records of which one in a hundred is due: `cargo bench -p pass`.
//!
//! For each size: a tick that reads what is due, looks at it and suspends it, on the embedded ledger in memory and a
//! fake backend; and, as a baseline, the way of a scan: every record read, each looked at, as a monitor does that has
//! no index of what is due. Printed: requests to the ledger, looks at the backend, and the wall time of each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails loudly"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

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
    Clock,
    fake::{Fake, RuntimeSpec, Shape},
};
use embedded::Embedded;
use ledger::{Ledger, Options};
use lifecycle::{
    BackendName, Policy, Rules, SignalSet, Time,
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
    fake: Fake,
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
        let fake = Fake::shaped(BackendName::new("box").unwrap(), clock.clone(), Shape::default());
        for number in 0..size {
            let now = clock.now();
            let idle = if number % 100 == 0 { HOUR / 2 } else { Duration::ZERO };
            let began = now.minus(2 * HOUR);
            let spec = RuntimeSpec::running(&format!("runtime-{number}")).since(began).active(now.minus(idle));
            fake.add(spec.no_agent_server());
        }
        let pass = Pass {
            ledger,
            units: vec![Unit { backend: fake.builder().suspends().deletes().build(), gate: Gate::open() }],
            policy: Arc::new(policy()),
            clock,
            owner: "bench".to_owned(),
            limits: Limits { max_items: size.max(1), duration: 24 * HOUR, sweep_every: 24 * HOUR, ..Limits::default() },
            notifier: None,
            watch: Arc::new(Unwatched),
        };
        let swept = pass.run().await;
        assert_eq!(swept.report.backends[0].note.ours, u64::try_from(size).unwrap());
        Self { hands, fake, requests, pass }
    }

    async fn measured(&self, acts: impl AsyncFnOnce() -> usize) -> Measured {
        self.hands.fetch_add(40 * 60 * 1_000, Ordering::Relaxed);
        let (requests, looks) = (self.requests.load(Ordering::Relaxed), self.fake.asked().looks);
        #[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall time")]
        let begun = std::time::Instant::now();
        let acts = acts().await;
        let wall = begun.elapsed();
        Measured {
            requests: self.requests.load(Ordering::Relaxed) - requests,
            looks: self.fake.asked().looks - looks,
            acts,
            wall,
        }
    }
}

/// A tick.
async fn due(size: usize) -> Measured {
    let fleet = Fleet::new(size).await;
    let measured = fleet.measured(async || fleet.pass.run().await.report.entries.len()).await;
    assert_eq!(fleet.fake.effects().len(), size / 100);
    measured
}

/// The same without an index: a scan over every record, and a look at each that runs.
async fn scan(size: usize) -> Measured {
    let fleet = Fleet::new(size).await;
    let name = BackendName::new("box").unwrap();
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
