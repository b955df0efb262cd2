//! What the engines' answers are taken for. The shapes are those of Docker 20.10.24 and podman 4.3.1.

use backend::Clock;
use proptest::{collection, prelude::*, sample::select};
use serde_json::{Value, json};

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

fn options() -> Options {
    Options::new(BackendName::new("docker").unwrap(), Clock::fixed(at("2026-11-30T12:00:00Z")))
}

/// What an engine tells of a container in `status`.
fn base(status: &str) -> Value {
    json!({
        "Id": ID,
        "Name": "/oh-agent-server-1",
        "Created": "2026-11-30T10:00:00.123456789Z",
        "State": {
            "Status": status,
            "StartedAt": "2026-11-30T10:00:01.5Z",
            "FinishedAt": "0001-01-01T00:00:00Z",
        },
        "HostConfig": {"AutoRemove": false, "RestartPolicy": {"Name": "no"}, "NetworkMode": "bridge"},
        "Config": {"Image": "agent:1", "Labels": {"sandbox_spec_id": "agent:1"}, "Env": ["OH_SESSION_API_KEYS_0=hush"]},
        "Mounts": [],
        "ExecIDs": null,
    })
}

/// A container in `status`, with `change` laid over it.
fn inspected(status: &str, change: Value) -> Inspected {
    let mut base = base(status);
    merge(&mut base, change);
    serde_json::from_value(base).unwrap()
}

fn merge(base: &mut Value, change: Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change,
    }
}

fn observe(status: &str, change: Value) -> Observation {
    inspected(status, change).observation(&options(), at("2026-11-30T12:00:00Z")).unwrap()
}

/// A running sandbox, as it is observed.
fn running() -> Observation {
    Observation {
        id: format!("docker/{ID}").parse().unwrap(),
        incarnation: Incarnation::new(format!("{ID}@2026-11-30T10:00:01.5Z")),
        state: State::Running,
        state_since: Some(at("2026-11-30T10:00:01.5Z")),
        running_since: Some(at("2026-11-30T10:00:01.5Z")),
        activity: Activity::Unknown,
        busy: Busy::No,
        ownership: Ownership::Ours,
        labels: Arc::new([("sandbox_spec_id".to_owned(), "agent:1".to_owned())].into()),
        cannot: Vec::new(),
        loss: Loss::Unknown,
        files: FileSizes::default(),
        native: None,
        sharers: 1,
        about: "oh-agent-server-1 (agent:1)".into(),
    }
}

#[test]
fn a_running_container_has_unknown_activity() {
    assert_eq!(observe("running", json!({})), running());
}

#[test]
fn a_paused_container_runs_nothing_and_nobody_knows_since_when() {
    assert_eq!(observe("paused", json!({})), Observation { activity: Activity::Frozen, ..running() });
}

#[test]
fn an_exited_container_is_idle_since_it_finished() {
    let finished = at("2026-11-30T11:00:00Z");
    let exited = json!({"State": {"FinishedAt": "2026-11-30T11:00:00Z"}});
    let expected = Observation {
        state: State::Suspended,
        state_since: Some(finished),
        running_since: None,
        activity: Activity::At(finished),
        ..running()
    };
    assert_eq!(observe("exited", exited.clone()), expected);
    assert_eq!(observe("dead", exited), expected);
}

#[test]
fn a_finish_before_the_last_start_is_that_of_an_earlier_run() {
    let started = at("2026-11-30T10:00:01.5Z");
    let stale = json!({"State": {"FinishedAt": "2026-11-29T00:00:00Z"}});
    assert_eq!(observe("exited", stale.clone()).state_since, Some(started));
    assert_eq!(observe("running", stale), running(), "FinishedAt survives a restart");
}

#[test]
fn a_container_that_never_started_is_not_2000_years_idle() {
    let created = at("2026-11-30T10:00:00.123Z");
    let never = json!({"State": {"StartedAt": "0001-01-01T00:00:00Z"}});
    let expected = Observation {
        incarnation: Incarnation::new(format!("{ID}@created")),
        state: State::Suspended,
        state_since: Some(created),
        running_since: None,
        activity: Activity::At(created),
        ..running()
    };
    assert_eq!(observe("created", never), expected);
}

