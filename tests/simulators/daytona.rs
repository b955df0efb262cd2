//! Daytona, as its server 0.190.0 and its clients 0.226.1 have it.

use std::{collections::BTreeMap, time::Duration};

use lifecycle::Time;
use serde_json::{Value, json};

use super::{Asked, Provider, Reply, labels, opaque, seen_through};

/// The one key that it takes.
pub(crate) const KEY: &str = "dtn_5eed";
/// The organisation of that key.
const ORGANIZATION: &str = "11111111-1111-4111-8111-111111111111";

const START: Duration = Duration::from_secs(1);
const STOP: Duration = Duration::from_secs(2);
const DESTROY: Duration = Duration::from_secs(3);
const ARCHIVE: Duration = Duration::from_secs(5);
/// Its timers are looked at this often.
const CRON: i64 = 10_000;
const MINUTE: Duration = Duration::from_mins(1);

const STATES: [&str; 20] = [
    "creating",
    "restoring",
    "destroying",
    "started",
    "stopped",
    "starting",
    "stopping",
    "error",
    "build_failed",
    "pending_build",
    "building_snapshot",
    "unknown",
    "pulling_snapshot",
    "archived",
    "archiving",
    "resizing",
    "snapshotting",
    "forking",
    "pausing",
    "paused",
];

/// A sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) gpu: u32,
    pub(crate) state: &'static str,
    pub(crate) desired: &'static str,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) auto_stop: i64,
    pub(crate) auto_pause: i64,
    pub(crate) auto_archive: i64,
    pub(crate) auto_delete: i64,
    pub(crate) destroyed_at: Option<Time>,
    pub(crate) created: Time,
    pub(crate) updated: Time,
    pub(crate) last_activity: Time,
    /// What is in it, until it is destroyed.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// What is under way: when it ends, and in which state.
    work: Option<(Time, &'static str)>,
    /// What the index of the listing had of it, since when.
    versions: Vec<(Time, Option<Value>)>,
}

/// The server of one organisation.
#[derive(Debug, Default)]
pub(crate) struct Daytona {
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    /// The listing is this far behind.
    pub(crate) lag: Duration,
    /// Lifecycle requests that are left until it throttles; `None`: as many as one likes.
    pub(crate) lifecycle_left: Option<u32>,
    /// The key may not delete.
    pub(crate) read_only: bool,
    made: u32,
}

type Refused = (u16, String);

impl Daytona {
    /// A container of this name, made long ago and last active at `active`.
    pub(crate) fn add(&mut self, name: &str, now: Time, change: impl FnOnce(&mut Sandbox)) -> String {
        self.made += 1;
        let id = format!("00000000-0000-4000-8000-{:012}", self.made);
        let mut sandbox = Sandbox {
            name: name.to_owned(),
            class: "container",
            gpu: 0,
            state: "started",
            desired: "started",
            labels: [("team".to_owned(), "a".to_owned())].into(),
            auto_stop: 0,
            auto_pause: 0,
            auto_archive: 10_080,
            auto_delete: -1,
            destroyed_at: None,
            created: now.minus(Duration::from_hours(24)).plus(Duration::from_millis(self.made.into())),
            updated: now,
            last_activity: now.minus(10 * MINUTE),
            files: [("work/notes.md".to_owned(), b"what the agent found out".to_vec())].into(),
            work: None,
            versions: Vec::new(),
        };
        change(&mut sandbox);
        let item = sandbox.item(&id);
        sandbox.versions.push((now.minus(self.lag), Some(item)));
        self.sandboxes.insert(id.clone(), sandbox);
        id
    }

    /// All that happens by itself until `now`: work that ends, and timers.
    pub(crate) fn tick(&mut self, now: Time) {
        for (id, sandbox) in &mut self.sandboxes {
            while sandbox.step(now) {
                sandbox.note(id);
            }
        }
        let day = Duration::from_hours(24);
        self.sandboxes.retain(|_, sandbox| sandbox.state != "destroyed" || sandbox.updated.plus(day) > now);
    }

    fn find(&self, id_or_name: &str) -> Result<String, Refused> {
        let shown = |(id, sandbox): &(&String, &Sandbox)| {
            (id.as_str() == id_or_name || sandbox.name == id_or_name) && !sandbox.is_hidden()
        };
        let found = self.sandboxes.iter().find(shown).map(|(id, _)| id.clone());
        found.ok_or_else(|| (404, format!("Sandbox with ID or name {id_or_name} not found")))
    }

