//! The command with a provider's backend: configured, checked, listed, planned, applied.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use settings::system;
use tokio::task::block_in_place;

use crate::{
    cli::bench::{Folder, Ran, ran},
    simulators::{
        Provider, Server,
        cloudflare::{self, ACCOUNT, APPLICATION, Cloudflare},
        daytona::{self, Daytona},
        e2b::{self, E2b},
    },
};

/// A folder with a configuration, and the variable that has the key.
struct Desk {
    folder: Folder,
    key: Option<&'static str>,
}

impl Desk {
    fn new(kind: &str, address: &str, rule: &str) -> Self {
        let folder = Folder::empty();
        let text = format!(
            "[[backend]]\nname = \"boxes\"\nkind = \"{kind}\"\nurl = \"{address}\"\napi_key.env = \"BOXES_KEY\"\n\
             scope.labels = {{ team = \"a\" }}\nrate = \"1000/s\"\n\
             [[policy]]\nname = \"all\"\n{rule}\n[budget]\nsuspend = {{ min = 5, per = \"1h\" }}\n"
        );
        folder.write("furlough.toml", &text);
        Self { folder, key: None }
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command: Command = self.folder.command(args);
        command.env("FURLOUGH_CONFIG", self.folder.path().join("furlough.toml"));
        if let Some(key) = self.key {
            command.env("BOXES_KEY", key);
        }
        block_in_place(|| ran(&mut command))
    }

    fn json(&self, args: &[&str], code: i32) -> Value {
        self.run(&[args, &["--json"]].concat()).ending(code).json()
    }
}

/// A server by the real clock: the command has no other.
async fn serving<P: Provider>(provider: P) -> Server<P> {
    Server::start(provider, system::now).await
}