#[test]
fn without_any_clock_activity_is_unknown() {
    let clockless = json!({"Created": "", "State": {"StartedAt": "", "FinishedAt": "yesterday"}});
    for status in ["created", "exited", "running", "restarting", "removing"] {
        assert_eq!(observe(status, clockless.clone()).activity, Activity::Unknown, "{status}");
    }
}

#[test]
fn each_status_has_its_state_and_an_unknown_one_is_kept_unread() {
    let states = [
        ("created", State::Suspended),
        ("running", State::Running),
        ("paused", State::Running),
        ("restarting", State::Running),
        ("stopping", State::Suspending),
        ("removing", State::Deleting),
        ("exited", State::Suspended),
        ("dead", State::Suspended),
    ];
    for (status, state) in states {
        assert_eq!(observe(status, json!({})).state, state, "{status}");
    }
    assert_eq!(
        inspected("hibernating", json!({})).observation(&options(), Time::default()),
        Err("container `oh-agent-server-1` is in a state that this version does not know: kept".to_owned())
    );
}

#[test]
fn a_start_changes_the_incarnation_and_a_stop_does_not() {
    let first = observe("running", json!({})).incarnation;
    let stopped = observe("exited", json!({"State": {"FinishedAt": "2026-11-30T11:00:00Z"}})).incarnation;
    let second = observe("running", json!({"State": {"StartedAt": "2026-11-30T11:30:00Z"}})).incarnation;
    assert_eq!(first, stopped);
    assert_ne!(first, second);
}

#[test]
fn a_command_that_somebody_runs_vetoes_for_12_hours_from_when_it_began() {
    let exec = json!({"ExecIDs": ["e1"]});
    let begun = |begun: Option<&str>, now: &str| {
        let raw = Inspected { execs_begun: begun.map(at), ..inspected("running", exec.clone()) };
        raw.observation(&options(), at(now)).unwrap()
    };
    let about: Arc<str> = "oh-agent-server-1 (agent:1, a command runs in it)".into();
    let late = "2026-12-03T12:00:00Z";
    let expected = |busy| Observation { busy, about: about.clone(), ..running() };
    assert_eq!(
        begun(Some("2026-12-03T11:00:00Z"), late),
        expected(Busy::Until(at("2026-12-03T23:00:00Z"))),
        "the container started three days ago"
    );
    assert_eq!(begun(Some("2026-12-03T00:00:00Z"), late), expected(Busy::No), "left open for longer");
    assert_eq!(begun(None, late), expected(Busy::Until(at("2026-12-04T00:00:00Z"))), "nobody knows since when");
    assert_eq!(
        begun(Some("2026-12-09T00:00:00Z"), late).busy,
        Busy::Until(at("2026-12-04T00:00:00Z")),
        "a clock ahead"
    );
    assert_eq!(observe("paused", exec).busy, Busy::No, "nothing runs in a frozen one");
}

#[test]
fn a_container_that_a_stop_deletes_can_neither_be_suspended_nor_deleted() {
    let why: Arc<str> = "`--rm` container: stopping it deletes it".into();
    let rm = json!({"HostConfig": {"AutoRemove": true}});
    let cannot: Vec<_> =
        [Role::Suspend, Role::Delete].map(|role| Cannot { role, why: why.clone() }).into_iter().collect();
    let about = "oh-agent-server-1 (agent:1, --rm)".into();
    assert_eq!(observe("running", rm.clone()), Observation { cannot, about, ..running() });
    assert_eq!(observe("created", rm).cannot, Vec::new(), "one that never started can be deleted");
}

#[test]
fn restart_always_is_told() {
    let always = json!({"HostConfig": {"RestartPolicy": {"Name": "always"}}});
    assert_eq!(&*observe("running", always).about, "oh-agent-server-1 (agent:1, restart=always)");
}

