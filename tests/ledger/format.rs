//! Items: their size, their units, older and newer formats, and whatever else may stand there.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use ledger::{
    ClaimRequest, Claimed, Completion, Ended, HoldRequest, HoldSet, Ledger, LedgerError, MAX_INCARNATION_BYTES,
    MAX_OWNER_BYTES, Options, Registered,
};
use lifecycle::{
    BackendName, Busy, Incarnation, Observation, RuntimeId, State, Tier, Time, id::MAX_ID_BYTES, record::Hold,
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{
    fixture::{Item, at, backend, claim, due, id, number, seen, text, won, world},
    life::registered,
};

/// An item's size as DynamoDB counts it: names, texts, and a byte for two digits of a number and one more.
fn bytes(item: &Item) -> usize {
    item.iter()
        .map(|(name, value)| {
            name.len()
                + match value {
                    AttributeValue::S(text) => text.len(),
                    AttributeValue::N(digits) => digits.trim_matches('0').len().div_ceil(2) + 1,
                    other => panic!("a record has texts and numbers only: {other:?}"),
                }
        })
        .sum()
}

/// The runtime with the longest key: 128 bytes of backend, 128 of id of which each is percent-encoded.
pub(super) fn longest() -> RuntimeId {
    RuntimeId::new(&BackendName::new(&"b".repeat(MAX_ID_BYTES)).unwrap(), &[0xff; MAX_ID_BYTES]).unwrap()
}

/// The longest name of a run.
pub(super) fn longest_run() -> Incarnation {
    Incarnation::new("i".repeat(MAX_INCARNATION_BYTES))
}

/// A record in which every attribute is there and none could be longer, claimed for a shed.
pub(super) fn largest() -> Item {
    // 13 digits: any time until the year 2286; none of them ends in zeros, which would be stored shorter.
    let time = || number(9_999_999_999_999_u64);
    let mut item: Item = ["ss", "fs", "if", "la", "fz", "bu", "rs", "ca", "ar", "wa", "ab", "cd", "no", "sv", "cu"]
        .into_iter()
        .map(|name| (name.to_owned(), time()))
        .collect();
    let others = [
        ("pk", text(&format!("runtime/{}", longest()))),
        ("sk", text("record")),
        ("v", number(1)),
        ("ep", number(u64::MAX)),
        ("tk", number(u64::MAX - 9)),
        ("mk", text("0123456789abcdef")),
        ("ic", text(&"i".repeat(MAX_INCARNATION_BYTES))),
        ("st", text(State::Suspending.as_str())),
        ("ls", text("heartbeat")),
        ("im", number(u64::MAX)),
        ("at", number(u32::MAX)),
        ("sh", text(Tier::Dependencies.as_str())),
        ("hu", number(Time::MAX.millis() - 1)),
        ("co", text(&"o".repeat(MAX_OWNER_BYTES))),
        ("due_shard", text("#0123456789abcdef/999")),
        ("due_at", time()),
    ];
    item.extend(others.map(|(name, value)| (name.to_owned(), value)));
    item
}

#[tokio::test]
async fn the_largest_legal_record_has_at_most_a_thousand_bytes() {
    let world = world().await;
    let item = largest();
    world.put(item.clone()).await;
    let record = world.ledger.get(&longest()).await.unwrap().expect("it is legal");
    let every_field = format!("{record:?}");
    assert!(!every_field.contains("None"), "an attribute is missing from the largest record: {every_field}");
    assert_eq!(bytes(&item), 985, "at most 1,000, and 1,024 would cost a heartbeat a second unit");
}

#[tokio::test]
async fn a_backends_long_name_is_digested_in_the_index_and_found_there() {
    let world = world().await;
    let look = Observation { id: longest(), ..seen("x") };
    world.ledger.observe(&look, due(10), at(0)).await.unwrap();
    let found = world.ledger.due(longest().backend(), at(10), 10).await.unwrap();
    assert_eq!(found.ids, [(longest(), at(10))]);
}

/// An item of the format before 1: no `v`, no `first_seen`, no `frozen_since`.
async fn older(world: &super::fixture::World) {
    world.runtime("a").await;
    world.tamper("a", "v", None).await;
    world.tamper("a", "fs", None).await;
}

#[tokio::test]
async fn an_older_format_is_read_as_what_it_means_and_upgraded_at_the_next_write() {
    let world = world().await;
    older(&world).await;
    let expected = lifecycle::Record { v: 0, ..registered() };
    assert_eq!(world.record("a").await, expected, "first seen when it entered its state, at the latest");
    let beat = world.ledger.heartbeat(&id("a"), None, None, at(10)).await.unwrap();
    assert_eq!(beat, ledger::Heartbeat::Recorded);
    let expected = lifecycle::Record { idle_from: at(10), last_active: Some(at(10)), ..registered() };
    assert_eq!(world.record("a").await, expected);
    let item = world.item("a").await.unwrap();
    assert_eq!((&item["v"], &item["fs"]), (&number(1), &number(at(0).millis())));
}

#[tokio::test]
async fn an_older_format_loses_no_condition_on_its_way() {
    let world = world().await;
    older(&world).await;
    let lost = world.suspend_claim("a", -1, 2_000).await;
    assert_eq!(lost, Claimed::Lost(ledger::Lost::Active { idle_from: at(0) }));
    older_again(&world).await;
    assert_eq!(won(world.suspend_claim("a", 0, 2_000).await).v, 1);
    older_again(&world).await;
    let look = world.ledger.observe(&seen("a"), due(9), at(2_001)).await.unwrap();
    assert_eq!(look.claim, Some(claim("pass-1", 2_060)), "a claim of an older record is a claim");
    let refused = world.ledger.register(&id("a"), &BTreeMap::new().into(), due(9), at(2_001)).await.unwrap();
    assert_eq!(refused, Registered::Claimed { until: at(2_070) });
}

async fn older_again(world: &super::fixture::World) {
    world.tamper("a", "v", Some(number(0))).await;
    world.tamper("a", "fs", None).await;
}

#[tokio::test]
async fn a_newer_format_is_refused_by_name_and_not_touched() {
    let world = world().await;
    let known = world.runtime("a").await;
    world.tamper("a", "v", Some(number(2))).await;
    let before = world.item("a").await;
    let (ledger, runtime, token) = (&world.ledger, id("a"), known.token);
    let done = Completion { ended: Ended::Suspended, saved_as_of: None, arming: due(9) };
    let hold = HoldRequest { hold: Hold::Forever, why: "", by: "" };
    let probe = ledger::ProbeSeen { last_active: Some(at(5)), busy: Busy::No };
    let run = known.incarnation.clone().unwrap();
    let failed = ledger::Failure::No { due_at: at(9) };
    let errors = [
        ledger.get(&runtime).await.unwrap_err(),
        ledger.observe(&seen("a"), due(9), at(1)).await.unwrap_err(),
        ledger
            .observe_known(
                Some(known.clone()),
                &Observation { busy: Busy::Until(at(99)), ..seen("a") },
                |_| due(9),
                at(1),
            )
            .await
            .unwrap_err(),
        ledger.observe_known(None, &seen("a"), |_| due(9), at(1)).await.unwrap_err(),
        ledger.register(&runtime, &BTreeMap::new().into(), due(9), at(1)).await.unwrap_err(),
        ledger.heartbeat(&runtime, None, None, at(1)).await.unwrap_err(),
        ledger.probed(&runtime, &run, probe, at(9)).await.unwrap_err(),
        ledger.rearm(&runtime, at(3_600), at(1)).await.unwrap_err(),
        ledger.reschedule(&runtime, token, None, due(9), at(1)).await.unwrap_err(),
        ledger.claim(&super::fixture::idle_claim("a", &known, 0, 60), at(1)).await.unwrap_err(),
        ledger.take_over(&runtime, token, "o", at(60), at(1)).await.unwrap_err(),
        ledger.complete(&runtime, token, &done, at(1)).await.unwrap_err(),
        ledger.hand_over(&runtime, token, at(9), at(1)).await.unwrap_err(),
        ledger.abandon(&runtime, token, State::Running, failed, at(1)).await.unwrap_err(),
        ledger.wake(&runtime, "o", at(60), at(1)).await.unwrap_err(),
        ledger.absent(&runtime, &known, at(1)).await.unwrap_err(),
        ledger.gone(&runtime, token, at(0), at(1)).await.unwrap_err(),
        ledger.noticed(&runtime, token, at(1)).await.unwrap_err(),
        ledger.hold(&runtime, &hold, None, at(1)).await.unwrap_err(),
        ledger.release(&runtime, at(1)).await.unwrap_err(),
    ];
    for (n, error) in errors.iter().enumerate() {
        let expected = "`box/a` has format 2, and this furlough knows 1; upgrade furlough";
        assert_eq!(error.to_string(), expected, "operation {n}");
    }
    assert_eq!(world.ledger.heal(&backend(), None, at(1)).await.unwrap().healed, []);
    assert_eq!(world.item("a").await, before);
}

#[tokio::test]
async fn a_hold_that_can_not_be_read_holds_and_can_be_released() {
    let malformed = [
        text(""),
        text("next week"),
        number(0),
        number(-5),
        number("1e40"),
        AttributeValue::Bool(false),
        AttributeValue::Null(true),
        AttributeValue::L(Vec::new()),
        AttributeValue::B(Blob::new([1])),
    ];
    let world = world().await;
    for value in malformed {
        world.forget("a").await;
        world.runtime("a").await;
        world.tamper("a", "hu", Some(value.clone())).await;
        assert_eq!(world.record("a").await.hold_until, Some(Hold::Unreadable), "{value:?}");
        assert_eq!(world.suspend_claim("a", 0, 2_000).await, Claimed::Lost(ledger::Lost::Held), "{value:?}");
        assert!(world.ledger.release(&id("a"), at(2_000)).await.unwrap());
        assert!(!world.ledger.release(&id("a"), at(2_000)).await.unwrap(), "there is none any more");
        won(world.suspend_claim("a", 0, 2_000).await);
    }
}

#[tokio::test]
async fn holds_hold_until_their_time_and_clear_a_condemnation() {
    let world = world().await;
    world.runtime("a").await;
    world.tamper("a", "cd", Some(number(1))).await;
    world.tamper("a", "no", Some(number(2))).await;
    let hold = HoldRequest { hold: Hold::Until(at(3_000)), why: "demo on Friday", by: "kim" };
    let answer = world.ledger.hold(&id("a"), &hold, None, at(1_000)).await.unwrap();
    let expected = lifecycle::Record { hold_until: Some(Hold::Until(at(3_000))), ..registered() };
    assert_eq!(answer, HoldSet::Held(Box::new(expected.clone())));
    assert_eq!(world.record("a").await, expected);
    let detail = world.ledger.detail(&id("a")).await.unwrap().unwrap();
    assert_eq!((detail.hold_why.as_deref(), detail.hold_by.as_deref()), (Some("demo on Friday"), Some("kim")));
    assert_eq!(detail.hold_at, Some(at(1_000)));
    assert_eq!(world.suspend_claim("a", 0, 2_999).await, Claimed::Lost(ledger::Lost::Held));
    won(world.suspend_claim("a", 0, 3_000).await);
}

#[tokio::test]
async fn what_has_no_record_is_held_in_one_that_looks_neither_active_nor_idle() {
    let world = world().await;
    let hold = HoldRequest { hold: Hold::Forever, why: "mine", by: "kim" };
    let answer = world.ledger.hold(&id("a"), &hold, None, at(1_000)).await.unwrap();
    let HoldSet::Held(record) = answer else { panic!("{answer:?}") };
    assert_eq!(world.record("a").await, *record);
    let told = (record.hold_until, record.last_active, record.idle_from, record.first_seen, record.incarnation.clone());
    assert_eq!(told, (Some(Hold::Forever), None, at(1_000), at(1_000), None));

    let look = Observation { state: State::Suspended, state_since: Some(at(10)), ..seen("b") };
    let answer = world.ledger.hold(&id("b"), &hold, Some(&look), at(1_000)).await.unwrap();
    let HoldSet::Held(record) = answer else { panic!("{answer:?}") };
    let told = (record.hold_until, record.state, record.state_since, record.incarnation.clone());
    assert_eq!(told, (Some(Hold::Forever), State::Suspended, at(10), Some(Incarnation::new("run-1"))));
    let later = world.ledger.observe(&look, due(9_000), at(2_000)).await.unwrap();
    assert_eq!((later.hold_until, later.state), (Some(Hold::Forever), State::Suspended));
}

/// Any value that DynamoDB can hold, and such as ours have most of all.
fn any_value() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        3 => any::<i64>().prop_map(number),
        3 => (0..20_000_i64).prop_map(|seconds| number(at(seconds - 10_000).millis())),
        2 => prop::sample::select(vec!["0", "-1", "1.5", "1E+30", "-0.001", "99999999999999999999"]).prop_map(number),
        2 => prop::sample::select(vec!["", "running", "gone", "suspended", "caches", "probe", "forever", "1"])
            .prop_map(text),
        1 => ".{0,8}".prop_map(|any| text(&any)),
        1 => any::<bool>().prop_map(AttributeValue::Bool),
        1 => Just(AttributeValue::Null(true)),
        1 => prop::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| AttributeValue::B(Blob::new(bytes))),
        1 => Just(AttributeValue::L(vec![text("x")])),
        1 => Just(AttributeValue::M(Item::from([("until".to_owned(), number(1))]))),
        1 => Just(AttributeValue::Ss(vec!["a".to_owned()])),
    ]
}

