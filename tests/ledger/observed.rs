//! What an observation makes of a record.

use ledger::Arming;
use lifecycle::{Activity, Busy, Incarnation, Observation, Record, Signal, State, Tier, Time};

use super::{
    fixture::{World, at, claim, due, first_token, id, seen, won, world},
    life::registered,
};

fn run(name: &str) -> Incarnation {
    Incarnation::new(name)
}

/// The first observation of a runtime that nobody has registered, at 100 s.
fn first_seen() -> Record {
    Record {
        epoch: 0,
        state_since: at(100),
        first_seen: at(100),
        idle_from: at(100),
        last_active: None,
        last_source: None,
        running_since: None,
        armed: Some(at(100)),
        token: u64::try_from(at(100).millis()).unwrap(),
        ..registered()
    }
}

async fn observe(world: &World, seen: &Observation, now: i64) -> Record {
    let record = world.ledger.observe(seen, due(3_600), at(now)).await.unwrap();
    assert_eq!(world.ledger.get(&seen.id).await.unwrap().as_ref(), Some(&record), "what is told is what is kept");
    record
}

#[tokio::test]
async fn what_nobody_registered_counts_from_when_it_was_first_seen() {
    let world = world().await;
    assert_eq!(observe(&world, &seen("a"), 100).await, first_seen());
    assert_eq!(observe(&world, &seen("a"), 200).await, first_seen(), "and not from each look anew");
}

#[tokio::test]
async fn a_look_that_shows_nothing_new_writes_nothing() {
    let world = world().await;
    let look = Observation { activity: Activity::At(at(50)), busy: Busy::Until(at(900)), ..seen("a") };
    observe(&world, &look, 100).await;
    world.wire.calls();
    for now in [100, 150, 200] {
        world.ledger.observe(&look, due(3_600), at(now)).await.unwrap();
    }
    let calls: Vec<_> = world.wire.calls().into_iter().map(|call| call.operation).collect();
    assert_eq!(calls, ["GetItem", "GetItem", "GetItem"]);
}

#[tokio::test]
async fn the_providers_clock_moves_ours_forward_and_never_ahead_or_back() {
    let world = world().await;
    world.runtime("a").await;
    let look = |activity| Observation { activity, ..seen("a") };
    let clocks = |record: Record| (record.idle_from, record.last_active, record.last_source);
    let mut now = 1_000;
    let mut told = async |activity| {
        now += 1;
        clocks(observe(&world, &look(activity), now).await)
    };
    let at_500 = (at(500), Some(at(500)), Some(Signal::Provider));
    assert_eq!(told(Activity::At(at(500))).await, at_500);
    assert_eq!(told(Activity::At(at(400))).await, at_500);
    assert_eq!(told(Activity::Unknown).await, at_500);
    assert_eq!(told(Activity::At(Time::MIN)).await, at_500, "a provider's zero is no time");
    assert_eq!(
        told(Activity::At(at(9_999))).await,
        (at(1_005), Some(at(1_005)), Some(Signal::Provider)),
        "ours is 1,005"
    );
}

#[tokio::test]
async fn activity_voids_what_was_decided_on_standing_still() {
    let world = world().await;
    world.runtime("a").await;
    for (name, value) in [("cd", at(1)), ("no", at(2))] {
        world.tamper("a", name, Some(super::fixture::number(value.millis()))).await;
    }
    world.tamper("a", "sh", Some(super::fixture::text("caches"))).await;
    let before = world.record("a").await;
    assert_eq!((before.condemned_at, before.shed), (Some(at(1)), Some(Tier::Caches)));
    let look = Observation { activity: Activity::At(at(500)), ..seen("a") };
    let after = observe(&world, &look, 600).await;
    assert_eq!((after.condemned_at, after.noticed_at, after.shed), (None, None, None));
}

