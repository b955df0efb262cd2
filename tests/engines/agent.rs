//! Containers as OpenHands makes them, with an agent server that answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::Response,
};
use backend::{Outcome, Probe};
use backend_docker::{Options, Scope, backend, connect};
use lifecycle::{Busy, Ownership};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::lab::{Kind, Lab, POLITE, Spec};

/// An agent server's answers, measured on 1.58.2, and what it was asked.
#[derive(Clone)]
struct Agent {
    port: u16,
    status: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    /// One on loopback, whose one conversation is in this `status`.
    async fn with(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let agent = Self { port: listener.local_addr().unwrap().port(), status, asked: Arc::default() };
        let router = Router::new().fallback(answer).with_state(agent.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        agent
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(State(agent): State<Agent>, request: Request) -> Response<Body> {
    let key = request.headers().get("x-session-api-key").is_some_and(|key| key == "hush-hush");
    let path = request.uri().path().to_owned();
    agent.asked.lock().unwrap().push(format!("{} {path}", request.method()));
    let conversation = json!({
        "id": "0123456789abcdef0123456789abcdef",
        "execution_status": agent.status,
        "updated_at": "2026-01-01T00:00:00.000000Z",
    });
    let (status, body) = match path.as_str() {
        "/server_info" => (200, json!({"uptime": 90_000.0, "idle_time": 86_400.0})),
        _ if !key => (401, json!({"detail": "Unauthorized"})),
        "/api/conversations/search" => (200, json!({"items": [conversation], "next_page_id": null})),
        "/api/bash/bash_events/search" => (200, json!({"items": [], "next_page_id": null})),
        path if path.ends_with("/interrupt") => (200, json!({"success": true})),
        _ => (404, Value::Null),
    };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap();
    response
}

/// A sandbox of OpenHands' app server on the host's network, so that its agent is reached on loopback.
async fn sandbox(lab: &Lab, agent: &Agent) -> String {
    let port = agent.port.to_string();
    let command: Vec<&str> = POLITE.iter().copied().chain(["agent", "--port", &port]).collect();
    let spec = Spec {
        name: Some(lab.name("oh-agent-server-")),
        labels: [("sandbox_spec_id", "agent:1".to_owned())].into(),
        environment: vec!["OH_SESSION_API_KEYS_0=hush-hush"],
        network: "host",
        foreign: true,
        ..Spec::of(&command)
    };
    lab.start(spec).await
}

/// What a newcomer has: no scope of their own.
fn newcomer(lab: &Lab) -> Options {
    Options { scope: Scope::default(), openhands: true, ..lab.options() }
}

#[tokio::test]
async fn a_newcomers_sandboxes_are_recognised_and_asked_for_their_activity() {
    let lab = Lab::new("probe").await;
    let agent = Agent::with("idle").await;
    let container = sandbox(&lab, &agent).await;
    let backend = backend(connect(newcomer(&lab)).await.unwrap());
    let page = backend.list.list(None).await.unwrap();
    let seen = page.seen.iter().find(|seen| seen.id == lab.id(&container)).unwrap();
    assert_eq!(seen.ownership, Ownership::Ours);
    assert!(!format!("{seen:?}").contains("hush"), "{seen:?}");
    let target = lab.target(&container).await;
    let probe = backend.probe.unwrap().probe(&target, lab.minute()).await;
    // It says that it was idle for a day, but its container has not run for so long.
    let expected = Probe { last_active: seen.running_since, busy: Busy::No };
    assert_eq!(probe, Ok(Outcome::Done(expected)));
    let posts: Vec<_> = agent.asked().into_iter().filter(|asked| !asked.starts_with("GET ")).collect();
    assert_eq!(posts, Vec::<String>::new(), "a probe leaves no trace");
}

#[tokio::test]
async fn an_unpause_is_activity_although_the_agent_counts_the_frozen_time_as_idle() {
    let lab = Lab::new("frozen").await;
    let agent = Agent::with("idle").await;
    let container = sandbox(&lab, &agent).await;
    let before = lab.see(&container).await;
    lab.until("a second has passed", async || lab.now() > before.running_since.unwrap().plus(Duration::from_secs(1)))
        .await;
    lab.pause(&container).await;
    lab.api.post(&format!("/containers/{container}/unpause")).await;
    let backend = backend(connect(newcomer(&lab)).await.unwrap());
    let target = lab.target(&container).await;
    assert_eq!(target.incarnation, before.incarnation);
    let probe = backend.probe.unwrap();
    if lab.kind == Kind::Podman {
        // Its events come late, or not at all: no activity is told to be earlier than the start.
        let probed = probe.probe(&target, lab.minute()).await;
        assert!(matches!(probed, Ok(Outcome::Done(seen)) if seen.last_active >= before.running_since));
        return;
    }
    lab.until("the unpause is seen", async || {
        let Ok(Outcome::Done(seen)) = probe.probe(&target, lab.minute()).await else { panic!("not probed") };
        seen.last_active.unwrap() > before.running_since.unwrap()
    })
    .await;
}

#[tokio::test]
async fn running_conversations_are_interrupted_before_the_stop() {
    let lab = Lab::new("interrupt").await;
    let agent = Agent::with("running").await;
    let container = sandbox(&lab, &agent).await;
    let backend = backend(connect(newcomer(&lab)).await.unwrap());
    let target = lab.target(&container).await;
    assert_eq!(backend.suspend.unwrap().suspend(&target, lab.minute()).await, Ok(Outcome::Done(())));
    let posts: Vec<_> = agent.asked().into_iter().filter(|asked| !asked.starts_with("GET ")).collect();
    assert_eq!(posts, ["POST /api/conversations/0123456789abcdef0123456789abcdef/interrupt"]);
    assert_eq!(lab.status(&container).await, "exited");
}

#[tokio::test]
async fn a_container_without_an_agent_server_is_not_asked() {
    let lab = Lab::new("agentless").await;
    let container = lab.start(Spec::of(POLITE)).await;
    let target = lab.target(&container).await;
    let outcome = lab.backend().await.probe.unwrap().probe(&target, lab.minute()).await.unwrap();
    assert!(matches!(&outcome, Outcome::Refused(why) if why.starts_with("no agent server is known")), "{outcome:?}");
}

#[tokio::test]
async fn an_agent_server_that_does_not_answer_is_an_error_and_never_idle() {
    let lab = Lab::new("silent").await;
    let mut agent = Agent::with("idle").await;
    agent.port = 1; // Nobody listens there.
    let container = sandbox(&lab, &agent).await;
    let backend = backend(connect(newcomer(&lab)).await.unwrap());
    let target = lab.target(&container).await;
    backend.probe.unwrap().probe(&target, lab.minute()).await.unwrap_err();
    assert_eq!(
        backend.suspend.unwrap().suspend(&target, lab.minute()).await,
        Ok(Outcome::Done(())),
        "a decision stands"
    );
}
