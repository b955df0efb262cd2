//! What is asked of an agent server over HTTP, on loopback.
//!
//! **Invariants.** An agent server that answers without a key is not ready. No key is in an error.

use std::{sync::OnceLock, time::Duration};

use reqwest::{Client, StatusCode, redirect::Policy};
use serde_json::{Map, Value};

use crate::{
    activity::look::{self, Sight},
    keeper::Failed,
    server::Paths,
};

const INIT_KEY: &str = "X-Init-API-Key";
const SESSION_KEY: &str = "X-Session-API-Key";

/// How long one question may take. Init reads every conversation of the workspace.
const WITHIN: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_secs(2);
/// The most running conversations that are interrupted.
const MOST: usize = 100;

/// A server on loopback.
#[derive(Debug)]
pub struct Agent {
    /// Its port.
    pub port: u16,
    key: Secret,
    paths: Paths,
    client: Client,
    /// What said that it runs when nobody had asked for anything yet: a server before this one has left it so.
    left: OnceLock<Vec<Sight>>,
}

/// What a question has brought.
pub(crate) enum Asked {
    /// Its answer.
    Told(Value),
    /// The server knows no such thing.
    Nothing,
    /// No answer, or none that says anything.
    Silent,
}

struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a server has not taken what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotInit {
    /// It refused it, and is as it was.
    Refused(Failed),
    /// Nobody knows what it is now.
    Unknown(Failed),
}

impl Agent {
    /// On this port, with the key that it was started with.
    pub fn new(port: u16, key: String, paths: Paths) -> Result<Self, Failed> {
        let client = Client::builder().no_proxy().redirect(Policy::none()).timeout(WITHIN).build();
        let client = client.map_err(|error| Failed(format!("no HTTP client: {error}")))?;
        Ok(Self { port, key: Secret(key), paths, client, left: OnceLock::new() })
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Whether it is up.
    pub async fn is_healthy(&self) -> bool {
        let asked = self.client.get(self.url(&self.paths.health)).timeout(LOOK).send().await;
        asked.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    /// Tells it what it is from now on, and looks whether it lets anybody in.
    pub async fn init(&self, told: &Map<String, Value>) -> Result<(), NotInit> {
        let request = self.client.post(self.url(&self.paths.init)).header(INIT_KEY, &self.key.0).json(told);
        let unknown = |why: &str| NotInit::Unknown(Failed(why.to_owned()));
        let answer = request.send().await.map_err(|_| unknown("the agent server did not answer its init"))?;
        let status = answer.status();
        if status.is_client_error() {
            // Its words can quote what it was told.
            return Err(NotInit::Refused(Failed(format!("the agent server refused its init with {status}"))));
        }
        if !status.is_success() {
            return Err(unknown(&format!("the agent server answered its init with {status}")));
        }
        self.check_guarded().await.map_err(NotInit::Unknown)
    }

    async fn check_guarded(&self) -> Result<(), Failed> {
        if self.paths.guarded.is_empty() {
            return Ok(());
        }
        let asked = self.client.get(self.url(&self.paths.guarded)).send().await;
        match asked.map(|answer| answer.status()) {
            Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Ok(()),
            Ok(status) => Err(Failed(format!("the agent server answers {status} to whoever has no key"))),
            Err(_) => Err(Failed("the agent server does not answer after its init".to_owned())),
        }
    }

    /// Remembers what says that it runs before anybody has asked for anything.
    pub async fn remember(&self, session_key: &str) {
        if let Some(left) = look::running(self, session_key).await {
            self.left.get_or_init(|| left);
        }
    }

    /// Whether this is what a server before this one has left, unmoved.
    pub(crate) fn had(&self, sight: &Sight) -> bool {
        self.left.get().is_some_and(|left| left.contains(sight))
    }

    /// Asks for JSON.
    pub(crate) async fn ask(&self, path: &str, session_key: &str) -> Asked {
        let asked = self.client.get(self.url(path)).header(SESSION_KEY, session_key).timeout(LOOK).send().await;
        let Ok(answer) = asked else { return Asked::Silent };
        if answer.status().is_client_error() {
            return Asked::Nothing;
        }
        match answer.error_for_status() {
            Ok(answer) => answer.json().await.map_or(Asked::Nothing, Asked::Told),
            Err(_) => Asked::Silent,
        }
    }

    /// Interrupts what runs, as far as it can be asked: it is stopped anyhow, and then waits for its tools.
    pub async fn interrupt(&self, session_key: &str) {
        let Some(running) = self.running(session_key).await else { return };
        let asked = running.iter().take(MOST).map(|id| {
            let url = self.url(&format!("/api/conversations/{id}/interrupt"));
            self.client.post(url).header(SESSION_KEY, session_key).send()
        });
        for answer in asked {
            if let Err(error) = answer.await {
                tracing::debug!(error = %error.without_url(), "a conversation could not be interrupted");
            }
        }
    }

    /// The ids of running conversations. Nothing, where the server knows no conversations.
    async fn running(&self, session_key: &str) -> Option<Vec<String>> {
        let path = format!("/api/conversations/search?status=running&limit={MOST}");
        let Asked::Told(page) = self.ask(&path, session_key).await else { return None };
        let plain = |id: &&str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let ids = page.get("items")?.as_array()?.iter().filter_map(|item| item.get("id")?.as_str());
        Some(ids.filter(plain).map(str::to_owned).collect())
    }
}
