use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOON: &str = "2026-11-30T12:00:00Z";

fn talk(changes: &Value) -> Value {
    let mut value = json!({
        "id": "c1", "sandbox_id": "s1", "execution_status": "idle", "updated_at": NOON, "tags": {"team": "a"},
    });
    for (key, change) in changes.as_object().unwrap() {
        value[key] = change.clone();
    }
    value
}

fn told(talks: &[Value]) -> Result<Option<Use>, String> {
    let mut uses = Uses::default();
    for value in talks {
        uses.add(&talk(value)).map_err(|Unread(why)| why)?;
    }
    uses.whole().of("s1").map(Option::<&Use>::cloned).map_err(|Unread(why)| why)
}

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

/// `running` is a lie for ever where a server was killed: it is believed for 12 h after the last change, and so is
/// everything that nobody could tell.
#[test]
fn work_is_believed_for_as_long_as_it_may_last_and_no_longer() {
    let busy = |status: Value| told(&[json!({"execution_status": status})]).unwrap().unwrap().busy;
    for rests in ["idle", "paused", "waiting_for_confirmation", "finished", "error", "stuck", "deleting"] {
        assert_eq!(busy(json!(rests)), Busy::No, "{rests}");
    }
    for works in [json!("running"), Value::Null, json!("dreaming"), json!("")] {
        assert_eq!(busy(works.clone()), Busy::Until(at("2026-12-01T00:00:00Z")), "{works}");
    }
}

#[test]
fn conversations_that_share_a_sandbox_count_together() {
    let all = told(&[
        json!({"tags": {"team": "a", "only": "1"}}),
        json!({"id": "c2", "updated_at": "2026-11-30T13:00:00Z", "tags": {"team": "a", "only": "2"}}),
        json!({"id": "c3", "parent_conversation_id": "c1", "execution_status": "running"}),
        // Shown twice, by pages that moved.
        json!({"id": "c2", "updated_at": "2026-11-30T13:00:00Z"}),
        json!({"id": "c4", "sandbox_id": "s2", "updated_at": "2026-11-30T23:00:00Z"}),
    ]);
    let expected = Use {
        conversations: 2,
        last: at("2026-11-30T13:00:00Z"),
        busy: Busy::Until(at("2026-12-01T00:00:00Z")),
        tags: [("team".to_owned(), "a".to_owned())].into(),
    };
    assert_eq!(all, Ok(Some(expected)));
    assert_eq!(told(&[json!({"sandbox_id": "s2"})]), Ok(None));
}

/// One that can't be read makes its sandbox unreadable, whatever the others tell, and no other sandbox.
#[test]
fn what_can_t_be_read_is_told_of_its_sandbox_alone() {
    for (change, why) in [
        (json!({"updated_at": "soon"}), "`updated_at` is not a time"),
        (json!({"updated_at": null}), "`updated_at` is missing"),
        (json!({"updated_at": 1_764_500_000}), "`updated_at` is not a text"),
        (json!({"updated_at": "2026-11-30T12:00:00"}), "`updated_at` is not a time"),
        (json!({"execution_status": 7}), "`execution_status` is not a text"),
        (json!({"tags": {"team": 1}}), "`tags` is not texts alone"),
        (json!({"id": null}), "`id` is missing"),
    ] {
        let why = Err(format!("a conversation in it can't be read: {why}"));
        assert_eq!(told(&[change.clone(), json!({"id": "c2"})]), why, "{change}");
        assert_eq!(told(&[json!({"id": "c2"}), change.clone()]), why, "{change}");
    }
    assert_eq!(told(&[json!({"sandbox_id": null})]), Err("`sandbox_id` is missing".to_owned()));
    let mut uses = Uses::default();
    assert_eq!(uses.add(&json!([])), Err(Unread("it is no object".to_owned())));
}

fn any_text() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => prop_oneof![Just("running"), Just("idle"), Just("s1"), Just("s2"), Just(NOON), Just("")].prop_map(|text| json!(text)),
        1 => ".{0,12}".prop_map(|text| json!(text)),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => Just(Value::Null),
        1 => Just(json!({"a": "b"})),
    ]
}

proptest! {
    /// Whatever is answered: nothing panics, and more conversations never make a sandbox less active or less busy.
    #[test]
    fn more_conversations_never_make_it_look_more_idle(
        talks in proptest::collection::vec((any_text(), any_text(), any_text(), any_text(), 0..4_u8), 0..8),
    ) {
        let mut uses = Uses::default();
        let (mut last, mut busy) = (None, false);
        for (sandbox, status, updated, tags, n) in talks {
            let row = json!({
                "id": format!("c{n}"), "sandbox_id": sandbox, "execution_status": status, "updated_at": updated, "tags": tags,
            });
            let before = uses.of("s1").is_err();
            let _ = uses.add(&row);
            let Ok(told) = uses.of("s1") else {
                (last, busy) = (None, false);
                continue;
            };
            prop_assert!(!before, "what could not be read was forgotten");
            prop_assert!(told.map(|told| told.last) >= last);
            prop_assert!(!busy || told.is_some_and(|told| told.busy != Busy::No));
            last = told.map(|told| told.last);
            busy = told.is_some_and(|told| told.busy != Busy::No);
        }
    }
}
