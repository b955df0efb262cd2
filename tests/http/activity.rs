//! Registrations, heartbeats and batches, and what each is told.

use std::time::Duration;

use lifecycle::{Record, State, Time};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{BOUND, COALESCE, HOST, served};
use crate::ledger::fixture::{at, committed, id};

#[tokio::test]
async fn a_registration_begins_a_life_that_the_next_tick_looks_at() {
    let served = served().await;
    served.now(5);
    let body = br#"{"labels":{"team":"blue"}}"#.to_vec();
    let told = served.ask(Method::PUT, "/runtimes/box/a", Some(HOST), body).await;
    assert_eq!((told.code(), &told.body["epoch"]), ((200, "registered"), &json!(1)));
    let record = served.record("a").await;
    assert_eq!((record.epoch, record.state, record.idle_from), (1, State::Running, at(5)));
    assert_eq!(record.due_at, Some(served.world.ledger.jittered(&id("a"), at(5))), "at once, but for the jitter");
    let detail = served.world.ledger.detail(&id("a")).await.unwrap().expect("its labels");
    assert_eq!(detail.labels.get("team").map(String::as_str), Some("blue"));
}

#[tokio::test]
async fn a_heartbeat_moves_the_clock_and_says_when_the_next_is_worth_sending() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    let told = served.beat("a", &token).await;
    assert_eq!(told.code(), (200, "recorded"));
    assert_eq!(
        told.body["next"].as_str().unwrap().parse::<Time>().unwrap(),
        at(60).plus(Duration::from_secs(COALESCE))
    );
    assert_eq!(served.record("a").await.idle_from, at(60));
    served.now(100);
    let busy = served.post("/runtimes/box/a/heartbeat", &token, &json!({ "busy_for": "10m" })).await;
    assert_eq!(busy.code(), (200, "recorded"));
    assert_eq!(served.record("a").await.busy_until, Some(at(700)));
}

#[tokio::test]
async fn within_coalesce_the_table_is_not_asked_again() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    served.world.wire.calls();
    assert_eq!(served.beat("a", &token).await.code(), (200, "recorded"));
    served.now(89);
    assert_eq!(served.beat("a", &token).await.code(), (200, "coalesced"));
    assert_eq!(served.world.wire.calls().len(), 1);
    served.now(90);
    assert_eq!(served.beat("a", &token).await.code(), (200, "recorded"));
    assert_eq!(served.world.wire.calls().len(), 1);
    assert_eq!(served.record("a").await.idle_from, at(90));
}

#[tokio::test]
async fn a_runtime_that_is_unknown_gone_or_resting_is_told_so() {
    let served = served().await;
    let unknown = served.beat("nobody", HOST).await;
    assert_eq!(unknown.code(), (404, "unknown_runtime"));
    assert_eq!(served.world.item("nobody").await, None, "a heartbeat makes no record");

    served.world.suspended("resting").await;
    served.now(3_000);
    let resting = served.beat("resting", HOST).await;
    assert_eq!((resting.code(), &resting.body["state"]), ((409, "not_running"), &json!("suspended")));
    assert_eq!(resting.retry_after, Some(COALESCE));
    let record = served.record("resting").await;
    assert_eq!((record.wanted_at, record.due_at), (Some(at(3_000)), Some(at(3_000))), "it is called back");

    served.world.runtime("gone").await;
    served.world.tamper("gone", "st", Some(crate::ledger::fixture::text("gone"))).await;
    assert_eq!(served.beat("gone", HOST).await.code(), (410, "gone"));
}

#[tokio::test]
async fn while_somebody_acts_a_registration_waits() {
    let served = served().await;
    served.world.runtime("a").await;
    let claimed = crate::ledger::fixture::won(served.world.suspend_claim("a", 0, 2_000).await);
    served.now(2_010);
    let told = served.ask(Method::PUT, "/runtimes/box/a", Some(HOST), Vec::new()).await;
    assert_eq!(
        (told.code(), told.retry_after),
        ((409, "claimed"), Some(60)),
        "60 s of the claim are left, and the skew"
    );
    assert_eq!(served.record("a").await, claimed);
}

#[tokio::test]
async fn a_token_of_an_earlier_life_is_superseded() {
    let served = served().await;
    let first = served.register("a").await;
    served.now(40);
    let second = served.register("a").await;
    served.now(80);
    let told = served.beat("a", &first).await;
    assert_eq!((told.code(), served.record("a").await.idle_from), ((409, "superseded"), at(40)));
    assert_eq!(served.beat("a", &second).await.code(), (200, "recorded"));
}

