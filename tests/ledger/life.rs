//! One runtime's life, operation by operation: what a condition lets through and what the record is then.

use std::{collections::BTreeMap, time::Duration};

use ledger::{Claimed, Completed, Completion, Ended, Failure, Heartbeat, Lost, Noted, ProbeSeen, Registered};
use lifecycle::{Busy, Incarnation, Record, Signal, State, Tier};

use super::fixture::{World, at, claim, due, first_token, id, won, world};

/// What [`super::fixture::World::runtime`] leaves.
pub(super) fn registered() -> Record {
    Record {
        v: 1,
        epoch: 1,
        incarnation: Some(Incarnation::new("run-1")),
        state: State::Running,
        state_since: at(0),
        first_seen: at(0),
        idle_from: at(0),
        last_active: Some(at(0)),
        last_source: Some(Signal::Heartbeat),
        frozen_since: None,
        busy_until: None,
        running_since: Some(at(0)),
        idle_ms: Some(1_800_000),
        cap_at: None,
        armed: Some(at(0)),
        hold_until: None,
        wanted_at: None,
        absent_since: None,
        attempts: 0,
        shed: None,
        condemned_at: None,
        noticed_at: None,
        saved_as_of: None,
        claim: None,
        token: first_token(),
        due_at: Some(at(3_600)),
    }
}

fn done(ended: Ended) -> Completion {
    Completion { ended, saved_as_of: None, arming: due(9_000) }
}

#[tokio::test]
async fn a_registration_begins_a_life() {
    let world = world().await;
    assert_eq!(world.runtime("a").await, registered());
    assert_eq!(world.record("a").await, registered());
    let detail = world.ledger.detail(&id("a")).await.unwrap().unwrap();
    assert_eq!(detail.labels, BTreeMap::from([("team".to_owned(), "blue".to_owned())]).into());
}

#[tokio::test]
async fn registering_again_counts_on_and_never_resets_the_token() {
    let world = world().await;
    world.runtime("a").await;
    let beat = world.ledger.heartbeat(&id("a"), Some(1), Some(Duration::from_mins(5)), at(10)).await.unwrap();
    assert_eq!(beat, Heartbeat::Recorded);
    let again = world.ledger.register(&id("a"), &BTreeMap::new().into(), due(7_200), at(100)).await.unwrap();
    let expected = Record {
        epoch: 2,
        token: first_token() + 1,
        idle_from: at(100),
        last_active: Some(at(100)),
        armed: Some(at(100)),
        due_at: Some(at(7_200)),
        ..registered()
    };
    assert_eq!(again, Registered::Done(Box::new(expected.clone())));
    assert_eq!(world.record("a").await, expected);
}

#[tokio::test]
async fn a_live_claim_refuses_a_registration_until_clocks_can_agree_that_it_ended() {
    let world = world().await;
    world.runtime("a").await;
    let claimed = won(world.suspend_claim("a", 0, 2_000).await);
    for now in [2_000, 2_059, 2_069] {
        let refused = world.ledger.register(&id("a"), &BTreeMap::new().into(), due(9_000), at(now)).await.unwrap();
        assert_eq!(refused, Registered::Claimed { until: at(2_070) }, "{now}");
    }
    assert_eq!(world.record("a").await, claimed);
    let free = world.ledger.register(&id("a"), &BTreeMap::new().into(), due(9_000), at(2_070)).await.unwrap();
    let Registered::Done(record) = free else { panic!("{free:?}") };
    assert_eq!((record.epoch, record.token, record.claim, record.state), (2, claimed.token + 1, None, State::Running));
}

async fn registers(world: &World, now: i64) -> Registered {
    world.ledger.register(&id("a"), &BTreeMap::new().into(), due(7_200), at(now)).await.unwrap()
}

/// Its sender gave up, and the request arrives all the same, after heartbeats that were acknowledged.
#[tokio::test]
async fn a_registration_that_arrives_late_sets_nothing_back() {
    let world = world().await;
    world.runtime("a").await;
    let beat = world.ledger.heartbeat(&id("a"), None, Some(Duration::from_mins(5)), at(60)).await.unwrap();
    assert_eq!(beat, Heartbeat::Recorded);
    let before = world.record("a").await;
    for now in [1, 30, 49] {
        assert_eq!(registers(&world, now).await, Registered::Overtaken { until: at(50) }, "{now}");
    }
    assert_eq!(world.record("a").await, before);
}

