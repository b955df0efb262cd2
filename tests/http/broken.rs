//! Requests that are wrong and a table that fails: the right status, and nothing lost.

use reqwest::Method;
use serde_json::json;

use super::bench::{HOST, served};
use crate::ledger::fixture::{Fault, at};

#[tokio::test]
async fn a_body_that_is_no_json_or_says_what_is_not_known_changes_nothing() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    served.world.wire.calls();
    for body in ["{", "[]", "nonsense", r#"{"busy_for":"5"}"#, r#"{"busy_for":5}"#, r#"{"bussy_for":"5m"}"#, "{} {}"] {
        let told = served.ask(Method::POST, "/runtimes/box/a/heartbeat", Some(&token), body.into()).await;
        assert_eq!(told.code(), (400, "malformed"), "{body}");
    }
    let labels = json!({ "labels": { "a": "b".repeat(300) } }).to_string().into_bytes();
    let told = served.ask(Method::PUT, "/runtimes/box/a", Some(HOST), labels).await;
    assert_eq!(told.code(), (400, "malformed"));
    assert_eq!(served.world.wire.calls().len(), 0);
    assert_eq!(served.beat("a", &token).await.code(), (200, "recorded"));
}

#[tokio::test]
async fn ten_megabytes_are_refused_and_the_next_heartbeat_is_not() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    let told = served.ask(Method::POST, "/runtimes/box/a/heartbeat", Some(&token), vec![b' '; 10 << 20]).await;
    assert_eq!(told.code(), (413, "too_large"));
    let told = served.ask(Method::POST, "/runtimes/box/a/heartbeat", Some(&token), vec![b' '; (256 << 10) + 1]).await;
    assert_eq!(told.code(), (413, "too_large"));
    assert_eq!(served.record("a").await.idle_from, at(0));
    assert_eq!(served.beat("a", &token).await.code(), (200, "recorded"));
}

#[tokio::test]
async fn what_a_throttled_table_refuses_is_not_acknowledged_and_can_be_sent_again() {
    let served = served().await;
    let token = served.register("a").await;
    let before = served.record("a").await;
    served.now(60);
    served.world.wire.breaks(|_, _| Some(Fault::Before("ThrottlingException")));
    let told = served.beat("a", &token).await;
    assert_eq!((told.code(), told.retry_after), ((503, "throttled"), Some(5)));
    let put = served.ask(Method::PUT, "/runtimes/box/a", Some(HOST), Vec::new()).await;
    assert_eq!((put.code(), put.retry_after), ((503, "throttled"), Some(5)));
    served.world.wire.mends();
    assert_eq!(served.record("a").await, before);
    assert_eq!(served.beat("a", &token).await.code(), (200, "recorded"), "it was not remembered as recorded");
    assert_eq!(served.record("a").await.idle_from, at(60));
}

#[tokio::test]
async fn in_a_batch_the_one_that_the_table_refused_is_told_and_the_others_are_recorded() {
    let served = served().await;
    served.register("a").await;
    served.register("b").await;
    served.now(60);
    served.world.wire.breaks(|_, nth| (nth == 0).then_some(Fault::Before("ProvisionedThroughputExceededException")));
    let batch = json!({ "heartbeats": [{ "runtime": "box/a" }, { "runtime": "box/b" }] });
    let told = served.post("/heartbeats", HOST, &batch).await;
    served.world.wire.mends();
    let answers = told.body["answers"].as_array().unwrap();
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer["status"].as_u64().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503]);
    for answer in answers {
        let name = answer["runtime"].as_str().unwrap().strip_prefix("box/").unwrap();
        let recorded = if answer["status"] == 200 { at(60) } else { at(0) };
        assert_eq!(served.record(name).await.idle_from, recorded, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_not_acknowledged_and_a_fault_of_ours_is_told_without_its_words() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    served.world.wire.breaks(|_, _| Some(Fault::After));
    assert_eq!(served.beat("a", &token).await.code(), (503, "unavailable"));
    served.world.wire.breaks(|_, _| Some(Fault::Before("AccessDeniedException")));
    served.now(61);
    let told = served.beat("a", &token).await;
    assert_eq!(told.code(), (500, "broken"));
    assert!(!told.body.to_string().contains("broken by the test"), "{told:?}");
    served.world.wire.mends();
    assert_eq!(served.beat("a", &token).await.status, 200);
}