#[test]
fn what_a_deletion_loses_is_measured_or_unknown() {
    let anonymous = json!({"Type": "volume", "Name": "f".repeat(64), "Destination": "/data"});
    let named = json!({"Type": "volume", "Name": "work", "Destination": "/work"});
    let bound = json!({"Type": "bind", "Source": "/srv/x", "Destination": "/x"});
    let work = |lines: &[&str]| Loss::Work(lines.iter().map(|&line| Arc::from(line)).collect());
    let cases = [
        (json!({}), Loss::Unknown, None),
        (json!({"SizeRw": 0, "SizeRootFs": 9}), Loss::Nothing, Some(0)),
        (json!({"SizeRootFs": 9}), Loss::Nothing, Some(0)),
        (json!({"SizeRootFs": 0}), Loss::Unknown, None),
        (json!({"SizeRw": -1}), Loss::Unknown, None),
        (json!({"SizeRw": 12_345_678}), work(&["12.3 MB written in the container"]), Some(12_345_678)),
        (json!({"SizeRw": 999}), work(&["999 B written in the container"]), Some(999)),
        (json!({"SizeRw": 0, "Mounts": [named, bound]}), Loss::Nothing, Some(0)),
        (json!({"SizeRw": 0, "Mounts": [anonymous]}), work(&["anonymous volume `ffffffffffff` at `/data`"]), Some(0)),
        (json!({"Mounts": [anonymous]}), Loss::Unknown, None),
    ];
    for (change, loss, total) in cases {
        let seen = observe("exited", change.clone());
        assert_eq!((seen.loss, seen.files.total), (loss, total), "{change}");
    }
}

#[test]
fn a_look_that_did_not_ask_for_sizes_has_none() {
    let zeros = inspected("exited", json!({"SizeRw": 0, "SizeRootFs": 7})).unmeasured();
    let seen = zeros.observation(&options(), Time::default()).unwrap();
    assert_eq!((seen.loss, seen.files), (Loss::Unknown, FileSizes::default()));
}

#[test]
fn nothing_of_the_environment_is_kept() {
    let raw = inspected("running", json!({}));
    let seen = raw.observation(&options(), Time::default()).unwrap();
    assert!(!format!("{raw:?} {seen:?}").contains("hush"));
}

/// What an engine, or something that stands in its place, might write for any field.
fn anything() -> impl Strategy<Value = Value> {
    let texts = ["", "running", "exited", "created", "paused", "0001-01-01T00:00:00Z", "2026-11-30T11:00:00Z", "/", ID];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        select(texts.to_vec()).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            collection::btree_map("[A-Za-z]{1,8}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// One field of an inspect, anything in it.
fn changed() -> impl Strategy<Value = Value> {
    let fields = "Id Name Created State State/Status State/StartedAt State/FinishedAt HostConfig HostConfig/AutoRemove \
                  HostConfig/RestartPolicy Config Config/Labels Config/Cmd Config/Env Mounts ExecIDs SizeRw \
                  SizeRootFs NetworkSettings NetworkSettings/Ports";
    (select(fields.split(' ').collect::<Vec<_>>()), anything())
        .prop_map(|(field, value)| field.rsplit('/').fold(value, |value, key| json!({ key: value })))
}

proptest! {
    /// Whatever an engine writes is read or refused, and only the end of a run, or never having run, is idleness.
    #[test]
    fn any_answer_is_read_or_refused_and_what_runs_is_never_idle(
        status in select(vec!["running", "paused", "exited", "created", "dead", "removing", "restarting"]),
        changes in collection::vec(changed(), 1..4),
    ) {
        let mut answer = base(status);
        for change in changes {
            merge(&mut answer, change);
        }
        let Ok(read) = serde_json::from_value::<Inspected>(answer) else { return Ok(()) };
        let Ok(seen) = read.observation(&options(), at("2026-11-30T12:00:00Z")) else { return Ok(()) };
        let shown = format!("{read:?} {seen:?}");
        prop_assert!(!shown.contains("hush"), "{}", shown);
        if let Activity::At(idle_from) = seen.activity {
            prop_assert_eq!(seen.state, State::Suspended);
            prop_assert_eq!(Some(idle_from), seen.state_since);
            prop_assert!(idle_from.millis() > 0);
        }
        if seen.loss == Loss::Nothing {
            prop_assert_eq!(seen.files.total, Some(0), "what was not measured is not nothing");
        }
    }

    #[test]
    fn any_bytes_are_an_answer_or_a_fault(bytes in collection::vec(any::<u8>(), 0..200)) {
        let _ = serde_json::from_slice::<Inspected>(&bytes);
        let _ = serde_json::from_slice::<Vec<crate::wire::Row>>(&bytes);
        let _ = serde_json::from_slice::<crate::wire::Keyed>(&bytes);
        let _ = serde_json::from_slice::<crate::wire::Exec>(&bytes);
        if let Ok(event) = serde_json::from_slice::<crate::wire::Event>(&bytes) {
            let _ = (event.at(), event.exec());
        }
    }
}
