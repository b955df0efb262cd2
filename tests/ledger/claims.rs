//! Every demand of a claim, broken one at a time: what it loses to, and that nothing is written.

use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{ClaimRequest, ClaimRule, Claimed, Lost};
use lifecycle::{Incarnation, State};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::fixture::{Item, World, at, first_token, id, idle_claim, number, text, won, world};

const NOW: i64 = 10_000;

/// A claim that wins against [`prepared`], under each rule.
fn request(rule: ClaimRule) -> ClaimRequest {
    let (from, to) = match rule {
        ClaimRule::Idle { .. } | ClaimRule::NeverActive { .. } | ClaimRule::Lifetime { .. } => {
            (State::Running, State::Suspending)
        }
        ClaimRule::Retention { .. } => (State::Suspended, State::Archiving),
        ClaimRule::Delete { resting: Some(_), .. } => (State::Running, State::Deleting),
        ClaimRule::Delete { .. } => (State::Suspended, State::Deleting),
        ClaimRule::Shed { .. } | ClaimRule::Notify { .. } => (State::Suspended, State::Suspended),
    };
    let record =
        lifecycle::Record { epoch: 1, incarnation: Some(Incarnation::new("run-1")), ..super::life::registered() };
    ClaimRequest { from, to, rule, ..idle_claim("a", &record, 0, NOW + 60) }
}

fn rules() -> Vec<ClaimRule> {
    let (cutoff, told) = (at(5_000), Some(at(6_000)));
    vec![
        ClaimRule::Idle { cutoff },
        ClaimRule::NeverActive { cutoff },
        ClaimRule::Lifetime { cutoff },
        ClaimRule::Retention { cutoff },
        ClaimRule::Delete { cutoff, noticed: None, saved: None, resting: None },
        ClaimRule::Delete { cutoff, noticed: told, saved: Some(at(100)), resting: None },
        ClaimRule::Delete { cutoff: at(0), noticed: told, saved: Some(at(100)), resting: Some(cutoff) },
        ClaimRule::Shed { cutoff },
        ClaimRule::Notify { cutoff },
    ]
}

/// A record against which the rule's claim wins, in every way only just.
async fn prepared(world: &World, rule: ClaimRule) -> Item {
    world.forget("a").await;
    world.runtime("a").await;
    let mut item = world.item("a").await.unwrap();
    let millis = |seconds: i64| number(at(seconds).millis());
    let mut set = |name: &str, value| drop(item.insert(name.to_owned(), value));
    set("st", text(request(rule).from.as_str()));
    for name in ["if", "fs", "rs", "ss", "sv"] {
        set(name, millis(5_000));
    }
    for name in ["bu", "hu"] {
        set(name, millis(NOW));
    }
    set("cd", millis(5_500));
    set("no", millis(6_000));
    set("co", text("pass-0"));
    set("cu", millis(NOW - 10));
    if matches!(rule, ClaimRule::NeverActive { .. }) {
        item.remove("la");
        item.remove("ls");
    }
    item
}

#[tokio::test]
async fn each_rule_wins_against_a_record_that_only_just_allows_it() {
    let world = world().await;
    for rule in rules() {
        world.put(prepared(&world, rule).await).await;
        let claimed = won(world.ledger.claim(&request(rule), at(NOW)).await.unwrap());
        let expected = (request(rule).to, first_token() + 1, Some(super::fixture::claim("pass-1", NOW + 60)));
        assert_eq!((claimed.state, claimed.token, claimed.claim), expected, "{rule:?}");
        assert_eq!(claimed.due_at, Some(at(NOW + 70)), "{rule:?}: it stays in the index, past its end and the skew");
        assert_eq!(world.due_names(NOW + 70).await, ["a"], "{rule:?}");
    }
}

