//! The OpenHands agent server's webhooks, as it sends them.

use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Served, served};
use crate::ledger::fixture::at;

const EVENTS: &str = "/hooks/openhands/box/a/events/3f2b1c0d9e8f4a5b8c7d6e5f4a3b2c1d";
const CONVERSATIONS: &str = "/hooks/openhands/box/a/conversations";

fn event(id: &str, second: u32) -> Value {
    json!({
        "kind": "ActionEvent", "id": id, "timestamp": format!("2026-11-30T13:00:{second:02}.123456"), "source": "agent",
        "tool_name": "terminal", "thought": [],
    })
}

fn status(id: &str, second: u32, value: &str) -> Value {
    json!({
        "kind": "ConversationStateUpdateEvent", "id": id, "timestamp": format!("2026-11-30T13:00:{second:02}.123456"),
        "source": "environment", "key": "execution_status", "value": value,
    })
}

async fn deliver(served: &Served, token: &str, events: Value) -> (u16, String) {
    let told = served.post(EVENTS, token, &events).await;
    let (status, code) = told.code();
    (status, code.to_owned())
}

#[tokio::test]
async fn a_delivery_is_activity_at_its_arrival_once() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    let first = json!([event("e1", 1), event("e2", 2)]);
    assert_eq!(deliver(&served, &token, first.clone()).await, (200, "recorded".to_owned()));
    let record = served.record("a").await;
    assert_eq!((record.idle_from, record.busy_until), (at(60), None), "the server's own clock is not ours");
    served.now(200);
    assert_eq!(deliver(&served, &token, first).await, (200, "coalesced".to_owned()));
    assert_eq!(served.record("a").await.idle_from, at(60), "the same again does nothing");
    served.now(240);
    assert_eq!(deliver(&served, &token, json!([event("e3", 3)])).await, (200, "recorded".to_owned()));
    assert_eq!(served.record("a").await.idle_from, at(240));
}

#[tokio::test]
async fn a_run_that_begins_makes_it_busy() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    let running = json!([status("e1", 1, "running"), event("e2", 2)]);
    assert_eq!(deliver(&served, &token, running).await, (200, "recorded".to_owned()));
    assert_eq!(served.record("a").await.busy_until, Some(at(60 + 3_600)));
    served.now(120);
    let conversation =
        json!({ "id": "3f2b", "title": "x", "execution_status": "running", "workspace": { "working_dir": "/w" } });
    assert_eq!(served.post(CONVERSATIONS, &token, &conversation).await.code(), (200, "recorded"));
    assert_eq!(served.record("a").await.busy_until, Some(at(120 + 3_600)));
    served.now(180);
    let paused = json!({ "id": "3f2b", "execution_status": "paused" });
    assert_eq!(served.post(CONVERSATIONS, &token, &paused).await.code(), (200, "recorded"));
    let record = served.record("a").await;
    assert_eq!((record.idle_from, record.busy_until), (at(180), Some(at(120 + 3_600))));
}

#[tokio::test]
async fn a_delivery_that_is_too_large_to_be_looked_at_is_activity_all_the_same() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    let mut large = event("e1", 1);
    large["observation"] = "x".repeat(4 << 20).into();
    assert_eq!(deliver(&served, &token, json!([large])).await, (200, "recorded".to_owned()));
    assert_eq!(served.record("a").await.idle_from, at(60));
    served.now(120);
    let told = served.ask(Method::POST, EVENTS, Some(&token), vec![b' '; 10 << 20]).await;
    assert_eq!((told.code(), served.record("a").await.idle_from), ((413, "too_large"), at(60)));
}

#[tokio::test]
async fn what_is_no_delivery_or_nobodys_changes_nothing() {
    let served = served().await;
    let token = served.register("a").await;
    served.now(60);
    served.world.wire.calls();
    let told = served.ask(Method::POST, EVENTS, Some(&token), b"{".to_vec()).await;
    assert_eq!(told.code(), (400, "malformed"));
    let told = served.ask(Method::POST, EVENTS, Some("wrong"), b"[]".to_vec()).await;
    assert_eq!(told.code(), (401, "unauthorized"));
    let told = served.ask(Method::POST, EVENTS, None, b"[]".to_vec()).await;
    assert_eq!(told.code(), (401, "unauthorized"));
    assert_eq!(served.world.wire.calls().len(), 0);
}
