//! A workspace's whole life at home: `furlough serve`, sidecars that have only its address, agent servers below them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Parser as _;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use sidecar::{InitKey, Options, Sidecar, host::HttpHosts};
use tempfile::TempDir;
use workspace::{blobs::http::Http, time::Clock};

use super::{Serving, agent, client, serving};

const INIT_KEY: &str = "a bootstrap key of some length";
const SESSION_KEY: &str = "a session key";

struct Sandbox {
    base: String,
    client: Client,
    root: PathBuf,
    _scratch: TempDir,
}

impl Sandbox {
    async fn new(root: &Path) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let flags = ["sidecar", "--guarded-path", "/told", "--"].map(str::to_owned);
        let options = Options::try_parse_from(flags.into_iter().chain(agent::command())).unwrap();
        let below = vec![root.parent().unwrap().to_owned()];
        let look_every = Duration::from_millis(50);
        let options = Options { scratch: scratch.path().to_owned(), below, look_every, ..options };
        let clock = Clock::new(|| settings::system::now().millis());
        let hosts = HttpHosts::new(Arc::new(Http::new().unwrap()), clock).unwrap();
        let (router, _) = Sidecar::start(&options, InitKey::new(INIT_KEY).unwrap(), Arc::new(hosts), None);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let sandbox = Self { base, client: client(), root: root.to_owned(), _scratch: scratch };
        until("dormant", async || sandbox.state().await["state"] == "dormant").await;
        sandbox
    }

    async fn state(&self) -> Value {
        self.client.get(format!("{}/init", self.base)).send().await.unwrap().json().await.unwrap()
    }

    async fn write(&self, name: &str, text: String) {
        let url = format!("{}/file{}", self.base, self.root.join(name).display());
        let put = self.client.put(url).header("X-Session-API-Key", SESSION_KEY).body(text);
        assert_eq!(put.send().await.unwrap().status(), StatusCode::OK);
    }
}

/// A real child process works in real time: what is waited for is looked at again, up to a limit.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within 30 s: {what}");
}

impl Serving {
    async fn post(&self, what: &str, body: &Value) -> (StatusCode, Value) {
        let post = client().post(format!("{}/workspaces/{what}", self.activity)).bearer_auth(self.token());
        let answer = post.json(body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    /// The record of the runtime `box/a`.
    async fn record(&self) -> Value {
        let key =
            json!({ "TableName": "furlough", "Key": { "pk": { "S": "runtime/box/a" }, "sk": { "S": "record" } } });
        let get = client().post(&self.stores).header("x-amz-target", "DynamoDB_20120810.GetItem");
        get.body(key.to_string()).send().await.unwrap().json().await.unwrap()
    }
}

fn asked(sandbox: &Sandbox, token: &Value) -> Value {
    json!({
        "sidecar": sandbox.base, "init_key": INIT_KEY, "owner": sandbox.base, "roots": { "project": sandbox.root },
        "activity": { "runtime": "box/a", "token": token }, "agent": { "session_api_keys": [SESSION_KEY] },
    })
}

#[tokio::test]
async fn a_workspace_goes_from_sandbox_to_sandbox_and_its_runtime_is_active_meanwhile() {
    let serving = serving();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("workspace/project");
    let put = client().put(format!("{}/runtimes/box/a", serving.activity)).bearer_auth(serving.token());
    let registered: Value = put.send().await.unwrap().json().await.unwrap();

    let one = Sandbox::new(&root).await;
    let (status, told) = serving.post("w/init", &asked(&one, &registered["token"])).await;
    assert_eq!((status, &told["state"]), (StatusCode::OK, &json!("ready")), "{told}");
    let before = serving.record().await;
    one.write("notes", "of a day".to_owned()).await;
    until("a heartbeat in the record", async || serving.record().await != before).await;
    // Not to be compressed, and larger than two parts of an upload.
    let noise = (0..20_u32 << 15).map(|at| blake3::hash(&at.to_le_bytes()).to_string()).collect::<String>();
    std::fs::write(root.join("large"), &noise).unwrap();
    let asleep = json!({ "sidecar": one.base, "init_key": INIT_KEY });
    let (status, told) = serving.post("w/deinit", &asleep).await;
    assert_eq!((status, root.exists()), (StatusCode::OK, false), "{told}");

    let record = serving.record().await;
    let kept = record["Item"]["sv"]["N"].as_str().unwrap_or_default().parse::<i64>();
    assert!(kept.is_ok(), "what it held is known to be kept: {record}");

    let other = Sandbox::new(&root).await;
    let (status, told) = serving.post("w/init", &asked(&other, &registered["token"])).await;
    assert_eq!((status, &told["state"]), (StatusCode::OK, &json!("ready")), "{told}");
    assert_eq!(std::fs::read_to_string(root.join("notes")).unwrap(), "of a day");
    assert!(std::fs::read_to_string(root.join("large")).unwrap() == noise, "the large file is another one");
}

#[tokio::test]
async fn an_object_is_given_to_nobody_who_has_not_been_given_a_request_for_it() {
    let serving = serving();
    for asked in ["", "?get&until=99999999999999&mac=00", "?get&until=1&mac=00", "?put&bytes=1&until=1&mac=00"] {
        let url = format!("{}/objects/workspaces/w/secret-key{asked}", serving.activity);
        for answer in [client().get(&url).send().await.unwrap(), client().put(&url).body("x").send().await.unwrap()] {
            let (status, body) = (answer.status(), answer.text().await.unwrap());
            assert_eq!((status, body.contains("<Code>AccessDenied</Code>")), (StatusCode::FORBIDDEN, true), "{body}");
        }
    }
    let (status, _) = serving.post("w/init", &json!({})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "the host's token of heartbeats is good for workspaces too");
}
