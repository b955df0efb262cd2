//! A sign of life against whoever acts on its absence.

use std::{collections::BTreeSet, pin::Pin, time::Duration};

use futures::FutureExt as _;
use ledger::{Claimed, Completed, Ended, Failure, Heartbeat, Lost, Rearmed};
use lifecycle::{Record, State, Time};

use super::ground::{Ground, ended, race};
use crate::ledger::fixture::{at, backend, due, id, idle_claim, seen, won};

/// What one contender was told.
#[derive(Debug)]
enum Told {
    Claimed(Claimed),
    Beat(Time, Heartbeat),
    Ended(Completed),
    Rearmed(Rearmed),
    Lost,
}

type Contender = Pin<Box<dyn Future<Output = Told> + Send>>;

fn beat(ground: &Ground, name: &str, seconds: i64) -> Contender {
    let (ledger, runtime, now) = (ground.ledger.clone(), id(name), at(seconds));
    async move { Told::Beat(now, ledger.heartbeat(&runtime, None, None, now).await.unwrap()) }.boxed()
}

/// A claim whose evidence ends at 1,000 s; heartbeats of 900 s, which it may pass over, and of 2,000 s and later, which
/// it may not.
pub(super) async fn of_heartbeats_and_a_claim_one_side_loses_visibly(ground: &Ground) {
    let mut outcomes = BTreeSet::new();
    for (round, name) in ground.rounds() {
        let record = ground.runtime(&name).await;
        let (ledger, request) = (ground.ledger.clone(), idle_claim(&name, &record, 1_000, 2_060));
        let claiming = async move { Told::Claimed(ledger.claim(&request, at(2_000)).await.unwrap()) }.boxed();
        let beats = [900, 2_000, 2_001].map(|seconds| beat(ground, &name, seconds));
        // Two rounds in a given order, so that both ends have been seen; the others race.
        let answers = match round {
            0 => in_turn([claiming].into_iter().chain(beats).collect()).await,
            1 => in_turn(beats.into_iter().chain([claiming]).collect()).await,
            _ => race(round, beats.into_iter().chain([claiming]).collect()).await,
        };
        outcomes.insert(one_side_lost(round, &answers, &ground.record(&name).await));
    }
    assert_eq!(outcomes, BTreeSet::from(["claim", "heartbeat"]), "both are possible");
}

async fn in_turn(contenders: Vec<Contender>) -> Vec<Told> {
    let mut told = Vec::new();
    for contender in contenders {
        told.push(contender.await);
    }
    told
}

fn one_side_lost(round: u32, answers: &[Told], after: &Record) -> &'static str {
    let fresh: Vec<_> = answers
        .iter()
        .filter_map(|told| match told {
            Told::Beat(now, beat) if *now > at(1_000) => Some((*now, beat)),
            _ => None,
        })
        .collect();
    let claimed = answers.iter().find_map(|told| match told {
        Told::Claimed(claimed) => Some(claimed),
        _ => None,
    });
    match claimed.unwrap() {
        Claimed::Won(_) => {
            for (_, beat) in fresh {
                assert!(
                    matches!(beat, Heartbeat::NotRunning { state: State::Suspending, .. }),
                    "round {round}: {answers:?}"
                );
            }
            assert_eq!(after.state, State::Suspending, "round {round}");
            assert!(after.idle_from <= at(1_000), "round {round}: {after:?}");
            assert!(after.wanted_at.is_some_and(|wanted| wanted >= at(2_000)), "round {round}: {after:?}");
            "claim"
        }
        Claimed::Lost(Lost::Active { idle_from }) => {
            let recorded = fresh.iter().filter(|(_, beat)| **beat == Heartbeat::Recorded).map(|(now, _)| *now);
            assert_eq!(recorded.max(), Some(after.idle_from), "round {round}: {answers:?}");
            assert!(*idle_from > at(1_000), "round {round}: {answers:?}");
            assert!(
                fresh.iter().all(|(_, beat)| matches!(beat, Heartbeat::Recorded | Heartbeat::Coalesced)),
                "round {round}: {answers:?}"
            );
            assert_eq!((after.state, after.wanted_at), (State::Running, None), "round {round}");
            "heartbeat"
        }
        Claimed::Lost(other) => panic!("round {round}: {other:?}"),
    }
}

/// The holder of a claim died; its runtime beats, is refused, and somebody takes the claim over and finishes or
/// gives back what was begun. Whatever the order, it ends running, or wanted, due at once, and can be woken.
pub(super) async fn a_refused_heartbeat_outlives_its_dead_holder(ground: &Ground) {
    for (round, name) in ground.rounds() {
        let dead = ground.suspending(&name).await;
        let now = at(2_070);
        let finishes = |finish: bool| {
            let (ledger, runtime, token) = (ground.ledger.clone(), id(&name), dead.token);
            async move {
                let second = ledger.take_over(&runtime, token, "pass-2", at(2_130), now).await.unwrap();
                let Claimed::Won(second) = second else { return Told::Lost };
                Told::Ended(if finish {
                    ledger.complete(&runtime, second.token, &ended(Ended::Suspended), now).await.unwrap()
                } else {
                    let failed = Failure::No { due_at: at(5_000) };
                    ledger.abandon(&runtime, second.token, State::Running, failed, now).await.unwrap()
                })
            }
            .boxed()
        };
        let contenders = vec![
            beat(ground, &name, 2_071),
            finishes(true),
            finishes(round % 3 == 0),
            beat(ground, &name, 2_072),
            finishes(round % 3 == 0),
        ];
        let answers = race(round, contenders).await;
        let ends = answers.iter().filter(|told| matches!(told, Told::Ended(Completed::Done { .. }))).count();
        assert_eq!(ends, 1, "round {round}: {answers:?}");
        let refused = answers.iter().any(|told| matches!(told, Told::Beat(_, Heartbeat::NotRunning { .. })));
        let after = ground.record(&name).await;
        match after.state {
            State::Running => assert_eq!(after.wanted_at, None, "round {round}: {answers:?}"),
            State::Suspended => {
                assert!(refused && after.wanted_at >= Some(now), "round {round}: {answers:?}, then {after:?}");
                assert!(after.due_at <= Some(at(2_072)), "round {round}: due at once: {after:?}");
                won(ground.ledger.wake(&id(&name), "wake", at(2_200), at(2_140)).await.unwrap());
            }
            other => panic!("round {round}: {other}"),
        }
    }
}