#[tokio::test]
async fn another_run_of_an_id_begins_a_whole_idle_period() {
    let world = world().await;
    world.runtime("a").await;
    let look = Observation {
        incarnation: run("run-2"),
        running_since: Some(at(5_000)),
        activity: Activity::At(at(4_000)),
        ..seen("a")
    };
    let expected = Record {
        incarnation: Some(run("run-2")),
        state_since: at(5_000),
        running_since: Some(at(5_000)),
        idle_from: at(5_000),
        last_active: Some(at(4_000)),
        last_source: Some(Signal::Provider),
        armed: Some(at(5_000)),
        ..registered()
    };
    assert_eq!(observe(&world, &look, 6_000).await, expected, "whatever the earlier run's clock says");
}

#[tokio::test]
async fn what_somebody_stopped_and_started_by_hand_follows() {
    let world = world().await;
    world.runtime("a").await;
    let stopped = Observation { state: State::Suspended, state_since: Some(at(4_000)), ..seen("a") };
    let record = observe(&world, &stopped, 5_000).await;
    let expected = Record { state: State::Suspended, state_since: at(4_000), ..registered() };
    assert_eq!(record, expected);

    let record = observe(&world, &seen("a"), 6_000).await;
    let expected = Record {
        state_since: at(6_000),
        running_since: Some(at(6_000)),
        idle_from: at(6_000),
        armed: Some(at(6_000)),
        ..registered()
    };
    assert_eq!(record, expected, "the same run again: since when it runs is not known, so since now");
}

/// Its heartbeat was refused, since nobody knew yet that another run had begun.
#[tokio::test]
async fn what_was_refused_of_a_run_that_was_there_already_counts_as_heard() {
    let world = world().await;
    world.suspended("a").await;
    let beat = world.ledger.heartbeat(&id("a"), None, None, at(5_000)).await.unwrap();
    assert!(matches!(beat, ledger::Heartbeat::NotRunning { .. }), "{beat:?}");
    let begun = Observation { incarnation: run("run-2"), running_since: Some(at(4_000)), ..seen("a") };
    let record = observe(&world, &begun, 5_100).await;
    assert_eq!((record.state, record.running_since, record.wanted_at), (State::Running, Some(at(4_000)), None));
    let heard = (at(5_000), Some(at(5_000)), Some(Signal::Heartbeat));
    assert_eq!((record.idle_from, record.last_active, record.last_source), heard);
}

#[tokio::test]
async fn what_ran_between_two_looks_was_active_and_what_we_suspended_was_not() {
    let world = world().await;
    let ours = world.suspended("a").await;
    let stopped = |seconds| Observation { state: State::Suspended, state_since: Some(at(seconds)), ..seen("a") };
    // The provider's clock says 5 s later than ours: within the skew, so it is the stop that we made.
    assert_eq!(observe(&world, &stopped(2_015), 3_000).await, Record { due_at: Some(at(3_600)), ..ours.clone() });
    let record = observe(&world, &stopped(2_500), 3_000).await;
    assert_eq!((record.state_since, record.idle_from), (at(2_500), at(2_500)));
}

#[tokio::test]
async fn frozen_counts_from_when_it_was_first_seen_so_and_a_thaw_begins_anew() {
    let world = world().await;
    world.runtime("a").await;
    let frozen = Observation { activity: Activity::Frozen, ..seen("a") };
    let first = observe(&world, &frozen, 5_000).await;
    assert_eq!(first, Record { frozen_since: Some(at(5_000)), ..registered() });
    assert_eq!(observe(&world, &frozen, 6_000).await, first);
    assert_eq!(
        world.suspend_claim("a", 4_999, 7_000).await,
        ledger::Claimed::Lost(ledger::Lost::Active { idle_from: at(5_000) })
    );
    let thawed = observe(&world, &seen("a"), 8_000).await;
    assert_eq!((thawed.frozen_since, thawed.idle_from, thawed.last_active), (None, at(8_000), Some(at(0))));
}

#[tokio::test]
async fn a_middle_state_under_a_claim_is_its_holders_even_after_it_has_expired() {
    let world = world().await;
    world.runtime("a").await;
    let claimed = won(world.suspend_claim("a", 0, 2_000).await);
    let stopped = Observation { state: State::Suspended, incarnation: run("run-2"), ..seen("a") };
    for now in [2_010, 5_000] {
        assert_eq!(observe(&world, &stopped, now).await, claimed, "{now}");
    }
}

