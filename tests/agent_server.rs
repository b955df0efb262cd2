//! Asking an OpenHands agent server: a stub that answers as 1.58.2 was measured to, and as nothing should.

mod answers;
mod stub;

use std::time::Duration;

use backend::{
    BackendError, Bounds, Clock, ErrorKind, Probe,
    openhands::{AgentServer, Interrupted, Prober, SessionKey},
};
use lifecycle::{Busy, Time, activity::MAX_BUSY};
use serde_json::json;

use answers::{bash_command, bash_output, conversation, page, server_info};
use stub::{Answer, Stub};

const KEY: &str = "sess-key-1";
const SEARCH: &str = "/api/conversations/search";
const COMMANDS: &str = "/api/bash/bash_events/search";

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

fn now() -> Time {
    at("2026-11-30T14:00:00Z")
}

fn minutes(count: u64) -> Duration {
    Duration::from_mins(count)
}

fn bounds() -> Bounds {
    Bounds { deadline: now().plus(minutes(1)) }
}

fn prober() -> Prober {
    Prober::new(Clock::fixed(now())).unwrap()
}

/// A server with one conversation at rest and no commands.
async fn server() -> Stub {
    let stub = Stub::start(KEY).await;
    stub.set("/server_info", Answer::json(&server_info(7_200, 1_800)));
    stub.set(SEARCH, Answer::json(&page(&[conversation("c1", "idle", "2026-11-30T13:20:00.000001Z")])));
    stub.set(COMMANDS, Answer::json(&page(&[])));
    stub
}

async fn probe(stub: &Stub) -> Result<Probe, BackendError> {
    prober().probe(&stub.server(Some(KEY)), None, bounds()).await
}

fn idle_since(time: &str) -> Probe {
    Probe { last_active: Some(at(time)), busy: Busy::No }
}

#[tokio::test]
async fn an_idle_server_was_active_an_idle_time_ago() {
    let stub = server().await;
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:30:00Z")));
}

#[tokio::test]
async fn server_info_comes_first_and_nothing_but_gets_is_sent() {
    let stub = server().await;
    probe(&stub).await.unwrap();
    assert_eq!(
        stub.requests(),
        [
            "GET /server_info",
            "GET /api/conversations/search?limit=100&sort_order=UPDATED_AT_DESC",
            "GET /api/bash/bash_events/search?kind__eq=BashCommand&sort_order=TIMESTAMP_DESC&limit=100",
        ]
    );
}

/// OpenHands/software-agent-sdk#1769: a runtime claimed at 02:32 inherited 1,481 s of idle time.
#[tokio::test]
async fn activity_is_never_told_to_be_earlier_than_the_last_change_of_state() {
    let stub = server().await;
    let resumed = at("2026-11-30T13:59:54Z");
    let probed = prober().probe(&stub.server(Some(KEY)), Some(resumed), bounds()).await;
    assert_eq!(probed, Ok(Probe { last_active: Some(resumed), busy: Busy::No }));
    let long_ago = at("2026-11-30T09:00:00Z");
    let probed = prober().probe(&stub.server(Some(KEY)), Some(long_ago), bounds()).await;
    assert_eq!(probed, Ok(idle_since("2026-11-30T13:30:00Z")));
}

/// The same report: nobody tells when a dormant server was initialised, and its idle time counts from its start.
#[tokio::test]
async fn a_server_that_was_dormant_and_has_seen_nothing_proves_nothing() {
    let stub = server().await;
    stub.set("/server_info", Answer::json(&server_info(1_481, 1_481)));
    stub.set(SEARCH, Answer::json(&page(&[])));
    stub.set("/api/init", Answer::json(&json!({ "state": "ready", "error": null })));
    assert_eq!(probe(&stub).await, Ok(Probe { last_active: None, busy: Busy::No }));
    stub.set(COMMANDS, Answer::json(&page(&[bash_command("fa", "2026-11-30T13:50:00Z", 60)])));
    stub.set_output("fa", Answer::json(&page(&[bash_output("fa", "2026-11-30T13:50:01Z", Some(0))])));
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:50:01Z")), "one event is proof");
}

