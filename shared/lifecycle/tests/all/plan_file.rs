//! Plans as files: what is refused, by name.

use lifecycle::{
    Plan, PlanError, PlanRefused,
    policy::{Mode, Rules},
};
use proptest::prelude::*;
use serde_json::Value;

use super::worlds::{NOW, Runtime, container, hours, mins, plan_of, policy, running, suspended, unit, usual};

fn fleet() -> Vec<Runtime> {
    use super::worlds::days;
    vec![running("a").heartbeat(hours(2)), suspended("b", days(20)), running("c"), running("d").active(mins(3))]
}

fn a_plan() -> Plan {
    plan_of(unit(container(), fleet()), &policy(usual()))
}

/// The file with one value changed, found by a JSON pointer.
fn edited(pointer: &str, value: Value) -> String {
    let mut file: Value = serde_json::from_str(&a_plan().to_json()).unwrap();
    *file.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    file.to_string()
}

#[test]
fn a_file_gives_the_plan_back_whatever_its_spaces() {
    let text = a_plan().to_json();
    assert_eq!(Plan::from_json(&text), Ok(a_plan()));
    let compact = serde_json::from_str::<Value>(&text).unwrap().to_string();
    assert_eq!(Plan::from_json(&compact), Ok(a_plan()));
}

/// `furlough plan --json` says more than the plan has, and can be saved and applied.
#[test]
fn what_was_added_for_people_is_not_read_and_not_written() {
    let mut file: Value = serde_json::from_str(&a_plan().to_json()).unwrap();
    file["notes"] = serde_json::json!({ "holds": [{ "why": "ask Ada" }] });
    let read = Plan::from_json(&file.to_string());
    assert_eq!(read, Ok(a_plan()));
    assert_eq!(read.unwrap().to_json(), a_plan().to_json());
}

#[test]
fn a_file_that_was_edited_is_refused() {
    let edits: [(&str, Value); 10] = [
        ("/items/0/runtime", "b/d".into()),
        ("/items/0/action", "delete".into()),
        ("/items/0/evidence/idle_from", "2020-01-01T00:00:00Z".into()),
        ("/items/0/incarnation", "run-2".into()),
        ("/items/0/token", 8.into()),
        ("/items/0/reason/after", "31m".into()),
        ("/kept/0/reason/code", "gone".into()),
        ("/expires_at", "2027-01-01T00:00:00Z".into()),
        ("/policy", "0000000000000000".into()),
        ("/headline/idle_hours", 7.25.into()),
    ];
    for (pointer, value) in edits {
        let refused = Plan::from_json(&edited(pointer, value));
        assert!(matches!(refused, Err(PlanError::Edited | PlanError::Malformed { .. })), "{pointer}: {refused:?}");
    }
    assert_eq!(Plan::from_json(&edited("/items/0/token", 8.into())), Err(PlanError::Edited));
    assert_eq!(Plan::from_json(&edited("/digest", "".into())), Err(PlanError::Edited));
    assert_eq!(Plan::from_json(&edited("/digest", Value::Null)), Err(PlanError::Edited));
    assert_eq!(Plan::from_json(&edited("/items", Value::Array(Vec::new()))), Err(PlanError::Edited));
}

#[test]
fn a_file_with_more_in_it_is_refused() {
    for object in [
        "",
        "/items/0",
        "/items/0/evidence",
        "/items/0/reason",
        "/headline",
        "/kept/0",
        "/backends/0",
        "/items/0/saves",
    ] {
        let mut file: Value = serde_json::from_str(&a_plan().to_json()).unwrap();
        file.pointer_mut(object).unwrap()["force"] = true.into();
        let refused = Plan::from_json(&file.to_string());
        assert!(matches!(refused, Err(PlanError::Malformed { .. })), "{object}: {refused:?}");
    }
}

