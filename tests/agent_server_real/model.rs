//! A language model that always calls the terminal with one command, as OpenAI's API would tell it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Json, Router, extract::State, routing::post};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

#[derive(Debug, Clone)]
struct Says {
    command: String,
    asked: Arc<AtomicUsize>,
}

/// The model, on a free port of this machine. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Model {
    base: String,
    says: Says,
    serving: JoinHandle<()>,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Model {
    pub(super) async fn start(command: &str) -> Self {
        let says = Says { command: command.to_owned(), asked: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(says.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, says, serving }
    }

    pub(super) fn base(&self) -> String {
        self.base.clone()
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> usize {
        self.says.asked.load(Ordering::SeqCst)
    }
}

async fn answer(State(says): State<Says>, Json(_): Json<Value>) -> Json<Value> {
    let nth = says.asked.fetch_add(1, Ordering::SeqCst);
    let arguments = json!({ "command": says.command, "summary": "wait", "security_risk": "LOW" }).to_string();
    let call = json!({ "id": format!("call-{nth}"), "type": "function", "function": { "name": "terminal", "arguments": arguments } });
    Json(json!({
        "id": format!("answer-{nth}"), "object": "chat.completion", "created": 1_764_500_000, "model": "fake",
        "choices": [{ "index": 0, "finish_reason": "tool_calls",
            "message": { "role": "assistant", "content": null, "tool_calls": [call] } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    }))
}
