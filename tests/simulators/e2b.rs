//! E2B, as its server of August 2026 and its clients 2.63.0 have it.

use std::{collections::BTreeMap, time::Duration};

use lifecycle::Time;
use serde_json::{Value, json};

use super::{Asked, Provider, Reply, opaque, pairs, seen_through};

/// The one key that it takes.
pub(crate) const KEY: &str = "e2b_5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed";

/// The longest run of the plan.
const LONGEST: Duration = Duration::from_hours(24);

/// What a pause does that does not go well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PauseFault {
    /// The node is busy: refused, and left running.
    Busy,
    /// The snapshot failed: the sandbox is lost, or shown as an earlier pause kept it.
    Lost,
    /// It was answered before it was done, and failed then.
    LostLater,
}

/// What a pause kept.
#[derive(Debug, Clone)]
struct Snapshot {
    at: Time,
    files: BTreeMap<String, Vec<u8>>,
}

/// A sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    pub(crate) template: String,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) running: bool,
    pub(crate) started: Time,
    pub(crate) end: Time,
    /// It is paused at its end, and else killed.
    pub(crate) auto_pause: bool,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// It is being copied: the listing leaves it out.
    pub(crate) snapshotting: bool,
    snapshot: Option<Snapshot>,
}

/// The server of one team.
#[derive(Debug, Default)]
pub(crate) struct E2b {
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    pub(crate) pause_fault: Option<PauseFault>,
    /// No more may run than now.
    pub(crate) full: bool,
    /// Requests that are left until it throttles; `None`: as many as one likes.
    pub(crate) left: Option<u32>,
    made: u32,
}

type Refused = (u16, String);

impl E2b {
    /// A running one, started an hour ago, with an hour left.
    pub(crate) fn add(&mut self, now: Time, change: impl FnOnce(&mut Sandbox)) -> String {
        self.made += 1;
        let id = format!("ie2bsandbox{:09}", self.made);
        let mut sandbox = Sandbox {
            template: "base".to_owned(),
            metadata: [("team".to_owned(), "a".to_owned())].into(),
            running: true,
            started: now.minus(Duration::from_hours(1)).plus(Duration::from_millis(self.made.into())),
            end: now.plus(Duration::from_hours(1)),
            auto_pause: false,
            files: [("work/notes.md".to_owned(), b"what the agent found out".to_vec())].into(),
            snapshotting: false,
            snapshot: None,
        };
        change(&mut sandbox);
        self.sandboxes.insert(id.clone(), sandbox);
        id
    }

    /// All that happens by itself until `now`.
    pub(crate) fn tick(&mut self, now: Time) {
        for sandbox in self.sandboxes.values_mut().filter(|sandbox| sandbox.running && sandbox.end <= now) {
            let end = sandbox.end;
            if sandbox.auto_pause {
                sandbox.pause(end);
            } else {
                // An earlier pause is left, and shows the sandbox as it was then.
                sandbox.lose();
            }
        }
        self.sandboxes.retain(|_, sandbox| sandbox.running || sandbox.snapshot.is_some());
    }