#[tokio::test]
async fn a_server_that_never_was_dormant_is_idle_since_it_started() {
    let stub = server().await;
    stub.set("/server_info", Answer::json(&server_info(1_481, 1_481)));
    stub.set(SEARCH, Answer::json(&page(&[])));
    stub.set("/api/init", Answer::status(404, &json!({ "detail": "server is not running with deferred_init=True" })));
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:35:19Z")));
}

#[tokio::test]
async fn a_dormant_server_proves_no_activity_and_is_not_busy() {
    let stub = server().await;
    stub.set(SEARCH, Answer::status(503, &answers::dormant()));
    stub.set(COMMANDS, Answer::status(503, &answers::dormant()));
    stub.set("/api/init", Answer::json(&json!({ "state": "dormant", "error": null })));
    assert_eq!(probe(&stub).await, Ok(Probe { last_active: None, busy: Busy::No }));
    stub.set("/api/init", Answer::json(&json!({ "state": "initializing", "error": null })));
    assert_eq!(probe(&stub).await.unwrap().last_active, Some(now()), "somebody claims it just now");
}

/// OpenHands/software-agent-sdk#2698, #4790: hours of silent work.
#[tokio::test]
async fn a_running_conversation_is_busy_however_long_it_is_silent() {
    let stub = server().await;
    let silent = conversation("c1", "running", "2026-11-30T09:00:00Z");
    stub.set("/server_info", Answer::json(&server_info(20_000, 18_000)));
    stub.set(SEARCH, Answer::json(&page(&[silent])));
    let busy = Busy::Until(at("2026-11-30T09:00:00Z").plus(MAX_BUSY));
    assert_eq!(probe(&stub).await, Ok(Probe { last_active: Some(at("2026-11-30T09:00:00Z")), busy }));
}

#[tokio::test]
async fn running_can_be_a_lie_and_is_believed_for_twelve_hours_only() {
    let stub = server().await;
    stub.set(SEARCH, Answer::json(&page(&[conversation("c1", "running", "2026-11-30T01:59:00Z")])));
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:30:00Z")));
}

/// OpenHands/software-agent-sdk#1770: only one of the signals is fresh.
#[tokio::test]
async fn the_freshest_sign_counts() {
    let stub = server().await;
    let conversations =
        [conversation("c2", "finished", "2026-11-30T13:58:00Z"), conversation("c1", "idle", "2026-11-30T09:00:00Z")];
    stub.set(SEARCH, Answer::json(&page(&conversations)));
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:58:00Z")));
}

#[tokio::test]
async fn a_time_ahead_of_ours_is_now() {
    let stub = server().await;
    stub.set(SEARCH, Answer::json(&page(&[conversation("c1", "running", "2026-12-24T00:00:00Z")])));
    let busy = Busy::Until(now().plus(MAX_BUSY));
    assert_eq!(probe(&stub).await, Ok(Probe { last_active: Some(now()), busy }));
}

/// A background command: `idle_time` grows and no conversation shows it.
#[tokio::test]
async fn a_running_command_is_busy_until_the_server_ends_it() {
    let stub = server().await;
    stub.set(COMMANDS, Answer::json(&page(&[bash_command("fa", "2026-11-30T13:30:00Z", 3_600)])));
    stub.set_output("fa", Answer::json(&page(&[])));
    let until = at("2026-11-30T14:30:00Z");
    assert_eq!(probe(&stub).await, Ok(Probe { last_active: Some(now()), busy: Busy::Until(until) }));
    stub.set_output("fa", Answer::json(&page(&[bash_output("fa", "2026-11-30T13:55:00Z", None)])));
    assert_eq!(probe(&stub).await.unwrap().busy, Busy::Until(until), "it wrote something, and runs on");
}

#[tokio::test]
async fn the_end_of_a_command_is_activity() {
    let stub = server().await;
    stub.set(COMMANDS, Answer::json(&page(&[bash_command("fa", "2026-11-30T13:30:00Z", 3_600)])));
    stub.set_output("fa", Answer::json(&page(&[bash_output("fa", "2026-11-30T13:57:00Z", Some(0))])));
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:57:00Z")));
}

