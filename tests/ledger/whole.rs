//! What is kept beside the records: units, the kill switch, budgets, the audit; and calls that go wrong.

use ledger::{AuditLine, Completed, Completion, Ended, Heartbeat, Leased, Ledger, LedgerError, Pause, Taken, Unit};
use lifecycle::{BackendName, PolicyHash, Sweep, policy::BudgetKind};

use super::fixture::{Fault, Item, at, backend, due, first_token, id, number, seen, text, won, world};

#[tokio::test]
async fn a_backend_is_leased_to_one_pass_and_its_sweep_is_noted_under_the_lease() {
    let world = world().await;
    let ledger = &world.ledger;
    assert_eq!(ledger.unit(&backend()).await.unwrap(), Unit::default());
    let Leased::Won { token } = ledger.lease_unit(&backend(), "pass-1", at(60), at(0)).await.unwrap() else { panic!() };
    let busy = ledger.lease_unit(&backend(), "pass-2", at(100), at(69)).await.unwrap();
    assert_eq!(busy, Leased::Busy { owner: "pass-1".to_owned(), until: at(70) });

    let sweep = Sweep { at: at(5), count: 42 };
    let policy = PolicyHash::from_text("0123456789abcdef");
    assert!(!ledger.swept(&backend(), token - 1, sweep, None, &policy).await.unwrap(), "another's lease");
    assert!(ledger.swept(&backend(), token, sweep, Some(0.25), &policy).await.unwrap());
    let expected = Unit {
        lease: Some(super::fixture::claim("pass-1", 60)),
        token,
        last_sweep: Some(sweep),
        silent_mean: Some(0.25),
        policy: Some(policy.clone()),
        paused: None,
    };
    assert_eq!(ledger.unit(&backend()).await.unwrap(), expected);

    assert!(ledger.release_unit(&backend(), token, at(6)).await.unwrap());
    assert!(!ledger.release_unit(&backend(), token, at(6)).await.unwrap());
    let next = ledger.lease_unit(&backend(), "pass-2", at(100), at(7)).await.unwrap();
    assert_eq!(next, Leased::Won { token: token + 1 }, "the fence of a lease only grows");
    assert!(!ledger.swept(&backend(), token, sweep, None, &policy).await.unwrap(), "the first pass is too late");
}

#[tokio::test]
async fn a_pause_stops_one_backend_or_all_of_them_and_one_that_can_not_be_read_stops_too() {
    let world = world().await;
    let (ledger, other) = (&world.ledger, BackendName::new("other").unwrap());
    let pause = |backend: Option<&BackendName>| Pause {
        at: Some(at(5)),
        why: "deploy".to_owned(),
        by: "kim".to_owned(),
        backend: backend.cloned(),
    };
    assert_eq!(ledger.paused(&backend()).await.unwrap(), None);
    ledger.pause(Some(&backend()), "deploy", "kim", at(5)).await.unwrap();
    assert_eq!(ledger.paused(&backend()).await.unwrap(), Some(pause(Some(&backend()))));
    assert_eq!(ledger.paused(&other).await.unwrap(), None);
    ledger.pause(None, "deploy", "kim", at(5)).await.unwrap();
    assert_eq!(ledger.paused(&other).await.unwrap(), Some(pause(None)));
    assert_eq!(ledger.unit(&other).await.unwrap().paused, Some(pause(None)));
    assert!(ledger.unpause(None, at(6)).await.unwrap());
    assert!(!ledger.unpause(None, at(6)).await.unwrap());
    assert_eq!(ledger.paused(&other).await.unwrap(), None);
    assert!(ledger.unpause(Some(&backend()), at(6)).await.unwrap());
    assert_eq!(ledger.paused(&backend()).await.unwrap(), None);

    let odd = [("pk", text("unit/box")), ("sk", text("record")), ("paused_at", text("long ago"))];
    world.put(odd.map(|(name, value)| (name.to_owned(), value)).into()).await;
    assert_eq!(ledger.paused(&backend()).await.unwrap().map(|pause| pause.at), Some(None));
    assert!(ledger.unpause(Some(&backend()), at(0)).await.unwrap());
}

/// Whoever pulled the switch again was told that it holds.
#[tokio::test]
async fn an_unpause_that_arrives_late_leaves_the_pause_of_after_it_was_sent() {
    let world = world().await;
    world.ledger.pause(None, "deploy", "kim", at(100)).await.unwrap();
    assert!(!world.ledger.unpause(None, at(89)).await.unwrap());
    assert!(world.ledger.paused(&backend()).await.unwrap().is_some());
    assert!(world.ledger.unpause(None, at(90)).await.unwrap(), "clocks differ");
    assert_eq!(world.ledger.paused(&backend()).await.unwrap(), None);
}

