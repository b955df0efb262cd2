//! Cloudflare's API of containers, as its client 7.3.0 and its documents have it, and the companion Worker above the
//! Durable Objects of `@cloudflare/containers` 0.3.7, at one address.

use std::{collections::BTreeMap, time::Duration};

use lifecycle::Time;
use serde_json::{Value, json};

use super::{Asked, Provider, Reply, opaque, seen_through};

/// The one API token that it takes.
pub(crate) const KEY: &str = "cf_5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed";
/// The companion Worker's.
pub(crate) const WORKER_KEY: &str = "a long random text";
/// The account and its one application.
pub(crate) const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const APPLICATION: &str = "11111111-2222-4333-8444-555555555555";

/// How long a sandbox idles whose class says nothing.
const SLEEP_AFTER: Duration = Duration::from_mins(10);

/// A Durable Object, and what Cloudflare's listing knows of it.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    pub(crate) name: Option<String>,
    /// As the listing has it: one of the API's words.
    pub(crate) state: &'static str,
    pub(crate) updated: Time,
    pub(crate) started: Option<Time>,
    pub(crate) exit_code: Option<i64>,
    /// What its container has; `None`: it has none.
    pub(crate) files: Option<BTreeMap<String, Vec<u8>>>,
    pub(crate) sleep_after: Duration,
    /// When it was last requested.
    pub(crate) used: Time,
    /// What became of it that the listing does not know yet, and when it will.
    late: Option<(Time, &'static str)>,
}

/// What a call to the Durable Object comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It throws.
    Throws,
    /// It is answered, and the container runs on.
    Lives,
}

/// An account with one application, and its Worker.
#[derive(Debug, Default)]
pub(crate) struct Cloudflare {
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    /// How late the listing is.
    pub(crate) lag: Duration,
    pub(crate) fault: Option<Fault>,
    made: u32,
}

type Refused = (u16, u32, String);

impl Cloudflare {
    /// A running one that was started an hour ago and is used just now.
    pub(crate) fn add(&mut self, now: Time, change: impl FnOnce(&mut Sandbox)) -> String {
        self.made += 1;
        let id = format!("{:064x}", self.made);
        let started = now.minus(Duration::from_hours(1)).plus(Duration::from_millis(self.made.into()));
        let mut sandbox = Sandbox {
            name: Some(format!("agent-{}", self.made)),
            state: "running",
            updated: started,
            started: Some(started),
            exit_code: None,
            files: Some([("workspace/notes.md".to_owned(), b"what the agent found out".to_vec())].into()),
            sleep_after: SLEEP_AFTER,
            used: now,
            late: None,
        };
        change(&mut sandbox);
        self.sandboxes.insert(id.clone(), sandbox);
        id
    }

    /// All that happens by itself until `now`: what idles too long sleeps, and the listing learns of it.
    pub(crate) fn tick(&mut self, now: Time) {
        for sandbox in self.sandboxes.values_mut() {
            let due = sandbox.used.plus(sandbox.sleep_after);
            if sandbox.files.is_some() && due <= now {
                sandbox.end("stopped", 143, due.plus(self.lag), due);
            }
            if let Some((at, state)) = sandbox.late.filter(|(at, _)| *at <= now) {
                (sandbox.state, sandbox.updated, sandbox.late) = (state, at, None);
            }
        }
    }

    fn list(&self, asked: &Asked) -> Result<Reply, Refused> {
        let per_page = asked.query("per_page").map_or(Ok(100), str::parse::<usize>).unwrap_or(0);
        if !(1..=1_000).contains(&per_page) {
            return Err((400, 1000, "per_page must be between 1 and 1000".to_owned()));
        }
        let prefix = asked.query("name_prefix").unwrap_or_default();
        let wanted = |id: &str, sandbox: &Sandbox| {
            // As documented: what is unhealthy, inactive or unknown is in neither.
            let active = matches!(sandbox.state, "provisioning" | "running" | "stopping");
            let not_active = matches!(sandbox.state, "stopped" | "failed");
            let state = match asked.query("state") {
                Some("active") => active,
                Some("not-active") => not_active,
                _ => true,
            };
            state && sandbox.name.as_deref().unwrap_or(id).starts_with(prefix)
        };
        let after = match asked.query("page_token") {
            None => String::new(),
            Some(token) => seen_through(token).ok_or((400, 1001, "invalid page token".to_owned()))?,
        };
        let rows = self.sandboxes.iter().filter(|(id, sandbox)| **id > after && wanted(id, sandbox));
        let mut page: Vec<_> = rows.take(per_page + 1).collect();
        let more = page.len() > per_page;
        page.truncate(per_page);
        let mut info = json!({"per_page": per_page});
        if let Some((last, _)) = page.last().filter(|_| more) {
            info["next_page_token"] = opaque(last).into();
        }
        let rows: Vec<_> = page.iter().map(|(id, sandbox)| sandbox.row(id)).collect();
        Ok(Reply::json(
            200,
            json!({"success": true, "errors": [], "messages": [], "result": rows, "result_info": info}),
        ))
    }

