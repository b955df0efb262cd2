//! How many heartbeats a second one core takes through the handler: routed, authenticated, read and recorded.
//!
//! `cargo bench -p heartbeat`: prints requests a second of CPU time, with the table asked each time and without, and what
//! each costs the table. The table is the embedded one in memory, and its own work is counted in: on AWS it is done
//! elsewhere.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may panic, and prints what it measured")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Request};
use heartbeat::{App, Terms, keys, keys::Keys, router};
use lambda_http::tower::ServiceExt as _;
use ledger::{Ledger, Options};
use lifecycle::{BackendName, RuntimeId, Time};
use settings::Kept;
use telemetry::metrics::Meter;

const RUNTIMES: usize = 1_000;
const ROUNDS: usize = 20;
const COALESCE: Duration = Duration::from_secs(30);
const HOST: &str = "the token of a host of every backend";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let now = Arc::new(AtomicI64::new(1_796_040_000_000));
    let (app, tokens) = registered(&now).await;
    let recorded = rounds(&app, &tokens, || {
        now.fetch_add(60_000, Ordering::Relaxed);
    });
    let recorded = recorded.await;
    let coalesced = rounds(&app, &tokens, || {}).await;
    println!("{recorded:.0} heartbeats/s on one core, each recorded: 1 request to the table each, embedded");
    println!("{coalesced:.0} heartbeats/s on one core, each said already: 0 requests to the table");
}

/// The routes, and a token for each runtime.
async fn registered(now: &Arc<AtomicI64>) -> (Router, Vec<(RuntimeId, String)>) {
    let store = embedded::memory().unwrap();
    let ledger = Ledger::new(store.client(), Options { coalesce: COALESCE, ..Options::default() });
    ledger.create_tables().await.unwrap();
    let digest = keys::digest(HOST);
    let document = format!(
        r#"{{"runtime_keys":["a key of the runtimes that is long enough"],"hosts":[{{"name":"all","token_sha256":"{digest}","backends":["*"]}}]}}"#
    );
    let backend = BackendName::new("box").unwrap();
    let terms = Terms { coalesce: COALESCE, skew: Duration::from_secs(10), backends: [backend.clone()].into() };
    let clock = Arc::clone(now);
    let clock = Arc::new(move || Time::from_millis(clock.load(Ordering::Relaxed)));
    let keys = Kept::fixed(Keys::read(&document).unwrap());
    let app = router(Arc::new(App::new(ledger, keys, Kept::fixed(terms), clock, Meter::new(|_| {}))));
    let mut tokens = Vec::new();
    for number in 0..RUNTIMES {
        let id = RuntimeId::new(&backend, format!("runtime-{number}").as_bytes()).unwrap();
        let request = Request::put(format!("/runtimes/{id}")).header("authorization", format!("Bearer {HOST}"));
        let answer = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
        let told: serde_json::Value = serde_json::from_slice(&body).unwrap();
        tokens.push((id, told["token"].as_str().unwrap().to_owned()));
    }
    (app, tokens)
}

/// Requests a second of CPU time. `between`: before each round over all runtimes.
async fn rounds(app: &Router, tokens: &[(RuntimeId, String)], between: impl Fn()) -> f64 {
    let start = nanoseconds();
    for _ in 0..ROUNDS {
        between();
        for (id, token) in tokens {
            let request = Request::post(format!("/runtimes/{id}/heartbeat"));
            let request = request.header("authorization", format!("Bearer {token}")).body(Body::from("{}")).unwrap();
            let answer = app.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), 200);
        }
    }
    let spent = Duration::from_nanos(nanoseconds() - start);
    f64::from(u32::try_from(ROUNDS * tokens.len()).unwrap()) / spent.as_secs_f64()
}

/// What this thread spent on a processor, so that a busy machine doesn't count; where the system does not tell, what
/// passed.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time; nothing that it measures reads it")]
fn nanoseconds() -> u64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    let spent = std::fs::read_to_string("/proc/self/schedstat").ok();
    let spent = spent.and_then(|text| text.split_whitespace().next()?.parse().ok());
    spent.unwrap_or_else(|| u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
