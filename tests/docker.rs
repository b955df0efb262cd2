//! The Docker backend against engines that fail in ways in which a real one can't be made to fail on demand.

use std::{
    collections::BTreeSet,
    io,
    os::unix::net::UnixListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use backend::{Backend, BackendError, Bounds, Clock, Deleted, ErrorKind, Outcome, Page, Sighting, Target};
use backend_docker::{Options, backend, connect};
use lifecycle::{
    Activity, BackendName, Busy, FileSizes, Incarnation, Loss, Observation, Ownership, State, Time,
    policy::WorkspaceRule,
};
use serde_json::{Value, json};

pub(crate) mod stub;

use stub::{Answer, Engine, id, sandbox};

const NOW: &str = "2026-11-30T12:00:00Z";

fn now() -> Time {
    NOW.parse().unwrap()
}

fn options() -> Options {
    let options = Options::new(BackendName::new("docker").unwrap(), Clock::fixed(now()));
    Options { stop_grace: Duration::from_secs(1), ..options }
}

fn minute() -> Bounds {
    Bounds { deadline: now().plus(Duration::from_mins(1)) }
}

async fn backend_of(engine: &Engine) -> Backend {
    backend(engine.docker(options()).await)
}

async fn list(engine: &Engine) -> Result<Page, BackendError> {
    backend_of(engine).await.list.list(None).await
}

/// The first container, as it stands.
async fn target(backend: &Backend) -> Target {
    let page = backend.list.list(None).await.unwrap();
    Target::of(&page.seen[0])
}

fn with(mut container: Value, change: &Value) -> Value {
    for (key, value) in change.as_object().unwrap() {
        container[key] = value.clone();
    }
    container
}

fn named(n: usize) -> Value {
    with(sandbox("running"), &json!({"Name": format!("/oh-agent-server-{n}")}))
}

fn abouts(page: &Page) -> Vec<&str> {
    page.seen.iter().map(|seen| &*seen.about).collect()
}

fn error(kind: ErrorKind, message: &str) -> BackendError {
    BackendError::new(kind, message)
}

// An engine that can't be asked is an error, never an empty inventory.

#[tokio::test]
async fn a_host_that_is_not_a_socket_is_refused_at_once() {
    for host in ["tcp://10.0.0.1:2375", "/var/run/docker.sock", "unix://docker.sock", "", "unix://"] {
        let refused = connect(Options { host: Some(host.to_owned()), ..options() }).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Denied, "{host}");
        assert!(refused.message.starts_with(&format!("`{host}` is not `unix://` and an absolute path")), "{refused}");
    }
}

#[tokio::test]
async fn an_engine_that_is_not_installed_is_an_error_that_names_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none.sock");
    let host = format!("unix://{}", socket.display());
    let docker = connect(Options { host: Some(host), ..options() }).await.unwrap();
    let expected = error(
        ErrorKind::Unreachable,
        &format!("there is no socket `{}`: is the engine installed and running?", socket.display()),
    );
    assert_eq!(backend(docker).list.list(None).await, Err(expected));
}

#[tokio::test]
async fn an_engine_that_is_down_is_an_error_from_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("dead.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let host = format!("unix://{}", socket.display());
    let backend = backend(connect(Options { host: Some(host), ..options() }).await.unwrap());
    let down =
        error(ErrorKind::Unreachable, &format!("nothing answers at `{}`: is the engine running?", socket.display()));
    let container = format!("docker/{}", id(1)).parse().unwrap();
    let target = Target { id: container, incarnation: Incarnation::new("x"), state: State::Running };
    assert_eq!(backend.list.list(None).await, Err(down.clone()));
    assert_eq!(backend.inspect.inspect(&target.id).await, Err(down.clone()));
    assert_eq!(backend.inspect.inspect(&"docker/short".parse().unwrap()).await, Err(down.clone()));
    assert_eq!(backend.suspend.as_ref().unwrap().suspend(&target, minute()).await, Err(down.clone()));
    assert_eq!(backend.suspend.as_ref().unwrap().resume(&target, minute()).await, Err(down.clone()));
    assert_eq!(backend.delete.unwrap().delete(&target, WorkspaceRule::Discard, minute()).await, Err(down));
}

