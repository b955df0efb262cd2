//! Who may ask for what.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use workspace::{
    commit::{Acquired, Commit as _, Lease},
    key::Name,
};

use super::lab::{HOST, Host, keys};

async fn leased(host: &Host) -> Lease {
    let granted = host.commit.acquire(&Name::new("w").unwrap(), "sandbox", Duration::from_mins(1)).await.unwrap();
    let Acquired::Granted { lease, .. } = granted else { panic!("{granted:?}") };
    lease
}

fn layer(name: &str, fence: u64) -> String {
    format!("workspaces/{name}/layers/00000001-{fence:014}-00000000000000ab.tar.zst")
}

#[tokio::test]
async fn nobody_without_a_token_of_the_workspace_is_answered() {
    let host = Host::new().await;
    let lease = leased(&host).await;
    let ask = json!({ "get": { "key": layer("w", lease.token) } });
    let foreign = keys("another").sign(workspace_function::TOKEN, "w", lease.token);
    for token in ["", "hush", HOST, &Host::token("v", lease.token), &foreign.reveal(workspace_function::TOKEN)] {
        let (status, body) = host.post("w/parts", token, &ask).await;
        assert_eq!((status, &body["code"]), (StatusCode::UNAUTHORIZED, &json!("unauthorized")), "{token}");
    }
    for token in ["", "hush", &Host::token("w", lease.token)] {
        assert_eq!(host.post("w/init", token, &json!({})).await.0, StatusCode::UNAUTHORIZED, "{token}");
        assert_eq!(host.post("w/deinit", token, &json!({})).await.0, StatusCode::UNAUTHORIZED, "{token}");
    }
    assert_eq!(host.post("w/parts", &Host::token("w", lease.token), &ask).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_sandbox_has_nothing_signed_outside_its_workspace_and_its_lease() {
    let host = Host::new().await;
    let lease = leased(&host).await;
    let token = Host::token("w", lease.token);
    let old = layer("w", lease.token - 1);
    let secret = "workspaces/w/secret-key".to_owned();
    for ask in [
        json!({ "get": { "key": layer("v", lease.token) } }),
        json!({ "get": { "key": secret } }),
        json!({ "put": { "key": secret, "bytes": 1 } }),
        json!({ "put": { "key": layer("v", lease.token), "bytes": 1 } }),
        json!({ "put": { "key": old, "bytes": 1 } }),
        json!({ "begin": { "key": old } }),
        json!({ "begin": { "key": "workspaces/w/layers/../../v" } }),
        json!({ "parts": { "key": layer("v", 1), "upload": "u", "parts": [[1, 1]] } }),
        json!({ "complete": { "key": layer("v", 1), "upload": "u", "tags": [] } }),
        json!({ "abort": { "key": layer("v", 1), "upload": "u" } }),
    ] {
        let (status, body) = host.post("w/parts", &token, &ask).await;
        assert_eq!((status, &body["code"]), (StatusCode::CONFLICT, &json!("refused")), "{ask}");
    }
}

#[tokio::test]
async fn a_lease_is_the_one_that_the_token_was_given_for() {
    let host = Host::new().await;
    let old = leased(&host).await;
    let lease = leased(&host).await;
    assert_eq!(lease.token, old.token + 1);
    let asked = |lease: &Lease| json!({ "lease": lease, "ttl_ms": 1000 });
    let (of_old, of_new) = (Host::token("w", old.token), Host::token("w", lease.token));
    assert_eq!(host.post("w/lease", &of_old, &asked(&lease)).await.0, StatusCode::CONFLICT);
    assert_eq!(host.post("w/lease", &of_old, &asked(&old)).await, (StatusCode::OK, json!("lost")));
    let (status, body) = host.post("w/lease", &of_new, &asked(&lease)).await;
    assert!(status == StatusCode::OK && body["until_ms"].is_i64(), "{body}");

    let elsewhere = Lease { workspace: Name::new("v").unwrap(), ..lease.clone() };
    let release = |lease: &Lease| json!({ "release": { "lease": lease } });
    assert_eq!(host.post("w/commit", &of_new, &release(&elsewhere)).await.0, StatusCode::CONFLICT);
    assert_eq!(host.post("w/commit", &of_new, &release(&lease)).await, (StatusCode::OK, json!("done")));
    assert_eq!(host.lease().await, None);
}

#[tokio::test]
async fn a_head_that_was_not_written_under_the_lease_is_refused() {
    let host = Host::new().await;
    let lease = leased(&host).await;
    let head = json!({
        "manifest": format!("workspaces/v/manifests/00000001-{:014}-00000000000000ab.json", lease.token),
        "blake3": "00", "generation": 1, "as_of_ms": 1, "bytes": 1,
    });
    let commit = json!({ "commit": { "lease": lease, "replaces": 0, "head": head, "release": true } });
    let answer = host.post("w/commit", &Host::token("w", lease.token), &commit).await;
    assert_eq!((answer.0, &answer.1["code"]), (StatusCode::CONFLICT, &json!("refused")), "{answer:?}");
    assert_eq!(host.generation().await, 0);
}

#[tokio::test]
async fn what_is_malformed_is_refused_without_being_quoted() {
    let host = Host::new().await;
    let token = Host::token("w", 1);
    for (path, token, body) in [
        ("w/parts", &*token, json!({ "get": { "key": "k", "hush": 1 } })),
        ("w/parts", &token, json!({ "hush": 1 })),
        ("w/lease", &token, json!({ "hush": 1 })),
        ("w/commit", &token, json!({ "hush": 1 })),
        ("w/init", HOST, json!({ "hush": 1 })),
        ("w/deinit", HOST, json!({ "sidecar": "hush", "init_key": "hush" })),
    ] {
        let (status, body) = host.post(path, token, &body).await;
        assert_eq!((status, &body["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("malformed")), "{path}");
        assert!(!body.to_string().contains("hush"), "{body}");
    }
    let large: Value = json!({ "hush": "x".repeat(workspace_function::MAX_BODY_BYTES) });
    assert_eq!(host.post("w/parts", &token, &large).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let get = host.client.get(format!("{}/workspaces/w/init", host.base)).send().await.unwrap();
    assert_eq!((get.status(), &get.headers()["allow"]), (StatusCode::METHOD_NOT_ALLOWED, &"POST".parse().unwrap()));
    for path in ["w/other", ".w.", "../lease", "w"] {
        assert_eq!(host.post(path, &token, &json!({})).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}
