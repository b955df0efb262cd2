//! What counts as work, whom it is told, and when there is a push after it.

use std::{sync::Arc, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sidecar::activity::{
    BUSY_FOR,
    beat::{Answered, End},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::lab::{Host, Lab, ready, session_key, until};

const LONG: Duration = Duration::from_hours(1);

async fn watched(host: &Arc<Host>, save_after: Duration) -> (Lab, Value) {
    let lab = Lab::watching(host, save_after).await;
    let mut delivery = host.delivery("a", &lab).await;
    delivery["activity"] = json!({ "runtime": "docker/a", "token": "first", "host": "http://host.example" });
    assert_eq!(lab.init(&delivery).await, ready());
    (lab, delivery)
}

/// So many looks have been, by the real clock of a real child process.
async fn some_looks() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

async fn beaten(host: &Host, busy_for: Option<Duration>) {
    until("a heartbeat", async || host.beats().contains(&("first".to_owned(), busy_for))).await;
}

#[tokio::test]
async fn who_only_looks_and_who_is_refused_does_not_work() {
    let host = Host::new();
    let (lab, _) = watched(&host, LONG).await;
    for path in ["/told", "/api/conversations/search", "/server_info"] {
        assert_eq!(lab.get("a", path).await.0, StatusCode::OK);
    }
    assert_eq!(lab.ask("another", Method::POST, "/move", "").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(lab.post("/init", "no key", &json!({})).await.0, StatusCode::UNAUTHORIZED);
    some_looks().await;
    assert_eq!(host.beats(), [], "and neither do our own looks, nor what a killed server has left running");
    assert_eq!(lab.ask("a", Method::POST, "/echo", "x").await, (StatusCode::OK, "x".to_owned()));
    beaten(&host, None).await;
}

#[tokio::test]
async fn while_a_request_is_not_answered_there_is_work() {
    let host = Host::new();
    let (lab, _) = watched(&host, LONG).await;
    let asked = lab.client.post(format!("{}/wait{}", lab.base, lab.scratch().join("end").display()));
    let answered = tokio::spawn(asked.header("X-Session-API-Key", session_key("a")).send());
    beaten(&host, Some(BUSY_FOR)).await;
    host.beats();
    beaten(&host, Some(BUSY_FOR)).await;
    std::fs::write(lab.scratch().join("end"), "").unwrap();
    assert_eq!(answered.await.unwrap().unwrap().status(), StatusCode::OK);
    until("it is over", async || {
        host.beats();
        some_looks().await;
        host.beats().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_websocket_works_when_its_client_speaks_and_not_when_it_listens() {
    let host = Host::new();
    let (lab, _) = watched(&host, LONG).await;
    let request = lab.client.get(format!("{}/socket", lab.base)).header("X-Session-API-Key", session_key("a"));
    let request = request.header("connection", "upgrade").header("upgrade", "websocket");
    let mut socket = request.send().await.unwrap().upgrade().await.unwrap();
    let mut echoed = [0; 12];
    // A pong, masked, and its two echoes.
    socket.write_all(&[0x8a, 0x80, 1, 2, 3, 4]).await.unwrap();
    socket.read_exact(&mut echoed).await.unwrap();
    some_looks().await;
    assert_eq!(host.beats(), []);
    socket.write_all(&[0x81, 0x80, 1, 2, 3, 4]).await.unwrap();
    socket.read_exact(&mut echoed).await.unwrap();
    beaten(&host, None).await;
}

#[tokio::test]
async fn a_conversation_that_moves_and_a_command_without_an_exit_code_keep_their_runtime_busy() {
    let host = Host::new();
    let (lab, _) = watched(&host, LONG).await;
    let events = "/api/bash/bash_events/search";
    let event = async |event: Value| {
        let request = lab.client.put(format!("{}{events}", lab.base)).header("X-Session-API-Key", session_key("a"));
        assert_eq!(request.json(&event).send().await.unwrap().status(), StatusCode::OK);
    };
    event(json!({ "kind": "BashCommand", "id": "b1" })).await;
    beaten(&host, Some(BUSY_FOR)).await;
    host.beats();
    beaten(&host, Some(BUSY_FOR)).await;
    event(json!({ "kind": "BashOutput", "id": "b2", "command_id": "b1", "exit_code": 0 })).await;
    until("it is over", async || {
        host.beats();
        some_looks().await;
        host.beats().is_empty()
    })
    .await;
    assert_eq!(lab.ask("a", Method::POST, "/move", "").await.0, StatusCode::OK);
    beaten(&host, Some(BUSY_FOR)).await;
    host.beats();
    beaten(&host, Some(BUSY_FOR)).await;
}

#[tokio::test]
async fn a_registration_that_is_over_is_told_of_and_a_newer_one_is_taken() {
    let host = Host::new();
    let (lab, mut delivery) = watched(&host, LONG).await;
    for (end, word) in [(End::Superseded, "superseded"), (End::Gone, "gone")] {
        *host.answer.lock().unwrap() = Answered::Ended(end);
        lab.write("a", &lab.root().join(word), word).await;
        let told = json!({ "state": "ready", "error": null, "heartbeats": word });
        until("the state says so", async || lab.state().await == told).await;
        until("it was pushed", async || host.generation("a").await > 0).await;
        host.beats();
        assert_eq!(lab.ask("a", Method::POST, "/echo", "").await.0, StatusCode::OK);
        some_looks().await;
        assert_eq!(host.beats(), [], "what can't be taken is not sent");

        *host.answer.lock().unwrap() = Answered::Taken { wait: Duration::ZERO };
        delivery["activity"]["token"] = json!(format!("after {word}"));
        lab.init(&delivery).await;
        let newer = (format!("after {word}"), None);
        until("the newer token", async || host.beats().contains(&newer)).await;
        until("the state says so", async || lab.state().await == ready().1).await;
    }
}

#[tokio::test]
async fn a_while_after_the_last_sign_of_work_there_is_a_push() {
    let host = Host::new();
    let lab = Lab::watching(&host, Duration::from_millis(200)).await;
    let delivery = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&delivery).await, ready());
    some_looks().await;
    let before = host.generation("a").await;
    lab.write("a", &lab.root().join("work"), "of a day").await;
    until("a push", async || host.generation("a").await > before).await;
    some_looks().await;
    assert_eq!(host.generation("a").await, before + 1, "one");
    assert_eq!(host.beats(), [], "nobody is told who is not named");
}

#[tokio::test]
async fn what_a_push_has_kept_is_told_whether_it_changed_anything_or_not() {
    let host = Host::new();
    let (lab, _) = watched(&host, Duration::from_millis(200)).await;
    let saves = || std::mem::take(&mut *host.saves.lock().unwrap());
    saves();
    lab.write("a", &lab.root().join("work"), "of a day").await;
    until("a push", async || host.generation("a").await == 1).await;
    until("it is told", async || saves().iter().any(|save| save.generation == 1)).await;
    assert_eq!(lab.ask("a", Method::POST, "/echo", "x").await.0, StatusCode::OK);
    until("it is told again", async || !host.saves.lock().unwrap().is_empty()).await;
    let told = saves();
    assert!(told.iter().all(|save| (save.workspace.as_str(), save.generation) == ("a", 1)), "{told:?}");
    host.cut(true);
    lab.write("a", &lab.root().join("work"), "of another day").await;
    some_looks().await;
    some_looks().await;
    assert_eq!(saves(), [], "what could not be pushed is not kept");
    host.cut(false);
}
