//! From dormant to ready and back, with everything that can fail on the way.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::lab::{Host, KEY, Lab, ready, refused, until};

fn files<const N: usize>(files: [(&str, &str); N]) -> BTreeMap<String, String> {
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

async fn woken(host: &Arc<Host>) -> Lab {
    let lab = Lab::new(host).await;
    let delivery = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&delivery).await, ready());
    lab
}

/// Status is 200, and the word is whatever the pool has come to.
async fn is_asleep(lab: &Lab) {
    let (status, body) = lab.deinit().await;
    assert_eq!((status, &body["error"]), (StatusCode::OK, &Value::Null), "{body}");
    assert_eq!(lab.files(), BTreeMap::new());
}

#[tokio::test]
async fn what_is_edited_in_one_sandbox_is_there_in_another() {
    let host = Host::new();
    let one = woken(&host).await;
    one.write("a", &one.root().join("src/main.rs"), "fn main() {}").await;
    is_asleep(&one).await;
    assert_eq!(host.generation("a").await, 1);

    let other = Lab::like(&one, &host).await;
    let delivery = host.delivery("a", &other).await;
    assert_eq!(other.init(&delivery).await, ready());
    assert_eq!(other.files(), files([("src/main.rs", "fn main() {}")]));
    let told: Value = serde_json::from_str(&other.get("a", "/told").await.1).unwrap();
    assert_eq!(told["secret_key"], "secret of a");
    other.write("a", &other.root().join("src/lib.rs"), "").await;
    is_asleep(&other).await;
    assert_eq!(host.generation("a").await, 2);
}

#[tokio::test]
async fn the_same_delivery_again_is_done_and_another_one_is_not() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    let (delivery, another) = (host.delivery("a", &lab).await, host.delivery("b", &lab).await);
    assert_eq!(lab.init(&delivery).await, ready());
    assert_eq!(lab.init(&delivery).await, ready());
    let already = refused(StatusCode::BAD_REQUEST, "server already in state: ready");
    assert_eq!(lab.init(&another).await, already);
    let mut other_token = delivery.clone();
    other_token["token"] = json!("another");
    assert_eq!(lab.init(&other_token).await, already);
}

#[tokio::test]
async fn a_deinit_that_means_another_workspace_changes_nothing() {
    let host = Host::new();
    let lab = woken(&host).await;
    let another = lab.post("/deinit", KEY, &json!({ "workspace": "b" })).await;
    assert_eq!(another, refused(StatusCode::CONFLICT, "the sandbox has another workspace"));
    assert_eq!(lab.state().await["state"], "ready");
    assert_eq!(lab.post("/deinit", KEY, &json!({ "workspace": "a" })).await.0, StatusCode::OK);
}

#[tokio::test]
async fn of_many_at_once_one_delivery_wins() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    let deliveries = [host.delivery("a", &lab).await, host.delivery("b", &lab).await, host.delivery("c", &lab).await];
    let answers = futures::future::join_all(deliveries.iter().map(|delivery| lab.init(delivery))).await;
    let won = answers.iter().filter(|answer| **answer == ready()).count();
    let lost = answers.iter().filter(|(status, _)| *status == StatusCode::BAD_REQUEST).count();
    assert_eq!((won, lost), (1, 2), "{answers:?}");
}

#[tokio::test]
async fn nobody_without_the_key_changes_anything() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    let delivery = host.delivery("a", &lab).await;
    let unauthorized = refused(StatusCode::UNAUTHORIZED, "send the bootstrap key in `X-Init-API-Key`");
    for key in ["", "another", &KEY[1..], &super::lab::session_key("a")] {
        assert_eq!(lab.post("/init", key, &delivery).await, unauthorized);
        assert_eq!(lab.post("/api/deinit", key, &json!({})).await, unauthorized);
    }
    assert_eq!(lab.state().await, json!({ "state": "dormant", "error": null }));
    assert_eq!(lab.post("/api/init", KEY, &delivery).await, ready());
    assert_eq!(lab.post("/deinit", &super::lab::session_key("a"), &json!({})).await, unauthorized);
    assert_eq!(lab.state().await["state"], "ready");
}

