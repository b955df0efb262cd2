//! The Worker's own file, on the runtime that Cloudflare runs Workers on (`.ci/run` brings it), before Durable Objects
//! that stand in for sandboxes. Cloudflare's API is simulated here too: it lists what is made.

use std::{process::Stdio, time::Duration};

use backend::{Backend, Deleted, ErrorKind, NativeWanted, Outcome};
use backend_rest::{
    Key,
    cloudflare::{self, DestroyRunning, Options, connect},
};
use lifecycle::{RuntimeId, policy::WorkspaceRule};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use super::{Lab, minutes, options};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const KEY: &str = "as long as a key should be, and random";
const HOUR: Duration = Duration::from_hours(1);

/// The runtime with the Worker, twice: with a key, and with none.
struct Workers {
    _process: Child,
    addresses: Value,
    lab: Lab,
    hands: reqwest::Client,
}

impl Workers {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests installs it")]
    async fn new() -> Self {
        let modules = std::env::var("FURLOUGH_TEST_NODE").expect("FURLOUGH_TEST_NODE names a folder with miniflare");
        let mut process = Command::new("node")
            .args([&format!("{ROOT}/tests/providers/cloudflare/miniflare.mjs"), &modules])
            .args([&format!("{ROOT}/infra/cloudflare/worker.mjs"), KEY])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().expect("miniflare ended before it listened");
        let addresses = serde_json::from_str(&line).unwrap();
        Self { _process: process, addresses, lab: Lab::new().await, hands: reqwest::Client::new() }
    }

    /// Our backend, before the Worker at `place`, with this key.
    fn backend(&self, place: &str, key: &str) -> Backend {
        let options = Options {
            worker: self.addresses[place].as_str().unwrap().to_owned(),
            worker_key: Key::new(key),
            ..options(&self.lab.hands, self.lab.server.address(), DestroyRunning::WhenIdle)
        };
        cloudflare::backend(connect(options).unwrap())
    }

    /// What the hands behind the Durable Objects answer of this one.
    async fn hand(&self, what: &str, name: &str) -> Value {
        let place = format!("{}/{what}?name={name}", self.addresses["app"].as_str().unwrap());
        self.hands.get(place).send().await.unwrap().json().await.unwrap()
    }

    /// One that runs, as Cloudflare lists it.
    async fn running(&self, name: &str) -> RuntimeId {
        let id = self.hand("make", name).await["id"].as_str().unwrap().to_owned();
        let mut state = self.lab.server.state();
        let made = state.add(self.lab.hands.now(), |_| {});
        let sandbox = state.sandboxes.remove(&made).unwrap();
        state.sandboxes.insert(id.clone(), sandbox);
        self.lab.id(&id)
    }

    /// The calls that its Durable Object was asked for.
    async fn calls(&self, name: &str) -> Value {
        self.hand("calls", name).await["calls"].clone()
    }
}

#[tokio::test]
async fn the_real_worker_destroys_what_runs_and_nothing_reaches_a_container() {
    let workers = Workers::new().await;
    let id = workers.running("one").await;
    let delete = workers.backend("worker", KEY).delete.unwrap();
    let target = workers.lab.target(&id).await;
    let destroy = || delete.delete(&target, WorkspaceRule::Discard, minutes(workers.lab.hands.now()));
    assert_eq!(destroy().await, Ok(Outcome::Pending), "Cloudflare's listing does not know yet");
    let once = ["getState", "destroy", "getState"];
    assert_eq!(workers.calls("one").await, json!(once));
    assert_eq!(destroy().await, Ok(Outcome::Pending), "it does not run any more, so that it is not destroyed again");
    assert_eq!(workers.calls("one").await, json!([&once[..], &["getState"]].concat()));

    // The listing knows by the time that it is asked whether it is so.
    let id = workers.running("two").await;
    let target = workers.lab.target(&id).await;
    let (now, mut looks) = (workers.lab.hands.now(), 0);
    workers.lab.server.on(move |_, server| {
        looks += 1;
        if looks == 2 {
            server.sandboxes.get_mut(id.encoded()).unwrap().sleep(now);
        }
        None
    });
    let done = delete.delete(&target, WorkspaceRule::Discard, minutes(now)).await;
    assert_eq!(done, Ok(Outcome::Done(Deleted::default())));
    assert_eq!(workers.calls("two").await, json!(once));
}