    fn api(&self, asked: &Asked, below: &[&str]) -> Result<Reply, Refused> {
        if asked.header("authorization") != Some(&format!("Bearer {KEY}")) {
            return Err((403, 10_000, "Authentication error".to_owned()));
        }
        match (asked.method.as_str(), below) {
            ("GET", ["instances-v2"]) => self.list(asked),
            ("GET", ["instances", id]) => {
                let sandbox = self.sandboxes.get(*id).ok_or((404, 1002, "instance not found".to_owned()))?;
                let body = json!({"success": true, "errors": [], "messages": [], "result": sandbox.row(id)});
                Ok(Reply::json(200, body))
            }
            _ => Err((404, 7_003, format!("Could not route to {}", asked.uri))),
        }
    }

    /// What the Worker's file does, on these sandboxes.
    fn worker(&mut self, asked: &Asked, now: Time, id: &str, verb: &str) -> Reply {
        let error = |status, error: &str| Reply::json(status, json!({ "error": error }));
        if asked.header("authorization") != Some(&format!("Bearer {WORKER_KEY}")) {
            return error(401, "the key is wrong, or none is set");
        }
        let seconds = asked.body["seconds"].as_u64().filter(|seconds| *seconds >= 1);
        match (asked.method.as_str(), verb) {
            ("PUT", "sleep-after") if seconds.is_none() => return error(400, "`seconds` is a whole number from 1"),
            ("POST", "destroy") | ("PUT", "sleep-after") => {}
            _ => return error(404, "no such route"),
        }
        let (fault, lag) = (self.fault, self.lag);
        let Some(sandbox) = self.sandboxes.get_mut(id) else {
            return error(400, "the id is of another namespace than this Worker's");
        };
        if fault == Some(Fault::Throws) {
            return error(502, "the sandbox's object failed: Internal error in Durable Object storage");
        }
        let before = sandbox.told();
        if sandbox.files.is_none() {
            return Reply::json(409, json!({"error": "it does not run", "state": before}));
        }
        if verb == "sleep-after" {
            let after = Duration::from_secs(seconds.unwrap_or_default());
            if sandbox.sleep_after != after {
                (sandbox.sleep_after, sandbox.used) = (after, now);
            }
            return Reply::json(200, json!({ "state": before }));
        }
        if fault != Some(Fault::Lives) {
            sandbox.end("stopped", 137, now.plus(lag), now);
            self.tick(now);
        }
        Reply::json(200, json!({"before": before, "after": self.sandboxes[id].told()}))
    }
}

impl Provider for Cloudflare {
    fn answer(&mut self, asked: &Asked, now: Time) -> Reply {
        self.tick(now);
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        match &path[..] {
            ["client", "v4", "accounts", ACCOUNT, "containers", "applications", APPLICATION, below @ ..] => {
                self.api(asked, below).unwrap_or_else(|(status, code, message)| error(status, code, &message))
            }
            ["worker", "v1", "instances", id, verb] => self.worker(asked, now, id, verb),
            _ => error(404, 7_003, &format!("Could not route to {}", asked.uri)),
        }
    }
}

impl Sandbox {
    /// Its container is no more; the listing says so from `listed` on.
    fn end(&mut self, state: &'static str, exit_code: i64, listed: Time, at: Time) {
        (self.files, self.exit_code) = (None, Some(exit_code));
        (self.updated, self.late) = (at, Some((listed, state)));
    }

    /// Another container, empty, as the next request brings it.
    pub(crate) fn start_anew(&mut self, now: Time) {
        (self.files, self.state, self.late) = (Some(BTreeMap::new()), "running", None);
        (self.started, self.updated, self.used, self.exit_code) = (Some(now), now, now, None);
    }

    /// It has no container, and the listing knows.
    pub(crate) fn sleep(&mut self, now: Time) {
        self.end("stopped", 143, now, now);
    }

    /// What its Durable Object tells of it.
    fn told(&self) -> Value {
        match (&self.files, self.exit_code) {
            (Some(_), _) => json!({"status": "healthy", "lastChange": self.updated.millis()}),
            (None, Some(code)) => {
                json!({"status": "stopped_with_code", "lastChange": self.updated.millis(), "exitCode": code})
            }
            (None, None) => json!({"status": "stopped", "lastChange": self.updated.millis()}),
        }
    }

    fn row(&self, id: &str) -> Value {
        let mut row = json!({
            "id": id, "application_id": APPLICATION, "image": "registry.cloudflare.com/a/sandbox:1",
            "status": {"state": self.state, "updated_at": self.updated.to_string()},
            "configuration": {"vcpu": 0.5, "memory": 4096, "disk": 4000},
            "location": {"name": "fra01", "region": "WEUR"},
        });
        if let Some(name) = &self.name {
            row["name"] = name.as_str().into();
        }
        if let Some(started) = self.started {
            row["started_at"] = started.to_string().into();
        }
        if let Some(code) = self.exit_code.filter(|_| self.late.is_none()) {
            row["status"]["exit_code"] = code.into();
        }
        row
    }
}

fn error(status: u16, code: u32, message: &str) -> Reply {
    let body =
        json!({"success": false, "errors": [{"code": code, "message": message}], "messages": [], "result": null});
    Reply::json(status, body)
}

/// Below which both of its halves are, for a server at `address`: Cloudflare's API, and the Worker.
pub(crate) fn places(address: &str) -> (String, String) {
    (format!("{address}/client/v4"), format!("{address}/worker"))
}