/// What is well formed of one attribute: the type that it must have, and what it must say.
fn well_formed(name: &str, value: &AttributeValue) -> bool {
    let whole = value.as_n().ok().and_then(|digits| digits.parse::<i128>().ok());
    match name {
        "st" => value.as_s().is_ok_and(|text| State::ALL.iter().any(|state| state.as_str() == text)),
        "ls" => value.as_s().is_ok_and(|text| ["heartbeat", "provider", "probe"].contains(&text.as_str())),
        "sh" => value.as_s().is_ok_and(|text| ["caches", "dependencies", "runtime"].contains(&text.as_str())),
        "ic" | "co" | "due_shard" => value.as_s().is_ok(),
        "v" => whole.is_some_and(|v| v == 0 || v == 1),
        "ep" | "tk" | "im" => whole.is_some_and(|number| u64::try_from(number).is_ok()),
        "at" => whole.is_some_and(|number| u32::try_from(number).is_ok()),
        "hu" => true,
        _ => whole.is_some_and(|millis| (1..=i128::from(Time::MAX.millis())).contains(&millis)),
    }
}

const ATTRIBUTES: [&str; 28] = [
    "v",
    "ep",
    "ic",
    "st",
    "ss",
    "fs",
    "if",
    "la",
    "ls",
    "fz",
    "bu",
    "rs",
    "im",
    "ca",
    "ar",
    "hu",
    "wa",
    "ab",
    "at",
    "sh",
    "cd",
    "no",
    "sv",
    "co",
    "cu",
    "tk",
    "due_shard",
    "due_at",
];