#[tokio::test]
async fn the_due_time_of_a_claim_that_changes_no_state_is_not_put_off() {
    let world = world().await;
    let record = world.runtime("a").await;
    let request = ledger::ClaimRequest {
        to: State::Running,
        rule: ledger::ClaimRule::Shed { cutoff: at(0) },
        ..super::fixture::idle_claim("a", &record, 0, 2_060)
    };
    let claimed = won(world.ledger.claim(&request, at(2_000)).await.unwrap());
    let look = Observation { activity: Activity::At(at(2_001)), ..seen("a") };
    let after = observe(&world, &look, 2_002).await;
    assert_eq!((after.claim, after.due_at), (Some(claim("pass-1", 2_060)), claimed.due_at));
}

#[tokio::test]
async fn a_provider_on_its_way_changes_no_state() {
    let world = world().await;
    world.runtime("a").await;
    for state in [State::Suspending, State::Deleting, State::Gone] {
        let record = observe(&world, &Observation { state, ..seen("a") }, 500).await;
        assert_eq!(record, registered(), "{state}");
    }
}

#[tokio::test]
async fn busy_is_a_veto_of_twelve_hours_at_most_and_never_grows_shorter() {
    let world = world().await;
    let look = |busy| Observation { busy, ..seen("a") };
    let until = async |busy| observe(&world, &look(busy), 100).await.busy_until;
    assert_eq!(until(Busy::Unread).await, None);
    assert_eq!(until(Busy::Until(at(500))).await, Some(at(500)));
    assert_eq!(until(Busy::Until(at(400))).await, Some(at(500)));
    assert_eq!(until(Busy::No).await, Some(at(500)));
    assert_eq!(until(Busy::Until(Time::MAX)).await, Some(at(100 + 12 * 3_600)));
}

#[tokio::test]
async fn a_policy_that_changed_is_written_and_one_that_did_not_is_not() {
    let world = world().await;
    world.runtime("a").await;
    let sooner = Arming { idle_ms: Some(60_000), cap_at: Some(at(900)), due_at: Some(at(900)) };
    let record = world.ledger.observe(&seen("a"), sooner, at(10)).await.unwrap();
    let expected = Record { idle_ms: Some(60_000), cap_at: Some(at(900)), due_at: Some(at(900)), ..registered() };
    assert_eq!(record, expected);
    let never = world.ledger.observe(&seen("a"), Arming::default(), at(10)).await.unwrap();
    assert_eq!((never.idle_ms, never.cap_at), (None, None));
    assert_eq!(never.due_at, Some(at(10 + 24 * 3_600)), "what no rule makes due is looked at daily");
}

#[tokio::test]
async fn the_due_time_is_told_from_the_record_as_it_will_be_written() {
    let world = world().await;
    let arm =
        |record: &Record| Arming { due_at: Some(record.idle_from.plus(std::time::Duration::from_mins(30))), ..due(0) };
    let look = Observation { activity: Activity::At(at(50)), ..seen("a") };
    let record = world.ledger.observe_known(None, &look, arm, at(100)).await.unwrap();
    assert_eq!(record.due_at, Some(at(50 + 1_800)));
    let look = Observation { activity: Activity::At(at(500)), ..seen("a") };
    // Read long ago: it is read again where it has changed since.
    let known = Some(Record { idle_from: at(0), ..record.clone() });
    let again = world.ledger.observe_known(known, &look, arm, at(600)).await.unwrap();
    assert_eq!((again.due_at, again.token), (Some(at(500 + 1_800)), record.token));
    // Claimed or registered since: the look is of before that, and changes nothing.
    let known = Some(Record { token: 1, ..again.clone() });
    let look = Observation { activity: Activity::At(at(700)), ..seen("a") };
    assert_eq!(world.ledger.observe_known(known, &look, arm, at(800)).await.unwrap(), again);
}