#[test]
fn a_file_of_another_version_says_which() {
    assert_eq!(Plan::from_json(&edited("/version", 2.into())), Err(PlanError::OtherVersion { found: 2 }));
    // Also when nothing else in it is as here.
    assert_eq!(Plan::from_json(r#"{"version": 9, "steps": []}"#), Err(PlanError::OtherVersion { found: 9 }));
}

#[test]
fn a_file_that_is_no_plan_says_so() {
    assert_eq!(Plan::from_json(""), Err(PlanError::CutShort));
    for text in ["[]", "null", "{}", "not JSON", "{\"version\": -1}", "{\"version\": 1}"] {
        assert!(matches!(Plan::from_json(text), Err(PlanError::Malformed { .. })), "{text}");
    }
}

#[test]
fn a_plan_is_refused_whole_when_it_is_not_for_now() {
    let (plan, policy) = (a_plan(), policy(usual()));
    let minute = mins(1);
    assert_eq!(plan.check(&policy, NOW), Ok(()));
    assert_eq!(plan.check(&policy, NOW.plus(hours(1)).minus(minute)), Ok(()));
    let now = NOW.plus(hours(1));
    assert_eq!(plan.check(&policy, now), Err(PlanRefused::Expired { expired: now, now }));
    let now = NOW.minus(minute);
    assert_eq!(plan.check(&policy, now), Err(PlanRefused::Future { made: NOW, now }));
    assert_eq!(plan.check(&policy, NOW.minus(policy.skew)), Ok(()));
    let other = super::worlds::policy(Rules { idle_after: Some(mins(31)), ..usual() });
    let refused = PlanRefused::OtherPolicy { made: policy.hash(), now: other.hash() };
    assert_eq!(plan.check(&other, NOW), Err(refused));
    let newer = Plan { version: 2, ..plan.clone() };
    assert_eq!(newer.check(&policy, NOW), Err(PlanRefused::OtherVersion { found: 2 }));
    // A plan can't bring a longer life along than the policy gives.
    let lasting = Plan { expires_at: NOW.plus(hours(900)), ..plan };
    let now = NOW.plus(hours(2));
    assert_eq!(lasting.check(&policy, now), Err(PlanRefused::Expired { expired: NOW.plus(hours(1)), now }));
}

#[test]
fn a_plan_made_in_report_mode_can_be_applied_after_the_switch_to_enforce() {
    let mut policy = policy(usual());
    policy.mode = Mode::Report;
    let plan = plan_of(unit(container(), fleet()), &policy);
    policy.mode = Mode::Enforce;
    assert_eq!(plan.check(&policy, NOW), Ok(()));
}

#[test]
fn durations_in_a_file_are_for_people() {
    let file: Value = serde_json::from_str(&a_plan().to_json()).unwrap();
    let reason = serde_json::json!({"code": "idle", "after": "30m"});
    assert_eq!(file.pointer("/items/0/reason"), Some(&reason));
    assert_eq!(file.pointer("/items/0/evidence/idle"), Some(&"2h".into()));
}

#[test]
fn a_file_cut_short_anywhere_is_refused_as_such() {
    let text = a_plan().to_json();
    let text = text.trim_end();
    for cut in 0..text.len() {
        assert_eq!(Plan::from_json(&text[..cut]), Err(PlanError::CutShort), "after {cut} bytes");
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_without_panic(text in ".{0,200}") {
        prop_assert!(Plan::from_json(&text).is_err());
    }

    /// Any bytes overwritten anywhere: the very same plan, or an error.
    #[test]
    fn a_mutated_file_is_the_same_plan_or_refused(at in any::<prop::sample::Index>(), bytes in proptest::collection::vec(any::<u8>(), 1..6)) {
        let plan = a_plan();
        let mut text = plan.to_json().into_bytes();
        let start = at.index(text.len());
        for (place, byte) in text[start..].iter_mut().zip(bytes) {
            *place = byte;
        }
        if let Ok(read) = Plan::from_json(&String::from_utf8_lossy(&text)) {
            prop_assert_eq!(read, plan);
        }
    }
}
