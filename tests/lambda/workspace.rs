//! The workspace function.

use std::collections::BTreeSet;

use axum::{Json, Router, http::HeaderMap, routing::post};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::{commit::Commit as _, key::Name, time::Clock};

use super::{
    cloud::{BUCKET, Cloud, Function, listen},
    heartbeat::{ask, event},
};

const ARN: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:furlough/workspaces-AbCdEf";
const HOST: &str = "the token of a host";
const INIT_KEY: &str = "a bootstrap key of some length";

fn keys() -> String {
    let host = json!({ "name": "ada", "token_sha256": heartbeat::keys::digest(HOST) });
    json!({ "workspace_keys": "a key of workspaces that is long enough", "hosts": [host] }).to_string()
}

async fn started(cloud: &Cloud) -> Function {
    let store = format!("s3://{BUCKET}");
    let environment = [
        ("FURLOUGH_WORKSPACE_KEYS", ARN),
        ("FURLOUGH_WORKSPACES", &store),
        ("FURLOUGH_ORIGIN", "https://id.execute-api.eu-central-1.amazonaws.com"),
    ];
    cloud.start("workspace", &environment).await
}

/// Whoever stands where a sidecar would: its address, and what it is told with which key.
async fn sidecar() -> (String, mpsc::UnboundedReceiver<(HeaderMap, Value)>) {
    let (told, deliveries) = mpsc::unbounded_channel();
    let init = async move |headers: HeaderMap, Json(body): Json<Value>| {
        // The test may have ended.
        let _ = told.send((headers, body));
        Json(json!({ "state": "ready", "error": null }))
    };
    (listen(Router::new().route("/init", post(init))).await, deliveries)
}

#[tokio::test]
async fn it_brings_a_workspace_to_a_sidecar_with_its_keys_in_secrets_manager_and_its_objects_in_s3() {
    let cloud = Cloud::new().await;
    cloud.secret(ARN, &keys());
    let mut function = started(&cloud).await;
    let (address, mut deliveries) = sidecar().await;
    let asked = json!({
        "sidecar": address, "init_key": INIT_KEY, "owner": "sandbox-1", "roots": { "project": "/workspace/project" },
        "activity": { "runtime": "box/a", "token": "fr1.1.0" }, "agent": { "session_api_keys": ["s3cret"] },
    });
    let init = |token| event("POST", "/workspaces/w/init", token, Some(&asked.to_string()), None);
    let (status, told) = ask(&mut function, init(Some(HOST))).await;
    assert_eq!((status, &told["state"]), (200, &json!("ready")), "{told} {}", function.log());
    let (headers, delivery) = deliveries.recv().await.unwrap();
    assert_eq!(headers["X-Init-API-Key"], INIT_KEY);
    let origin = "https://id.execute-api.eu-central-1.amazonaws.com";
    assert_eq!((&delivery["host"], &delivery["workspace"]["name"]), (&json!(origin), &json!("w")));
    assert_eq!(delivery["activity"], json!({ "runtime": "box/a", "token": "fr1.1.0", "host": origin }));
    assert_eq!((&delivery["head"], &delivery["signed"]), (&Value::Null, &json!([])), "it is new");
    let records = ledger::Workspaces::new(cloud.ledger.clone(), Clock::new(|| 0));
    let lease = records.lease(&Name::new("w").unwrap()).await.unwrap();
    assert_eq!(delivery["lease"], json!(lease.unwrap()));

    // What it answers with is all that a sandbox needs: no credential of AWS is told.
    let token = delivery["token"].as_str().unwrap();
    let fence = delivery["lease"]["token"].as_u64().unwrap();
    let key = format!("workspaces/w/layers/00000001-{fence:014}-00000000000000ab.tar.zst");
    let get = json!({ "get": { "key": key } }).to_string();
    let (status, told) = ask(&mut function, event("POST", "/workspaces/w/parts", Some(token), Some(&get), None)).await;
    assert_eq!(status, 200, "{told}");
    assert!(told["signed"][0]["url"].as_str().unwrap().contains("X-Amz-Signature="), "{told}");
    let foreign = event("POST", "/workspaces/v/parts", Some(token), Some(&get), None);
    assert_eq!(ask(&mut function, foreign).await.0, 401);

    let rights: BTreeSet<_> = settings::functions::WORKSPACE.permissions.iter().map(|right| right.action).collect();
    let asked: Vec<_> = cloud.asked();
    assert!(asked.iter().all(|call| rights.contains(call.as_str())), "it asks for what it has a right to: {asked:?}");
    let log = function.log();
    let secret = delivery["agent"]["secret_key"].as_str().unwrap();
    for hushed in [HOST, INIT_KEY, token, secret, "s3cret"] {
        assert!(!log.contains(hushed), "{log}");
    }
    let kept: Vec<u8> = cloud.objects("workspaces/").into_iter().flat_map(|(_, body)| body).collect();
    assert!(!kept.is_empty() && !kept.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()));
}

#[tokio::test]
async fn whom_the_gateway_authenticated_by_iam_is_a_host() {
    let cloud = Cloud::new().await;
    cloud.secret(ARN, &keys());
    let mut function = started(&cloud).await;
    let role = "arn:aws:sts::123456789012:assumed-role/host/session";
    let asked = |iam| event("POST", "/workspaces/w/deinit", None, Some("{}"), iam);
    assert_eq!(ask(&mut function, asked(Some(role))).await.0, 422, "it may ask, and has to say what");
    assert_eq!(ask(&mut function, asked(None)).await.0, 401);
}

#[tokio::test]
async fn without_keys_it_lets_nobody_in_and_an_alarm_hears_of_it() {
    let cloud = Cloud::new().await;
    let mut function = started(&cloud).await;
    let asked = || event("POST", "/workspaces/w/deinit", Some(HOST), Some("{}"), None);
    assert_eq!(ask(&mut function, asked()).await.0, 503);
    let metrics = function.metrics();
    assert!(metrics.iter().any(|line| line["ConfigFault"] == json!(1.0)), "{}", function.log());
    assert!(metrics.iter().any(|line| line["WorkspaceFailed"] == json!(1.0)), "{}", function.log());
    cloud.secret(ARN, &keys());
    assert_eq!(ask(&mut function, asked()).await.0, 422, "as soon as they are there");
}
