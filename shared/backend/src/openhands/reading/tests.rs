use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

/// Any JSON, a few levels deep, with the keys that are looked for among its keys.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(Value::from("2026-11-30T14:06:07.139862Z")),
        Just(Value::from("running")),
    ];
    let key = prop_oneof![
        ".{0,6}",
        prop::sample::select(vec![
            "uptime",
            "idle_time",
            "state",
            "items",
            "next_page_id",
            "id",
            "execution_status",
            "updated_at",
            "kind",
            "timestamp",
            "timeout",
            "command_id",
            "exit_code",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..8)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (server_info(&body), init(&body), conversations(&body), commands(&body), ended(&body, "a"));
    }

    #[test]
    fn any_json_is_read_or_refused_without_a_panic(body in any_json()) {
        let body = serde_json::to_vec(&body).unwrap();
        let _ = (init(&body), commands(&body), ended(&body, "a"));
        if let Ok(info) = server_info(&body) {
            prop_assert!(info.idle <= info.uptime + Duration::from_secs(1));
        }
    }

    /// Idleness is only ever told by the two numbers, both there, finite, and no longer than the process lives.
    #[test]
    fn idleness_is_never_read_from_anything_else(uptime in any_json(), idle in any_json()) {
        let body = json!({ "uptime": uptime, "idle_time": idle });
        let read = server_info(&serde_json::to_vec(&body).unwrap());
        match (body["uptime"].as_f64(), body["idle_time"].as_f64()) {
            (Some(up), Some(idle)) if (0.0..=MAX_UPTIME).contains(&up) && (0.0..=up + 1.0).contains(&idle) => {
                let read = read.unwrap();
                prop_assert!((read.idle.as_secs_f64() - idle).abs() < 1e-3 && (read.uptime.as_secs_f64() - up).abs() < 1e-3);
            }
            _ => prop_assert!(read.is_err(), "{read:?}"),
        }
    }

    /// A page that lost anything is no page: no key can be left out without an error.
    #[test]
    fn a_page_without_one_of_its_keys_is_refused(key in prop::sample::select(vec!["items", "next_page_id"])) {
        let mut body = json!({ "items": [], "next_page_id": null });
        body.as_object_mut().unwrap().remove(key);
        let body = serde_json::to_vec(&body).unwrap();
        prop_assert!(conversations(&body).is_err() && commands(&body).is_err() && ended(&body, "a").is_err());
    }
}

fn refusal(body: &str) -> String {
    server_info(body.as_bytes()).unwrap_err().to_string()
}