    fn get(&mut self, id: &str) -> &mut Sandbox {
        self.sandboxes.get_mut(id).expect("it was found")
    }

    /// A change of a sandbox that `act` makes, and the sandbox then.
    fn change(
        &mut self,
        asked: &Asked,
        now: Time,
        act: impl FnOnce(&mut Sandbox) -> Result<(), Refused>,
    ) -> Result<Reply, Refused> {
        let id = self.find(&asked.path[2])?;
        act(self.get(&id))?;
        let sandbox = self.get(&id);
        sandbox.updated = now;
        sandbox.note(&id);
        Ok(Reply::json(200, sandbox.single(&id)))
    }

    fn list(&self, asked: &Asked, now: Time) -> Result<Reply, Refused> {
        let limit = asked.query("limit").map_or(Ok(100), str::parse::<usize>).unwrap_or(0);
        if !(1..=200).contains(&limit) {
            return Err((400, "limit must not be greater than 200, limit must not be less than 1".to_owned()));
        }
        let states = [asked.all("states"), asked.all("states[]")].concat();
        if states.iter().any(|state| !STATES.contains(state)) {
            return Err((400, "each value in states must be one of the following values".to_owned()));
        }
        let wanted: BTreeMap<String, String> = match asked.query("labels").map(serde_json::from_str::<Value>) {
            None => BTreeMap::new(),
            Some(Ok(value)) => labels(&value),
            Some(Err(_)) => return Err((400, "Invalid labels JSON format".to_owned())),
        };
        let sort = asked.query("sort").unwrap_or("lastActivityAt");
        let shown = now.minus(self.lag);
        let mut items: Vec<(String, String, Value)> = Vec::new();
        for (id, sandbox) in &self.sandboxes {
            let version = sandbox.versions.iter().rev().find(|(since, _)| *since <= shown);
            let Some((_, Some(item))) = version else { continue };
            let has = labels(&item["labels"]);
            let kept = wanted.iter().all(|(key, value)| has.get(key) == Some(value))
                && (states.is_empty() || states.contains(&item["raw"].as_str().unwrap()));
            if kept {
                let mut item = item.clone();
                item.as_object_mut().unwrap().remove("raw");
                items.push((item[sort].to_string(), id.clone(), item));
            }
        }
        items.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
        let descends = asked.query("order").unwrap_or("desc") == "desc";
        if descends {
            items.reverse();
        }
        let from = match asked.query("cursor") {
            None => 0,
            Some(cursor) => {
                let invalid = || (400, format!("Invalid cursor provided: {cursor}"));
                let (key, id) = place(cursor).ok_or_else(invalid)?;
                let last = (&key, &id);
                let past = |(sorted, id, _): &(String, String, Value)| {
                    if descends { (sorted, id) < last } else { (sorted, id) > last }
                };
                items.iter().position(past).unwrap_or(items.len())
            }
        };
        let page: Vec<_> = items.iter().skip(from).take(limit).collect();
        let next = (items.len() > from + page.len()).then(|| page.last().map(|(key, id, _)| cursor(key, id)));
        let rows: Vec<_> = page.iter().map(|(_, _, item)| item).collect();
        Ok(Reply::json(200, json!({"items": rows, "nextCursor": next.flatten()})))
    }

    fn create(&mut self, asked: &Asked, now: Time) -> Reply {
        let body = &asked.body;
        let minutes = |name: &str, usual: i64| body[name].as_i64().unwrap_or(usual);
        let named = body["name"].as_str().map(str::to_owned);
        let name = named.unwrap_or_else(|| format!("sandbox-{}", self.made + 1));
        let id = self.add(&name, now, |sandbox| {
            sandbox.labels = labels(&body["labels"]);
            sandbox.auto_stop = minutes("autoStopInterval", 15);
            sandbox.auto_archive = longest(minutes("autoArchiveInterval", 10_080));
            sandbox.auto_delete = minutes("autoDeleteInterval", -1);
            (sandbox.created, sandbox.last_activity) = (now, now);
            sandbox.state = "creating";
            sandbox.work = Some((now.plus(START), "started"));
        });
        Reply::json(200, self.get(&id).single(&id))
    }