    fn find(&mut self, id: &str) -> Result<&mut Sandbox, Refused> {
        if !id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
            return Err((400, "Invalid sandbox ID".to_owned()));
        }
        let missing = (404, format!("Sandbox \"{id}\" doesn't exist or you don't have access to it"));
        self.sandboxes.get_mut(id).ok_or(missing)
    }

    fn list(&self, asked: &Asked) -> Result<Reply, Refused> {
        let limit = asked.query("limit").map_or(Ok(100), str::parse::<usize>).unwrap_or(0);
        if !(1..=100).contains(&limit) {
            return Err((400, "validation error: limit must be between 1 and 100".to_owned()));
        }
        let states = asked.query("state").unwrap_or("running,paused");
        // The whole is encoded once more within the query, and each part of it again.
        let wanted = asked.query("metadata").map(pairs).unwrap_or_default();
        let descends = match asked.query("order") {
            None | Some("desc") => true,
            Some("asc") => false,
            Some(other) => return Err((400, format!("Invalid order parameter: {other}"))),
        };
        let mut rows: Vec<(Time, &String, &Sandbox)> = Vec::new();
        for (id, sandbox) in &self.sandboxes {
            let state = if sandbox.running { "running" } else { "paused" };
            let shown = states.split(',').any(|wanted| wanted == state) && !(sandbox.snapshotting && sandbox.running);
            let has = |(key, value): &(String, String)| {
                let plain = |text: &str| pairs(&format!("{text}=")).swap_remove(0).0;
                sandbox.metadata.get(&plain(key)) == Some(&plain(value))
            };
            if shown && wanted.iter().all(has) {
                rows.push((sandbox.started, id, sandbox));
            }
        }
        rows.sort_by_key(|(started, id, _)| (*started, *id));
        if descends {
            rows.sort_by_key(|(started, id, _)| (std::cmp::Reverse(*started), *id));
        }
        let from = match asked.query("nextToken") {
            None => 0,
            Some(token) => {
                let (started, id) = place(token).ok_or((400, "Invalid next token".to_owned()))?;
                let past = |(at, other, _): &(Time, &String, &Sandbox)| {
                    let order = if descends { started.cmp(at) } else { at.cmp(&started) };
                    order.then((*other).cmp(&id)).is_gt()
                };
                rows.iter().position(past).unwrap_or(rows.len())
            }
        };
        let page: Vec<_> = rows.iter().skip(from).take(limit).collect();
        let items: Vec<_> = page.iter().map(|(_, id, sandbox)| sandbox.item(id)).collect();
        let running = rows.iter().filter(|(_, _, sandbox)| sandbox.running).count();
        let reply = Reply::json(200, items.into()).with("X-Total-Running", running);
        Ok(match page.last().filter(|_| rows.len() > from + page.len()) {
            Some((started, id, _)) => reply.with("X-Next-Token", token(*started, id)),
            None => reply,
        })
    }

    fn pause(&mut self, id: &str, now: Time) -> Result<Reply, Refused> {
        let fault = self.pause_fault;
        let sandbox = self.find(id)?;
        if !sandbox.running {
            return Err((409, format!("Error pausing sandbox - sandbox '{id}' is already paused")));
        }
        if sandbox.snapshotting {
            return Err((409, format!("Sandbox '{id}' cannot be paused while in 'snapshotting' state")));
        }
        match fault {
            None => sandbox.pause(now),
            Some(PauseFault::Busy) => return Err((503, "the node is busy, the sandbox is left running".to_owned())),
            Some(PauseFault::Lost) => {
                sandbox.lose();
                return Err((500, "Error pausing sandbox".to_owned()));
            }
            Some(PauseFault::LostLater) => sandbox.lose(),
        }
        Ok(Reply::empty(204))
    }

    fn connect(&mut self, id: &str, seconds: u64, now: Time) -> Result<Reply, Refused> {
        let (id, full) = (id.to_owned(), self.full);
        let sandbox = self.find(&id)?;
        let end = now.plus(Duration::from_secs(seconds));
        if seconds > LONGEST.as_secs() {
            return Err((400, "Timeout cannot be greater than 24 hours".to_owned()));
        }
        if sandbox.running {
            sandbox.end = sandbox.end.max(end);
            return Ok(Reply::json(200, sandbox.item(&id)));
        }
        if full {
            return Err((429, "you have reached the maximum number of concurrent E2B sandboxes (20)".to_owned()));
        }
        sandbox.running = true;
        (sandbox.started, sandbox.end) = (now, end);
        sandbox.files = sandbox.snapshot.as_ref().map(|snapshot| snapshot.files.clone()).unwrap_or_default();
        Ok(Reply::json(201, sandbox.item(&id)))
    }

    fn set_timeout(&mut self, id: &str, seconds: u64, now: Time) -> Result<Reply, Refused> {
        let missing = (404, format!("Sandbox \"{id}\" doesn't exist or you don't have access to it"));
        let sandbox = self.find(id)?;
        if !sandbox.running {
            return Err(missing);
        }
        sandbox.end = now.plus(Duration::from_secs(seconds)).min(sandbox.started.plus(LONGEST));
        self.tick(now);
        Ok(Reply::empty(204))
    }

    fn create(&mut self, asked: &Asked, now: Time) -> Reply {
        let body = &asked.body;
        let id = self.add(now, |sandbox| {
            body["templateID"].as_str().unwrap_or("base").clone_into(&mut sandbox.template);
            sandbox.metadata = super::labels(&body["metadata"]);
            sandbox.auto_pause = body["autoPause"].as_bool().unwrap_or(false);
            sandbox.started = now;
            sandbox.end = now.plus(Duration::from_secs(body["timeout"].as_u64().unwrap_or(300)));
        });
        Reply::json(201, self.sandboxes[&id].item(&id))
    }

    fn route(&mut self, asked: &Asked, now: Time) -> Result<Reply, Refused> {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        let seconds = |usual: Option<u64>| {
            let seconds = asked.body["timeout"].as_i64().map(|seconds| u64::try_from(seconds).unwrap_or(0)).or(usual);
            seconds.ok_or((400, "validation error: timeout is required".to_owned()))
        };
        match (asked.method.as_str(), &path[..]) {
            ("GET", ["v2", "sandboxes"]) => self.list(asked),
            ("POST", ["sandboxes"] | ["v2", "sandboxes"]) => Ok(self.create(asked, now)),
            ("GET", ["sandboxes", id]) => {
                let sandbox = self.find(id)?;
                Ok(Reply::json(200, sandbox.detail(id)))
            }
            ("DELETE", ["sandboxes", id]) => {
                self.find(id)?;
                self.sandboxes.remove(*id);
                Ok(Reply::empty(204))
            }
            ("POST", ["sandboxes", id, "pause"]) => self.pause(id, now),
            ("POST", ["sandboxes", id, "connect"]) => self.connect(id, seconds(None)?, now),
            ("POST", ["v2", "sandboxes", id, "connect"]) => self.connect(id, seconds(Some(300))?, now),
            ("POST", ["sandboxes", id, "timeout"]) => self.set_timeout(id, seconds(None)?, now),
            _ => Err((404, format!("no route for {} {}", asked.method, asked.uri))),
        }
    }
}