/// Clocks differ by up to the skew: what the heartbeat said of its time and of work under way stands.
#[tokio::test]
async fn a_registration_by_a_clock_that_is_behind_leaves_what_was_heard() {
    let world = world().await;
    world.runtime("a").await;
    let beat = world.ledger.heartbeat(&id("a"), None, Some(Duration::from_mins(5)), at(60)).await.unwrap();
    assert_eq!(beat, Heartbeat::Recorded);
    let expected = Record {
        epoch: 2,
        token: first_token() + 1,
        idle_from: at(60),
        last_active: Some(at(60)),
        busy_until: Some(at(360)),
        armed: Some(at(60)),
        due_at: Some(at(7_200)),
        ..registered()
    };
    assert_eq!(registers(&world, 50).await, Registered::Done(Box::new(expected.clone())));
    assert_eq!(world.record("a").await, expected);
}

/// Invariant 7: its lifetime counts from when it came to run, whatever its host sends.
#[tokio::test]
async fn registering_what_runs_makes_no_lifetime_longer() {
    let world = world().await;
    world.runtime("a").await;
    world.tamper("a", "rs", None).await;
    for (epoch, now) in [(2, 1_000), (3, 2_000)] {
        let again = registers(&world, now).await;
        let Registered::Done(record) = again else { panic!("{again:?}") };
        let expected = (epoch, Some(at(0)), at(0));
        assert_eq!(
            (record.epoch, record.running_since, record.state_since),
            expected,
            "unknown, it is as in its state"
        );
    }
    let request = ledger::ClaimRequest {
        rule: ledger::ClaimRule::Lifetime { cutoff: at(0) },
        ..super::fixture::idle_claim("a", &world.record("a").await, 0, 2_160)
    };
    won(world.ledger.claim(&request, at(2_100)).await.unwrap());
}

/// What ran when its registration was sent has been stopped since: said to run, it would be told that its heartbeats
/// are recorded.
#[tokio::test]
async fn a_registration_of_before_its_runtime_came_to_rest_is_not_believed() {
    let world = world().await;
    let suspended = world.suspended("a").await;
    assert_eq!(suspended.state_since, at(2_010));
    for now in [1_990, 2_010, 2_019] {
        assert_eq!(registers(&world, now).await, Registered::Overtaken { until: at(2_020) }, "{now}");
    }
    assert_eq!(world.record("a").await, suspended);
    let beat = world.ledger.heartbeat(&id("a"), None, None, at(2_019)).await.unwrap();
    assert_eq!(beat, Heartbeat::NotRunning { state: State::Suspended, wanted: at(2_019) });
    let again = registers(&world, 2_020).await;
    let Registered::Done(record) = again else { panic!("{again:?}") };
    assert_eq!((record.state, record.epoch, record.wanted_at), (State::Running, 2, None));
    assert_eq!((record.state_since, record.running_since), (at(2_020), Some(at(2_020))), "it came to run");
}

#[tokio::test]
async fn a_registration_of_before_its_runtime_was_deleted_is_not_believed() {
    let world = world().await;
    world.suspended("a").await;
    let woken = won(world.ledger.wake(&id("a"), "wake", at(3_060), at(3_000)).await.unwrap());
    let deleted = world.ledger.complete(&id("a"), woken.token, &done(Ended::Deleted), at(3_010)).await.unwrap();
    assert_eq!(deleted, Completed::Done { wanted: false });
    assert_eq!(registers(&world, 3_005).await, Registered::Overtaken { until: at(3_020) });
    assert_eq!(world.record("a").await.state, State::Gone);
}

#[tokio::test]
async fn a_heartbeat_moves_the_clock_and_clears_what_its_silence_had_decided() {
    let world = world().await;
    world.runtime("a").await;
    let beat = world.ledger.heartbeat(&id("a"), Some(1), Some(Duration::from_mins(5)), at(60)).await.unwrap();
    assert_eq!(beat, Heartbeat::Recorded);
    let expected = Record { idle_from: at(60), last_active: Some(at(60)), busy_until: Some(at(360)), ..registered() };
    assert_eq!(world.record("a").await, expected);
}

#[tokio::test]
async fn a_heartbeat_says_what_it_lost_to() {
    let world = world().await;
    let beat = async |name: &str, epoch, now| world.ledger.heartbeat(&id(name), epoch, None, at(now)).await.unwrap();
    assert_eq!(beat("none", None, 1).await, Heartbeat::Unknown);
    assert_eq!(world.item("none").await, None, "a heartbeat makes no record");

    world.runtime("a").await;
    assert_eq!(beat("a", Some(2), 1).await, Heartbeat::Superseded { epoch: 1 });
    assert_eq!(beat("a", None, 0).await, Heartbeat::Coalesced);
    assert_eq!(world.record("a").await, registered());

    world.suspended("b").await;
    let refused = Heartbeat::NotRunning { state: State::Suspended, wanted: at(3_000) };
    assert_eq!(beat("b", Some(1), 3_000).await, refused);
    let record = world.record("b").await;
    assert_eq!((record.wanted_at, record.due_at), (Some(at(3_000)), Some(at(3_000))));
}

