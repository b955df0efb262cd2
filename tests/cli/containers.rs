//! Containers have names, and people know them by these: whoever is told of one is told its name, also when it is gone.

use serde_json::{Value, json};

use super::bench::Folder;
use crate::docker::stub::{Engine, id};

/// Stopped for years, with nothing in it.
fn container(name: &str) -> Value {
    json!({
        "Name": format!("/{name}"),
        "Created": "2020-01-01T09:00:00Z",
        "State": {"Status": "exited", "StartedAt": "2020-01-01T10:00:00Z", "FinishedAt": "2020-01-01T11:00:00Z"},
        "HostConfig": {"AutoRemove": false, "RestartPolicy": {"Name": "no"}, "NetworkMode": "none"},
        "Config": {"Image": "agent:1", "Labels": {"agent": "yes"}, "Env": []},
        "Mounts": [],
        "ExecIDs": null,
        "SizeRw": 4_200_000,
        "SizeRootFs": 9_000_000,
    })
}

/// A folder with a configuration for this engine.
fn folder(engine: &Engine) -> Folder {
    let folder = Folder::empty();
    let host = engine.socket().display().to_string();
    let config = format!(
        "[[backend]]\nname = \"engine\"\nkind = \"docker\"\nhost = \"unix://{host}\"\nscope.labels = {{ agent = \"yes\" }}\n\
         price.suspended = \"0.004/h\"\n[[policy]]\nname = \"p\"\nidle.after = \"1h\"\nretention.suspended = \"1d\"\n\
         workspace = \"discard\"\n[budget]\nsuspend = {{ min = 9, per = \"1h\" }}\ndelete = {{ min = 9, per = \"1h\" }}\n"
    );
    folder.write("furlough.toml", &config);
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_named_while_it_is_deleted_and_for_as_long_as_its_history_is_kept() {
    let engine = Engine::with([container("agent-one")]);
    let folder = folder(&engine);
    let plan = folder.run(&["plan", "--out", "plan.json"]).ending(0).out;
    let row = plan.lines().find(|line| line.contains("agent-one")).unwrap_or_else(|| panic!("{plan}"));
    assert!(row.contains("4.2 MB, 0.004/h"), "what it saves is bytes and money: {row}");
    let applied = folder.run(&["apply", "plan.json"]).ending(0);
    assert_eq!(applied.err, format!("delete engine/{} agent-one: done\n", id(1)));
    assert!(!applied.out.contains("To take it back"), "nothing can: {applied:#?}");

    let history = folder.run(&["history", "agent-one"]).ending(0).out;
    assert!(history.starts_with(&format!("engine/{} agent-one\n", id(1))), "{history}");
    let undone = folder.run(&["undo"]).ending(3).out;
    assert!(undone.lines().any(|line| line.starts_with("refused") && line.contains("… agent-one")), "{undone}");
    for args in [&["undo", "agent-one"][..], &["undo", "engine/00000000"]] {
        let acts = folder.json(args, 3)["acts"].clone();
        assert_eq!(json!([acts.as_array().unwrap().len(), acts[0]["about"]]), json!([1, "agent-one (agent:1)"]));
    }
    assert_eq!(folder.json(&["history", "agent-one"], 0)["about"], "agent-one (agent:1)");
    assert_eq!(
        folder.json(&["hold", "agent-one"], 1)["error"]["message"],
        json!(format!("`engine/{} agent-one` is no more, so there is nothing to hold", id(1)))
    );
    assert_eq!(folder.json(&["history", "agent-two"], 2)["error"]["code"], "unknown_runtime");
}