/// A command whose server was killed never ends in what it wrote.
#[tokio::test]
async fn a_command_past_its_timeout_does_not_run() {
    let stub = server().await;
    stub.set(COMMANDS, Answer::json(&page(&[bash_command("fa", "2026-11-30T13:35:00Z", 300)])));
    stub.set_output("fa", Answer::json(&page(&[])));
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:40:00Z")), "active until then at the latest");
}

#[tokio::test]
async fn commands_that_can_change_nothing_are_not_asked_for() {
    let stub = server().await;
    stub.set(COMMANDS, Answer::json(&page(&[bash_command("fa", "2026-11-30T13:20:00Z", 300)])));
    assert_eq!(probe(&stub).await, Ok(idle_since("2026-11-30T13:30:00Z")));
    assert_eq!(stub.requests().len(), 3, "{:?}", stub.requests());
}

#[tokio::test]
async fn commands_beyond_the_limit_count_as_running() {
    let stub = server().await;
    let many: Vec<_> = (0..40).map(|n| bash_command(&format!("{n:02x}"), "2026-11-30T13:45:00Z", 3_600)).collect();
    for n in 0..40 {
        let ended = bash_output(&format!("{n:02x}"), "2026-11-30T13:46:00Z", Some(0));
        stub.set_output(&format!("{n:02x}"), Answer::json(&page(&[ended])));
    }
    stub.set(COMMANDS, Answer::json(&page(&many)));
    let probed = probe(&stub).await.unwrap();
    assert_eq!(probed.busy, Busy::Until(at("2026-11-30T14:45:00Z")));
    assert_eq!(stub.requests().len(), 3 + 32, "a bounded number of questions");
}

#[tokio::test]
async fn an_output_too_large_to_read_counts_as_no_end() {
    let stub = server().await;
    stub.set(COMMANDS, Answer::json(&page(&[bash_command("fa", "2026-11-30T13:50:00Z", 1_800)])));
    stub.set_output("fa", Answer::text(200, &"x".repeat((4 << 20) + 1)));
    assert_eq!(probe(&stub).await.unwrap().busy, Busy::Until(at("2026-11-30T14:20:00Z")));
}

#[tokio::test]
async fn every_page_is_read() {
    let stub = server().await;
    let first = [conversation("c1", "idle", "2026-11-30T13:20:00Z")];
    let second = [conversation("c2", "running", "2026-11-30T13:10:00Z")];
    stub.set(SEARCH, Answer::json(&answers::page_before(&first, "c2")));
    stub.set_page(SEARCH, "c2", Answer::json(&page(&second)));
    assert_eq!(probe(&stub).await.unwrap().busy, Busy::Until(at("2026-12-01T01:10:00Z")));

    let first = [bash_command("fb", "2026-11-30T13:20:00Z", 1)];
    let second = [bash_command("fa", "2026-11-30T13:10:00Z", 7_200)];
    stub.set(SEARCH, Answer::json(&page(&[])));
    stub.set(COMMANDS, Answer::json(&answers::page_before(&first, "p2")));
    stub.set_page(COMMANDS, "p2", Answer::json(&page(&second)));
    stub.set_output("fa", Answer::json(&page(&[])));
    assert_eq!(probe(&stub).await.unwrap().busy, Busy::Until(at("2026-11-30T15:10:00Z")));
}

#[tokio::test]
async fn old_conversations_are_not_paged_through() {
    let stub = server().await;
    let old = [conversation("c1", "idle", "2026-11-20T13:20:00Z")];
    stub.set(SEARCH, Answer::json(&answers::page_before(&old, "c2")));
    probe(&stub).await.unwrap();
    assert_eq!(stub.requests().len(), 3, "{:?}", stub.requests());
}

