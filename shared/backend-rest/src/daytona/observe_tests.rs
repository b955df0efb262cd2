use std::time::Duration;

use backend::Clock;
use lifecycle::{BackendName, Ownership, policy::Pattern};
use serde_json::{Value, json};

use super::*;
use crate::{Key, Scope};

const NOW: &str = "2026-11-30T10:00:00Z";

fn options() -> Options {
    let labels = [("team".to_owned(), Pattern::new("a"))].into();
    Options {
        name: BackendName::new("d").unwrap(),
        clock: Clock::fixed(NOW.parse().unwrap()),
        url: "https://app.daytona.io/api".to_owned(),
        key: Key::new("k"),
        scope: Scope { labels, name_prefixes: Vec::new() },
        rate: (NonZeroU32::MIN, Duration::from_secs(1)),
    }
}

fn sandbox(state: &str) -> Value {
    json!({
        "id": "0001", "name": "n-1", "labels": {"team": "a"}, "state": state, "desiredState": state,
        "createdAt": "2026-11-01T00:00:00.000Z", "lastActivityAt": "2026-11-30T09:00:00.000Z", "sandboxClass": "container",
        "autoStopInterval": 90, "autoPauseInterval": 0, "autoArchiveInterval": 10_080, "autoDeleteInterval": -1,
    })
}

fn changed(state: &str, changes: &Value) -> Value {
    let mut sandbox = sandbox(state);
    for (key, value) in changes.as_object().unwrap() {
        sandbox[key] = value.clone();
    }
    sandbox
}

fn observed(value: &Value) -> Result<Observation, String> {
    let now = NOW.parse().unwrap();
    Sandbox::read(value).and_then(|sandbox| sandbox.observation(&options(), now)).map_err(|Unread(why)| why)
}

fn seen(value: &Value) -> Observation {
    observed(value).unwrap()
}

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

#[test]
fn state_and_what_is_wanted_of_it_tell_together() {
    for (state, desired, expected) in [
        ("started", "started", State::Running),
        ("started", "stopped", State::Suspending),
        ("started", "destroyed", State::Deleting),
        ("stopped", "stopped", State::Suspended),
        ("stopped", "started", State::Resuming),
        ("stopped", "archived", State::Archiving),
        ("paused", "paused", State::Suspended),
        ("paused", "destroyed", State::Deleting),
        ("paused", "started", State::Resuming),
        ("paused", "stopped", State::Suspending),
        ("archived", "archived", State::Archived),
        ("archived", "started", State::Resuming),
        ("archived", "destroyed", State::Deleting),
        ("error", "started", State::Suspended),
        ("error", "destroyed", State::Deleting),
        ("resizing", "resized", State::Running),
        ("archiving", "archived", State::Archiving),
        ("creating", "started", State::Resuming),
        ("destroying", "destroyed", State::Deleting),
    ] {
        let seen = seen(&changed(state, &json!({"desiredState": desired})));
        assert_eq!(seen.state, expected, "{state}, {desired}");
    }
    for (state, desired) in [("hibernating", "stopped"), ("unknown", "started"), ("started", "hibernated")] {
        let why = observed(&changed(state, &json!({"desiredState": desired}))).unwrap_err();
        assert_eq!(why, "sandbox `0001`: it is in a state that this version does not know");
    }
}

#[test]
fn activity_may_be_later_than_it_is_shown_and_never_later_than_now() {
    let running = |last: Value| seen(&changed("started", &json!({"lastActivityAt": last}))).activity;
    assert_eq!(running(json!("2026-11-30T09:00:00Z")), Activity::At(at("2026-11-30T09:02:00Z")));
    assert_eq!(running(json!("2026-11-30T09:59:00Z")), Activity::At(at(NOW)));
    assert_eq!(running(json!("2026-11-30T10:01:00Z")), Activity::At(at(NOW)), "within what a clock may be off");
    assert_eq!(running(Value::Null), Activity::Unknown);
    let ahead = observed(&changed("started", &json!({"lastActivityAt": "2026-11-30T12:00:00Z"})));
    assert_eq!(ahead.unwrap_err(), "sandbox `n-1`: its last activity is 7200 s in the future");
    let stopped = seen(&sandbox("stopped"));
    let since = at("2026-11-30T09:00:00Z");
    assert_eq!((stopped.activity, stopped.state_since), (Activity::At(since), Some(since)));
    assert_eq!(seen(&changed("snapshotting", &json!({"desiredState": "started"}))).busy, Busy::Unread);
}

