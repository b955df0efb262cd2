//! One real agent server, on a free port of this machine, in a folder of its own.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use backend::{
    Clock,
    openhands::{AgentServer, SessionKey},
};
use lifecycle::Time;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
};

use super::model::Model;

const KEY: &str = "sess-key-1";
/// A start took 18–35 s on two idle cores.
const LIMIT: Duration = Duration::from_mins(3);

#[expect(clippy::disallowed_methods, reason = "a real server stamps by the machine's clock")]
pub(super) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap())
}

pub(super) fn clock() -> Clock {
    Clock::new(now)
}

#[expect(clippy::disallowed_methods, reason = "the server to test on is named by the environment")]
fn python() -> String {
    std::env::var("FURLOUGH_TEST_AGENT_SERVER").expect(
        "FURLOUGH_TEST_AGENT_SERVER names the Python that has openhands-agent-server installed: \
         `python3.13 -m venv V && V/bin/pip install openhands-agent-server==1.58.2`, then V/bin/python",
    )
}

/// Looks again and again until it holds.
pub(super) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let limit = now().plus(LIMIT);
    while !holds().await {
        assert!(now() < limit, "after {} s, not yet: {what}", LIMIT.as_secs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The server. Killed when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    base: String,
    client: reqwest::Client,
    folder: TempDir,
    _child: Child,
}

impl Server {
    /// Starts it dormant, with nothing of our environment.
    pub(super) async fn start() -> Self {
        let python = python();
        let folder = tempfile::tempdir().unwrap();
        // Free when it was asked for; the server takes no listener that is open already.
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let log = std::fs::File::create(folder.path().join("server.log")).unwrap();
        let child = Command::new(&python)
            .args(["-m", "openhands.agent_server", "--host", "127.0.0.1", "--port", &port.to_string()])
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("OH_DEFERRED_INIT", "1"), ("OH_SECRET_KEY", "init-secret")])
            .envs([("OH_ENABLE_VSCODE", "0"), ("OH_PRELOAD_TOOLS", "0")])
            .env("HOME", folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("`{python}` can't be started: {error}"));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let server = Self { base: format!("http://127.0.0.1:{port}"), client, folder, _child: child };
        let alive = async || server.client.get(format!("{}/alive", server.base)).send().await.is_ok();
        until("the server is alive", alive).await;
        server
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn asked_with(&self, key: &str) -> AgentServer {
        AgentServer::new(&self.base, Some(SessionKey::new(key))).unwrap()
    }

    pub(super) fn asked_with_its_key(&self) -> AgentServer {
        self.asked_with(KEY)
    }

    /// Gives it a user's configuration, and makes the pipe that [`Server::let_go`] writes to.
    pub(super) async fn init(&self) {
        let pipe = std::process::Command::new("mkfifo").arg(self.pipe()).status().unwrap();
        assert!(pipe.success());
        let body = json!({
            "session_api_keys": [KEY], "secret_key": "user-secret",
            "conversations_path": self.folder().join("conversations"),
            "bash_events_dir": self.folder().join("bash_events"),
        });
        let request = self.client.post(format!("{}/api/init", self.base)).header("X-Init-API-Key", "init-secret");
        let answer = request.json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }

    fn pipe(&self) -> PathBuf {
        self.folder().join("wait-here")
    }

    /// Lets a command end that reads a line from the pipe.
    pub(super) fn let_go(&self) {
        std::fs::write(self.pipe(), "go\n").unwrap();
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}/{path}", self.base)).header("X-Session-API-Key", KEY);
        request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}/{path}", self.base)).header("X-Session-API-Key", KEY);
        let answer = request.json(body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(super) async fn idle_time(&self) -> u64 {
        let idle = self.get("server_info").await["idle_time"].as_f64().unwrap();
        idle.to_string().parse().unwrap()
    }

    /// Waits until nothing has happened for so many seconds.
    pub(super) async fn idle_for(&self, seconds: u64) {
        until("it is idle", async || self.idle_time().await >= seconds).await;
    }

    /// What a look could leave behind: its conversations, its commands, its files and their times.
    pub(super) async fn traces(&self) -> (Value, Value, Vec<(PathBuf, std::time::SystemTime)>) {
        let conversations = self.get("api/conversations/search").await;
        let commands = self.get("api/bash/bash_events/search").await;
        let mut files = Vec::new();
        let mut folders = vec![self.folder().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                let (path, about) = (entry.path(), entry.metadata().unwrap());
                if about.is_dir() {
                    folders.push(path.clone());
                }
                // The server's log has a line for every request.
                if path != self.folder().join("server.log") {
                    files.push((path, about.modified().unwrap()));
                }
            }
        }
        files.sort();
        (conversations, commands, files)
    }

    /// Begins a conversation with a first message; its id.
    pub(super) async fn converse(&self, model: &Model) -> String {
        let body = json!({
            "agent": {
                "kind": "Agent",
                "llm": { "model": "openai/fake", "base_url": model.base(), "api_key": "k", "usage_id": "u" },
                "tools": [{ "name": "terminal" }],
            },
            "workspace": { "kind": "LocalWorkspace", "working_dir": self.folder().join("project") },
            "initial_message": { "role": "user", "content": [{ "type": "text", "text": "go" }], "run": true },
        });
        let conversation = self.post("api/conversations", &body).await;
        conversation["id"].as_str().unwrap().to_owned()
    }
}