#[tokio::test]
async fn a_delivery_counts_once_however_often_it_comes() {
    let world = world().await;
    world.runtime("a").await;
    let busy = Some(Duration::from_mins(5));
    let deliver = async |epoch, busy, mark: &str, now| {
        world.ledger.heartbeat_once(&id("a"), epoch, busy, mark, at(now)).await.unwrap()
    };
    assert_eq!(deliver(Some(1), None, "e1", 60).await, Heartbeat::Recorded);
    assert_eq!(deliver(Some(1), None, "e1", 90).await, Heartbeat::Coalesced);
    assert_eq!(deliver(Some(1), busy, "e1", 91).await, Heartbeat::Coalesced, "nor does it lengthen a veto");
    assert_eq!(world.record("a").await.idle_from, at(60));
    let plain = world.ledger.heartbeat(&id("a"), Some(1), None, at(100)).await.unwrap();
    assert_eq!(plain, Heartbeat::Recorded, "what has no mark is not held back by one");
    assert_eq!(deliver(None, None, "e1", 110).await, Heartbeat::Coalesced);
    assert_eq!(deliver(None, busy, "e2", 120).await, Heartbeat::Recorded);
    let record = world.record("a").await;
    assert_eq!((record.idle_from, record.busy_until), (at(120), Some(at(420))));
    assert_eq!(deliver(None, None, "e3", 120).await, Heartbeat::Coalesced, "in the same moment");
    assert_eq!(deliver(None, busy, "e3", 121).await, Heartbeat::Recorded);
    assert_eq!(deliver(Some(2), None, "e4", 130).await, Heartbeat::Superseded { epoch: 1 });
}

#[tokio::test]
async fn a_refused_heartbeat_marks_the_runtime_as_wanted_once_per_coalesce() {
    let options = ledger::Options { coalesce: Duration::from_secs(30), ..super::fixture::options() };
    let world = super::fixture::world_with(options).await;
    world.suspended("a").await;
    world.wire.calls();
    let beat = async |now| world.ledger.heartbeat(&id("a"), None, None, at(now)).await.unwrap();
    let refused = |wanted| Heartbeat::NotRunning { state: State::Suspended, wanted: at(wanted) };
    assert_eq!(beat(3_000).await, refused(3_000));
    assert_eq!(beat(3_010).await, refused(3_000));
    assert_eq!(beat(3_029).await, refused(3_000));
    assert_eq!(world.record("a").await.wanted_at, Some(at(3_000)));
    assert_eq!(beat(3_030).await, refused(3_030));
    let record = world.record("a").await;
    assert_eq!((record.wanted_at, record.due_at), (Some(at(3_030)), Some(at(3_030))));
}

#[tokio::test]
async fn busy_lengthens_a_veto_and_never_shortens_it_and_lasts_twelve_hours_at_most() {
    let world = world().await;
    world.runtime("a").await;
    let beat = async |hours: u64, now| {
        let busy = Some(Duration::from_hours(hours));
        assert_eq!(world.ledger.heartbeat(&id("a"), None, busy, at(now)).await.unwrap(), Heartbeat::Recorded);
        let record = world.record("a").await;
        (record.idle_from, record.busy_until)
    };
    assert_eq!(beat(2, 10).await, (at(10), Some(at(10 + 7_200))));
    assert_eq!(beat(1, 20).await, (at(20), Some(at(10 + 7_200))), "a shorter one leaves the longer");
    assert_eq!(beat(0, 30).await, (at(30), Some(at(10 + 7_200))), "zero is the same as none");
    assert_eq!(beat(400, 40).await, (at(40), Some(at(40 + 12 * 3_600))), "cut to 12 h");
}

#[tokio::test]
async fn work_under_way_is_noted_where_the_clock_says_as_much_already() {
    let world = world().await;
    world.runtime("a").await;
    let beat = async |busy| world.ledger.heartbeat(&id("a"), None, Some(busy), at(0)).await.unwrap();
    assert_eq!(beat(Duration::from_mins(10)).await, Heartbeat::Recorded);
    assert_eq!(world.record("a").await, Record { busy_until: Some(at(600)), ..registered() });
    assert_eq!(beat(Duration::from_mins(10)).await, Heartbeat::Coalesced);
}

