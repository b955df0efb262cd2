//! Each alarm, quiet while all is well and heard when it should be, on what the functions' own code writes.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use backend::Clock;
use embedded::Embedded;
use ledger::{Ledger, Options};
use lifecycle::Time;
use reconcile::{Folder, Parts, tick};
use serde_json::{Value, json};
use settings::{Kept, Secrets};
use telemetry::metrics::{Meter, Metric, Urgency};
use tempfile::TempDir;

use super::{
    TEMPLATE,
    cloudwatch::{Sample, State, samples, state},
    template::Stack,
};
use crate::docker::stub::{Engine, sandbox};

/// The start of an hour.
const START: i64 = 1_796_083_200_000;
const MINUTE: i64 = 60_000;

thread_local! {
    /// What the code of this test has written. A test has one thread.
    static WRITTEN: RefCell<Vec<Sample>> = const { RefCell::new(Vec::new()) };
}

fn write(line: &str) {
    WRITTEN.with_borrow_mut(|written| written.extend(samples(&serde_json::from_str(line).unwrap())));
}

fn written() -> Vec<Sample> {
    WRITTEN.with_borrow(Clone::clone)
}

/// The alarms of the template with its defaults, by name: `properties` of each.
fn alarms() -> BTreeMap<String, Value> {
    let alarms = Stack::new(TEMPLATE, &[]).of("AWS::CloudWatch::Alarm");
    alarms.into_iter().map(|(name, alarm)| (name, alarm["Properties"].clone())).collect()
}

