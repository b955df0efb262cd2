//! OpenHands' app server 1.11.0 and the Runtime API below it, in front of the same sandboxes.
//!
//! The app server's answers are from its source. The Runtime API's source is closed: its answers are what its clients
//! read of them, and the words of its refusals are ours.

mod app;
mod runtime;

use std::{collections::BTreeMap, time::Duration};

use lifecycle::Time;
use serde_json::json;

use super::{Asked, Provider, Reply};

/// The one key that both take.
pub(crate) const KEY: &str = "sk-oh-5eed5eed";

/// A conversation, as the app server keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) sandbox: String,
    pub(crate) parent: Option<String>,
    /// What its agent server says. `None`: that one could not be asked.
    pub(crate) status: Option<&'static str>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created: Time,
    pub(crate) updated: Time,
}

/// A sandbox: the app server's row, and its runtime.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    pub(crate) spec: String,
    pub(crate) runtime: String,
    /// In the Runtime API's words; `stopped`: the row is left, and no runtime.
    pub(crate) status: &'static str,
    pub(crate) created: Time,
    /// On the volume of its workspace.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// What it becomes by itself, and when.
    pub(crate) next: Option<(Time, &'static str)>,
    /// It changes with each resume.
    key: u32,
}

/// What does not go well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The Runtime API can't be reached by the app server.
    Down,
    /// The same, of a newer app server, which says so.
    DownAndSaid,
    /// The Runtime API does what it is asked for, and its answer is lost.
    Deaf,
}

/// The server of one user.
#[derive(Debug, Default)]
pub(crate) struct OpenHands {
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    pub(crate) conversations: BTreeMap<String, Conversation>,
    pub(crate) trouble: Option<Trouble>,
    /// It is of a version without the route.
    pub(crate) no_pause: bool,
    /// A pause, a resume and a deletion end so long after they were answered.
    pub(crate) pause_takes: Duration,
    pub(crate) resume_takes: Duration,
    pub(crate) delete_takes: Duration,
    /// No more run at once: a resume pauses the oldest others.
    pub(crate) most_running: Option<usize>,
    /// The cleaner removes what was made so long ago.
    pub(crate) dead_after: Option<Duration>,
    /// Requests that are left until it throttles; `None`: as many as one likes.
    pub(crate) left: Option<u32>,
    made: u32,
}

type Refused = (u16, String);

impl OpenHands {
    /// A running sandbox, made two hours ago, without a conversation.
    pub(crate) fn add(&mut self, now: Time, change: impl FnOnce(&mut Sandbox)) -> String {
        self.made += 1;
        let id = format!("7Kq2sandbox{:011}", self.made);
        let mut sandbox = Sandbox {
            spec: "ghcr.io/openhands/agent-server:1.58.2-python".to_owned(),
            runtime: format!("rt{:014}", self.made),
            status: "running",
            created: now.minus(Duration::from_hours(2)).plus(Duration::from_millis(self.made.into())),
            files: [("work/notes.md".to_owned(), b"what the agent found out".to_vec())].into(),
            next: None,
            key: 0,
        };
        change(&mut sandbox);
        self.sandboxes.insert(id.clone(), sandbox);
        id
    }

    /// A conversation in a sandbox, idle since `updated`.
    pub(crate) fn talk(&mut self, sandbox: &str, updated: Time, change: impl FnOnce(&mut Conversation)) -> String {
        self.made += 1;
        let id = format!("00000000-0000-4000-8000-{:012}", self.made);
        let mut conversation = Conversation {
            sandbox: sandbox.to_owned(),
            parent: None,
            status: Some("idle"),
            tags: [("team".to_owned(), "a".to_owned())].into(),
            created: updated.minus(Duration::from_hours(1)),
            updated,
        };
        change(&mut conversation);
        self.conversations.insert(id.clone(), conversation);
        id
    }

    /// All that happens by itself until `now`.
    pub(crate) fn tick(&mut self, now: Time) {
        for sandbox in self.sandboxes.values_mut() {
            if let Some((_, status)) = sandbox.next.take_if(|(at, _)| *at <= now) {
                sandbox.be(status);
            }
            if self.dead_after.is_some_and(|after| sandbox.created.plus(after) <= now) {
                sandbox.be("stopped");
            }
        }
        self.sandboxes.retain(|_, sandbox| sandbox.status != "deleted");
    }

    fn oldest_pause(&mut self, but: &str) {
        let Some(most) = self.most_running else { return };
        let mut running: Vec<_> = self
            .sandboxes
            .iter_mut()
            .filter(|(id, sandbox)| sandbox.status == "running" && id.as_str() != but)
            .map(|(_, sandbox)| sandbox)
            .collect();
        running.sort_by_key(|sandbox| sandbox.created);
        let many = (running.len() + 1).saturating_sub(most);
        running.into_iter().take(many).for_each(|sandbox| sandbox.be("paused"));
    }

    fn starts(&mut self, now: Time, spec: &str, id: Option<String>) -> String {
        let made = self.add(now, |sandbox| {
            spec.clone_into(&mut sandbox.spec);
            sandbox.created = now;
            sandbox.files.clear();
        });
        let Some(id) = id else { return made };
        let sandbox = self.sandboxes.remove(&made).expect("it was just made");
        self.sandboxes.insert(id.clone(), sandbox);
        id
    }
}

impl Provider for OpenHands {
    fn answer(&mut self, asked: &Asked, now: Time) -> Reply {
        self.tick(now);
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        if path == ["health"] {
            return Reply::json(200, json!({"status": "ok"}));
        }
        let of_app = path.starts_with(&["api", "v1"]);
        let bearer = || asked.header("authorization")?.strip_prefix("Bearer ");
        let key = if of_app { bearer() } else { asked.header("x-api-key") };
        if key != Some(KEY) {
            return error(401, "Invalid API key");
        }
        if let Some(left) = &mut self.left {
            if *left == 0 {
                return error(429, "Too many requests").with("Retry-After", 11);
            }
            *left -= 1;
        }
        let answered = if of_app { self.app(asked, &path[2..], now) } else { self.runtime(asked, &path, now) };
        answered.unwrap_or_else(|(status, detail)| error(status, &detail))
    }
}

impl Sandbox {
    fn be(&mut self, status: &'static str) {
        self.status = status;
        if status == "running" {
            self.key += 1;
        }
        if matches!(status, "stopped" | "deleted") {
            self.files.clear();
        }
    }

    /// It turns into this, at once or later; shown as `way` until then.
    fn turns(&mut self, status: &'static str, way: &'static str, at: Time, now: Time) {
        if at <= now {
            self.next = None;
            self.be(status);
        } else {
            self.status = way;
            self.next = Some((at, status));
        }
    }

    fn session_key(&self) -> String {
        format!("session-{}-{}", self.runtime, self.key)
    }
}

/// Where every agent server is: at this server. Its client takes an address without a path alone.
fn agent_server(asked: &Asked) -> String {
    format!("http://{}", asked.header("host").unwrap_or_default())
}

fn error(status: u16, detail: &str) -> Reply {
    Reply::json(status, json!({"detail": detail}))
}

/// Times have microseconds.
fn written(time: Time) -> String {
    let text = time.to_string();
    format!("{}.{:03}000Z", &text[..19], time.millis().rem_euclid(1_000))
}