/// Heartbeats while the tick puts the record back to when it comes due next: never later than the newest sign and
/// the idle time allow, never out of the index.
pub(super) async fn a_re_arm_is_never_later_than_the_newest_sign_allows(ground: &Ground) {
    let mut expected = BTreeSet::new();
    for (round, name) in ground.rounds() {
        ground.runtime(&name).await;
        let (ledger, runtime) = (ground.ledger.clone(), id(&name));
        let rearming = async move { Told::Rearmed(ledger.rearm(&runtime, at(3_600), at(3_600)).await.unwrap()) };
        let beats = [3_500, 3_590, 3_599, 3_601].map(|seconds| beat(ground, &name, seconds));
        let answers = race(round, beats.into_iter().chain([rearming.boxed()]).collect()).await;
        let after = ground.record(&name).await;
        assert_eq!(after.idle_from, at(3_601), "round {round}: {answers:?}");
        let rearmed = answers.iter().find_map(|told| match told {
            Told::Rearmed(rearmed) => Some(rearmed),
            _ => None,
        });
        match rearmed.unwrap() {
            Rearmed::Until(until) => {
                assert_eq!(after.due_at, Some(*until), "round {round}: {answers:?}");
                let armed = after.armed.unwrap();
                assert!(armed > at(0) && *until == armed.plus(Duration::from_mins(30)), "round {round}: {after:?}");
                assert!(*until <= after.idle_from.plus(Duration::from_mins(30)), "round {round}: {after:?}");
            }
            Rearmed::Look(seen) => {
                assert_eq!(seen.as_ref().unwrap().idle_from, at(0), "round {round}: nothing had been heard yet");
                assert_eq!(after.due_at, Some(at(3_600)), "round {round}");
            }
        }
        expected.insert((id(&name), after.due_at.unwrap()));
    }
    let indexed = ground.ledger.due(&backend(), at(10_000), expected.len() + 1).await.unwrap();
    assert_eq!(BTreeSet::from_iter(indexed.ids), expected, "each is in the index, at its time");
}

/// Twenty looks, twenty heartbeats, five holds: the newest sign, the longest veto and the hold are there at the end.
pub(super) async fn observations_heartbeats_and_holds_lose_nothing(ground: &Ground) {
    for (round, name) in ground.rounds() {
        ground.runtime(&name).await;
        let observing = (1..=20).map(|n| observes(ground, &name, n));
        let beating = (1..=20).map(|n| beats_busily(ground, &name, n));
        let holding = (1..=5).map(|n| holds(ground, &name, n));
        race(round, observing.chain(beating).chain(holding).collect()).await;
        let record = ground.record(&name).await;
        assert_eq!((record.idle_from, record.last_active), (at(20), Some(at(20))), "round {round}: the newest sign");
        assert_eq!(record.busy_until, Some(at(120)), "round {round}: the longest veto of all");
        assert_eq!(record.hold_until, Some(lifecycle::record::Hold::Forever), "round {round}");
    }
}

fn observes(ground: &Ground, name: &str, n: i64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let (ledger, seen) = (ground.ledger.clone(), seen(name));
    let seen = lifecycle::Observation { busy: lifecycle::Busy::Until(at(100 + n)), ..seen };
    async move {
        // Against that many writers a try can run out of rounds; it says so, and is tried again.
        while let Err(error) = ledger.observe(&seen, due(3_600), at(n)).await {
            assert!(error.passes(), "{error}");
        }
    }
    .boxed()
}

fn beats_busily(ground: &Ground, name: &str, n: i64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let (ledger, runtime) = (ground.ledger.clone(), id(name));
    async move {
        let beat = ledger.heartbeat(&runtime, None, Some(Duration::from_secs(1)), at(n)).await.unwrap();
        assert!(matches!(beat, Heartbeat::Recorded | Heartbeat::Coalesced), "{beat:?}");
    }
    .boxed()
}

fn holds(ground: &Ground, name: &str, n: i64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let (ledger, runtime) = (ground.ledger.clone(), id(name));
    async move {
        let hold = ledger::HoldRequest { hold: lifecycle::record::Hold::Forever, why: "mine", by: "me" };
        let answer = ledger.hold(&runtime, &hold, None, at(n)).await.unwrap();
        assert!(matches!(answer, ledger::HoldSet::Held(_)), "{answer:?}");
    }
    .boxed()
}