    fn route(&mut self, asked: &Asked, now: Time) -> Result<Reply, Refused> {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        match (asked.method.as_str(), &path[..]) {
            ("GET", ["api", "sandbox"]) => self.list(asked, now),
            ("POST", ["api", "sandbox"]) => Ok(self.create(asked, now)),
            ("GET", ["api", "sandbox", id]) => {
                let id = self.find(id)?;
                Ok(Reply::json(200, self.get(&id).single(&id)))
            }
            ("DELETE", ["api", "sandbox", _]) if self.read_only => Err((403, "Access denied".to_owned())),
            ("DELETE", ["api", "sandbox", _]) => self.change(asked, now, |sandbox| sandbox.destroy(now)),
            ("POST", ["api", "sandbox", _, "stop"]) => self.change(asked, now, |sandbox| sandbox.stop(now)),
            ("POST", ["api", "sandbox", _, "pause"]) => self.change(asked, now, |sandbox| sandbox.pause(now)),
            ("POST", ["api", "sandbox", _, "start"]) => self.change(asked, now, |sandbox| sandbox.start(now)),
            ("POST", ["api", "sandbox", _, "archive"]) => self.change(asked, now, |sandbox| sandbox.archive(now)),
            ("POST", ["api", "sandbox", _, timer, minutes]) => {
                let minutes =
                    minutes.parse().map_err(|_| (400, "Validation failed (numeric string is expected)".into()))?;
                // The server's setters answer 201, whatever its document says.
                let reply = self.change(asked, now, |sandbox| sandbox.set(timer, minutes, now))?;
                Ok(Reply { status: 201, ..reply })
            }
            ("POST", ["api", "sandbox", _, "last-activity"]) => {
                self.change(asked, now, |sandbox| {
                    sandbox.last_activity = now;
                    Ok(())
                })?;
                Ok(Reply::empty(201))
            }
            ("PUT", ["api", "sandbox", _, "labels"]) => {
                let new = labels(&asked.body["labels"]);
                self.change(asked, now, |sandbox| {
                    sandbox.labels = new;
                    Ok(())
                })
            }
            _ => Err((404, format!("Cannot {} {}", asked.method, asked.uri))),
        }
    }

    /// Lifecycle requests have a limit of their own, and a throttled one no plain `Retry-After`.
    fn throttled(&mut self, asked: &Asked) -> Option<Reply> {
        const LIFECYCLE: [&str; 5] = ["stop", "pause", "start", "archive", "recover"];
        let named = asked.path.get(3).is_some_and(|verb| LIFECYCLE.contains(&verb.as_str()));
        let left = self.lifecycle_left.as_mut().filter(|_| named || asked.method == "DELETE")?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        let reply = error(asked, 429, "ThrottlerException: Too Many Requests");
        Some(reply.with("Retry-After-sandbox-lifecycle", 42))
    }
}

impl Provider for Daytona {
    fn answer(&mut self, asked: &Asked, now: Time) -> Reply {
        self.tick(now);
        if asked.header("authorization") != Some(&format!("Bearer {KEY}")) {
            return error(asked, 401, "Invalid credentials");
        }
        if let Some(throttled) = self.throttled(asked) {
            return throttled;
        }
        let reply = self.route(asked, now).unwrap_or_else(|(status, message)| error(asked, status, &message));
        reply.with("X-RateLimit-Limit-authenticated", 10_000).with("X-RateLimit-Remaining-authenticated", 9_999)
    }
}

impl Sandbox {
    /// Whether it is shown by id no more.
    fn is_hidden(&self) -> bool {
        self.state == "destroyed" || (self.is_failed() && self.desired == "destroyed")
    }

    fn is_failed(&self) -> bool {
        matches!(self.state, "error" | "build_failed")
    }

    fn is_pending(&self) -> bool {
        self.state != self.desired && !self.is_failed() && self.desired != "archived"
    }

