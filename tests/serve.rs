//! `furlough serve`: passes, heartbeats and stores in one process, as its user and a browser on his machine meet it.

#[path = "../functions/sidecar/tests/all/agent.rs"]
mod agent;
mod home;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Stdio},
    sync::mpsc,
    time::Duration,
};

use reqwest::{Client, StatusCode, header::HOST};
use serde_json::{Value, json};

use crate::cli::bench::Folder;

const CONFIG: &str = "[[backend]]\nname = \"box\"\nkind = \"worktree\"\nroot = \"none\"\n";

struct Serving {
    process: Child,
    activity: String,
    stores: String,
    folder: Folder,
}

/// The addresses are told on stderr once both are open.
fn serving() -> Serving {
    let folder = Folder::empty();
    folder.write("furlough.toml", CONFIG);
    let any = "127.0.0.1:0";
    let mut command = folder.command(&["serve", "--listen", any, "--stores", "--stores-listen", any]);
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (told, lines) = mpsc::channel();
    let stderr = BufReader::new(process.stderr.take().unwrap());
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
    let after = |what: &str| loop {
        let line = lines.recv_timeout(Duration::from_mins(1)).expect("it says where it listens");
        if let Some((_, rest)) = line.split_once(what) {
            break rest.trim().split(": ").next().unwrap().to_owned();
        }
    };
    let (activity, stores) = (after("activity on"), after("stores on"));
    // From here on a signal is heard.
    after("interrupt to stop");
    Serving { process, activity, stores, folder }
}

impl Serving {
    fn token(&self) -> String {
        let data = self.folder.demo_path().join("data");
        for secret in ["keys.json", "workspace-keys.json", "host-token"] {
            let mode = fs::metadata(data.join(secret)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{secret} is its owner's alone");
        }
        fs::read_to_string(data.join("host-token")).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn client() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn it_takes_heartbeats_into_the_records_that_its_stores_show_and_stops_when_asked() {
    let serving = serving();
    let client = client();
    let put = client.put(format!("{}/runtimes/box/a", serving.activity)).bearer_auth(serving.token());
    let told: Value = put.send().await.unwrap().json().await.unwrap();
    assert_eq!(told["code"], json!("registered"), "{told}");
    let beat = client.post(format!("{}/runtimes/box/a/heartbeat", serving.activity));
    let beat = beat.bearer_auth(told["token"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(beat.status(), StatusCode::OK);

    let key = json!({ "TableName": "furlough", "Key": { "pk": { "S": "runtime/box/a" }, "sk": { "S": "record" } } });
    let get = client.post(&serving.stores).header("x-amz-target", "DynamoDB_20120810.GetItem").body(key.to_string());
    let item: Value = get.send().await.unwrap().json().await.unwrap();
    assert_eq!(item["Item"]["st"]["S"], json!("running"), "{item}");

    let process = rustix::process::Pid::from_raw(serving.process.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    let waited = tokio::task::spawn_blocking(move || {
        let mut serving = serving;
        serving.process.wait().unwrap()
    });
    let ended = waited.await.unwrap();
    assert!(ended.code().is_some(), "it ends by itself, not by the signal: {ended}");
}

#[tokio::test]
async fn a_page_that_names_this_machine_otherwise_is_refused() {
    let serving = serving();
    for url in [&serving.activity, &serving.stores] {
        let request = client().post(url).header(HOST, "rebound.example.com").header("x-amz-target", "x.ListTables");
        assert_eq!(request.send().await.unwrap().status(), StatusCode::MISDIRECTED_REQUEST, "{url}");
    }
    let without_target = client().post(&serving.stores).body("{}").send().await.unwrap();
    assert_eq!(without_target.status(), StatusCode::BAD_REQUEST, "a form of a page has no such header");
}

#[test]
fn other_machines_are_let_in_only_when_that_is_said_and_to_the_stores_never() {
    let folder = Folder::empty();
    folder.write("furlough.toml", CONFIG);
    let told = folder.run(&["serve", "--listen", "0.0.0.0:0"]).ending(2);
    assert!(told.err.contains("--any-address"), "{told:?}");
    let told = folder.run(&["serve", "--stores", "--stores-listen", "0.0.0.0:0"]).ending(2);
    assert!(told.err.contains("no credential"), "{told:?}");
    let told = folder.run(&["serve", "--any-address", "--stores", "--stores-listen", "[::]:0"]).ending(2);
    assert!(told.err.contains("no credential"), "{told:?}");
}
