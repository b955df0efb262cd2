//! Asking the real OpenHands agent server, openhands-agent-server 1.58.2 from PyPI.
//!
//! `FURLOUGH_TEST_AGENT_SERVER` names the Python (≥ 3.12) that has it installed; a missing one fails. The server takes
//! 18–35 s to start on two cores, so that one test goes with one server through its whole life, in the order in
//! which a host would. A real server works in real time: what is waited for is looked at again, up to a limit.

mod model;
mod server;

use std::time::Duration;

use backend::{
    Bounds, ErrorKind, Probe,
    openhands::{Interrupted, Prober},
};
use lifecycle::{Busy, activity::MAX_BUSY};
use serde_json::{Value, json};

use model::Model;
use server::{Server, until};

fn bounds() -> Bounds {
    Bounds { deadline: server::now().plus(Duration::from_secs(30)) }
}

async fn probe(prober: &Prober, server: &Server) -> Probe {
    prober.probe(&server.asked_with_its_key(), None, bounds()).await.unwrap()
}

#[tokio::test]
async fn the_real_server_from_dormant_to_interrupted() {
    let server = Server::start().await;
    let prober = Prober::new(server::clock()).unwrap();
    let nothing_proved = Probe { last_active: None, busy: Busy::No };

    assert_eq!(probe(&prober, &server).await, nothing_proved, "a dormant server");
    server.init().await;
    assert_eq!(probe(&prober, &server).await, nothing_proved, "initialised, and nothing done yet");
    let refused = prober.probe(&server.asked_with("another-key"), None, bounds()).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Denied);

    a_background_command_is_seen(&prober, &server).await;
    probes_leave_no_trace(&prober, &server).await;
    a_running_tool_is_seen_and_interrupted(&prober, &server).await;
}

/// `idle_time` grows and no conversation shows it, but it is busy; its end is activity.
async fn a_background_command_is_seen(prober: &Prober, server: &Server) {
    let began = server::now();
    let command = server
        .post(
            "api/bash/start_bash_command",
            &json!({ "command": "read line < wait-here", "cwd": server.folder(), "timeout": 600 }),
        )
        .await;
    assert_eq!(command["kind"], "BashCommand");
    server.idle_for(2).await;
    let told = probe(prober, server).await;
    let Busy::Until(until) = told.busy else { panic!("a running command is not seen: {told:?}") };
    let bound = began.plus(Duration::from_mins(10));
    assert!(until >= bound && until <= bound.plus(Duration::from_secs(5)), "{until} is not the command's timeout");
    assert!(told.last_active.unwrap() >= began, "{told:?}");

    let idle = server.idle_time().await;
    let ended_after = server::now();
    server.let_go();
    let done = until_rest(prober, server).await;
    let ended = done.last_active.unwrap();
    assert!(ended >= ended_after && ended <= server::now(), "{ended} is not when the command ended");
    assert!(server.idle_time().await >= idle, "the end of a background command should not show in idle_time");
}

/// What moves with the server's own clock moves on as if nobody had asked.
async fn probes_leave_no_trace(prober: &Prober, server: &Server) {
    let before = server.traces().await;
    server.idle_for(3).await;
    for _ in 0..5 {
        probe(prober, server).await;
    }
    assert!(server.idle_time().await >= 3, "a probe reset idle_time");
    assert_eq!(server.traces().await, before, "a probe left a trace");
}

/// `execution_status` is `running` while a tool runs and `idle_time` grows.
async fn a_running_tool_is_seen_and_interrupted(prober: &Prober, server: &Server) {
    let model = Model::start("sleep 120").await;
    let conversation = server.converse(&model).await;
    until("the tool runs", async || model.asked() > 0 && server.idle_time().await >= 2).await;
    let told = probe(prober, server).await;
    let Busy::Until(until) = told.busy else { panic!("a running tool is not seen: {told:?}") };
    // `idle_time` is cut to whole seconds, so that the activity told can be later than the last event.
    let bound = told.last_active.unwrap().plus(MAX_BUSY);
    assert!(until <= bound && bound.since(until) < Duration::from_secs(2), "{until} is not bounded by its last event");

    let done = prober.interrupt_running(&server.asked_with_its_key(), bounds()).await;
    assert_eq!(done, Ok(Interrupted { interrupted: 1, unknown: 0 }));
    let rest = until_rest(prober, server).await;
    assert!(rest.last_active >= told.last_active, "{rest:?}");
    let status = server.get(&format!("api/conversations/{conversation}")).await["execution_status"].clone();
    assert_eq!(status, Value::from("paused"));
    let again = prober.interrupt_running(&server.asked_with_its_key(), bounds()).await;
    assert_eq!(again, Ok(Interrupted::default()), "nothing is left to interrupt");
}

/// The first probe that sees no work.
async fn until_rest(prober: &Prober, server: &Server) -> Probe {
    until("it is at rest", async || probe(prober, server).await.busy == Busy::No).await;
    probe(prober, server).await
}