    /// The next thing that happens by itself until `now`.
    fn step(&mut self, now: Time) -> bool {
        if let Some((at, state)) = self.work.filter(|(at, _)| *at <= now) {
            self.work = None;
            self.enter(state, at);
            return true;
        }
        if self.work.is_some() {
            return false;
        }
        if let Some(at) = self.destroyed_at.filter(|at| *at <= now && self.state != "destroyed") {
            self.desired = "destroyed";
            self.enter("destroyed", at);
            return true;
        }
        let after = |minutes: i64| {
            let due = self.last_activity.plus(MINUTE * u32::try_from(minutes).unwrap()).millis();
            Some(Time::from_millis((due + CRON - 1).div_euclid(CRON) * CRON)).filter(|at| *at <= now)
        };
        let idle = if self.class == "container" { self.auto_stop } else { self.auto_pause.max(self.auto_stop) };
        match self.state {
            "started" if idle > 0 => {
                let Some(at) = after(idle) else { return false };
                let began = if self.class == "container" { self.stop(at) } else { self.pause(at) };
                began.is_ok()
            }
            "stopped" => {
                let archive = after(self.auto_archive);
                let delete = after(self.auto_delete.max(0)).filter(|_| self.auto_delete > 0);
                match (archive, delete) {
                    (archive, Some(at)) if archive.is_none_or(|archive| at <= archive) => self.destroy(at).is_ok(),
                    (Some(at), _) => self.archive(at).is_ok(),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Every change of the state writes the clock of activity too.
    fn enter(&mut self, state: &'static str, at: Time) {
        self.state = state;
        self.updated = at;
        self.last_activity = at;
        if state == "destroyed" {
            self.files.clear();
        }
    }

    fn begin(&mut self, state: &'static str, desired: &'static str, ends: Time) {
        let began = self.updated;
        self.enter(state, began);
        self.desired = desired;
        self.work = Some((ends, desired));
    }

    fn refuse_if_failed_or_pending(&self) -> Result<(), Refused> {
        if self.is_failed() {
            return Err((400, "Sandbox is in an errored state".to_owned()));
        }
        if self.is_pending() {
            return Err((409, "Sandbox state change in progress".to_owned()));
        }
        Ok(())
    }

    fn stop(&mut self, now: Time) -> Result<(), Refused> {
        self.refuse_if_failed_or_pending()?;
        if !matches!(self.state, "started" | "paused") {
            return Err((400, "Sandbox is not in a stoppable state".to_owned()));
        }
        self.updated = now;
        if self.auto_delete == 0 {
            self.begin("destroying", "destroyed", now.plus(DESTROY));
        } else {
            self.begin("stopping", "stopped", now.plus(STOP));
        }
        Ok(())
    }

    fn pause(&mut self, now: Time) -> Result<(), Refused> {
        if self.class == "container" {
            return Err((422, "Pausing is not supported for this sandbox".to_owned()));
        }
        if self.state != "started" {
            return Err((400, "Sandbox must be in started state to pause".to_owned()));
        }
        self.refuse_if_failed_or_pending()?;
        self.updated = now;
        self.begin("pausing", "paused", now.plus(STOP));
        Ok(())
    }

    fn start(&mut self, now: Time) -> Result<(), Refused> {
        if self.state == "started" && self.desired == "started" {
            return Ok(());
        }
        self.refuse_if_failed_or_pending()?;
        let way = match self.state {
            "stopped" => "starting",
            "paused" => "resuming",
            "archived" => "restoring",
            _ => return Err((400, "Sandbox is not in valid state".to_owned())),
        };
        self.updated = now;
        self.begin(way, "started", now.plus(START));
        Ok(())
    }

    fn archive(&mut self, now: Time) -> Result<(), Refused> {
        if self.is_failed() {
            return Err((400, "Sandbox is in an errored state".to_owned()));
        }
        if self.state != self.desired {
            return Err((409, "Sandbox state change in progress".to_owned()));
        }
        if self.state != "stopped" {
            return Err((400, "Sandbox is not stopped".to_owned()));
        }
        if self.auto_delete == 0 {
            return Err((400, "Ephemeral sandboxes cannot be archived".to_owned()));
        }
        self.updated = now;
        self.begin("archiving", "archived", now.plus(ARCHIVE));
        Ok(())
    }

    fn destroy(&mut self, now: Time) -> Result<(), Refused> {
        if self.is_pending() {
            return Err((409, "Sandbox state change in progress".to_owned()));
        }
        self.updated = now;
        self.desired = "destroyed";
        if self.is_failed() {
            return Ok(());
        }
        if matches!(self.state, "started" | "stopped") {
            self.begin("destroying", "destroyed", now.plus(DESTROY));
        } else {
            // It shows its old state, and what is wanted of it alone tells.
            self.work = Some((now.plus(DESTROY), "destroyed"));
        }
        Ok(())
    }

    fn set(&mut self, timer: &str, minutes: i64, now: Time) -> Result<(), Refused> {
        let not_negative = |name: &str| {
            if minutes < 0 { Err((400, format!("{name} interval must be non-negative"))) } else { Ok(()) }
        };
        match timer {
            "autostop" => {
                not_negative("Auto-stop")?;
                self.auto_stop = minutes;
            }
            "autopause" if self.class == "container" => {
                return Err((422, "Pausing is not supported for this sandbox".to_owned()));
            }
            "autopause" => {
                not_negative("Auto-pause")?;
                self.auto_pause = minutes;
                self.auto_stop = 0;
            }
            "autoarchive" => {
                not_negative("Auto-archive")?;
                self.auto_archive = longest(minutes);
            }
            "autodelete" if self.gpu > 0 => return Err((400, "GPU sandboxes must remain ephemeral".to_owned())),
            "autodelete" => self.auto_delete = minutes,
            "ttl" => self.destroyed_at = (minutes > 0).then(|| now.plus(MINUTE * u32::try_from(minutes).unwrap())),
            _ => return Err((404, format!("Cannot POST {timer}"))),
        }
        Ok(())
    }

    /// Somebody works in it through the provider's proxy.
    pub(crate) fn used(&mut self, id: &str, now: Time) {
        (self.last_activity, self.updated) = (now, now);
        self.note(id);
    }

    /// Writes it into the index of the listing.
    fn note(&mut self, id: &str) {
        let version = (self.state != "destroyed" && !self.is_hidden()).then(|| self.item(id));
        self.versions.push((self.updated, version));
    }

    /// The state as it is shown, which is not always the one that it has.
    fn shown(&self) -> &'static str {
        match (self.state, self.desired) {
            ("started", "stopped") => "stopping",
            ("started" | "stopped", "destroyed") => "destroying",
            ("stopped", "started") => "starting",
            ("stopped", "archived") => "archiving",
            (state, _) => state,
        }
    }

    /// A row of the listing; `raw` is the state that its filter goes by.
    fn item(&self, id: &str) -> Value {
        let mut item = json!({
            "id": id, "organizationId": ORGANIZATION, "name": self.name, "user": "daytona", "labels": self.labels,
            "public": false, "networkBlockAll": false, "target": "us", "cpu": 1, "gpu": self.gpu, "memory": 1, "disk": 3,
            "state": self.shown(), "desiredState": self.desired, "recoverable": false, "backupState": "None",
            "autoStopInterval": self.auto_stop, "autoPauseInterval": self.auto_pause,
            "autoArchiveInterval": self.auto_archive, "autoDeleteInterval": self.auto_delete,
            "createdAt": written(self.created), "updatedAt": written(self.updated),
            "lastActivityAt": written(self.last_activity), "sandboxClass": self.class, "runnerId": "r1",
            "toolboxProxyUrl": "http://127.0.0.1:1/toolbox", "snapshot": "daytonaio/sandbox:0.6", "raw": self.state,
        });
        if let Some(at) = self.destroyed_at {
            item["autoDestroyAt"] = written(at).into();
        }
        item
    }

    /// What is asked for by id has more.
    fn single(&self, id: &str) -> Value {
        let mut single = self.item(id);
        let fields = single.as_object_mut().unwrap();
        fields.remove("raw");
        fields.extend([("env".to_owned(), json!({})), ("kvm".to_owned(), (self.class != "container").into())]);
        single
    }
}

/// A zero is the longest, and what is longer too.
fn longest(minutes: i64) -> i64 {
    if minutes == 0 { 43_200 } else { minutes.min(43_200) }
}

/// Times have milliseconds.
fn written(time: Time) -> String {
    let text = time.to_string();
    let seconds = &text[..19];
    format!("{seconds}.{:03}Z", time.millis().rem_euclid(1_000))
}

/// The place after a row: what it was sorted by, and its id.
fn cursor(sorted: &str, id: &str) -> String {
    opaque(&format!("{sorted}\n{id}"))
}

fn place(cursor: &str) -> Option<(String, String)> {
    let text = seen_through(cursor)?;
    text.split_once('\n').map(|(sorted, id)| (sorted.to_owned(), id.to_owned()))
}

fn error(asked: &Asked, status: u16, message: &str) -> Reply {
    let phrase = match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        _ => "Internal Server Error",
    };
    let body = json!({
        "path": asked.uri, "timestamp": "2026-11-30T10:00:00.000Z", "statusCode": status, "error": phrase,
        "message": message,
    });
    Reply::json(status, body)
}