#[tokio::test]
async fn a_dormant_sidecar_answers_for_itself_alone() {
    let lab = Lab::new(&Host::new()).await;
    for path in ["/health", "/alive", "/ready", "/server_info", "/api/init"] {
        assert_eq!(lab.get("a", path).await.0, StatusCode::OK, "{path}");
    }
    let answer = lab.client.get(format!("{}/api/conversations/count", lab.base)).send().await.unwrap();
    assert_eq!(
        (answer.status(), &answer.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
    let unknown = lab.post("/deinit", KEY, &json!({ "force": true })).await;
    assert_eq!(
        unknown,
        refused(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the body is empty, or has `workspace` and `discard`, and nothing else"
        )
    );
    assert_eq!(lab.deinit().await.0, StatusCode::OK, "asleep already");
}

#[tokio::test]
async fn a_pull_that_fails_is_undone_and_can_be_tried_again() {
    let host = Host::new();
    let lab = woken(&host).await;
    lab.write("a", &lab.root().join("kept"), "kept").await;
    is_asleep(&lab).await;
    lab.until_state("dormant").await;

    let delivery = host.delivery("a", &lab).await;
    host.cut(true);
    let (status, body) = lab.init(&delivery).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body["detail"].as_str().unwrap().contains("the wire is cut"), "{body}");
    let state = lab.state().await;
    assert_eq!((&state["state"], &state["error"]), (&json!("dormant"), &body["detail"]));
    host.cut(false);
    assert_eq!(lab.init(&delivery).await, ready());
    assert_eq!(lab.files(), files([("kept", "kept")]));
}

#[tokio::test]
async fn an_init_that_the_server_refuses_or_that_leaves_it_open_is_undone() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    for (flaw, why) in [
        ("bogus", "the agent server refused its init with 422 Unprocessable Entity"),
        ("open", "the agent server answers 200 OK to whoever has no key"),
    ] {
        let mut delivery = host.delivery("a", &lab).await;
        delivery["agent"][flaw] = json!(true);
        assert_eq!(lab.init(&delivery).await, refused(StatusCode::INTERNAL_SERVER_ERROR, why));
        assert_eq!(lab.files(), BTreeMap::new());
        lab.until_state("dormant").await;
    }
    let delivery = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&delivery).await, ready());
}

#[tokio::test]
async fn what_is_there_is_neither_pulled_over_nor_wiped() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    std::fs::create_dir_all(lab.root()).unwrap();
    std::fs::write(lab.root().join("of the image"), "there").unwrap();
    let delivery = host.delivery("a", &lab).await;
    let why = format!("`{}` is not empty: nothing is pulled over what is there", lab.root().display());
    assert_eq!(lab.init(&delivery).await, refused(StatusCode::INTERNAL_SERVER_ERROR, &why));
    assert_eq!(lab.files(), files([("of the image", "there")]));
}

#[tokio::test]
async fn a_push_that_fails_leaves_everything_and_can_be_tried_again() {
    let host = Host::new();
    let lab = woken(&host).await;
    lab.write("a", &lab.root().join("work"), "of a day").await;
    host.cut(true);
    let (status, body) = lab.deinit().await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(lab.state().await, json!({ "state": "held", "error": body["detail"] }));
    assert_eq!(lab.files(), files([("work", "of a day")]));
    assert_eq!(lab.get("a", "/told").await.0, StatusCode::SERVICE_UNAVAILABLE);
    let another = host.delivery("b", &lab).await;
    assert_eq!(lab.init(&another).await, refused(StatusCode::BAD_REQUEST, "server already in state: held"));

    host.cut(false);
    is_asleep(&lab).await;
    assert_eq!(host.generation("a").await, 1);
}