/// What is broken, and what each rule loses to then; `None`: it does not care.
type Case = (&'static str, Option<AttributeValue>, fn(ClaimRule) -> Option<Lost>);

fn quiet(rule: ClaimRule) -> bool {
    !matches!(rule, ClaimRule::Lifetime { .. } | ClaimRule::Retention { .. } | ClaimRule::Delete { resting: None, .. })
}

fn cases() -> Vec<Case> {
    let millis = |seconds: i64| Some(number(at(seconds).millis()));
    vec![
        ("st", Some(text("gone")), |_| Some(Lost::Gone)),
        ("st", Some(text("archived")), |_| Some(Lost::State { state: State::Archived })),
        ("ep", Some(number(2)), |_| Some(Lost::Superseded { token: first_token() })),
        ("ic", Some(text("run-2")), |_| Some(Lost::Moved { incarnation: Some(Incarnation::new("run-2")) })),
        ("ic", None, |_| Some(Lost::Moved { incarnation: None })),
        ("hu", millis(NOW + 1), |_| Some(Lost::Held)),
        ("hu", Some(text("forever")), |_| Some(Lost::Held)),
        ("hu", Some(text("2026-13-45")), |_| Some(Lost::Held)),
        ("hu", Some(number(0)), |_| Some(Lost::Held)),
        ("cu", millis(NOW - 9), |_| Some(Lost::Claimed { until: at(NOW + 1) })),
        ("wa", millis(1), |_| Some(Lost::Wanted)),
        ("if", millis(5_001), |rule| match rule {
            ClaimRule::Delete { resting: None, saved: Some(_), .. } => Some(Lost::NotSaved),
            _ => quiet(rule).then_some(Lost::Active { idle_from: at(5_001) }),
        }),
        ("fz", millis(5_001), |rule| quiet(rule).then_some(Lost::Active { idle_from: at(5_001) })),
        ("bu", millis(NOW + 1), |rule| quiet(rule).then_some(Lost::Busy { until: at(NOW + 1) })),
        ("la", millis(4_000), |rule| {
            let never = matches!(rule, ClaimRule::NeverActive { .. });
            never.then_some(Lost::Active { idle_from: at(5_000) })
        }),
        ("fs", millis(5_001), |rule| {
            matches!(rule, ClaimRule::NeverActive { .. }).then_some(Lost::Since { since: Some(at(5_001)) })
        }),
        ("rs", millis(5_001), |rule| {
            matches!(rule, ClaimRule::Lifetime { .. }).then_some(Lost::Since { since: Some(at(5_001)) })
        }),
        ("rs", None, |rule| matches!(rule, ClaimRule::Lifetime { .. }).then_some(Lost::Since { since: None })),
        ("ss", millis(5_001), |rule| {
            let rests = matches!(
                rule,
                ClaimRule::Retention { .. } | ClaimRule::Delete { resting: None, .. } | ClaimRule::Notify { .. }
            );
            rests.then_some(Lost::Since { since: Some(at(5_001)) })
        }),
        ("cd", None, |rule| matches!(rule, ClaimRule::Delete { noticed: Some(_), .. }).then_some(Lost::NotNoticed)),
        ("no", millis(6_001), |rule| {
            matches!(rule, ClaimRule::Delete { noticed: Some(_), .. }).then_some(Lost::NotNoticed)
        }),
        ("no", None, |rule| matches!(rule, ClaimRule::Delete { noticed: Some(_), .. }).then_some(Lost::NotNoticed)),
        ("sv", millis(4_999), |rule| {
            matches!(rule, ClaimRule::Delete { saved: Some(_), .. }).then_some(Lost::NotSaved)
        }),
        ("sv", None, |rule| matches!(rule, ClaimRule::Delete { saved: Some(_), .. }).then_some(Lost::NotSaved)),
    ]
}

#[tokio::test]
async fn each_broken_demand_is_named_and_nothing_is_written() {
    let world = world().await;
    for rule in rules() {
        for (attribute, value, lost) in cases() {
            let mut before = prepared(&world, rule).await;
            match value.clone() {
                Some(value) => drop(before.insert(attribute.to_owned(), value)),
                None => drop(before.remove(attribute)),
            }
            world.put(before.clone()).await;
            let claimed = world.ledger.claim(&request(rule), at(NOW)).await.unwrap();
            let case = format!("{rule:?} with {attribute} = {value:?}");
            match lost(rule) {
                Some(lost) => {
                    assert_eq!(claimed, Claimed::Lost(lost), "{case}");
                    assert_eq!(world.item("a").await, Some(before), "{case}");
                }
                None => assert!(matches!(claimed, Claimed::Won(_)), "{case}: {claimed:?}"),
            }
        }
    }
}

/// Not even by who has read that it is gone, and asks for just that.
#[tokio::test]
async fn a_tombstone_is_nobodys_to_claim_or_to_miss() {
    let world = world().await;
    for rule in rules() {
        let mut tombstone = prepared(&world, rule).await;
        tombstone.insert("st".to_owned(), text("gone"));
        world.put(tombstone.clone()).await;
        let request = ClaimRequest { from: State::Gone, ..request(rule) };
        let claimed = world.ledger.claim(&request, at(NOW)).await.unwrap();
        assert_eq!(claimed, Claimed::Lost(Lost::Gone), "{rule:?}");
        let read = world.record("a").await;
        assert!(!world.ledger.absent(&id("a"), &read, at(NOW)).await.unwrap(), "{rule:?}");
        assert_eq!(world.item("a").await, Some(tombstone), "{rule:?}");
    }
}

#[tokio::test]
async fn a_claim_under_another_fence_than_the_one_that_was_seen_loses() {
    let world = world().await;
    let record = world.runtime("a").await;
    let request = ClaimRequest { token: Some(record.token - 1), ..idle_claim("a", &record, 0, 2_060) };
    let claimed = world.ledger.claim(&request, at(2_000)).await.unwrap();
    assert_eq!(claimed, Claimed::Lost(Lost::Superseded { token: record.token }));
    let request = ClaimRequest { token: Some(record.token), ..request };
    assert_eq!(won(world.ledger.claim(&request, at(2_000)).await.unwrap()).token, record.token + 1);
    let none = ClaimRequest { id: id("none"), ..request };
    assert_eq!(world.ledger.claim(&none, at(2_000)).await.unwrap(), Claimed::Lost(Lost::NoRecord));
}

type Attributes = Vec<(&'static str, Option<AttributeValue>)>;

/// Attributes that a claim tests, each near a boundary or absent.
fn any_record() -> impl Strategy<Value = Attributes> {
    let times = ["if", "fs", "rs", "ss", "la", "bu", "hu", "cu", "wa", "cd", "no", "sv", "fz"];
    let value = prop_oneof![
        4 => prop::sample::select(vec![0, 99, 100, 101, 4_999, 5_000, 5_001, 6_000, 6_001, NOW - 11, NOW - 10, NOW - 9,
            NOW, NOW + 1])
            .prop_map(|seconds| Some(number(at(seconds).millis()))),
        2 => Just(None),
    ];
    let each = prop::collection::vec(value, times.len());
    let needed = ["if", "fs", "ss"];
    each.prop_map(move |values| {
        let pairs = times.into_iter().zip(values);
        let mut pairs: Vec<_> = pairs.filter(|(name, value)| value.is_some() || !needed.contains(name)).collect();
        let claimed = pairs.iter().any(|(name, value)| *name == "cu" && value.is_some());
        pairs.push(("co", claimed.then(|| text("pass-0"))));
        pairs
    })
}

/// The store's condition and our own reading of what it refused never disagree: a refusal is always
/// explained, whatever stands in the record, and a win never is.
#[test]
fn every_refusal_is_explained() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let world = runtime.block_on(world());
    let mut runner = TestRunner::new(Config { cases: 192, ..Config::default() });
    let any = (any_record(), prop::sample::select(rules()));
    let case = |(attributes, rule): (Attributes, ClaimRule)| {
        runtime.block_on(async {
            let mut item = prepared(&world, rule).await;
            for (name, value) in attributes {
                match value {
                    Some(value) => drop(item.insert(name.to_owned(), value)),
                    None => drop(item.remove(name)),
                }
            }
            world.put(item.clone()).await;
            match world.ledger.claim(&request(rule), at(NOW)).await.unwrap() {
                Claimed::Won(record) => assert_eq!(record.state, request(rule).to),
                Claimed::Lost(_) => assert_eq!(world.item("a").await.unwrap(), item),
            }
        });
        Ok(())
    };
    runner.run(&any, case).unwrap();
}