/// A page id that the server no longer knows gives the first page again.
#[tokio::test]
async fn a_listing_without_an_end_is_left() {
    let stub = server().await;
    let first = [conversation("c1", "idle", "2026-11-30T13:20:00Z")];
    stub.set(SEARCH, Answer::json(&answers::page_before(&first, "c2")));
    stub.set_page(SEARCH, "c2", Answer::json(&answers::page_before(&first, "c2")));
    assert_eq!(probe(&stub).await.unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(stub.requests().len(), 1 + 20, "at most 20 pages");
    let commands = [bash_command("fa", "2026-11-30T13:50:00Z", 1)];
    stub.set(SEARCH, Answer::json(&page(&[])));
    stub.set(COMMANDS, Answer::json(&answers::page_before(&commands, "p2")));
    stub.set_page(COMMANDS, "p2", Answer::json(&answers::page_before(&commands, "p2")));
    stub.set_output("fa", Answer::json(&page(&[bash_output("fa", "2026-11-30T13:50:01Z", Some(0))])));
    let busy = Busy::Until(at("2026-11-30T13:50:00Z").plus(MAX_BUSY));
    assert_eq!(probe(&stub).await, Ok(Probe { last_active: Some(now()), busy }), "the rest counts at its worst");
}

/// The kind and the message of a probe under one answer of the server's.
async fn unread(path: &str, answer: Answer) -> (ErrorKind, String) {
    let stub = server().await;
    stub.set(path, answer);
    let error = probe(&stub).await.expect_err("what can't be read is no probe");
    assert!(!error.message.contains(KEY), "a key in `{}`", error.message);
    (error.kind, error.message)
}

#[tokio::test]
async fn what_can_not_be_read_is_an_error_from_every_route() {
    for path in ["/server_info", SEARCH, COMMANDS] {
        for (answer, kind) in [
            (Answer::text(200, ""), ErrorKind::Malformed),
            (Answer::text(200, "<html><body>nginx</body></html>"), ErrorKind::Malformed),
            (Answer::text(200, "{}"), ErrorKind::Malformed),
            (Answer::text(200, "null"), ErrorKind::Malformed),
            (Answer::text(200, &" ".repeat((4 << 20) + 1)), ErrorKind::Malformed),
            (Answer::text(404, "no such page"), ErrorKind::Malformed),
            (Answer::text(418, "{}"), ErrorKind::Malformed),
            (Answer::status(401, &json!({ "detail": "Unauthorized" })), ErrorKind::Denied),
            (Answer::text(403, ""), ErrorKind::Denied),
            (Answer::text(500, "secret trace"), ErrorKind::Unreachable),
            (Answer::text(502, ""), ErrorKind::Unreachable),
            (
                Answer::text(429, "").header("retry-after", "90"),
                ErrorKind::Throttled { retry_after: Duration::from_secs(90) },
            ),
            (Answer::text(307, "").header("location", "/elsewhere"), ErrorKind::Malformed),
        ] {
            let status = answer.status_code();
            let (told, message) = unread(path, answer).await;
            assert_eq!(told, kind, "{path} {status}: {message}");
            assert!(!message.contains("secret trace") && message.len() < 400, "{message}");
        }
    }
}

#[tokio::test]
async fn odd_numbers_are_an_error_and_never_idleness() {
    for (uptime, idle) in [
        (json!("7200"), json!(1_800)),
        (json!(7_200), json!("1800")),
        (json!(7_200), json!(-1)),
        (json!(7_200), json!(1e18)),
        (json!(7_200), json!(7_300)),
        (json!(-1), json!(0)),
        (json!(7_200), json!(null)),
        (json!(null), json!(3)),
        (json!([7_200]), json!({})),
    ] {
        let mut info = server_info(0, 0);
        (info["uptime"], info["idle_time"]) = (uptime, idle);
        let (kind, message) = unread("/server_info", Answer::json(&info)).await;
        assert_eq!(kind, ErrorKind::Malformed, "{info}: {message}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let stub = server().await;
    let elsewhere = server().await;
    let location = format!("{}/server_info", elsewhere.base());
    stub.set("/server_info", Answer::text(302, "").header("location", &location));
    assert_eq!(probe(&stub).await.unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_never_answers_is_left_at_the_deadline() {
    let stub = server().await;
    stub.set(SEARCH, Answer::never());
    let soon = Bounds { deadline: now().plus(Duration::from_millis(50)) };
    let error = prober().probe(&stub.server(Some(KEY)), None, soon).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn nothing_is_asked_after_the_deadline() {
    let stub = server().await;
    let error = prober().probe(&stub.server(Some(KEY)), None, Bounds { deadline: now() }).await.unwrap_err();
    assert_eq!((error.kind, stub.requests()), (ErrorKind::Unreachable, Vec::new()));
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let stub = server().await;
    let closed = stub.server(Some(KEY));
    stub.stop().await;
    assert_eq!(prober().probe(&closed, None, bounds()).await.unwrap_err().kind, ErrorKind::Unreachable);
}

#[tokio::test]
async fn the_key_is_sent_and_shown_nowhere() {
    let stub = server().await;
    for wrong in [None, Some("another-key")] {
        let error = prober().probe(&stub.server(wrong), None, bounds()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
    }
    let server = stub.server(Some(KEY));
    let unfit = AgentServer::new(&stub.base(), Some(SessionKey::new("secret\nkey"))).unwrap();
    let error = prober().probe(&unfit, None, bounds()).await.unwrap_err();
    let shown = format!("{server:?} {unfit:?} {:?} {error} {error:?}", SessionKey::new(KEY));
    assert!(!shown.contains(KEY) && !shown.contains("secret"), "{shown}");
}

#[test]
fn an_address_is_a_host_and_a_port() {
    for base in ["", "127.0.0.1:80", "ftp://127.0.0.1", "file:///etc/passwd", "unix:///run/x"] {
        assert_eq!(AgentServer::new(base, None).unwrap_err().kind, ErrorKind::Local, "{base}");
    }
    for base in ["http://user:hunter2@127.0.0.1", "http://127.0.0.1/?key=hunter2", "http://127.0.0.1/#hunter2"] {
        let error = AgentServer::new(base, None).unwrap_err();
        assert!(!error.message.contains("hunter2"), "{error}");
    }
    AgentServer::new("http://127.0.0.1:32768", None).unwrap();
}

#[tokio::test]
async fn an_address_can_have_a_path() {
    let stub = server().await;
    stub.set("/prefix/server_info", Answer::text(500, ""));
    let server = AgentServer::new(&format!("{}/prefix/", stub.base()), None).unwrap();
    let _ = prober().probe(&server, None, bounds()).await;
    assert_eq!(stub.requests(), ["GET /prefix/server_info"]);
}

#[tokio::test]
async fn only_running_conversations_are_interrupted() {
    let stub = server().await;
    let conversations = [
        conversation("c1", "running", "2026-11-30T13:50:00Z"),
        conversation("c2", "paused", "2026-11-30T13:40:00Z"),
        conversation("c3", "running", "2026-11-30T13:30:00Z"),
    ];
    stub.set(SEARCH, Answer::json(&page(&conversations)));
    stub.set("/api/conversations/c1/interrupt", Answer::json(&json!({ "success": true })));
    stub.set("/api/conversations/c3/interrupt", Answer::status(404, &json!({ "detail": "Not Found" })));
    let done = prober().interrupt_running(&stub.server(Some(KEY)), bounds()).await;
    assert_eq!(done, Ok(Interrupted { interrupted: 1, unknown: 1 }));
    assert_eq!(
        stub.requests()[1..],
        ["POST /api/conversations/c1/interrupt", "POST /api/conversations/c3/interrupt"].map(str::to_owned)
    );
}

#[tokio::test]
async fn a_dormant_server_has_nothing_to_interrupt() {
    let stub = server().await;
    stub.set(SEARCH, Answer::status(503, &answers::dormant()));
    stub.set("/api/init", Answer::json(&json!({ "state": "dormant", "error": null })));
    let done = prober().interrupt_running(&stub.server(Some(KEY)), bounds()).await;
    assert_eq!(done, Ok(Interrupted::default()));
}
