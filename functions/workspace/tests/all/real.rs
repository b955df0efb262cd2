//! The real OpenHands agent server, openhands-agent-server 1.58.2 from PyPI, below a sidecar and a host.
//!
//! `FURLOUGH_TEST_AGENT_SERVER` names the Python (≥ 3.12) that has it installed; a missing one fails. The server takes
//! 18–35 s to start on two cores, so that one test goes through a whole life.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::lab::{HOST, Host, SESSION_KEY, Sandbox, root};

#[expect(clippy::disallowed_methods, reason = "the server to test on is named by the environment")]
fn python() -> String {
    std::env::var("FURLOUGH_TEST_AGENT_SERVER").expect(
        "FURLOUGH_TEST_AGENT_SERVER names the Python that has openhands-agent-server installed: \
         `python3.13 -m venv V && V/bin/pip install openhands-agent-server==1.58.2`, then V/bin/python",
    )
}

async fn sandbox(host: &Host, root: &Path) -> Sandbox {
    let python = python();
    let environment = ["env", "OH_ENABLE_VSCODE=0", "OH_PRELOAD_TOOLS=0"];
    let server = [&*python, "-m", "openhands.agent_server", "--host", "127.0.0.1", "--port", "{port}"];
    let flags = ["--"].iter().chain(&environment).chain(&server).map(|&flag| flag.to_owned());
    Sandbox::with(host, root, flags).await
}

/// Everything that the server keeps is in the workspace.
fn asked(sandbox: &Sandbox) -> Value {
    let mut asked = sandbox.asked();
    let within = |name: &str| sandbox.root.join(name);
    asked["agent"]["conversations_path"] = json!(within("conversations"));
    asked["agent"]["bash_events_dir"] = json!(within("bash_events"));
    asked["agent"]["conversation_worktree_root"] = json!(within("worktrees"));
    asked["agent"]["env"] = json!({ "OH_PERSISTENCE_DIR": within("persistence") });
    asked
}

async fn ask(sandbox: &Sandbox, request: reqwest::RequestBuilder) -> Value {
    let answer = request.header("X-Session-API-Key", SESSION_KEY).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{}: {status} {text}", sandbox.base);
    serde_json::from_str(&text).unwrap()
}

async fn get(sandbox: &Sandbox, path: &str) -> Value {
    ask(sandbox, sandbox.client.get(format!("{}/api/{path}", sandbox.base))).await
}

async fn post(sandbox: &Sandbox, path: &str, body: &Value) -> Value {
    ask(sandbox, sandbox.client.post(format!("{}/api/{path}", sandbox.base)).json(body)).await
}

/// A conversation that no model was asked in yet, with a secret; its id.
async fn converse(sandbox: &Sandbox) -> String {
    let body = json!({
        "agent": {
            "kind": "Agent",
            "llm": { "model": "openai/fake", "base_url": "http://127.0.0.1:9/v1", "api_key": "the-key-of-a-model", "usage_id": "u" },
            "tools": [],
        },
        "workspace": { "kind": "LocalWorkspace", "working_dir": sandbox.root.join("project") },
    });
    let conversation = post(sandbox, "conversations", &body).await;
    conversation["id"].as_str().unwrap().to_owned()
}

async fn run(sandbox: &Sandbox, command: &str) -> String {
    let body = json!({ "command": command, "cwd": sandbox.root, "timeout": 60 });
    let done = post(sandbox, "bash/execute_bash_command", &body).await;
    assert_eq!(done["exit_code"], 0, "{done}");
    done["stdout"].as_str().unwrap().trim().to_owned()
}

/// The state of a conversation as it is kept, which has its secrets in cipher.
fn kept(sandbox: &Sandbox, conversation: &str) -> Value {
    let folder = sandbox.root.join("conversations").join(conversation.replace('-', ""));
    serde_json::from_slice(&std::fs::read(folder.join("base_state.json")).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_from_one_real_server_to_another() {
    let (_folder, root) = root();
    let host = Host::new().await;
    let one = sandbox(&host, &root).await;
    let (status, body) = host.post("w/init", HOST, &asked(&one)).await;
    assert_eq!((status, &body["state"]), (StatusCode::OK, &json!("ready")), "{body}");
    let conversation = converse(&one).await;
    let before = get(&one, &format!("conversations/{conversation}")).await;
    assert_eq!(run(&one, "echo of a day > notes && cat notes").await, "of a day");
    let sealed = kept(&one, &conversation)["agent"]["llm"]["api_key"].clone();
    assert!(sealed.as_str().is_some_and(|kept| !kept.contains("the-key-of-a-model")), "{sealed}");
    assert_eq!(host.deinit(&one).await.0, StatusCode::OK);
    assert!(!root.exists());

    // The same sandbox, another user: nothing of the first one.
    one.until_state("dormant").await;
    let mut another = asked(&one);
    another["agent"]["session_api_keys"] = json!(["another key", SESSION_KEY]);
    assert_eq!(host.post("v/init", HOST, &another).await.0, StatusCode::OK);
    assert_eq!(get(&one, "conversations/search").await["items"], json!([]));
    assert_eq!(run(&one, "ls").await.lines().filter(|name| *name == "notes").count(), 0);
    let asleep = json!({ "sidecar": one.base, "init_key": super::lab::INIT_KEY, "discard": true });
    assert_eq!(host.post("v/deinit", HOST, &asleep).await.0, StatusCode::OK);

    // Another sandbox, the first user: the same conversation, and its secrets open.
    let other = sandbox(&host, &root).await;
    assert_eq!(host.post("w/init", HOST, &asked(&other)).await.0, StatusCode::OK);
    let after = get(&other, &format!("conversations/{conversation}")).await;
    assert_eq!((&after["id"], &after["updated_at"]), (&before["id"], &before["updated_at"]));
    assert_eq!(run(&other, "cat notes").await, "of a day");
    assert!(kept(&other, &conversation)["agent"]["llm"]["api_key"].is_string(), "an unreadable secret is null");
    assert_eq!(host.deinit(&other).await.0, StatusCode::OK);
    assert_eq!(host.generation().await, 2);
}
