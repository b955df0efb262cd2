use std::num::NonZeroU32;

use backend::Clock;
use lifecycle::{BackendName, Ownership, policy::Pattern};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    Key, Scope,
    openhands::{Which, uses::Uses},
};

const NOW: &str = "2026-11-30T10:00:00Z";

fn options() -> Options {
    Options {
        name: BackendName::new("o").unwrap(),
        clock: Clock::fixed(NOW.parse().unwrap()),
        which: Which::Cloud,
        url: "https://app.all-hands.dev".to_owned(),
        key: Key::new("k"),
        scope: Scope {
            labels: [("team".to_owned(), Pattern::new("a"))].into(),
            name_prefixes: vec!["ghcr.io/".into()],
        },
        rate: (NonZeroU32::MIN, Duration::from_secs(1)),
    }
}

/// A sandbox with these fields, and a conversation with those.
fn observed(sandbox: &Value, talk: Option<&Value>) -> Result<Observation, String> {
    let merged = |mut value: Value, changes: &Value| {
        for (key, change) in changes.as_object().unwrap() {
            value[key] = change.clone();
        }
        value
    };
    let row = json!({"id": "s1", "sandbox_spec_id": "ghcr.io/x", "status": "RUNNING", "created_at": "2026-11-01T00:00:00.5Z"});
    let mut uses = Uses::default();
    if let Some(talk) = talk {
        let row = json!({"id": "c1", "sandbox_id": "s1", "execution_status": "idle", "updated_at": "2026-11-30T09:00:00Z", "tags": {"team": "a"}});
        uses.add(&merged(row, talk)).map_err(|Unread(why)| why)?;
    }
    let read =
        |row: &Value| Sandbox::read(row)?.observation(uses.of("s1")?, Pauses::Yes, &options(), NOW.parse().unwrap());
    read(&merged(row, sandbox)).map_err(|Unread(why)| why)
}

#[test]
fn each_state_has_its_word_and_the_others_are_kept() {
    let state = |status: &str| observed(&json!({"status": status}), None).map(|seen| seen.state);
    assert_eq!(state("RUNNING"), Ok(State::Running));
    assert_eq!(state("PAUSED"), Ok(State::Suspended));
    assert_eq!(state("STARTING"), Ok(State::Resuming));
    assert_eq!(state("ERROR"), Ok(State::Running), "it may run: nothing that runs is deleted");
    assert_eq!(state("UNKNOWN"), Err("sandbox `s1`: OpenHands could not ask for its state".to_owned()));
    for unknown in ["running", "ARCHIVED"] {
        let why = "sandbox `s1`: it is in a state that this version does not know".to_owned();
        assert_eq!(state(unknown), Err(why), "{unknown}");
    }
    for (change, why) in [
        (json!({"id": 7}), "`id` is not a text"),
        (json!({"status": null}), "sandbox `s1`: `status` is missing"),
        (json!({"sandbox_spec_id": ""}), "sandbox `s1`: `sandbox_spec_id` is missing"),
        (json!({"created_at": "1764500000"}), "sandbox `s1`: `created_at` is not a time"),
    ] {
        assert_eq!(observed(&change, None), Err(why.to_owned()));
    }
}

#[test]
fn its_conversations_tell_its_activity_and_nothing_else_does() {
    let activity =
        |status: &str, talk: Option<Value>| observed(&json!({"status": status}), talk.as_ref()).unwrap().activity;
    let time = |text: &str| Activity::At(text.parse().unwrap());
    assert_eq!(activity("RUNNING", None), Activity::Unknown, "it is not idle since it was made");
    assert_eq!(activity("PAUSED", None), Activity::Frozen);
    assert_eq!(activity("RUNNING", Some(json!({}))), time("2026-11-30T09:01:00Z"), "it is told a minute late");
    assert_eq!(activity("PAUSED", Some(json!({}))), time("2026-11-30T09:00:00Z"));
    assert_eq!(activity("STARTING", Some(json!({}))), Activity::Unknown);
    assert_eq!(activity("RUNNING", Some(json!({"updated_at": "2026-11-30T10:00:20Z"}))), time(NOW));
    let ahead = observed(&json!({}), Some(&json!({"updated_at": "2026-11-30T12:00:00Z"})));
    assert_eq!(ahead.unwrap_err(), "sandbox `s1`: its last activity is 7200 s in the future");
}

#[test]
fn only_what_runs_is_at_work() {
    let busy = |status: &str, updated: &str| {
        let talk = json!({"execution_status": "running", "updated_at": updated});
        observed(&json!({"status": status}), Some(&talk)).unwrap().busy
    };
    assert_eq!(busy("RUNNING", "2026-11-30T09:00:00Z"), Busy::Until("2026-11-30T21:00:00Z".parse().unwrap()));
    assert_eq!(busy("RUNNING", "2026-11-29T21:59:00Z"), Busy::No, "it was said for longer than work may last");
    assert_eq!(busy("PAUSED", "2026-11-30T09:00:00Z"), Busy::No);
}

#[test]
fn whose_it_is_is_told_by_its_conversations_tags_and_its_specification() {
    let whose = |sandbox: Value, talk: Option<Value>| observed(&sandbox, talk.as_ref()).unwrap().ownership;
    assert_eq!(whose(json!({}), Some(json!({}))), Ownership::Ours);
    assert_eq!(whose(json!({}), None), Ownership::Unlabelled);
    assert_eq!(whose(json!({}), Some(json!({"tags": {"team": "b"}}))), Ownership::Foreign);
    assert_eq!(whose(json!({"sandbox_spec_id": "docker.io/x"}), Some(json!({}))), Ownership::Unlabelled);
}

fn any_field() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] =
        &["PAUSED", "paused", "RUNNING", "running", "stopped", "s1", "ghcr.io/x", "2026-11-01T00:00:00Z", ""];
    prop_oneof![
        4 => proptest::sample::select(WORDS).prop_map(|word| json!(word)),
        1 => ".{0,12}".prop_map(|text| json!(text)),
        1 => any::<f64>().prop_map(|number| json!(number)),
        1 => Just(Value::Null),
        1 => Just(json!(["s1"])),
    ]
}

proptest! {
    /// Whatever a row has: it is not taken for at rest unless it says so in the word of its API.
    #[test]
    fn nothing_rests_that_does_not_say_so(fields in proptest::collection::vec(any_field(), 4)) {
        let [id, name, status, created] = fields.try_into().unwrap();
        let sandbox = json!({"id": id, "sandbox_spec_id": name, "status": status, "created_at": created});
        let runtime = json!({"runtime_id": id, "session_id": name, "status": status});
        for (read, word) in [(Sandbox::read(&sandbox), "PAUSED"), (Sandbox::read_runtime(&runtime), "paused")] {
            let Ok(read) = read else { continue };
            prop_assert_eq!(Value::from(read.id.clone()), id.clone());
            let seen = read.observation(None, Pauses::Yes, &options(), NOW.parse().unwrap());
            prop_assert!(seen.map_or(true, |seen| (seen.state == State::Suspended) == (status == word)));
        }
    }
}