#[tokio::test]
async fn an_engine_that_fails_to_list_is_an_error_with_its_words() {
    let engine = Engine::with([named(1)]);
    engine.on("GET /containers/json", |_| Some(Answer::Json(500, json!({"message": "layer\n store locked"}))));
    let expected = error(ErrorKind::Unreachable, "the engine answered 500: layer store locked");
    assert_eq!(list(&engine).await, Err(expected));
}

#[tokio::test]
async fn an_answer_that_is_not_the_api_is_an_error_that_does_not_repeat_it() {
    let bodies =
        ["<html><body>please log in, hush-hush</body></html>", r#"[{"Id": "hush-hush"#, r#"{"hush-hush": 1}"#, ""];
    for body in bodies {
        let engine = Engine::with([named(1)]);
        engine.on("GET /containers/json", move |_| Some(Answer::Text(200, body)));
        let failed = list(&engine).await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::Malformed, "{body}");
        assert!(failed.message.contains("/containers/json") && !failed.message.contains("hush"), "{failed}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_read_up_to_a_limit_that_is_told() {
    for (call, limit) in [("GET /version", 65_536), ("GET 1/json", 8_388_608)] {
        let engine = Engine::with([named(1)]);
        engine.on(call, |_| Some(Answer::Endless(200)));
        let page = list(&engine).await;
        let said = match &page {
            Err(failed) => failed.message.clone(),
            Ok(page) => page.unreadable.join("; "),
        };
        let says = format!(
            "has more than {limit} bytes, which is more than the Docker Engine API answers; is something else behind that socket?"
        );
        assert!(said.ends_with(&says), "{call}: {said}");
    }
    let engine = Engine::with([named(1)]);
    engine.on("GET /containers/json", |_| Some(Answer::Endless(500)));
    let failed = list(&engine).await.unwrap_err();
    let says = "the engine answered 500: more than 65536 bytes that are not the Docker Engine API's";
    assert_eq!(failed, error(ErrorKind::Unreachable, says));
}

#[tokio::test]
async fn a_command_in_a_container_vetoes_from_when_it_began_where_the_engine_remembers() {
    let busy = with(sandbox("running"), &json!({"ExecIDs": ["e1"]}));
    let began = |text: &str| {
        let seconds = text.parse::<Time>().unwrap().millis() / 1_000;
        json!({"Type": "container", "Action": "exec_start: sh -c hush-hush", "time": seconds, "Actor": {"Attributes": {"execID": "e1"}}})
    };
    let until = |text: &str| Busy::Until(text.parse().unwrap());
    for (event, expected) in [
        (began("2026-11-30T11:00:00Z"), until("2026-11-30T23:00:00Z")),
        (began("2026-11-29T11:00:00Z"), Busy::No),
        (json!({"time": 1, "Actor": {"Attributes": {"execID": "another"}}}), until("2026-12-01T00:00:00Z")),
        (json!({"time": 1, "Actor": null}), until("2026-12-01T00:00:00Z")),
        (json!("what?"), until("2026-12-01T00:00:00Z")),
    ] {
        let engine = Engine::with([busy.clone()]);
        engine.on("GET /exec/e1/json", |_| Some(Answer::Json(200, json!({"Running": true}))));
        let answer = event.clone();
        engine.on("GET /events", move |_| Some(Answer::Json(200, answer.clone())));
        let page = list(&engine).await.unwrap();
        assert_eq!(page.seen[0].busy, expected, "{event}");
        assert_eq!(&*page.seen[0].about, "oh-agent-server-1 (agent:1, a command runs in it)");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_a_shorter_listing() {
    let engine = Engine::with([named(1)]);
    engine.on("GET /containers/json", |_| Some(Answer::BreaksOff));
    assert_eq!(list(&engine).await.unwrap_err().kind, ErrorKind::Unreachable);
}

#[tokio::test]
async fn an_outage_in_the_middle_of_a_listing_ends_it() {
    let engine = Engine::with((1..=5).map(named));
    let mut looks = 0;
    engine.on("GET /json", move |_| {
        looks += 1;
        (looks == 4).then_some(Answer::BreaksOff)
    });
    assert_eq!(list(&engine).await.unwrap_err().kind, ErrorKind::Unreachable);
}

#[tokio::test]
async fn an_engine_that_is_too_new_says_what_to_update() {
    let engine = Engine::with([named(1)]);
    engine.on("GET /version", |_| Some(Answer::Json(200, json!({"ApiVersion": "1.99", "MinAPIVersion": "1.90"}))));
    let failed = list(&engine).await.unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Malformed);
    assert!(failed.message.ends_with("it speaks the API from 1.90, and furlough up to 1.51: update furlough"));
}

#[tokio::test]
async fn every_call_carries_the_version_that_both_speak() {
    let engine = Engine::with([named(1)]);
    list(&engine).await.unwrap();
    let expected = [
        "GET /version".to_owned(),
        "GET /v1.41/containers/json?all=true".to_owned(),
        format!("GET /v1.41/containers/{}/json", id(1)),
    ];
    assert_eq!(engine.calls(), expected);
}

// One container that can't be read is reported, and the others are used.

#[tokio::test]
async fn one_container_that_cant_be_looked_at_is_reported() {
    let engine = Engine::with((1..=3).map(named));
    let mut looks = 0;
    engine.on("GET /json", move |_| {
        looks += 1;
        (looks == 3).then(|| Answer::Json(500, json!({"message": "input/output error"})))
    });
    let page = list(&engine).await.unwrap();
    assert_eq!(abouts(&page), ["oh-agent-server-1 (agent:1)", "oh-agent-server-3 (agent:1)"]);
    assert_eq!(page.unreadable, ["container `oh-agent-server-2`: the engine answered 500: input/output error".into()]);
}

#[tokio::test]
async fn a_state_from_the_future_is_kept_unread() {
    let odd = with(sandbox("hibernating"), &json!({"Name": "/oh-agent-server-9"}));
    let foreign = with(sandbox("hibernating"), &json!({"Name": "/db"}));
    let engine = Engine::with([named(1), odd, foreign]);
    let page = list(&engine).await.unwrap();
    assert_eq!(abouts(&page), ["oh-agent-server-1 (agent:1)", "db (agent:1)"]);
    let why = "container `oh-agent-server-9` is in a state that this version does not know: kept";
    assert_eq!(page.unreadable, [why.into()]);
    let backend = backend_of(&engine).await;
    let odd = format!("docker/{}", id(2)).parse().unwrap();
    assert_eq!(backend.inspect.inspect(&odd).await, Err(error(ErrorKind::Malformed, why)));
}

#[tokio::test]
async fn a_row_in_another_shape_is_kept_unread() {
    let engine = Engine::with([named(1)]);
    engine.on("GET /containers/json", |_| {
        let row = json!({"Id": id(1), "Names": ["/oh-agent-server-1"], "Labels": {"sandbox_spec_id": "x"}});
        let odd = json!({"Id": "abcdef0123456789", "Names": 7});
        Some(Answer::Json(200, json!([odd, row, {"Name": "no id"}])))
    });
    let page = list(&engine).await.unwrap();
    assert_eq!(abouts(&page), ["oh-agent-server-1 (agent:1)"]);
    let expected = [
        "container `abcdef012345` is listed in a shape that this version does not know: kept".into(),
        "a container is listed without an id: kept".into(),
    ];
    assert_eq!(page.unreadable, expected);
}

#[tokio::test]
async fn a_container_that_vanishes_between_the_list_and_the_look_is_left_out() {
    let engine = Engine::with((1..=3).map(named));
    let mut looks = 0;
    engine.on("GET /json", move |containers| {
        looks += 1;
        if looks == 2 {
            containers.remove(&id(2));
        }
        None
    });
    let page = list(&engine).await.unwrap();
    assert_eq!(abouts(&page), ["oh-agent-server-1 (agent:1)", "oh-agent-server-3 (agent:1)"]);
    assert_eq!((page.unreadable, page.next), (Vec::new(), None));
}

#[tokio::test]
async fn a_listing_in_pages_has_each_container_once_whatever_comes_and_goes() {
    let engine = Engine::with((1..=2_500).map(|n| with(sandbox("running"), &json!({"Name": format!("/db-{n}")}))));
    let mut listings = 0;
    engine.on("GET /containers/json", move |containers| {
        listings += 1;
        if listings == 2 {
            containers.remove(&id(1));
            containers.remove(&id(1_500));
            let mut new = sandbox("running");
            new["Id"] = id(9_000).into();
            containers.insert(id(9_000), new);
        }
        None
    });
    let backend = backend_of(&engine).await;
    let (mut seen, mut token, mut sizes) = (Vec::new(), None, Vec::new());
    loop {
        let page = backend.list.list(token.as_ref()).await.unwrap();
        sizes.push(page.seen.len());
        seen.extend(page.seen.into_iter().map(|seen| seen.id));
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    let distinct: BTreeSet<_> = seen.iter().cloned().collect();
    let expected: BTreeSet<_> = (1..=2_500)
        .chain([9_000])
        .filter(|n| *n != 1_500)
        .map(|n| format!("docker/{}", id(n)).parse().unwrap())
        .collect();
    assert_eq!(sizes, [1_000, 1_000, 500]);
    assert_eq!((seen.len(), distinct), (2_500, expected));
}

// Whose a container is.

#[tokio::test]
async fn what_is_not_ours_is_listed_without_being_looked_into_and_never_touched() {
    let engine = Engine::with([with(sandbox("exited"), &json!({"Name": "/db"}))]);
    let backend = backend_of(&engine).await;
    let page = backend.list.list(None).await.unwrap();
    assert_eq!(page.seen.iter().map(|seen| seen.ownership).collect::<Vec<_>>(), [Ownership::Foreign]);
    assert!(!engine.calls().iter().any(|call| call.contains(&id(1))), "{:?}", engine.calls());
    let Sighting::Seen(seen) = backend.inspect.inspect(&page.seen[0].id).await.unwrap() else { panic!() };
    assert_eq!(seen.ownership, Ownership::Foreign);
    let target = Target::of(&seen);
    let refused: Arc<str> = "container `db` is not in the scope of backend `docker`".into();
    let suspend = backend.suspend.unwrap();
    assert_eq!(suspend.suspend(&target, minute()).await, Ok(Outcome::Refused(refused.clone())));
    assert_eq!(suspend.resume(&target, minute()).await, Ok(Outcome::Refused(refused.clone())));
    let deleted = backend.delete.unwrap().delete(&target, WorkspaceRule::Discard, minute()).await;
    assert_eq!(deleted, Ok(Outcome::Refused(refused)));
    assert_eq!(engine.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn openhands_containers_are_reported_but_not_ours_where_that_is_switched_off() {
    let engine = Engine::with([sandbox("running")]);
    let docker = engine.docker(Options { openhands: false, ..options() }).await;
    let page = backend(docker).list.list(None).await.unwrap();
    assert_eq!(page.seen[0].ownership, Ownership::Unlabelled);
}

#[tokio::test]
async fn the_beginning_of_an_id_is_no_id() {
    let engine = Engine::with([named(1)]);
    engine.on("GET /json", |containers| containers.get(&id(1)).map(|found| Answer::Json(200, found.clone())));
    let backend = backend_of(&engine).await;
    for other in [id(2).as_str(), "000000000000", "oh-agent-server-1", "..", "%2E%2E%2Fjson"] {
        let Ok(id) = format!("docker/{other}").parse() else { continue };
        assert_eq!(backend.inspect.inspect(&id).await, Ok(Sighting::NotThere), "{other}");
    }
}

// Suspending.

#[tokio::test]
async fn a_stop_that_cant_end_before_the_deadline_is_not_begun() {
    let engine = Engine::with([named(1)]);
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    let bounds = Bounds { deadline: now().plus(Duration::from_secs(15)) };
    let late = "a stop can take 16 s and 15 s are left before the deadline: not begun";
    let refused = backend.suspend.unwrap().suspend(&target, bounds).await;
    assert_eq!(refused, Err(error(ErrorKind::Unreachable, late)));
    assert_eq!(engine.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_stop_whose_answer_is_lost_is_unknown_and_the_next_look_tells() {
    let engine = Engine::with([named(1)]);
    engine.on("POST /stop", |containers| {
        containers.get_mut(&id(1)).unwrap()["State"]["Status"] = "exited".into();
        Some(Answer::BreaksOff)
    });
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    let outcome = backend.suspend.as_ref().unwrap().suspend(&target, minute()).await.unwrap();
    let lost = format!("the engine at `{}` broke off before its answer was complete", engine.socket().display());
    assert_eq!(outcome, Outcome::Unknown(lost.into()));
    let Sighting::Seen(seen) = backend.inspect.inspect(&target.id).await.unwrap() else { panic!() };
    assert_eq!((seen.state, &seen.incarnation), (State::Suspended, &target.incarnation));
    let again = backend.suspend.unwrap().suspend(&target, minute()).await;
    assert_eq!(again, Ok(Outcome::AlreadyDone));
}

#[tokio::test]
async fn a_stop_that_is_slower_than_the_deadline_is_unknown() {
    let engine = Engine::with([named(1)]);
    let clock = Arc::new(AtomicI64::new(now().millis()));
    let (stops, ticking) = (clock.clone(), clock.clone());
    engine.on("POST /stop", |_| Some(Answer::Never));
    // What was left when the stop was asked is the grace: one second, which the client waits for.
    let mut looks = 0;
    engine.on("GET /json", move |_| {
        looks += 1;
        if looks == 3 {
            stops.store(minute().deadline.millis() - 1_000, Ordering::SeqCst);
        }
        None
    });
    let ticking = Clock::new(move || Time::from_millis(ticking.load(Ordering::SeqCst)));
    let backend = backend(engine.docker(Options { clock: ticking, probe: false, ..options() }).await);
    let target = target(&backend).await;
    let outcome = backend.suspend.unwrap().suspend(&target, minute()).await.unwrap();
    let slow = format!("the engine at `{}` did not answer within 1 s", engine.socket().display());
    assert_eq!(outcome, Outcome::Unknown(slow.into()));
}

#[tokio::test]
async fn a_stop_that_the_engine_fails_is_looked_at_and_unknown_while_it_runs() {
    let engine = Engine::with([named(1)]);
    engine
        .on("POST /stop", |_| Some(Answer::Json(500, json!({"message": "cannot stop container: permission denied"}))));
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    let words = "the engine answered 500: cannot stop container: permission denied";
    assert_eq!(backend.suspend.unwrap().suspend(&target, minute()).await, Ok(Outcome::Unknown(words.into())));
}

#[tokio::test]
async fn a_paused_container_is_stopped_even_where_the_engine_refuses_to_stop_one() {
    let engine = Engine::with([sandbox("paused")]);
    engine.on("POST /stop", |containers| {
        let paused = containers[&id(1)]["State"]["Status"] == "paused";
        paused.then(|| Answer::Json(500, json!({"message": "container state improper"})))
    });
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    assert_eq!(backend.suspend.unwrap().suspend(&target, minute()).await, Ok(Outcome::Done(())));
    assert_eq!(engine.status(1).as_deref(), Some("exited"));
}

/// Starts the first container anew at the `nth` look at it.
fn start_anew_at(engine: &Engine, nth: usize) -> Outcome<()> {
    let mut looks = 0;
    engine.on("GET /json", move |containers| {
        looks += 1;
        if looks == nth {
            let state = &mut containers.get_mut(&id(1)).unwrap()["State"];
            state["Status"] = "running".into();
            state["StartedAt"] = "2026-11-30T11:59:59Z".into();
        }
        None
    });
    Outcome::Moved { incarnation: Incarnation::new(format!("{}@2026-11-30T11:59:59Z", id(1))), state: State::Running }
}

#[tokio::test]
async fn a_container_that_somebody_started_anew_is_not_stopped_at_either_of_two_looks() {
    for look in [1, 2] {
        let engine = Engine::with([named(1)]);
        let backend = backend_of(&engine).await;
        let target = target(&backend).await;
        let moved = start_anew_at(&engine, look);
        assert_eq!(backend.suspend.unwrap().suspend(&target, minute()).await, Ok(moved), "look {look}");
        assert_eq!(engine.changes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn restart_always_is_switched_off_before_the_stop_and_its_failure_stops_nothing() {
    for fails in [false, true] {
        let always = json!({"HostConfig": {"RestartPolicy": {"Name": "always"}}});
        let engine = Engine::with([with(sandbox("running"), &always)]);
        engine.on("POST /update", move |_| fails.then(|| Answer::Json(404, json!({"message": "page not found"}))));
        let backend = backend_of(&engine).await;
        let target = target(&backend).await;
        assert_eq!(backend.suspend.unwrap().suspend(&target, minute()).await, Ok(Outcome::Done(())));
        let expected =
            [format!("POST /v1.41/containers/{}/update", id(1)), format!("POST /v1.41/containers/{}/stop?t=1", id(1))];
        assert_eq!(engine.changes(), expected, "the update fails: {fails}");
    }
}

#[tokio::test]
async fn a_grace_of_nothing_is_the_default_and_never_a_kill() {
    let engine = Engine::with([named(1)]);
    let backend = backend(engine.docker(Options { stop_grace: Duration::ZERO, ..options() }).await);
    let target = target(&backend).await;
    let bounds = Bounds { deadline: now().plus(Duration::from_mins(2)) };
    assert_eq!(backend.suspend.unwrap().suspend(&target, bounds).await, Ok(Outcome::Done(())));
    assert_eq!(engine.changes(), [format!("POST /v1.41/containers/{}/stop?t=60", id(1))]);
}

#[tokio::test]
async fn a_start_that_ends_at_once_is_not_a_resume() {
    let engine = Engine::with([sandbox("exited")]);
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    engine.on("POST /start", |_| Some(Answer::Text(204, "")));
    let words = "it was started and stopped again at once: look at its log";
    assert_eq!(backend.suspend.unwrap().resume(&target, minute()).await, Ok(Outcome::Unknown(words.into())));
}

// Deleting.

#[tokio::test]
async fn a_container_started_in_the_last_moment_is_not_deleted() {
    let engine = Engine::with([sandbox("exited")]);
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    engine.on("DELETE ", |containers| {
        let state = &mut containers.get_mut(&id(1)).unwrap()["State"];
        state["Status"] = "running".into();
        state["StartedAt"] = "2026-11-30T11:59:59Z".into();
        None
    });
    let moved = Outcome::Moved {
        incarnation: Incarnation::new(format!("{}@2026-11-30T11:59:59Z", id(1))),
        state: State::Running,
    };
    assert_eq!(backend.delete.unwrap().delete(&target, WorkspaceRule::Discard, minute()).await, Ok(moved));
    assert_eq!(engine.status(1).as_deref(), Some("running"));
    assert_eq!(engine.changes(), [format!("DELETE /v1.41/containers/{}?v=true&force=false", id(1))]);
}

#[tokio::test]
async fn a_container_that_somebody_started_anew_is_not_deleted_at_either_of_two_looks() {
    for look in [1, 2] {
        let engine = Engine::with([sandbox("exited")]);
        let backend = backend_of(&engine).await;
        let target = target(&backend).await;
        let Outcome::Moved { incarnation, state } = start_anew_at(&engine, look) else { panic!() };
        let outcome = backend.delete.unwrap().delete(&target, WorkspaceRule::Discard, minute()).await;
        assert_eq!(outcome, Ok(Outcome::Moved { incarnation, state }), "look {look}");
        assert_eq!(engine.changes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_removal_that_is_under_way_is_pending() {
    let engine = Engine::with([sandbox("exited")]);
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    let busy = || Answer::Json(409, json!({"message": "removal of container 1 is already in progress"}));
    engine.on("DELETE ", move |_| Some(busy()));
    let delete = backend.delete.unwrap();
    assert_eq!(delete.delete(&target, WorkspaceRule::Discard, minute()).await, Ok(Outcome::Pending));
    engine.on("GET /json", |containers| {
        containers.get_mut(&id(1)).unwrap()["State"]["Status"] = "removing".into();
        None
    });
    assert_eq!(delete.delete(&target, WorkspaceRule::Discard, minute()).await, Ok(Outcome::Pending));
}

#[tokio::test]
async fn what_would_lose_work_is_refused_unless_it_may_be_lost() {
    let written = with(sandbox("exited"), &json!({"SizeRw": 2_048}));
    let engine = Engine::with([written]);
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    let delete = backend.delete.unwrap();
    let refused = "container `oh-agent-server-1` is not saved: 2.0 kB written in the container; \
                   `workspace = \"discard\"` lets it be lost";
    assert_eq!(delete.delete(&target, WorkspaceRule::Save, minute()).await, Ok(Outcome::Refused(refused.into())));
    assert_eq!(engine.changes(), Vec::<String>::new());
    let deleted = Deleted { bytes: 2_048, ..Deleted::default() };
    assert_eq!(delete.delete(&target, WorkspaceRule::Discard, minute()).await, Ok(Outcome::Done(deleted)));
    assert_eq!(engine.status(1), None);
}

#[tokio::test]
async fn a_listing_measures_nothing_whatever_sizes_it_is_told() {
    let engine = Engine::with([sandbox("exited")]);
    let page = list(&engine).await.unwrap();
    assert_eq!((&page.seen[0].loss, page.seen[0].files), (&Loss::Unknown, FileSizes::default()));
}

#[tokio::test]
async fn what_was_not_measured_counts_as_work() {
    let mut unmeasured = sandbox("exited");
    unmeasured["SizeRw"] = Value::Null;
    unmeasured["SizeRootFs"] = Value::Null;
    let engine = Engine::with([unmeasured]);
    let backend = backend_of(&engine).await;
    let target = target(&backend).await;
    let outcome = backend.delete.unwrap().delete(&target, WorkspaceRule::Save, minute()).await.unwrap();
    assert!(matches!(&outcome, Outcome::Refused(why) if why.contains("did not measure")), "{outcome:?}");
    assert_eq!(engine.changes(), Vec::<String>::new());
}

// Secrets.

/// What a subscriber writes.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Set in the process that has the next test for itself.
const ALONE: &str = "FURLOUGH_TEST_ALONE";

/// In a process of its own: what a logging call is worth is remembered for the whole process at its first use, so a
/// test beside it that makes the same call without a subscriber would keep that call out of this log.
#[test]
#[expect(clippy::disallowed_methods, reason = "tells the child from the parent")]
fn a_session_key_is_in_no_log_and_in_no_value() {
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(no_session_key_is_shown());
    }
    let name = "docker::a_session_key_is_in_no_log_and_in_no_value";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

async fn no_session_key_is_shown() {
    use tracing_subscriber::util::SubscriberInitExt;

    let written = Written::default();
    let writer = written.clone();
    // Also takes over the `log` facade, through which HTTP clients speak.
    let guard = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish()
        .set_default();
    let engine = Engine::with([sandbox("running"), named(2)]);
    let docker = engine.docker(options()).await;
    let debug = format!("{docker:?}");
    let backend = backend(docker);
    let page = backend.list.list(None).await.unwrap();
    let target = Target::of(&page.seen[0]);
    let inspected = backend.inspect.inspect(&target.id).await;
    let suspended = backend.suspend.as_ref().unwrap().suspend(&target, minute()).await;
    engine.on("GET /json", |_| Some(Answer::Text(200, r#"{"Id": 7, "Env": ["OH_SESSION_API_KEYS_0=hush-hush"]}"#)));
    let unreadable = backend.inspect.inspect(&target.id).await;
    let shown = format!("{debug} {page:?} {inspected:?} {suspended:?} {unreadable:?}");
    drop(guard);
    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("hyper_util"), "the client's own log was not captured: {log}");
    assert!(!log.contains("hush"), "{log}");
    assert!(!shown.contains("hush"), "{shown}");
}

// A newcomer's idle ones.

#[tokio::test]
async fn an_exited_container_is_idle_since_it_finished() {
    let engine = Engine::with([sandbox("exited")]);
    let page = list(&engine).await.unwrap();
    let finished: Time = "2026-11-30T11:00:00Z".parse().unwrap();
    let Observation { state, state_since, activity, .. } = &page.seen[0];
    assert_eq!((*state, *state_since, *activity), (State::Suspended, Some(finished), Activity::At(finished)));
}
