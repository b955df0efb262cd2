use std::{num::NonZeroU32, time::Duration};

use backend::Clock;
use lifecycle::{BackendName, Ownership};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::DestroyRunning, *};
use crate::{Key, Scope};

const NOW: &str = "2026-11-30T10:00:00Z";
const ID: &str = "00000000000000000000000000000000000000000000000000000000000000ab";

fn options() -> Options {
    Options {
        name: BackendName::new("c").unwrap(),
        clock: Clock::fixed(NOW.parse().unwrap()),
        url: "https://api.cloudflare.com/client/v4".to_owned(),
        key: Key::new("k"),
        account: "a".to_owned(),
        application: "b".to_owned(),
        worker: "https://w.example.com".to_owned(),
        worker_key: Key::new("k"),
        scope: Scope { name_prefixes: vec!["agent-".to_owned()], ..Scope::default() },
        destroy_running: DestroyRunning::Never,
        rate: (NonZeroU32::MIN, Duration::from_secs(1)),
    }
}

fn read(value: &Value) -> Result<Option<Observation>, String> {
    let read = Instance::read(value).and_then(|instance| instance.observation(&options(), NOW.parse().unwrap()));
    read.map_err(|Unread(why)| why)
}

fn observed(changes: &Value) -> Result<Option<Observation>, String> {
    let mut value = json!({
        "id": ID, "application_id": "b", "image": "i", "name": "agent-1",
        "status": {"state": "running", "updated_at": "2026-11-30T09:30:00Z"}, "started_at": "2026-11-30T09:00:00.5Z",
    });
    for (key, change) in changes.as_object().unwrap() {
        value[key] = change.clone();
    }
    read(&value)
}

#[test]
fn what_has_no_container_is_no_runtime() {
    let state = |state: &str| {
        let seen = observed(&json!({"status": {"state": state, "updated_at": "2026-11-30T09:30:00Z"}})).unwrap();
        seen.map(|seen| seen.state)
    };
    for (shown, expected) in [
        ("provisioning", Some(State::Resuming)),
        ("running", Some(State::Running)),
        ("unhealthy", Some(State::Running)),
        ("stopping", Some(State::Deleting)),
        ("stopped", None),
        ("failed", None),
        ("inactive", None),
    ] {
        assert_eq!(state(shown), expected, "{shown}");
    }
}

#[test]
fn a_running_one_is_of_unknown_activity_and_tells_its_run() {
    let seen = observed(&json!({})).unwrap().unwrap();
    assert_eq!((seen.state, seen.activity, &*seen.about), (State::Running, Activity::Unknown, "agent-1"));
    assert_eq!((seen.incarnation.as_str(), seen.ownership), ("2026-11-30T09:00:00.5Z", Ownership::Ours));
    let native = seen.native.unwrap();
    assert!(native.mutable && native.hidden && native.deadline.is_none(), "{native:?}");
    let nameless = observed(&json!({"name": null})).unwrap().unwrap();
    assert_eq!((&*nameless.about, nameless.ownership), (ID, Ownership::Unlabelled));
    let later = observed(&json!({"started_at": "2026-11-30T11:00:00Z"})).unwrap().unwrap();
    assert_eq!(later.running_since, Some(NOW.parse().unwrap()), "never in the future");
}

#[test]
fn what_can_t_be_read_is_named_and_kept() {
    let status = |state: Value| json!({"status": {"state": state, "updated_at": "2026-11-30T09:30:00Z"}});
    for (change, why) in [
        (status(json!("unknown")), "sandbox `000000000000…`: Cloudflare does not know its state"),
        (status(json!("asleep")), "sandbox `000000000000…`: it is in a state that this version does not know"),
        (status(json!(7)), "sandbox `000000000000…`: `state` is not a text"),
        (json!({"status": "running"}), "sandbox `000000000000…`: `status` is not an object"),
        (json!({"status": {"state": "running"}}), "sandbox `000000000000…`: `updated_at` is missing"),
        (json!({"started_at": null}), "sandbox `000000000000…`: `started_at` is missing"),
        (json!({"started_at": 1_764_500_000}), "sandbox `000000000000…`: `started_at` is not a text"),
        (json!({"id": "AB"}), "`id` is not 64 hexadecimal digits"),
        (json!({"id": null}), "`id` is missing"),
    ] {
        assert_eq!(observed(&change).unwrap_err(), why, "{change}");
    }
}

/// Any JSON, to a depth.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("running")),
        Just(json!(ID)),
        Just(json!(NOW)),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let key = prop_oneof![Just("id"), Just("status"), Just("state"), Just("started_at"), Just("updated_at")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever it is, it is a runtime of this backend that it names, none, or told in one line.
    #[test]
    fn anything_is_read_or_told(value in any_value()) {
        match read(&value) {
            Ok(Some(seen)) => prop_assert_eq!(Some(seen.id.encoded()), value["id"].as_str()),
            Ok(None) => {}
            Err(why) => prop_assert!(!why.is_empty() && !why.contains('\n')),
        }
    }
}
