//! Who may, and who may not: each with the right status, and nothing changed.

use reqwest::Method;
use serde_json::json;

use super::bench::{BOUND, Gateway, HOST, KEY, NEWER, Served, served, served_behind};
use crate::ledger::fixture::at;

/// What it was told, and that it changed nothing.
async fn refused(served: &Served, token: &str) -> u16 {
    let before = served.record("a").await;
    let told = served.beat("a", token).await;
    assert_eq!(served.record("a").await, before);
    assert!(!told.body.to_string().contains(token), "{told:?}");
    told.status
}

#[tokio::test]
async fn a_wrong_token_another_runtimes_and_a_tampered_one_prove_nothing() {
    let served = served().await;
    let own = served.register("a").await;
    let anothers = served.register("b").await;
    served.now(60);
    let of_a_later_life = own.replacen("fr1.1.", "fr1.2.", 1);
    for token in ["wrong", "fr1.1.00", &"0".repeat(500), &anothers, &of_a_later_life] {
        assert_eq!(refused(&served, token).await, 401, "{token}");
    }
    let nobody = served.ask(Method::POST, "/runtimes/box/a/heartbeat", None, Vec::new()).await;
    assert_eq!(nobody.code(), (401, "unauthorized"));
    assert_eq!(served.beat("a", &own).await.status, 200);
}

#[tokio::test]
async fn two_keys_are_good_in_a_rotation_and_an_expired_one_is_not() {
    let served = served().await;
    let old = served.register("a").await;
    served.rotate(&[NEWER, KEY]);
    served.now(100);
    assert_eq!(served.beat("a", &old).await.status, 200);
    served.now(200);
    let new = served.register("a").await;
    served.rotate(&[NEWER]);
    served.now(300);
    assert_eq!(refused(&served, &old).await, 401);
    assert_eq!(served.beat("a", &new).await.status, 200);
}

#[tokio::test]
async fn a_token_under_a_key_that_is_newer_than_ours_is_looked_for() {
    let (signing, warm) = (served().await, served().await);
    signing.rotate(&[NEWER, KEY]);
    signing.now(100);
    let token = signing.register("a").await;
    warm.register("a").await;
    warm.rotate(&[NEWER, KEY]);
    warm.now(5);
    assert_eq!(warm.beat("a", &token).await.status, 401, "not at every wrong token");
    warm.now(11);
    assert_eq!(warm.beat("a", &token).await.status, 200);
}

#[tokio::test]
async fn a_runtimes_token_registers_nobody_and_a_hosts_is_bound_to_its_backends() {
    let served = served().await;
    let token = served.register("a").await;
    let put = async |path: &str, token: &str| served.ask(Method::PUT, path, Some(token), Vec::new()).await;
    assert_eq!(put("/runtimes/box/a", &token).await.code(), (403, "forbidden"));
    assert_eq!(put("/runtimes/box/b", &token).await.code(), (401, "unauthorized"));
    assert_eq!(put("/runtimes/box/b", BOUND).await.code(), (403, "forbidden"));
    assert_eq!(put("/runtimes/other/b", BOUND).await.code(), (404, "unknown_backend"));
    assert_eq!(served.record("a").await.epoch, 1);
    assert_eq!(served.world.item("b").await, None);
}

#[tokio::test]
async fn whom_the_gateway_has_authenticated_is_a_host_and_no_header_says_so() {
    let behind = served_behind(Gateway::Iam).await;
    let told = behind.ask(Method::PUT, "/runtimes/box/a", None, Vec::new()).await;
    assert_eq!(told.code(), (200, "registered"));
    behind.now(60);
    let beat = behind.ask(Method::POST, "/runtimes/box/a/heartbeat", None, Vec::new()).await;
    assert_eq!((beat.code(), behind.record("a").await.idle_from), ((200, "recorded"), at(60)));
    let wrong = behind.beat("a", "wrong").await;
    assert_eq!(wrong.status, 401, "who shows a token is taken by it");

    let open = served().await;
    let told = open.ask(Method::PUT, "/runtimes/box/a", None, Vec::new()).await;
    assert_eq!(told.code(), (401, "unauthorized"));
}

#[tokio::test]
async fn what_is_not_there_is_told_before_anybody_is_asked_who_he_is() {
    let served = served().await;
    let ask = async |method: Method, path: &str| served.ask(method, path, None, Vec::new()).await;
    assert_eq!(ask(Method::GET, "/health").await.code(), (200, "alive"));
    assert_eq!(ask(Method::GET, "/nothing").await.code(), (404, "unknown_path"));
    for (path, takes) in [("/runtimes/box/a", "PUT"), ("/runtimes/box/a/heartbeat", "POST"), ("/health", "GET")] {
        let told = ask(Method::DELETE, path).await;
        assert_eq!((told.code(), told.allow.as_deref()), ((405, "method"), Some(takes)), "{path}");
    }
    assert_eq!(ask(Method::PUT, "/runtimes/b%20x/a").await.code(), (400, "malformed"));
    assert_eq!(served.post("/heartbeats", HOST, &json!({ "heartbeats": [] })).await.status, 400);
    assert_eq!(served.world.wire.calls().len(), 0);
}
