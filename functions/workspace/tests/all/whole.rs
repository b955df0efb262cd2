//! From a host's question to a server that answers, and back.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::lab::{HOST, Host, Sandbox, root};

fn is_ready(answer: &(StatusCode, Value), sandbox: &Sandbox) {
    let status = format!("{}/init", sandbox.base);
    assert_eq!(*answer, (StatusCode::OK, json!({ "state": "ready", "status": status })));
}

#[tokio::test]
async fn a_workspace_goes_from_one_sandbox_to_another_with_its_secret_key() {
    let (_folder, root) = root();
    let host = Host::new().await;
    let one = Sandbox::new(&host, &root).await;
    is_ready(&host.init(&one).await, &one);
    let secret = one.told().await["secret_key"].as_str().unwrap().to_owned();
    assert_eq!(secret.len(), 64);
    // Larger than two parts of an upload, and not to be compressed: every request of the protocol is made.
    let large: Vec<u8> = (0..20_u32 << 15).flat_map(|at| *blake3::hash(&at.to_le_bytes()).as_bytes()).collect();
    std::fs::write(root.join("large"), &large).unwrap();
    one.write("notes", "of a day").await;
    assert_eq!(host.deinit(&one).await.0, StatusCode::OK);
    assert_eq!((host.generation().await, host.lease().await), (1, None), "pushed, and the lease given back");
    assert!(!root.exists());

    let other = Sandbox::new(&host, &root).await;
    is_ready(&host.init(&other).await, &other);
    assert_eq!(other.told().await["secret_key"], secret);
    assert_eq!(std::fs::read_to_string(root.join("notes")).unwrap(), "of a day");
    assert!(std::fs::read(root.join("large")).unwrap() == large, "the large file is another one");
    let kept = host.kept();
    assert!(!kept.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "the secret key is kept in clear");
    assert_eq!(host.deinit(&other).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_pull_asks_the_host_for_nothing_but_what_has_ended() {
    let (_folder, root) = root();
    let host = Host::new().await;
    let one = Sandbox::new(&host, &root).await;
    is_ready(&host.init(&one).await, &one);
    one.write("notes", "of a day").await;
    assert_eq!(host.deinit(&one).await.0, StatusCode::OK);
    assert!(host.asked() > 0, "a push asks");

    let two = Sandbox::new(&host, &root).await;
    is_ready(&host.init(&two).await, &two);
    assert_eq!(host.asked(), 0, "what a pull reads comes with the delivery");
    two.write("notes", "of another day").await;
    assert_eq!(host.deinit(&two).await.0, StatusCode::OK);

    host.asked();
    let late = Sandbox::late(&host, &root).await;
    is_ready(&host.init(&late).await, &late);
    assert_eq!(host.asked(), 3, "the manifest and two layers, signed anew in the middle");
    assert_eq!(std::fs::read_to_string(root.join("notes")).unwrap(), "of another day");
}

#[tokio::test]
async fn a_question_whose_answer_was_lost_is_asked_again_and_another_sandbox_is_told_who_has_it() {
    let ((_folder, root), (_elsewhere, other_root)) = (root(), root());
    let host = Host::new().await;
    let (one, other) = (Sandbox::new(&host, &root).await, Sandbox::new(&host, &other_root).await);
    is_ready(&host.init(&one).await, &one);
    is_ready(&host.init(&one).await, &one);
    let until = host.lease().await.unwrap().until_ms;
    let detail = format!("workspace `w` is held by `{}` until {until}", one.owner);
    assert_eq!(host.init(&other).await, (StatusCode::CONFLICT, json!({ "code": "refused", "detail": detail })));
    assert_eq!(other.state().await, "dormant");
}

#[tokio::test]
async fn what_takes_longer_than_an_http_api_waits_goes_on() {
    let (_folder, root) = root();
    let host = Host::patient(Duration::from_millis(1)).await;
    let sandbox = Sandbox::new(&host, &root).await;
    let status = format!("{}/init", sandbox.base);
    let under_way = (StatusCode::ACCEPTED, json!({ "state": "under way", "status": status }));
    assert_eq!(host.init(&sandbox).await, under_way);
    sandbox.until_state("ready").await;
    assert_eq!(host.deinit(&sandbox).await, under_way);
    sandbox.until_state("dormant").await;
    assert_eq!(host.lease().await, None);
}

#[tokio::test]
async fn a_sandbox_that_refuses_has_no_lease() {
    let (_folder, root) = root();
    let host = Host::new().await;
    let sandbox = Sandbox::new(&host, &root).await;
    let mut asked = sandbox.asked();
    asked["agent"]["bogus"] = json!(true);
    let detail = "the sidecar refused with 500: the agent server refused its init with 422 Unprocessable Entity";
    let refused = (StatusCode::BAD_GATEWAY, json!({ "code": "refused", "detail": detail }));
    assert_eq!(host.post("w/init", HOST, &asked).await, refused);
    assert_eq!(host.lease().await, None);

    let mut wrong_key = sandbox.asked();
    wrong_key["init_key"] = json!("another bootstrap key, just as long");
    let (status, body) = host.post("w/init", HOST, &wrong_key).await;
    assert_eq!((status, host.lease().await), (StatusCode::BAD_GATEWAY, None), "{body}");
    // Where nothing listens. It may be there soon, and would have the same delivery.
    let mut nowhere = sandbox.asked();
    nowhere["sidecar"] = json!("http://127.0.0.1:9");
    let (status, body) = host.post("w/init", HOST, &nowhere).await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_GATEWAY, &json!("busy")), "{body}");
    is_ready(&host.init(&sandbox).await, &sandbox);
}