/// Of each runtime: what it is called, its state, and whether a plan would act on it.
fn states(list: &Value) -> Vec<Value> {
    let verdict = |row: &Value| if row["verdict"]["act"].is_null() { "keep" } else { "act" };
    let rows = list["runtimes"].as_array().unwrap().iter();
    let mut states: Vec<_> = rows.map(|row| json!([row["about"], row["state"], verdict(row)])).collect();
    states.sort_by_key(ToString::to_string);
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn daytona_is_checked_listed_planned_and_applied() {
    let server = serving(Daytona::default()).await;
    let now = system::now();
    let hours = |hours: u64| now.minus(Duration::from_hours(hours));
    {
        let mut state = server.state();
        state.add("idle", now, |sandbox| sandbox.last_activity = hours(3));
        state.add("busy", now, |sandbox| sandbox.last_activity = now);
        state.add("theirs", now, |sandbox| {
            sandbox.labels.clear();
            sandbox.last_activity = hours(900);
        });
    }
    let desk = Desk::new("daytona", &format!("{}/api", server.address()), "idle.after = \"30m\"");
    desk.run(&["check", "furlough.toml"]).ending(0);
    let schema = desk.run(&["schema"]).ending(0).json();
    assert!(schema.to_string().contains("\"const\":\"daytona\""));

    let without = desk.run(&["plan"]);
    assert_eq!(without.code, 2, "{without:#?}");
    assert!(
        without.err.contains("backend `boxes`: `api_key`: the environment variable `BOXES_KEY` is not set"),
        "{without:#?}"
    );
    assert_eq!(server.calls(), [""; 0]);

    let wrong = Desk { key: Some("dtn_wrong"), ..desk };
    let refused = wrong.run(&["plan"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(format!("{}{}", refused.out, refused.err).contains("401: Invalid credentials"), "{refused:#?}");
    assert!(!format!("{refused:?}").contains("dtn_wrong"));

    let desk = Desk { key: Some(daytona::KEY), ..wrong };
    assert_eq!(
        states(&desk.json(&["list"], 0)),
        [json!(["busy", "running", "keep"]), json!(["idle", "running", "act"]), json!(["theirs", "running", "keep"])]
    );
    let plan = desk.json(&["plan", "--out", "plan.json"], 0);
    let items: Vec<_> = plan["items"].as_array().unwrap().iter().map(|item| &item["evidence"]["about"]).collect();
    assert_eq!(items, ["idle"]);
    server.calls();

    // Begun, and not at its end: a later pass looks.
    let applied = desk.json(&["apply", "plan.json"], 3);
    assert_eq!((&applied["entries"][0]["about"], &applied["entries"][0]["fate"]), (&json!("idle"), &json!("pending")));
    let acts: Vec<_> = server.calls().into_iter().filter(|call| !call.starts_with("GET ")).collect();
    assert_eq!(acts, ["POST /api/sandbox/00000000-0000-4000-8000-000000000001/stop?force=false"]);
    server.state().tick(system::now().plus(Duration::from_secs(10)));
    let stopped = server.state().sandboxes.values().filter(|sandbox| sandbox.state == "stopped").count();
    assert_eq!(stopped, 1);
}

/// E2B tells of no activity: nothing is idle by it, and a run that is too long is paused.
#[tokio::test(flavor = "multi_thread")]
async fn e2b_is_listed_planned_and_applied() {
    let server = serving(E2b::default()).await;
    let now = system::now();
    {
        let mut state = server.state();
        state.add(now, |sandbox| sandbox.template = "long".to_owned());
        state.add(now, |sandbox| sandbox.started = now);
    }
    let idle = Desk { key: Some(e2b::KEY), ..Desk::new("e2b", server.address(), "idle.after = \"1m\"") };
    let plan = idle.json(&["plan"], 0);
    assert_eq!(plan["items"], json!([]), "what is unknown is never idle");
    let long = Desk { key: Some(e2b::KEY), ..Desk::new("e2b", server.address(), "lifetime.max = \"30m\"") };
    let name = |id: u32, template: &str| format!("ie2bsandbox{id:09} ({template})");
    assert_eq!(
        states(&long.json(&["list"], 0)),
        [json!([name(1, "long"), "running", "act"]), json!([name(2, "base"), "running", "keep"])]
    );
    long.run(&["plan", "--out", "plan.json"]).ending(0);
    let applied = long.json(&["apply", "plan.json"], 0);
    assert_eq!(applied["entries"][0]["fate"], "done");
    let running: Vec<_> = server.state().sandboxes.values().map(|sandbox| sandbox.running).collect();
    assert_eq!(running, [false, true]);
}

/// Cloudflare tells nothing of its timers, and the plan says so of each that it lists; what is idle stays, while its owner
/// did not say that it may be destroyed from running.
#[tokio::test(flavor = "multi_thread")]
async fn cloudflare_is_checked_listed_and_planned() {
    let server = serving(Cloudflare::default()).await;
    server.state().add(system::now(), |_| {});
    let (url, worker) = cloudflare::places(server.address());
    let desk = |destroy: bool| {
        let folder = Folder::empty();
        let text = format!(
            "[[backend]]\nname = \"boxes\"\nkind = \"cloudflare\"\nurl = \"{url}\"\nworker = \"{worker}\"\n\
             account = \"{ACCOUNT}\"\napplication = \"{APPLICATION}\"\napi_key.env = \"BOXES_KEY\"\n\
             worker_key.env = \"BOXES_KEY\"\nscope.names = [\"agent-\"]\nrate = \"1000/s\"\n\
             destroy_running = {destroy}\n[[policy]]\nname = \"all\"\nlifetime.max = \"30m\"\n"
        );
        folder.write("furlough.toml", &text);
        Desk { folder, key: Some(cloudflare::KEY) }
    };
    for (destroy, reason) in [(false, "lacks"), (true, "unknown")] {
        let desk = desk(destroy);
        desk.run(&["check", "furlough.toml"]).ending(0);
        let plan = desk.json(&["plan"], 0);
        assert_eq!(plan["items"], json!([]), "{plan}");
        let kept = &plan["kept"][0];
        assert_eq!((&kept["native_hidden"], &kept["reason"]["code"]), (&json!(true), &json!(reason)), "{plan}");
    }
}