#[test]
fn what_daytona_will_do_by_itself_is_told() {
    let deadline = |value: Value| seen(&value).native.unwrap().deadline.map(|deadline| (deadline.at, deadline.effect));
    let stop = (at("2026-11-30T10:30:00Z"), NativeEffect::Suspend);
    assert_eq!(deadline(sandbox("started")), Some(stop));
    let ephemeral = changed("started", &json!({"autoDeleteInterval": 0}));
    assert_eq!(deadline(ephemeral.clone()), Some((stop.0, NativeEffect::Destroy)));
    let lacks: Vec<_> = seen(&ephemeral).cannot.iter().map(|cannot| cannot.role).collect();
    assert_eq!(lacks, [Role::Suspend, Role::Archive]);
    assert_eq!(seen(&ephemeral).native.unwrap().delete, Some(Duration::ZERO));
    let archive = (at("2026-12-07T09:00:00Z"), NativeEffect::Archive);
    assert_eq!(deadline(sandbox("stopped")), Some(archive));
    let deleted = changed("stopped", &json!({"autoDeleteInterval": 60}));
    assert_eq!(deadline(deleted), Some((at(NOW), NativeEffect::Destroy)));
    assert_eq!(deadline(sandbox("paused")), None, "what is paused is never archived or deleted");
    let ends = json!({"autoDestroyAt": "2026-11-30T10:10:00Z"});
    let destroyed = Some((at("2026-11-30T10:10:00Z"), NativeEffect::Destroy));
    assert_eq!(deadline(changed("paused", &ends)), destroyed);
    assert_eq!(deadline(changed("started", &ends)), destroyed);
    assert_eq!(deadline(changed("started", &json!({"autoStopInterval": 0}))), None);
}

#[test]
fn timers_are_read_by_what_a_zero_means_in_each() {
    let native = |changes: Value| {
        let native = seen(&changed("started", &changes)).native.unwrap();
        (native.idle_suspend, native.archive, native.delete)
    };
    let minutes = |minutes: u64| Some(Duration::from_mins(minutes));
    assert_eq!(native(json!({})), (minutes(90), minutes(10_080), None));
    let zeros = json!({"autoStopInterval": 0, "autoArchiveInterval": 0, "autoDeleteInterval": 0});
    assert_eq!(native(zeros), (None, minutes(43_200), minutes(0)));
    let vm = json!({"autoStopInterval": 0, "autoPauseInterval": 60, "sandboxClass": "linux-vm"});
    assert_eq!(native(vm).0, minutes(60));
}

#[test]
fn what_can_t_be_read_is_named_and_kept() {
    for (change, why) in [
        (json!({"autoStopInterval": "15"}), "sandbox `0001`: `autoStopInterval` is not a whole number"),
        (json!({"autoStopInterval": -3}), "sandbox `0001`: `autoStopInterval` is out of bounds"),
        (json!({"autoDeleteInterval": 1e18}), "sandbox `0001`: `autoDeleteInterval` is not a whole number"),
        (json!({"lastActivityAt": "yesterday"}), "sandbox `0001`: `lastActivityAt` is not a time"),
        (json!({"lastActivityAt": 1_764_500_000}), "sandbox `0001`: `lastActivityAt` is not a text"),
        (json!({"labels": ["team"]}), "sandbox `0001`: `labels` is not an object"),
        (json!({"state": 7}), "sandbox `0001`: `state` is not a text"),
        (json!({"state": null}), "sandbox `0001`: `state` is missing"),
        (json!({"id": ""}), "`id` is missing"),
    ] {
        assert_eq!(observed(&changed("started", &change)).unwrap_err(), why, "{change}");
    }
    assert!(observed(&json!({"statusCode": 500, "error": "Internal"})).is_err());
}

#[test]
fn whose_it_is_is_told_by_its_labels() {
    let ownership = |labels: Value| seen(&changed("started", &json!({"labels": labels}))).ownership;
    assert_eq!(ownership(json!({"team": "a"})), Ownership::Ours);
    assert_eq!(ownership(json!({"team": "b"})), Ownership::Foreign);
    assert_eq!(ownership(json!({})), Ownership::Unlabelled);
}