#[tokio::test]
async fn the_real_worker_writes_how_long_one_may_idle() {
    let workers = Workers::new().await;
    let id = workers.running("one").await;
    let native = workers.backend("worker", KEY).native.unwrap();
    let target = workers.lab.target(&id).await;
    let wanted = NativeWanted { idle_suspend: Some(HOUR), archive: Some(2 * HOUR), delete: None };
    let set = || native.set_native(&target, wanted, minutes(workers.lab.hands.now()));
    assert!(matches!(set().await, Ok(Outcome::Done(shown)) if shown.hidden));
    assert_eq!(workers.calls("one").await, json!(["getState", "setSleepAfter 10800"]));
    let asleep = workers.running("two").await;
    let target = workers.lab.target(&asleep).await;
    workers.hand("sleep", "two").await;
    let answered = native.set_native(&target, wanted, minutes(workers.lab.hands.now())).await;
    assert_eq!(answered, Ok(Outcome::Pending), "its container ended, and nothing is written");
    assert_eq!(workers.calls("two").await, json!(["getState"]));
}

/// With another key, or where no key was set, whoever asks; and of an id of another namespace.
#[tokio::test]
async fn the_real_worker_refuses_whom_it_does_not_know() {
    let workers = Workers::new().await;
    let id = workers.running("one").await;
    let target = workers.lab.target(&id).await;
    let bounds = minutes(workers.lab.hands.now());
    let longer = format!("{KEY}x");
    for (place, key) in [("worker", "another"), ("worker", &longer), ("keyless", KEY), ("keyless", "undefined")] {
        let delete = workers.backend(place, key).delete.unwrap();
        let refused = delete.delete(&target, WorkspaceRule::Discard, bounds).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Denied, "{place}, {key}: {refused}");
    }
    assert_eq!(workers.calls("one").await, json!([]));
    let other = workers.lab.running();
    let target = workers.lab.target(&other).await;
    let delete = workers.backend("worker", KEY).delete.unwrap();
    let refused = delete.delete(&target, WorkspaceRule::Discard, bounds).await;
    assert!(matches!(&refused, Ok(Outcome::Refused(why)) if why.contains("another namespace")), "{refused:?}");
}

/// What is none of its two routes, or no number of seconds, comes to no Durable Object.
#[tokio::test]
async fn the_real_worker_has_two_routes_and_no_other() {
    let workers = Workers::new().await;
    let id = workers.running("one").await;
    let place = workers.addresses["worker"].as_str().unwrap();
    let ask = async |method: &str, below: &str, body: &str| {
        let request = workers.hands.request(method.parse().unwrap(), format!("{place}{below}"));
        let answer = request.bearer_auth(KEY).body(body.to_owned()).send().await.unwrap();
        answer.status().as_u16()
    };
    let one = |verb: &str| format!("/v1/instances/{}/{verb}", id.encoded());
    for (method, below) in [
        ("GET", "/".to_owned()),
        ("GET", one("destroy")),
        ("DELETE", one("destroy")),
        ("POST", one("sleep-after")),
        ("POST", one("destroy/")),
        ("POST", one("exec")),
        ("POST", "/v1/instances/abc/destroy".to_owned()),
        ("POST", format!("/v1/instances/{}/destroy", id.encoded().to_uppercase() + "A")),
    ] {
        assert_eq!(ask(method, &below, "").await, 404, "{method} {below}");
    }
    for body in [
        "",
        "7",
        "null",
        "{}",
        "[60]",
        r#"{"seconds": 0}"#,
        r#"{"seconds": -1}"#,
        r#"{"seconds": "60"}"#,
        r#"{"seconds": 1.5}"#,
        r#"{"seconds": 1e300}"#,
    ] {
        assert_eq!(ask("PUT", &one("sleep-after"), body).await, 400, "{body}");
    }
    let long = format!(r#"{{"seconds": 60, "x": "{}"}}"#, "x".repeat(2_000));
    assert_eq!(ask("PUT", &one("sleep-after"), &long).await, 400);
    assert_eq!(workers.calls("one").await, json!([]));
}
