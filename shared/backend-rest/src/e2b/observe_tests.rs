use std::{num::NonZeroU32, time::Duration};

use backend::Clock;
use lifecycle::{BackendName, Ownership, policy::Pattern};
use serde_json::{Value, json};

use super::*;
use crate::{Key, Scope};

const NOW: &str = "2026-11-30T10:00:00Z";

fn observed(changes: &Value) -> Result<Observation, String> {
    let options = Options {
        name: BackendName::new("e").unwrap(),
        clock: Clock::fixed(NOW.parse().unwrap()),
        url: "https://api.e2b.app".to_owned(),
        key: Key::new("k"),
        scope: Scope { labels: [("team".to_owned(), Pattern::new("a"))].into(), name_prefixes: Vec::new() },
        rate: (NonZeroU32::MIN, Duration::from_secs(1)),
    };
    let mut value = json!({
        "sandboxID": "i1", "templateID": "base", "state": "running", "metadata": {"team": "a"},
        "startedAt": "2026-11-30T09:00:00.123456Z", "endAt": "2026-11-30T11:00:00Z",
    });
    for (key, change) in changes.as_object().unwrap() {
        value[key] = change.clone();
    }
    let read = Sandbox::read(&value).and_then(|sandbox| sandbox.observation(&options, NOW.parse().unwrap()));
    read.map_err(|Unread(why)| why)
}

#[test]
fn the_end_of_a_run_destroys_unless_it_is_known_to_pause() {
    let deadline = |changes: Value| observed(&changes).unwrap().native.unwrap().deadline;
    let at = |effect| Some(NativeDeadline { at: "2026-11-30T11:00:00Z".parse().unwrap(), effect });
    assert_eq!(deadline(json!({})), at(NativeEffect::Destroy), "a listing does not tell");
    assert_eq!(deadline(json!({"lifecycle": {"onTimeout": "kill"}})), at(NativeEffect::Destroy));
    assert_eq!(deadline(json!({"lifecycle": {"onTimeout": "pause"}})), at(NativeEffect::Suspend));
    assert_eq!(deadline(json!({"state": "paused"})), None);
}

#[test]
fn a_running_one_is_of_unknown_activity_and_a_paused_one_rests_since_its_pause() {
    let running = observed(&json!({})).unwrap();
    assert_eq!((running.state, running.activity), (State::Running, Activity::Unknown));
    assert_eq!(running.incarnation.as_str(), "2026-11-30T09:00:00.123456Z");
    let paused = observed(&json!({"state": "paused", "endAt": "2026-11-30T09:30:00Z"})).unwrap();
    let since: Time = "2026-11-30T09:30:00Z".parse().unwrap();
    assert_eq!((paused.state, paused.state_since), (State::Suspended, Some(since)));
    assert_eq!((paused.activity, paused.running_since), (Activity::At(since), None));
    assert_eq!(paused.incarnation, running.incarnation, "it is the same run");
}

#[test]
fn what_can_t_be_read_is_named_and_kept() {
    for (change, why) in [
        (json!({"state": "snapshotting"}), "sandbox `i1`: it is in a state that this version does not know"),
        (json!({"startedAt": 7}), "sandbox `i1`: `startedAt` is not a text"),
        (json!({"endAt": "soon"}), "sandbox `i1`: `endAt` is not a time"),
        (json!({"endAt": null}), "sandbox `i1`: `endAt` is missing"),
        (json!({"metadata": {"team": 1}}), "sandbox `i1`: `metadata` is not texts alone"),
        (
            json!({"lifecycle": {"onTimeout": "hibernate"}}),
            "sandbox `i1`: it does on its timeout what this version does not know",
        ),
        (json!({"sandboxID": null}), "`sandboxID` is missing"),
    ] {
        assert_eq!(observed(&change).unwrap_err(), why, "{change}");
    }
    assert_eq!(observed(&json!({"metadata": null})).unwrap().ownership, Ownership::Unlabelled);
}