#[tokio::test]
async fn a_budget_counts_to_its_limit_and_one_that_can_not_be_read_is_spent() {
    let world = world().await;
    let take = async |window, limit| {
        world.ledger.take_budget(&backend(), BudgetKind::Suspend, window, limit, at(600)).await.unwrap()
    };
    let used = async |window| world.ledger.used_budget(&backend(), BudgetKind::Suspend, window).await.unwrap();
    assert_eq!((used(1).await, take(1, 0).await), (0, Taken::Spent { used: 0 }));
    assert_eq!(take(1, 2).await, Taken::Taken { used: 1 });
    assert_eq!(take(1, 2).await, Taken::Taken { used: 2 });
    assert_eq!(take(1, 2).await, Taken::Spent { used: 2 });
    assert_eq!((used(1).await, used(2).await), (2, 0), "each window has its own count");
    let other = BudgetKind::Delete;
    assert_eq!(world.ledger.used_budget(&backend(), other, 1).await.unwrap(), 0, "each kind its own");
    let key = "budget/box/suspend/1";
    assert_eq!(world.raw(key).await.unwrap()["expires_at"], number(at(600).millis() / 1_000 + 1));

    for malformed in [None, Some(text("2")), Some(number(-3)), Some(number("1.5"))] {
        let mut item = world.raw(key).await.unwrap();
        item.remove("used");
        item.extend(malformed.clone().map(|value| ("used".to_owned(), value)));
        world.put(item.clone()).await;
        assert_eq!(used(1).await, u64::MAX, "{malformed:?}");
        if malformed != Some(number("1.5")) {
            assert_eq!(take(1, 100).await, Taken::Spent { used: u64::MAX }, "{malformed:?}");
            assert_eq!(world.raw(key).await, Some(item), "{malformed:?}");
        }
    }
}

fn line(token: u64) -> AuditLine {
    AuditLine {
        runtime: id("a"),
        token,
        at: at(10),
        action: "shed caches".to_owned(),
        outcome: "done".to_owned(),
        owner: "pass-1".to_owned(),
        reason: r#"{"code":"idle"}"#.to_owned(),
        evidence: r#"{"idle_from":"2026-11-30T12:00:00Z"}"#.to_owned(),
        saved: Some("bundle".to_owned()),
        undo: vec!["x".to_owned(), "y".to_owned()],
        bytes: 7,
    }
}

#[tokio::test]
async fn the_audit_tells_what_was_done_newest_first_and_a_retry_writes_the_same_line() {
    let world = world().await;
    for token in [9, 10, 11, 100, 10] {
        world.ledger.audit(&line(token)).await.unwrap();
    }
    let other = AuditLine { runtime: id("ab"), ..line(5) };
    world.ledger.audit(&other).await.unwrap();
    let history = async |limit| world.ledger.history(&id("a"), limit).await.unwrap();
    assert_eq!(history(10).await, [line(100), line(11), line(10), line(9)]);
    assert_eq!(history(2).await, [line(100), line(11)]);
    assert_eq!(history(0).await, []);
    let undone = AuditLine { action: ledger::UNDO.to_owned(), ..line(100) };
    world.ledger.audit(&undone).await.unwrap();
    assert_eq!(history(2).await, [undone, line(100)], "it stands beside the act that it takes back");
    let plain = AuditLine { saved: None, undo: Vec::new(), evidence: "é".repeat(70_000), ..line(101) };
    world.ledger.audit(&plain).await.unwrap();
    let found = history(1).await.remove(0);
    assert_eq!((found.saved, found.undo), (None, Vec::new()));
    let cut: serde_json::Value = serde_json::from_str(&found.evidence).unwrap();
    assert_eq!((cut["bytes"].as_u64(), cut["cut"].as_str().unwrap().len()), (Some(140_000), 65_536));
}

#[tokio::test]
async fn records_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let ledger = Ledger::new(embedded::open(folder.path()).unwrap().client(), super::fixture::options());
        async move {
            ledger.create_tables().await.unwrap();
            ledger
        }
    };
    let ledger = open().await;
    let record = ledger.observe(&seen("a"), due(3_600), at(0)).await.unwrap();
    let request = super::fixture::idle_claim("a", &record, 0, 2_060);
    let token = won(ledger.claim(&request, at(2_000)).await.unwrap()).token;
    ledger.audit(&line(token)).await.unwrap();
    let before = ledger.get(&id("a")).await.unwrap();
    drop(ledger);

    let ledger = open().await;
    assert_eq!(ledger.get(&id("a")).await.unwrap(), before);
    assert_eq!(ledger.history(&id("a"), 1).await.unwrap(), [line(token)]);
    assert_eq!(ledger.due(&backend(), at(2_070), 9).await.unwrap().ids, [(id("a"), at(2_070))]);
    let done = Completion { ended: Ended::Suspended, saved_as_of: None, arming: due(9_000) };
    let ended = ledger.complete(&id("a"), token, &done, at(2_010)).await.unwrap();
    assert_eq!(ended, Completed::Done { wanted: false });
}