#[test]
fn what_server_info_refuses() {
    for (body, says) in [
        ("", "EOF"),
        ("<html><body>502 Bad Gateway</body></html>", "expected value"),
        ("[18, 2]", "not an object"),
        ("{}", "missing field `uptime`"),
        (r#"{"uptime": 9}"#, "missing field `idle_time`"),
        (r#"{"uptime": "9", "idle_time": 1}"#, "invalid type: string"),
        (r#"{"uptime": 9, "idle_time": "1"}"#, "invalid type: string"),
        (r#"{"uptime": 9, "idle_time": null}"#, "invalid type: null"),
        (r#"{"uptime": 9, "idle_time": -1}"#, "idle_time is `-1` seconds"),
        (r#"{"uptime": 9, "idle_time": NaN}"#, "expected value"),
        (r#"{"uptime": 9, "idle_time": 1e300}"#, "idle_time is `1"),
        (r#"{"uptime": 9, "idle_time": 100}"#, "idle_time `100` is longer than uptime `9`"),
        (r#"{"uptime": -9, "idle_time": 0}"#, "uptime is `-9` seconds"),
    ] {
        let why = refusal(body);
        assert!(why.contains(says), "`{body}` should be refused with `{says}`, but was with `{why}`");
    }
}

#[test]
fn server_info_as_measured() {
    let body =
        br#"{"uptime":18.0,"idle_time":2.0,"title":"OpenHands Agent Server","version":"1.58.2","capabilities":[]}"#;
    let seconds = Duration::from_secs;
    assert_eq!(server_info(body).unwrap(), ServerInfo { uptime: seconds(18), idle: seconds(2) });
    assert!(!server_info(body).unwrap().untouched());
    assert!(server_info(br#"{"uptime":18,"idle_time":18}"#).unwrap().untouched());
    assert!(server_info(br#"{"uptime":18,"idle_time":17}"#).unwrap().untouched());
}

#[test]
fn a_status_that_this_version_does_not_know_counts_as_work() {
    let page = |status: &str| {
        let item = json!({ "id": "ab-01", "execution_status": status, "updated_at": "2026-11-30T14:06:07.139862Z" });
        conversations(&serde_json::to_vec(&json!({ "items": [item], "next_page_id": null })).unwrap()).unwrap()
    };
    let working = |status| page(status).items[0].working;
    assert!(working("running") && working("compacting"));
    for status in ["idle", "paused", "waiting_for_confirmation", "finished", "error", "stuck", "deleting"] {
        assert!(!working(status), "{status}");
    }
    assert_eq!(page("idle").items[0].updated_at, at("2026-11-30T14:06:07.139Z"));
}

#[test]
fn what_a_conversation_or_a_command_is_refused_for() {
    let good = json!({ "id": "ab-01", "execution_status": "idle", "updated_at": "2026-11-30T14:06:07Z" });
    let page =
        |item: Value| conversations(&serde_json::to_vec(&json!({ "items": [item], "next_page_id": null })).unwrap());
    assert!(page(good.clone()).is_ok());
    for (key, value) in [
        ("id", json!("../../etc")),
        ("id", json!("")),
        ("id", json!(7)),
        ("execution_status", Value::Null),
        ("updated_at", json!("yesterday")),
        ("updated_at", json!(1_764_500_000)),
    ] {
        let mut item = good.clone();
        item[key] = value.clone();
        assert!(page(item).is_err(), "{key} = {value}");
        let mut item = good.clone();
        item.as_object_mut().unwrap().remove(key);
        assert!(page(item).is_err(), "without {key}");
    }
    assert!(conversations(br#"{"items":[],"next_page_id":"ab"}"#).is_err(), "an empty page that is not the last");
}

fn command(item: &Value) -> Result<Command, Malformed> {
    let page = json!({ "items": [item], "next_page_id": null });
    commands(&serde_json::to_vec(&page).unwrap()).map(|mut page| page.items.remove(0))
}

#[test]
fn a_command_is_bounded_whatever_its_timeout_says() {
    let with = |timeout: Value| {
        let item =
            json!({ "kind": "BashCommand", "id": "fa", "timestamp": "2026-11-30T14:06:07Z", "timeout": timeout });
        command(&item).unwrap().timeout
    };
    assert_eq!(with(json!(300)), Duration::from_mins(5));
    for odd in [json!(0), json!(-5), Value::Null, json!(1e300), json!(10_000_000)] {
        assert_eq!(with(odd.clone()), MAX_BUSY, "{odd}");
    }
}

#[test]
fn a_local_time_without_its_zone_is_taken_at_its_latest() {
    let item = |timestamp: &str| json!({ "kind": "BashCommand", "id": "fa", "timestamp": timestamp, "timeout": 1 });
    let begun = |timestamp| command(&item(timestamp)).unwrap().begun;
    assert_eq!(begun("2026-11-30T14:06:07+02:00"), at("2026-11-30T12:06:07Z"));
    assert_eq!(begun("2026-11-30T14:06:07.5"), at("2026-12-01T02:06:07.5Z"));
}

#[test]
fn a_command_has_ended_when_its_newest_output_has_an_exit_code() {
    let output = |exit: Value| {
        let item = json!({ "kind": "BashOutput", "id": "0b", "command_id": "fa-01", "order": 0, "exit_code": exit,
            "timestamp": "2026-11-30T14:06:22Z", "stdout": null, "stderr": null });
        ended(&serde_json::to_vec(&json!({ "items": [item], "next_page_id": null })).unwrap(), "fa01")
    };
    let ended_at = Ok(Some(at("2026-11-30T14:06:22Z")));
    assert_eq!((output(json!(0)), output(json!(-1)), output(Value::Null)), (ended_at.clone(), ended_at, Ok(None)));
    assert_eq!(ended(br#"{"items":[],"next_page_id":null}"#, "fa"), Ok(None), "it has written nothing yet");
    let other = br#"{"items":[{"kind":"BashOutput","command_id":"00","timestamp":"2026-11-30T14:06:22Z","exit_code":0}],"next_page_id":null}"#;
    assert!(ended(other, "fa").is_err(), "an output of another command");
}

#[test]
fn init_as_measured() {
    assert_eq!(init(br#"{"state":"dormant","error":null}"#), Ok(InitState::Dormant));
    assert_eq!(init(br#"{"state":"ready","error":null}"#), Ok(InitState::Ready));
    assert!(init(br#"{"state":"asleep"}"#).is_err());
}