/// The names of those that are heard.
fn heard(samples: &[Sample], now: i64) -> BTreeSet<String> {
    let alarms = alarms().into_iter().filter(|(_, alarm)| state(alarm, samples, now) == State::Alarm);
    alarms.map(|(name, _)| name).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Ticks of the backend `docker` over an engine, at times of their own.
struct Ticks {
    store: Embedded,
    reports: TempDir,
    now: Arc<AtomicI64>,
}

impl Ticks {
    async fn new() -> Self {
        let store = embedded::memory().unwrap();
        Ledger::new(store.client(), Options::default()).create_tables().await.unwrap();
        Self { store, reports: tempfile::tempdir().unwrap(), now: Arc::new(AtomicI64::new(START)) }
    }

    /// One tick, `at` minutes after the start. A tick that fails says so in what it writes.
    async fn at(&self, minutes: i64, engine: &str) {
        self.now.store(START + minutes * MINUTE, Ordering::Relaxed);
        let now = Arc::clone(&self.now);
        let clock = Clock::new(move || Time::from_millis(now.load(Ordering::Relaxed)));
        let config = format!(
            "[[backend]]\nname = \"docker\"\nkind = \"docker\"\nhost = \"unix://{engine}\"\nopenhands = true\n\
             [[policy]]\nname = \"all\"\nidle.after = \"30m\"\n[breaker]\ninventory_drop = \"30%\"\n"
        );
        let parts = Parts {
            ledger: Ledger::new(self.store.client(), Options::default()),
            settings: Kept::fixed(settings::parse(&config, "test").unwrap()),
            secrets: Secrets::new(|address| panic!("{address} is not asked for")),
            reports: Arc::new(Folder(self.reports.path().to_owned())),
            clock: clock.clone(),
            out: write,
        };
        let event = json!({ "mode": "report", "backend": "docker" });
        let deadline = clock.now().plus(Duration::from_mins(5));
        let _ = tick(&parts, event, deadline, &format!("reconcile/{minutes}")).await;
    }
}

fn socket(engine: &Engine) -> String {
    engine.socket().display().to_string()
}

/// Counts as the heartbeat function does, at the minutes after the start.
fn counted(metric: Metric, urgency: Urgency, minutes: impl IntoIterator<Item = i64>) {
    let meter = Meter::new(write);
    for minute in minutes {
        meter.count(metric, urgency, START + minute * MINUTE);
    }
}

/// What AWS itself counts for a function or a queue.
fn native(namespace: &str, metric: &str, dimension: (&str, &str), minutes: std::ops::Range<i64>) -> Vec<Sample> {
    let sample = |minute| Sample {
        at: START + minute * MINUTE,
        namespace: namespace.to_owned(),
        metric: metric.to_owned(),
        dimensions: [(dimension.0.to_owned(), json!(dimension.1))].into_iter().collect(),
        value: 1.0,
    };
    minutes.map(sample).collect()
}

#[tokio::test]
async fn while_passes_complete_and_heartbeats_come_no_alarm_is_heard() {
    let engine = Engine::with([sandbox("running")]);
    let ticks = Ticks::new().await;
    for minutes in (0..60).step_by(5) {
        ticks.at(minutes, &socket(&engine)).await;
    }
    counted(Metric::HeartbeatsRecorded, Urgency::Later, 0..60);
    assert_eq!(heard(&written(), START + 60 * MINUTE), names(&[]));
}

#[tokio::test]
async fn three_ticks_without_a_completed_pass_are_heard_and_two_are_not() {
    let engine = Engine::with([]);
    let ticks = Ticks::new().await;
    ticks.at(0, &socket(&engine)).await;
    counted(Metric::HeartbeatsRecorded, Urgency::Later, 0..60);
    assert_eq!(heard(&written(), START + 15 * MINUTE), names(&[]));
    assert_eq!(heard(&written(), START + 20 * MINUTE), names(&["NoCompletedPass"]));
}

#[tokio::test]
async fn a_pass_that_could_not_ask_its_backend_is_heard() {
    let ticks = Ticks::new().await;
    ticks.at(56, "/nowhere/docker.sock").await;
    counted(Metric::HeartbeatsRecorded, Urgency::Later, 0..60);
    assert_eq!(heard(&written(), START + 60 * MINUTE), names(&["FailedPass", "NoCompletedPass"]));
}

#[tokio::test]
async fn a_shrunken_inventory_opens_the_breaker_and_is_heard() {
    let (whole, shrunken) = (Engine::with(vec![sandbox("running"); 12]), Engine::with([sandbox("running")]));
    let ticks = Ticks::new().await;
    for minutes in [0, 20, 40] {
        ticks.at(minutes, &socket(&whole)).await;
    }
    counted(Metric::HeartbeatsRecorded, Urgency::Later, 0..60);
    assert!(!heard(&written(), START + 45 * MINUTE).contains("OpenBreaker"));
    ticks.at(56, &socket(&shrunken)).await;
    assert!(heard(&written(), START + 60 * MINUTE).contains("OpenBreaker"));
}

#[tokio::test]
async fn a_record_that_had_left_the_index_is_healed_and_heard() {
    let engine = Engine::with([sandbox("running")]);
    let ticks = Ticks::new().await;
    ticks.at(0, &socket(&engine)).await;
    let id = lifecycle::RuntimeId::new(&"docker".parse().unwrap(), crate::docker::stub::id(1).as_bytes()).unwrap();
    let key = aws_sdk_dynamodb::types::AttributeValue::S;
    let lost = ticks.store.client().update_item().table_name(ledger::Tables::default().main);
    let lost = lost.key("pk", key(format!("runtime/{id}"))).key("sk", key("record".to_owned()));
    let lost = lost.condition_expression("attribute_exists(due_shard)").update_expression("REMOVE due_shard");
    lost.send().await.unwrap();
    counted(Metric::HeartbeatsRecorded, Urgency::Later, 0..120);
    assert!(!heard(&written(), START + 60 * MINUTE).contains("HealedRecords"));
    ticks.at(90, &socket(&engine)).await;
    assert!(heard(&written(), START + 120 * MINUTE).contains("HealedRecords"));
}

#[test]
fn an_hour_without_a_heartbeat_is_heard() {
    counted(Metric::HeartbeatsRecorded, Urgency::Later, [0]);
    assert!(!heard(&written(), START + 60 * MINUTE).contains("SilentHeartbeats"));
    assert!(heard(&written(), START + 65 * MINUTE).contains("SilentHeartbeats"));
    assert!(!Stack::new(TEMPLATE, &[("SilentPeriods", json!(0))]).resources().contains_key("SilentHeartbeats"));
}

#[test]
fn heartbeats_that_fail_in_three_of_five_minutes_are_heard_and_one_that_is_sent_again_is_not() {
    counted(Metric::HeartbeatsFailed, Urgency::Now, [0]);
    assert!(!heard(&written(), START + 5 * MINUTE).contains("FailingHeartbeats"));
    counted(Metric::HeartbeatsFailed, Urgency::Now, [2, 4]);
    assert!(heard(&written(), START + 5 * MINUTE).contains("FailingHeartbeats"));
}

#[test]
fn requests_about_workspaces_that_fail_are_heard_and_refused_ones_are_not() {
    counted(Metric::WorkspaceRefused, Urgency::Later, 0..5);
    assert!(!heard(&written(), START + 5 * MINUTE).contains("FailingWorkspaces"));
    counted(Metric::WorkspaceFailed, Urgency::Now, [0, 2, 4]);
    assert!(heard(&written(), START + 5 * MINUTE).contains("FailingWorkspaces"));
}

#[tokio::test]
async fn a_configuration_that_can_t_be_used_is_heard() {
    let ticks = Ticks::new().await;
    let missing = settings::FileOrigin(ticks.reports.path().join("furlough.toml"));
    let parts = Parts {
        ledger: Ledger::new(ticks.store.client(), Options::default()),
        settings: Kept::new(Arc::new(missing), Duration::from_secs(30), |text| {
            settings::parse(text, "test").map_err(|faults| faults.to_string())
        }),
        secrets: Secrets::new(|address| panic!("{address} is not asked for")),
        reports: Arc::new(Folder(ticks.reports.path().to_owned())),
        clock: Clock::new(|| Time::from_millis(START)),
        out: write,
    };
    let failed = tick(&parts, json!({}), Time::from_millis(START + 5 * MINUTE), "reconcile/1").await;
    assert!(failed.is_err());
    assert!(heard(&written(), START + 5 * MINUTE).contains("BadConfiguration"));
}

#[test]
fn what_fails_before_our_code_runs_is_heard_too() {
    for (namespace, metric, dimension, alarm) in [
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", ("QueueName", "<Failures.QueueName>"), "FailedTicks"),
        ("AWS/Lambda", "Errors", ("FunctionName", "<Heartbeat>"), "FailedHeartbeatInvocations"),
        ("AWS/Lambda", "Throttles", ("FunctionName", "<Heartbeat>"), "ThrottledHeartbeats"),
        ("AWS/Lambda", "Errors", ("FunctionName", "<Workspace>"), "FailedWorkspaceInvocations"),
        ("AWS/Lambda", "Throttles", ("FunctionName", "<Workspace>"), "ThrottledWorkspaces"),
    ] {
        assert!(!heard(&[], START + 5 * MINUTE).contains(alarm));
        let counted = native(namespace, metric, dimension, 0..5);
        assert!(heard(&counted, START + 5 * MINUTE).contains(alarm), "{alarm}");
    }
}

/// A new alarm is heard in a test before it is believed.
#[test]
fn every_alarm_is_heard_somewhere_above() {
    let here = include_str!("alarms.rs");
    let unheard: Vec<_> = alarms().into_keys().filter(|name| !here.contains(&format!("\"{name}\""))).collect();
    assert_eq!(unheard, Vec::<String>::new());
}