impl Provider for E2b {
    fn answer(&mut self, asked: &Asked, now: Time) -> Reply {
        self.tick(now);
        if asked.header("x-api-key") != Some(KEY) {
            return error(401, "Invalid API key, please visit https://e2b.dev/docs/api-key for more information.");
        }
        if let Some(left) = &mut self.left {
            if *left == 0 {
                return error(429, "Rate limit exceeded").with("Retry-After", 11);
            }
            *left -= 1;
        }
        self.route(asked, now).unwrap_or_else(|(status, message)| error(status, &message))
    }
}

impl Sandbox {
    /// The end of what it had until now, kept.
    fn pause(&mut self, now: Time) {
        self.running = false;
        self.end = now;
        self.snapshot = Some(Snapshot { at: now, files: self.files.clone() });
    }

    /// It is no more, but for what an earlier pause kept.
    fn lose(&mut self) {
        self.running = false;
        let earlier = self.snapshot.as_ref();
        self.end = earlier.map_or(self.end, |snapshot| snapshot.at);
        self.files = earlier.map(|snapshot| snapshot.files.clone()).unwrap_or_default();
    }

    /// It was paused before, when it had these files, and was resumed.
    pub(crate) fn paused_earlier(&mut self, at: Time) {
        self.snapshot = Some(Snapshot { at, files: self.files.clone() });
    }

    /// It is paused, since `at`.
    pub(crate) fn paused_since(&mut self, at: Time) {
        self.pause(at);
    }

    fn item(&self, id: &str) -> Value {
        let mut item = json!({
            "templateID": self.template, "sandboxID": id, "clientID": "6532622b", "startedAt": written(self.started),
            "endAt": written(self.end), "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024,
            "state": if self.running { "running" } else { "paused" }, "envdVersion": "0.4.0", "volumeMounts": [],
        });
        // An empty one is left out.
        if !self.metadata.is_empty() {
            item["metadata"] = json!(self.metadata);
        }
        item
    }

    /// What is asked for by id has more.
    fn detail(&self, id: &str) -> Value {
        let mut detail = self.item(id);
        let on_timeout = if self.auto_pause { "pause" } else { "kill" };
        detail["lifecycle"] = json!({"autoResume": false, "onTimeout": on_timeout});
        detail
    }
}

/// Times have microseconds.
fn written(time: Time) -> String {
    let text = time.to_string();
    format!("{}.{:03}000Z", &text[..19], time.millis().rem_euclid(1_000))
}

/// The place after a row.
fn token(started: Time, id: &str) -> String {
    opaque(&format!("{}__{id}", started.millis()))
}

fn place(token: &str) -> Option<(Time, String)> {
    let text = seen_through(token)?;
    let (started, id) = text.split_once("__")?;
    Some((Time::from_millis(started.parse().ok()?), id.to_owned()))
}

fn error(status: u16, message: &str) -> Reply {
    Reply::json(status, json!({"code": status, "message": message}))
}