#[tokio::test]
async fn a_batch_answers_each_in_its_place() {
    let served = served().await;
    let (a, b) = (served.register("a").await, served.register("b").await);
    served.now(60);
    let item = |name: &str| json!({ "runtime": format!("box/{name}") });
    let by_host = json!({ "heartbeats": [item("a"), item("nobody"), item("b"), { "runtime": "other/x" }] });
    let told = served.post("/heartbeats", HOST, &by_host).await;
    let answers = |told: &Value| -> Vec<(String, u64)> {
        let each = told["answers"].as_array().unwrap().iter();
        each.map(|one| (one["runtime"].as_str().unwrap().to_owned(), one["status"].as_u64().unwrap())).collect()
    };
    let expected = [("box/a", 200), ("box/nobody", 404), ("box/b", 200), ("other/x", 404)];
    assert_eq!(answers(&told.body), expected.map(|(name, status)| (name.to_owned(), status)));
    assert_eq!((served.record("a").await.idle_from, served.record("b").await.idle_from), (at(60), at(60)));

    served.now(120);
    let of_each = json!({ "heartbeats": [
        { "runtime": "box/a", "token": a }, { "runtime": "box/b", "token": a }, { "runtime": "box/b", "token": b, "busy_for": "5m" },
    ] });
    let told = served.ask(Method::POST, "/heartbeats", None, of_each.to_string().into_bytes()).await;
    let expected = [("box/a", 200), ("box/b", 401), ("box/b", 200)];
    assert_eq!(answers(&told.body), expected.map(|(name, status)| (name.to_owned(), status)));
    assert_eq!(served.record("b").await.busy_until, Some(at(420)));

    let bound = served.post("/heartbeats", BOUND, &json!({ "heartbeats": [item("a")] })).await;
    assert_eq!(answers(&bound.body), [("box/a".to_owned(), 403)]);
}

#[tokio::test]
async fn a_batch_has_a_limit() {
    let served = served().await;
    let batch = |count: usize| json!({ "heartbeats": vec![json!({ "runtime": "box/nobody" }); count] });
    assert_eq!(served.post("/heartbeats", HOST, &batch(100)).await.status, 200);
    assert_eq!(served.post("/heartbeats", HOST, &batch(101)).await.code(), (400, "malformed"));
    assert_eq!(served.post("/heartbeats", HOST, &batch(0)).await.code(), (400, "malformed"));
}

/// What the function may do on AWS is what it does.
#[tokio::test]
async fn it_asks_the_ledger_for_nothing_that_it_has_no_right_to() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    served.beat("a", &token).await;
    served.beat("nobody", HOST).await;
    served.world.suspended("resting").await;
    served.now(3_000);
    served.world.wire.calls();
    served.beat("resting", HOST).await;
    served.register("b").await;
    let may: Vec<_> = settings::functions::HEARTBEAT.permissions.iter().map(|permission| permission.action).collect();
    let calls = served.world.wire.calls();
    assert!(calls.len() >= 4, "{calls:?}");
    for call in calls {
        assert!(may.contains(&format!("dynamodb:{}", call.operation).as_str()), "{} is in no right", call.operation);
    }
}

#[tokio::test]
async fn a_save_is_noted_as_of_its_scan_and_is_no_activity() {
    let served = served().await;
    let token = served.register("a").await;
    committed(&served.world.ledger, "ada", 2).await;
    let before = served.record("a").await;
    served.now(300);
    let save = json!({ "workspace": "ada", "generation": 2, "age": "60s" });
    assert_eq!(served.post("/runtimes/box/a/saved", &token, &save).await.code(), (200, "saved"));
    let kept = at(300 - 60 - 10).minus(Duration::from_secs(COALESCE));
    assert_eq!(served.record("a").await, Record { saved_as_of: Some(kept), ..before });
}

#[tokio::test]
async fn a_save_that_cannot_be_believed_is_refused() {
    let served = served().await;
    let token = served.register("a").await;
    let other = served.register("b").await;
    let save = json!({ "workspace": "ada", "generation": 1, "age": "1s" });
    let post = async |path: &str, token: &str, body: &Value| served.post(path, token, body).await;
    assert_eq!(post("/runtimes/box/a/saved", &token, &save).await.code(), (409, "not_there"));
    committed(&served.world.ledger, "ada", 1).await;
    assert_eq!(post("/runtimes/box/a/saved", &other, &save).await.code(), (401, "unauthorized"));
    assert_eq!(post("/runtimes/box/a/saved", "no token", &save).await.code(), (401, "unauthorized"));
    assert_eq!(post("/runtimes/box/a/saved", &token, &json!({})).await.code(), (400, "malformed"));
    assert_eq!(post("/runtimes/box/c/saved", HOST, &save).await.code(), (404, "unknown_runtime"));
    let newer = served.register("a").await;
    assert_eq!(post("/runtimes/box/a/saved", &token, &save).await.code(), (409, "superseded"));
    assert_eq!(served.record("a").await.saved_as_of, None);
    assert_eq!(post("/runtimes/box/a/saved", &newer, &save).await.code(), (200, "saved"));
}