#[tokio::test]
async fn a_held_workspace_is_served_again_as_it_was() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    let delivery = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&delivery).await, ready());
    lab.write("a", &lab.root().join("work"), "of a day").await;
    host.cut(true);
    assert_eq!(lab.deinit().await.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(lab.init(&delivery).await, ready());
    assert_eq!(lab.get("a", "/told").await.0, StatusCode::OK);
    assert_eq!(lab.files(), files([("work", "of a day")]));
}

#[tokio::test]
async fn a_copy_whose_lease_is_lost_is_given_up_when_somebody_says_so() {
    let host = Host::new();
    let lab = woken(&host).await;
    lab.write("a", &lab.root().join("work"), "lost").await;
    // The same owner asks anew, as a host does that believes the sandbox gone.
    host.delivery("a", &lab).await;
    let lost = "the lease is another one's by now; deinit with `discard` gives this copy up";
    assert_eq!(lab.deinit().await, refused(StatusCode::INTERNAL_SERVER_ERROR, lost));
    assert_eq!(lab.files(), files([("work", "lost")]));
    assert_eq!(lab.post("/deinit", KEY, &json!({ "discard": true })).await.0, StatusCode::OK);
    assert_eq!((lab.files(), host.generation("a").await), (BTreeMap::new(), 0));
}

#[tokio::test]
async fn a_server_that_dies_is_replaced_and_told_the_same() {
    let host = Host::new();
    let lab = woken(&host).await;
    lab.write("a", &lab.root().join("work"), "of a day").await;
    for _ in 0..2 {
        let before = lab.variables("a").await;
        let request =
            lab.client.post(format!("{}/die", lab.base)).header("X-Session-API-Key", super::lab::session_key("a"));
        assert_eq!(request.send().await.unwrap().status(), StatusCode::BAD_GATEWAY);
        until("another server serves", async || {
            let (status, text) = lab.get("a", "/variables").await;
            status == StatusCode::OK
                && serde_json::from_str::<BTreeMap<String, String>>(&text).unwrap()["PORT"] != before["PORT"]
        })
        .await;
    }
    let told: Value = serde_json::from_str(&lab.get("a", "/told").await.1).unwrap();
    assert_eq!(told["secret_key"], "secret of a");
    assert_eq!(lab.files(), files([("work", "of a day")]));
    is_asleep(&lab).await;
    assert_eq!(host.generation("a").await, 1);
}

#[tokio::test]
async fn what_has_changed_is_pushed_while_the_server_runs() {
    let host = Host::new();
    let lab = Lab::pushing_every(&host, Duration::from_millis(50)).await;
    let delivery = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&delivery).await, ready());
    until("the first push", async || host.generation("a").await == 1).await;
    lab.write("a", &lab.root().join("work"), "of a day").await;
    until("the next push", async || host.generation("a").await >= 2).await;
    assert_eq!(lab.get("a", "/told").await.0, StatusCode::OK, "it serves all the time");
    is_asleep(&lab).await;
}

#[tokio::test]
async fn at_its_end_the_sidecar_pushes_first() {
    let host = Host::new();
    let lab = woken(&host).await;
    lab.write("a", &lab.root().join("work"), "of a day").await;
    host.cut(true);
    let (ended, ()) = tokio::join!(lab.sidecar.end(), async {
        lab.until_state("held").await;
        host.cut(false);
    });
    assert_eq!(ended, Ok(()));
    assert_eq!(host.generation("a").await, 1, "tried again within the grace");
}

#[tokio::test]
async fn what_runs_is_interrupted_before_the_server_is_stopped() {
    let host = Host::new();
    let lab = woken(&host).await;
    let folder = std::path::PathBuf::from(&lab.variables("a").await["HOME"]).parent().unwrap().to_owned();
    // The small server writes down that it was asked, into its own folder, which stays while the push fails.
    host.cut(true);
    lab.ask("a", Method::PUT, &format!("/file{}", lab.root().join("work").display()), "x").await;
    assert_eq!(lab.deinit().await.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(std::fs::read_to_string(folder.join("interrupted")).unwrap(), "yes");
}