/// Whatever stands in an item: reading it never panics, and one that has a malformed attribute is an error
/// that names it, or is held. It is never a record that looks idle, free or released.
#[test]
fn a_malformed_item_is_an_error_or_held_and_never_a_record_that_looks_idle() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let world = runtime.block_on(world());
    runtime.block_on(world.runtime("a"));
    let good = runtime.block_on(world.item("a")).unwrap();
    let mut runner = TestRunner::new(Config { cases: 600, ..Config::default() });
    let change = (prop::sample::select(ATTRIBUTES.to_vec()), prop::option::weighted(0.9, any_value()));
    let case = |changes: Vec<(&str, Option<AttributeValue>)>| {
        let mut item = good.clone();
        for (name, value) in changes {
            match value {
                Some(value) => drop(item.insert(name.to_owned(), value)),
                None => drop(item.remove(name)),
            }
        }
        // Keys of the index have types that the store itself insists on.
        if item.get("due_at").is_some_and(|value| value.as_n().is_err())
            || item.get("due_shard").is_some_and(|value| value.as_s().map_or(true, String::is_empty))
        {
            return Ok(());
        }
        let bad: Vec<_> = ATTRIBUTES
            .into_iter()
            .filter(|name| item.get(*name).is_some_and(|value| !well_formed(name, value)))
            .collect();
        let needed = ["ep", "st", "ss", "if", "tk"].into_iter().find(|name| !item.contains_key(*name));
        runtime.block_on(async {
            world.put(item.clone()).await;
            match world.ledger.get(&id("a")).await {
                Ok(record) => {
                    let record = record.unwrap();
                    assert_eq!((bad, needed), (Vec::new(), None), "it was read as {record:?}");
                    let holds = item.get("hu").map(|hold| match hold {
                        AttributeValue::S(text) if text == "forever" => true,
                        AttributeValue::N(digits) => {
                            digits.parse::<f64>().unwrap() > 1e12 || {
                                let past = digits.parse::<f64>().unwrap();
                                past < 1.0
                            }
                        }
                        _ => true,
                    });
                    if holds == Some(true) {
                        assert!(record.hold_until.unwrap().holds(at(-20_000)), "{:?}", item["hu"]);
                    }
                }
                Err(LedgerError::Malformed { item, .. } | LedgerError::Newer { item, .. }) => assert_eq!(item, "box/a"),
                Err(other) => panic!("{other}"),
            }
        });
        Ok(())
    };
    runner.run(&prop::collection::vec(change, 1..4), case).unwrap();
}