type Kind = fn(&LedgerError) -> bool;

#[tokio::test]
async fn what_the_store_refuses_is_sorted_by_what_to_do() {
    let world = world().await;
    world.runtime("a").await;
    let cases: [(&'static str, Kind, bool); 5] = [
        ("ProvisionedThroughputExceededException", |error| matches!(error, LedgerError::Throttled { .. }), true),
        ("ThrottlingException", |error| matches!(error, LedgerError::Throttled { .. }), true),
        ("InternalServerError", |error| matches!(error, LedgerError::Unavailable { .. }), true),
        ("AccessDeniedException", |error| matches!(error, LedgerError::Denied { .. }), false),
        ("ValidationException", |error| matches!(error, LedgerError::Request { .. }), false),
    ];
    for (code, kind, passes) in cases {
        world.wire.breaks(move |_, _| Some(Fault::Before(code)));
        let error = world.ledger.heartbeat(&id("a"), None, None, at(5)).await.unwrap_err();
        assert!(kind(&error) && error.passes() == passes, "{code}: {error:?}");
        assert!(world.ledger.get(&id("a")).await.is_err());
    }
    world.wire.mends();
    assert_eq!(world.record("a").await.idle_from, at(0), "none of them was written");
}

#[tokio::test]
async fn a_lost_answer_is_an_error_and_the_same_call_again_tells_how_it_went() {
    let world = world().await;
    world.runtime("a").await;
    let token = won(world.suspend_claim("a", 0, 2_000).await).token;
    let done = Completion { ended: Ended::Suspended, saved_as_of: None, arming: due(9_000) };
    let complete = async || world.ledger.complete(&id("a"), token, &done, at(2_010)).await;
    world.wire.breaks(|_, _| Some(Fault::After));
    assert!(matches!(complete().await, Err(LedgerError::Unavailable { .. })));
    world.wire.mends();
    assert_eq!(complete().await.unwrap(), Completed::Done { wanted: false });

    world.runtime("b").await;
    world.wire.breaks(|_, _| Some(Fault::After));
    assert!(world.ledger.heartbeat(&id("b"), None, None, at(5)).await.is_err());
    world.wire.mends();
    let again = world.ledger.heartbeat(&id("b"), None, None, at(5)).await.unwrap();
    assert_eq!(again, Heartbeat::Coalesced);
}

#[tokio::test]
async fn a_claim_whose_detail_can_not_be_written_is_a_claim() {
    let world = world().await;
    let record = world.runtime("a").await;
    world.wire.breaks(|_, count| (count > 0).then_some(Fault::Before("InternalServerError")));
    let request = super::fixture::idle_claim("a", &record, 0, 2_060);
    let claimed = won(world.ledger.claim(&request, at(2_000)).await.unwrap());
    assert_eq!(claimed.token, first_token() + 1);
}

#[tokio::test]
async fn unprocessed_keys_are_asked_for_again_as_long_as_they_get_fewer() {
    let world = world().await;
    let ids: Vec<_> = (0..90).map(|n| id(&format!("r{n}"))).collect();
    for n in 0..90 {
        world.ledger.observe_known(None, &seen(&format!("r{n}")), |_| due(9), at(0)).await.unwrap();
    }
    world.wire.breaks(|operation, _| (operation == "BatchGetItem").then_some(Fault::Unprocessed(20)));
    let many = world.ledger.get_many(&ids).await.unwrap();
    assert_eq!((many.records.len(), many.unreadable.len(), world.wire.calls().len()), (90, 0, 5));
    world.wire.breaks(|operation, _| (operation == "BatchGetItem").then_some(Fault::Unprocessed(0)));
    let error = world.ledger.get_many(&ids).await.unwrap_err();
    assert_eq!(error.to_string(), "get many: the ledger is throttled; the next pass tries again");
    assert_eq!(world.wire.calls().len(), 1);
}

#[tokio::test]
async fn ids_that_are_not_plain_are_the_same_in_keys_and_come_back_from_the_index() {
    let world = world().await;
    let odd = lifecycle::RuntimeId::new(&backend(), b"6f1c/repo \xff%2F").unwrap();
    let look = lifecycle::Observation { id: odd.clone(), ..seen("x") };
    world.ledger.observe(&look, due(10), at(0)).await.unwrap();
    let key = "runtime/box/6f1c%2Frepo%20%FF%252F";
    let item: Item = world.raw(key).await.unwrap();
    assert_eq!(item["pk"], text(key));
    assert_eq!(world.ledger.due(&backend(), at(10), 1).await.unwrap().ids, [(odd.clone(), at(10))]);
    assert_eq!(world.ledger.records(&backend(), None).await.unwrap().records[0].0, odd);
}