#[tokio::test]
async fn a_suspend_is_claimed_settled_and_woken_again() {
    let world = world().await;
    world.runtime("a").await;
    let claimed = won(world.suspend_claim("a", 0, 2_000).await);
    let expected = Record {
        state: State::Suspending,
        claim: Some(claim("pass-1", 2_060)),
        token: first_token() + 1,
        due_at: Some(at(2_070)),
        ..registered()
    };
    assert_eq!(claimed, expected, "the state's clock stays that of the stage it leaves");
    let detail = world.ledger.detail(&id("a")).await.unwrap().unwrap();
    assert_eq!(
        (detail.action.as_deref(), detail.reason.as_deref(), detail.claim_token),
        (Some("suspend"), Some(r#"{"code":"idle"}"#), Some(first_token() + 1))
    );

    let settled = world.ledger.complete(&id("a"), claimed.token, &done(Ended::Suspended), at(2_010)).await.unwrap();
    assert_eq!(settled, Completed::Done { wanted: false });
    let expected = Record {
        state: State::Suspended,
        state_since: at(2_010),
        token: first_token() + 1,
        due_at: Some(at(9_000)),
        ..registered()
    };
    assert_eq!(world.record("a").await, expected);

    let woken = won(world.ledger.wake(&id("a"), "wake-1", at(3_060), at(3_000)).await.unwrap());
    let expected = Record {
        state: State::Resuming,
        claim: Some(claim("wake-1", 3_060)),
        token: first_token() + 2,
        due_at: Some(at(3_070)),
        ..expected
    };
    assert_eq!(woken, expected);
    let resumed = done(Ended::Resumed(Incarnation::new("run-2")));
    let settled = world.ledger.complete(&id("a"), woken.token, &resumed, at(3_005)).await.unwrap();
    assert_eq!(settled, Completed::Done { wanted: false });
    let expected = Record {
        incarnation: Some(Incarnation::new("run-2")),
        state_since: at(3_005),
        idle_from: at(3_005),
        running_since: Some(at(3_005)),
        armed: Some(at(3_005)),
        token: first_token() + 2,
        due_at: Some(at(9_000)),
        ..registered()
    };
    assert_eq!(world.record("a").await, expected, "a whole idle period begins; what it did before is evidence still");
}

#[tokio::test]
async fn a_deletion_leaves_a_tombstone_that_expires_and_is_due_never() {
    let world = world().await;
    let record = world.suspended("a").await;
    let request = ledger::ClaimRequest {
        from: State::Suspended,
        to: State::Deleting,
        rule: ledger::ClaimRule::Delete { cutoff: at(2_010), noticed: None, saved: None, resting: None },
        ..super::fixture::idle_claim("a", &record, 0, 8_060)
    };
    let token = won(world.ledger.claim(&request, at(8_000)).await.unwrap()).token;
    let deleted = world.ledger.complete(&id("a"), token, &done(Ended::Deleted), at(8_010)).await.unwrap();
    assert_eq!(deleted, Completed::Done { wanted: false });
    let expected = Record {
        state: State::Gone,
        state_since: at(8_010),
        idle_ms: None,
        armed: None,
        due_at: None,
        token: first_token() + 2,
        ..registered()
    };
    assert_eq!(world.record("a").await, expected);
    let item = world.item("a").await.unwrap();
    let thirty_days = 30 * 86_400;
    assert_eq!(item["expires_at"], super::fixture::number(at(8_010).millis() / 1_000 + thirty_days));
    assert_eq!(world.due_names(1_000_000).await, Vec::<String>::new());
    assert_eq!(world.ledger.heartbeat(&id("a"), None, None, at(8_020)).await.unwrap(), Heartbeat::Gone);
    assert_eq!(world.ledger.heal(&"box".parse().unwrap(), None, at(8_020)).await.unwrap().healed, Vec::new());
}

#[tokio::test]
async fn an_id_that_comes_back_gets_a_new_life_under_the_old_fence() {
    let world = world().await;
    world.suspended("a").await;
    let woken = won(world.ledger.wake(&id("a"), "wake", at(3_060), at(3_000)).await.unwrap());
    let deleted = world.ledger.complete(&id("a"), woken.token, &done(Ended::Deleted), at(3_010)).await.unwrap();
    assert_eq!(deleted, Completed::Done { wanted: false });
    let again = world.ledger.register(&id("a"), &BTreeMap::new().into(), due(9_000), at(4_000)).await.unwrap();
    let Registered::Done(record) = again else { panic!("{again:?}") };
    assert_eq!((record.epoch, record.token, record.state), (2, woken.token + 1, State::Running));
    assert_eq!(world.item("a").await.unwrap().get("expires_at"), None);
    assert_eq!(world.due_names(9_000).await, ["a"]);
}

#[tokio::test]
async fn what_a_heartbeat_asked_for_meanwhile_is_due_at_once() {
    let world = world().await;
    world.runtime("a").await;
    let claimed = won(world.suspend_claim("a", 0, 2_000).await);
    let refused = world.ledger.heartbeat(&id("a"), None, None, at(2_005)).await.unwrap();
    assert_eq!(refused, Heartbeat::NotRunning { state: State::Suspending, wanted: at(2_005) });
    let settled = world.ledger.complete(&id("a"), claimed.token, &done(Ended::Suspended), at(2_010)).await.unwrap();
    assert_eq!(settled, Completed::Done { wanted: true });
    let expected = Record {
        state: State::Suspended,
        state_since: at(2_010),
        wanted_at: Some(at(2_005)),
        token: first_token() + 1,
        due_at: Some(at(2_010)),
        ..registered()
    };
    assert_eq!(world.record("a").await, expected);
}

#[tokio::test]
async fn what_a_heartbeat_asked_for_during_a_notice_or_a_shed_is_due_at_once() {
    for ended in [Ended::Noticed, Ended::Shed(Tier::Caches), Ended::Stayed] {
        let world = world().await;
        let record = world.suspended("a").await;
        let request = ledger::ClaimRequest {
            from: State::Suspended,
            to: State::Suspended,
            rule: ledger::ClaimRule::Notify { cutoff: at(2_010) },
            ..super::fixture::idle_claim("a", &record, 0, 7_060)
        };
        let claimed = won(world.ledger.claim(&request, at(7_000)).await.unwrap());
        let refused = world.ledger.heartbeat(&id("a"), None, None, at(7_005)).await.unwrap();
        assert_eq!(refused, Heartbeat::NotRunning { state: State::Suspended, wanted: at(7_005) });
        let completed = world.ledger.complete(&id("a"), claimed.token, &done(ended.clone()), at(7_010)).await.unwrap();
        assert_eq!(completed, Completed::Done { wanted: true }, "{ended:?}");
        let left = world.record("a").await;
        let expected = (None, Some(at(7_005)), Some(at(7_010)), None);
        assert_eq!((left.claim, left.wanted_at, left.due_at, left.noticed_at), expected, "{ended:?}");
    }
}

#[tokio::test]
async fn sheds_and_notices_end_in_the_state_that_they_began_in() {
    let world = world().await;
    let record = world.runtime("a").await;
    let mut request = ledger::ClaimRequest {
        to: State::Running,
        rule: ledger::ClaimRule::Shed { cutoff: at(0) },
        ..super::fixture::idle_claim("a", &record, 0, 2_060)
    };
    let token = won(world.ledger.claim(&request, at(2_000)).await.unwrap()).token;
    let shed = world.ledger.complete(&id("a"), token, &done(Ended::Shed(Tier::Dependencies)), at(2_010)).await.unwrap();
    assert_eq!(shed, Completed::Done { wanted: false });
    let expected =
        Record { shed: Some(Tier::Dependencies), token: first_token() + 1, due_at: Some(at(9_000)), ..registered() };
    assert_eq!(world.record("a").await, expected);

    request.rule = ledger::ClaimRule::Notify { cutoff: at(0) };
    let claimed = won(world.ledger.claim(&request, at(3_000)).await.unwrap());
    assert_eq!((claimed.condemned_at, claimed.noticed_at), (Some(at(3_000)), None));
    let noticed = world.ledger.complete(&id("a"), claimed.token, &done(Ended::Noticed), at(3_010)).await.unwrap();
    assert_eq!(noticed, Completed::Done { wanted: false });
    let expected =
        Record { condemned_at: Some(at(3_000)), noticed_at: Some(at(3_010)), token: first_token() + 2, ..expected };
    assert_eq!(world.record("a").await, expected);

    assert_eq!(world.ledger.heartbeat(&id("a"), None, None, at(4_000)).await.unwrap(), Heartbeat::Recorded);
    let expected = Record {
        idle_from: at(4_000),
        last_active: Some(at(4_000)),
        shed: None,
        condemned_at: None,
        noticed_at: None,
        ..expected
    };
    assert_eq!(world.record("a").await, expected, "what its silence had decided is void");
    assert!(!world.ledger.noticed(&id("a"), expected.token, at(4_010)).await.unwrap(), "nothing is condemned any more");
}

#[tokio::test]
async fn a_notice_that_activity_has_overtaken_is_not_written_down() {
    let world = world().await;
    let record = world.runtime("a").await;
    let request = ledger::ClaimRequest {
        to: State::Running,
        rule: ledger::ClaimRule::Notify { cutoff: at(0) },
        ..super::fixture::idle_claim("a", &record, 0, 2_060)
    };
    let token = won(world.ledger.claim(&request, at(2_000)).await.unwrap()).token;
    assert!(world.ledger.noticed(&id("a"), token, at(2_001)).await.unwrap());
    assert_eq!(world.ledger.heartbeat(&id("a"), None, None, at(2_002)).await.unwrap(), Heartbeat::Recorded);
    let ended = world.ledger.complete(&id("a"), token, &done(Ended::Noticed), at(2_010)).await.unwrap();
    assert_eq!(ended, Completed::Done { wanted: false });
    let record = world.record("a").await;
    assert_eq!((record.condemned_at, record.noticed_at, record.claim), (None, None, None));
}

#[tokio::test]
async fn an_abandoned_suspend_runs_on_for_a_whole_idle_period() {
    let world = world().await;
    world.runtime("a").await;
    let claimed = won(world.suspend_claim("a", 0, 2_000).await);
    let failed = Failure::Yes { due_at: at(2_300) };
    let back = world.ledger.abandon(&id("a"), claimed.token, State::Running, failed, at(2_010)).await.unwrap();
    assert_eq!(back, Completed::Done { wanted: false });
    let expected = Record {
        idle_from: at(2_010),
        armed: Some(at(2_010)),
        attempts: 1,
        token: first_token() + 1,
        due_at: Some(at(2_300)),
        ..registered()
    };
    assert_eq!(world.record("a").await, expected);
    assert_eq!(world.suspend_claim("a", 2_009, 2_400).await, Claimed::Lost(Lost::Active { idle_from: at(2_010) }));
}

#[tokio::test]
async fn an_abandoned_act_on_what_rests_moves_no_clock() {
    let world = world().await;
    let record = world.suspended("a").await;
    let request = ledger::ClaimRequest {
        from: State::Suspended,
        to: State::Archiving,
        rule: ledger::ClaimRule::Retention { cutoff: at(2_010) },
        ..super::fixture::idle_claim("a", &record, 0, 8_060)
    };
    let token = won(world.ledger.claim(&request, at(8_000)).await.unwrap()).token;
    let failed = Failure::No { due_at: at(8_900) };
    let back = world.ledger.abandon(&id("a"), token, State::Suspended, failed, at(8_010)).await.unwrap();
    assert_eq!(back, Completed::Done { wanted: false });
    assert_eq!(world.record("a").await, Record { token, due_at: Some(at(8_900)), ..record });
}

#[tokio::test]
async fn a_long_act_is_handed_over_and_taken_up_by_whoever_looks_next() {
    let world = world().await;
    world.runtime("a").await;
    let claimed = won(world.suspend_claim("a", 0, 2_000).await);
    let given = world.ledger.hand_over(&id("a"), claimed.token, at(2_030), at(2_005)).await.unwrap();
    assert_eq!(given, Completed::Done { wanted: false });
    let record = world.record("a").await;
    let expected = Record { claim: Some(claim("pass-1", 2_005)), due_at: Some(at(2_030)), ..claimed.clone() };
    assert_eq!(record, expected);
    assert_eq!(world.due_names(2_030).await, ["a"]);
    // It may have been sent before the act was begun, by a clock that is ahead.
    assert_eq!(registers(&world, 2_014).await, Registered::Claimed { until: at(2_015) });

    let taken = world.ledger.take_over(&id("a"), claimed.token, "pass-2", at(2_100), at(2_030)).await.unwrap();
    let expected =
        Record { claim: Some(claim("pass-2", 2_100)), token: claimed.token + 1, due_at: Some(at(2_110)), ..expected };
    assert_eq!(taken, Claimed::Won(Box::new(expected.clone())));
    let settled = world.ledger.complete(&id("a"), expected.token, &done(Ended::Suspended), at(2_040)).await.unwrap();
    assert_eq!(settled, Completed::Done { wanted: false });
    assert_eq!(world.record("a").await.state, State::Suspended);
}

#[tokio::test]
async fn what_is_handed_over_is_due_when_it_can_be_taken_up() {
    let world = world().await;
    world.runtime("a").await;
    let claimed = won(world.suspend_claim("a", 0, 2_000).await);
    let given = world.ledger.hand_over(&id("a"), claimed.token, at(2_006), at(2_005)).await.unwrap();
    assert_eq!(given, Completed::Done { wanted: false });
    assert_eq!(world.record("a").await.due_at, Some(at(2_015)));
    won(world.ledger.take_over(&id("a"), claimed.token, "pass-2", at(2_100), at(2_015)).await.unwrap());
}

#[tokio::test]
async fn an_expired_claim_is_due_and_its_stale_holder_is_fenced_on_every_later_write() {
    let world = world().await;
    world.runtime("a").await;
    let stale = won(world.suspend_claim("a", 0, 2_000).await).token;
    assert_eq!(world.due_names(2_069).await, Vec::<String>::new());
    assert_eq!(world.due_names(2_070).await, ["a"]);

    let take = async |token, now| world.ledger.take_over(&id("a"), token, "pass-2", at(2_200), at(now)).await.unwrap();
    assert_eq!(take(stale, 2_069).await, Claimed::Lost(Lost::Claimed { until: at(2_070) }));
    assert_eq!(take(stale - 1, 2_070).await, Claimed::Lost(Lost::Superseded { token: stale }));
    let token = won(take(stale, 2_070).await).token;
    assert_eq!(token, stale + 1);

    let before = world.record("a").await;
    let ledger = &world.ledger;
    let endings = [
        Ended::Stayed,
        Ended::Noticed,
        Ended::Shed(Tier::Caches),
        Ended::Suspended,
        Ended::Archived,
        Ended::Deleted,
        Ended::Resumed(Incarnation::new("run-9")),
    ];
    for ended in endings {
        let fenced = ledger.complete(&id("a"), stale, &done(ended.clone()), at(2_080)).await.unwrap();
        assert_eq!(fenced, Completed::Fenced, "{ended:?}");
    }
    for back_to in [State::Running, State::Suspended] {
        let failed = Failure::Yes { due_at: at(2_300) };
        let fenced = ledger.abandon(&id("a"), stale, back_to, failed, at(2_080)).await.unwrap();
        assert_eq!(fenced, Completed::Fenced, "{back_to}");
    }
    assert_eq!(ledger.hand_over(&id("a"), stale, at(2_300), at(2_080)).await.unwrap(), Completed::Fenced);
    assert!(!ledger.noticed(&id("a"), stale, at(2_080)).await.unwrap());
    assert!(!ledger.reschedule(&id("a"), stale, None, due(9_000), at(2_080)).await.unwrap());
    assert_eq!(take(stale, 2_300).await, Claimed::Lost(Lost::Superseded { token }));
    assert_eq!(world.record("a").await, before);
}

#[tokio::test]
async fn the_same_end_told_twice_is_one_end() {
    let world = world().await;
    world.runtime("a").await;
    let token = won(world.suspend_claim("a", 0, 2_000).await).token;
    let end = async |now| world.ledger.complete(&id("a"), token, &done(Ended::Suspended), at(now)).await.unwrap();
    assert_eq!(end(2_010).await, Completed::Done { wanted: false });
    let settled = world.record("a").await;
    assert_eq!(end(2_020).await, Completed::Done { wanted: false });
    assert_eq!(world.record("a").await, settled);

    // Somebody starts it by hand: the late end of the suspend must not put it back to suspended.
    world.ledger.observe(&super::fixture::seen("a"), due(9_000), at(3_000)).await.unwrap();
    assert_eq!(end(3_010).await, Completed::Fenced);
    assert_eq!(world.record("a").await.state, State::Running);
}

#[tokio::test]
async fn a_wake_is_single_flight_and_only_of_what_rests() {
    let world = world().await;
    let wake = async |name: &str, now| world.ledger.wake(&id(name), "wake", at(now + 60), at(now)).await.unwrap();
    assert_eq!(wake("none", 1).await, Claimed::Lost(Lost::NoRecord));
    world.runtime("a").await;
    assert_eq!(wake("a", 1).await, Claimed::Lost(Lost::State { state: State::Running }));
    world.suspended("b").await;
    let first = won(wake("b", 3_000).await);
    assert_eq!(wake("b", 3_001).await, Claimed::Lost(Lost::Claimed { until: at(3_070) }));
    assert_eq!(wake("b", 3_070).await, Claimed::Lost(Lost::State { state: State::Resuming }), "that is a take-over's");
    // A wake that fails leaves a state that can be tried again.
    let failed = Failure::Yes { due_at: at(3_100) };
    let back = world.ledger.abandon(&id("b"), first.token, State::Suspended, failed, at(3_071)).await.unwrap();
    assert_eq!(back, Completed::Done { wanted: false });
    assert_eq!(won(wake("b", 3_100).await).attempts, 1);
}

#[tokio::test]
async fn a_wake_that_fails_backs_off_until_it_is_asked_for_again() {
    let world = world().await;
    world.suspended("a").await;
    let beat = async |now| world.ledger.heartbeat(&id("a"), None, None, at(now)).await.unwrap();
    let refused = |wanted| Heartbeat::NotRunning { state: State::Suspended, wanted: at(wanted) };
    assert_eq!(beat(3_000).await, refused(3_000));
    let token = won(world.ledger.wake(&id("a"), "wake", at(3_060), at(3_001)).await.unwrap()).token;
    let failed = Failure::Yes { due_at: at(4_000) };
    let back = world.ledger.abandon(&id("a"), token, State::Suspended, failed, at(3_002)).await.unwrap();
    assert_eq!(back, Completed::Done { wanted: true });
    let record = world.record("a").await;
    assert_eq!((record.due_at, record.wanted_at, record.attempts), (Some(at(4_000)), Some(at(3_000)), 1));
    assert_eq!(beat(3_100).await, refused(3_100));
    assert_eq!(world.record("a").await.due_at, Some(at(3_100)));

    // Given back without a failure, because somebody wants it: due at once.
    let token = won(world.ledger.wake(&id("a"), "wake", at(3_260), at(3_200)).await.unwrap()).token;
    let moved = Failure::No { due_at: at(9_000) };
    let back = world.ledger.abandon(&id("a"), token, State::Suspended, moved, at(3_201)).await.unwrap();
    assert_eq!(back, Completed::Done { wanted: true });
    assert_eq!(world.record("a").await.due_at, Some(at(3_201)));
}

#[tokio::test]
async fn a_probe_moves_the_clock_of_its_own_run_only_and_never_ahead_of_ours() {
    let world = world().await;
    world.runtime("a").await;
    let run = |name: &str| Incarnation::new(name);
    let told = |seconds, busy| ProbeSeen { last_active: Some(at(seconds)), busy };
    let probed = async |run, told, now| world.ledger.probed(&id("a"), &run, told, at(now)).await.unwrap();

    let moved = Lost::Moved { incarnation: Some(run("run-1")) };
    assert_eq!(probed(run("run-0"), told(50, Busy::No), 60).await, Noted::Lost(moved));
    let ahead = probed(run("run-1"), told(500, Busy::Until(at(90_000))), 60).await;
    let expected = Record {
        idle_from: at(60),
        last_active: Some(at(60)),
        last_source: Some(Signal::Probe),
        busy_until: Some(at(60 + 12 * 3_600)),
        ..registered()
    };
    assert_eq!(ahead, Noted::Record(Box::new(expected.clone())));
    world.wire.calls();
    for told in [told(30, Busy::No), ProbeSeen { last_active: None, busy: Busy::Unread }] {
        assert_eq!(probed(run("run-1"), told, 70).await, Noted::Record(Box::new(expected.clone())));
    }
    let writes = world.wire.calls().into_iter().filter(|call| call.operation == "UpdateItem").count();
    assert_eq!(writes, 0, "an older sign, and no sign, write nothing");
}

#[tokio::test]
async fn absence_needs_two_sightings_apart_in_time_and_no_claim() {
    let world = world().await;
    let record = world.runtime("a").await;
    let ledger = &world.ledger;
    assert!(ledger.absent(&id("a"), &record, at(100)).await.unwrap());
    assert_eq!(world.record("a").await, Record { absent_since: Some(at(100)), ..record.clone() });
    assert!(!ledger.absent(&id("a"), &record, at(200)).await.unwrap(), "the first sighting stands");
    let gone = async |since, now| ledger.gone(&id("a"), record.token, at(since), at(now)).await.unwrap();
    assert_eq!(gone(100, 100).await, Completed::Fenced, "one sighting is none");
    assert_eq!(gone(90, 200).await, Completed::Fenced, "another absence than the one that was read");

    // Seen again: the absence is forgotten.
    ledger.observe(&super::fixture::seen("a"), due(3_600), at(300)).await.unwrap();
    assert_eq!(gone(100, 400).await, Completed::Fenced);
    assert!(ledger.absent(&id("a"), &record, at(500)).await.unwrap());
    assert_eq!(gone(500, 600).await, Completed::Done { wanted: false });
    assert_eq!(world.record("a").await.state, State::Gone);
}

#[tokio::test]
async fn an_absence_is_nothing_against_a_live_claim_or_fresh_activity() {
    let world = world().await;
    let record = world.runtime("a").await;
    let beat = world.ledger.heartbeat(&id("a"), None, None, at(50)).await.unwrap();
    assert_eq!(beat, Heartbeat::Recorded);
    assert!(!world.ledger.absent(&id("a"), &record, at(60)).await.unwrap(), "it was active since it was read");
    let record = world.record("a").await;
    assert!(world.ledger.absent(&id("a"), &record, at(60)).await.unwrap());
    let claimed = won(world.suspend_claim("a", 50, 2_000).await);
    let gone = world.ledger.gone(&id("a"), claimed.token, at(60), at(2_010)).await.unwrap();
    assert_eq!(gone, Completed::Fenced);
    assert!(!world.ledger.absent(&id("a"), &claimed, at(2_010)).await.unwrap());
}