#[tokio::test]
async fn a_look_that_took_long_does_not_take_back_what_was_heard_meanwhile() {
    let world = world().await;
    let stale = world.runtime("a").await;
    let beat = world.ledger.heartbeat(&id("a"), None, None, at(100)).await.unwrap();
    assert_eq!(beat, ledger::Heartbeat::Recorded);
    let look = Observation { activity: Activity::At(at(50)), ..seen("a") };
    let known = Some(stale.clone());
    let record = world.ledger.observe_known(known, &look, |_| due(3_600), at(101)).await.unwrap();
    assert_eq!((record.idle_from, record.last_source), (at(100), Some(Signal::Heartbeat)));

    let claimed = won(world.suspend_claim("a", 100, 2_000).await);
    let record = world.ledger.observe_known(Some(stale), &look, |_| due(3_600), at(2_001)).await.unwrap();
    assert_eq!(record, claimed, "nor a claim that was made meanwhile");
}

#[tokio::test]
async fn a_run_that_a_record_can_not_hold_is_refused_by_name() {
    let world = world().await;
    let look = Observation { incarnation: run(&"x".repeat(101)), ..seen("a") };
    let error = world.ledger.observe(&look, due(0), at(0)).await.unwrap_err();
    assert_eq!(error.to_string(), "incarnation of `box/a` has 101 bytes; at most 100 are allowed");
    assert_eq!(world.item("a").await, None);
}

#[tokio::test]
async fn a_registered_runtime_that_is_seen_for_the_first_time_keeps_its_clock() {
    let world = world().await;
    let none = std::collections::BTreeMap::new().into();
    let registered = world.ledger.register(&id("a"), &none, due(3_600), at(0)).await.unwrap();
    let ledger::Registered::Done(record) = registered else { panic!("{registered:?}") };
    assert_eq!((record.incarnation, record.token), (None, first_token()));
    let look = Observation { running_since: Some(at(-50)), ..seen("a") };
    let record = observe(&world, &look, 10).await;
    assert_eq!((record.incarnation, record.idle_from, record.running_since), (Some(run("run-1")), at(0), Some(at(0))));
}

/// Two looks that were read at once, and a busy heartbeat that leaves the clock as it is: the longest veto stays.
#[tokio::test]
async fn a_veto_that_came_between_the_look_and_its_writing_is_kept() {
    let world = world().await;
    world.runtime("a").await;
    let _ = world.ledger.heartbeat(&id("a"), None, None, at(20)).await.unwrap();
    let known = world.ledger.get(&id("a")).await.unwrap();
    let busy = std::time::Duration::from_secs(100);
    let _ = world.ledger.heartbeat(&id("a"), None, Some(busy), at(19)).await.unwrap();
    let look = |until| Observation { busy: Busy::Until(at(until)), ..seen("a") };
    let late = world.ledger.observe_known(known.clone(), &look(60), |_| due(3_600), at(21)).await.unwrap();
    assert_eq!((late.idle_from, late.busy_until), (at(20), Some(at(119))));
    world.ledger.observe_known(known.clone(), &look(200), |_| due(3_600), at(22)).await.unwrap();
    let late = world.ledger.observe_known(known, &look(150), |_| due(3_600), at(23)).await.unwrap();
    assert_eq!(late.busy_until, Some(at(200)));
}

/// What was seen before somebody else's act is no news after it: it would undo what he wrote.
#[tokio::test]
async fn a_look_of_before_a_claim_changes_nothing_after_it() {
    let world = world().await;
    let looked_at = world.runtime("a").await;
    won(world.suspend_claim("a", 0, 2_000).await);
    let busy = Observation { busy: Busy::Until(at(9_000)), ..seen("a") };
    let observe =
        async || world.ledger.observe_known(Some(looked_at.clone()), &busy, |_| due(3_600), at(2_020)).await.unwrap();
    let claimed = world.record("a").await;
    assert_eq!((observe().await, world.record("a").await), (claimed.clone(), claimed.clone()));
    let done = ledger::Completion { ended: ledger::Ended::Suspended, saved_as_of: None, arming: due(9_000) };
    let _ = world.ledger.complete(&id("a"), claimed.token, &done, at(2_010)).await.unwrap();
    let suspended = world.record("a").await;
    assert_eq!((observe().await, world.record("a").await), (suspended.clone(), suspended));
}