#[tokio::test]
async fn an_owner_that_a_record_can_not_hold_is_refused_by_name() {
    let world = world().await;
    let record = world.runtime("a").await;
    let owner = "o".repeat(MAX_OWNER_BYTES + 1);
    let request = ClaimRequest { owner: owner.clone(), ..super::fixture::idle_claim("a", &record, 0, 2_060) };
    let why = "owner of `box/a` has 41 bytes; at most 40 are allowed";
    assert_eq!(world.ledger.claim(&request, at(2_000)).await.unwrap_err().to_string(), why);
    assert_eq!(world.ledger.wake(&id("a"), &owner, at(60), at(1)).await.unwrap_err().to_string(), why);
    assert_eq!(world.record("a").await, record);
}

#[tokio::test]
async fn the_tables_are_made_once_and_by_whoever_comes_first() {
    let world = world().await;
    let ledger = Ledger::new(world.client.clone(), Options::default());
    world.wire.calls();
    ledger.create_tables().await.unwrap();
    let calls: Vec<_> = world.wire.calls().into_iter().map(|call| call.operation).collect();
    assert!(calls.iter().all(|call| call.starts_with("Describe")), "only reads where nothing is missing: {calls:?}");
    let missing = Ledger::new(embedded::memory().unwrap().client(), Options::default());
    let error = missing.get(&id("a")).await.unwrap_err();
    let expected = "get: table `furlough` is missing; create it (infra/ does on AWS, `furlough` does locally)";
    assert_eq!(error.to_string(), expected);
}
