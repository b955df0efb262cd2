//! Many hands on one record, over many rounds: one wins, and the others are told.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::join_all;
use ledger::{Claimed, Heartbeat, Leased, Ledger, Lost, Taken};
use lifecycle::{State, policy::BudgetKind};

use super::fixture::{World, at, backend, claim, due, id, idle_claim, options, seen, world};

/// Runs each on a thread of its own, all let go at once.
async fn race<T, F>(contenders: Vec<F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(tokio::sync::Barrier::new(contenders.len()));
    let tasks = contenders.into_iter().map(|contender| {
        let start = start.clone();
        tokio::spawn(async move {
            start.wait().await;
            contender.await
        })
    });
    join_all(tasks).await.into_iter().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_claims_exactly_one_wins_in_every_round() {
    let world = world().await;
    for round in 0..10 {
        let name = format!("r{round}");
        let record = world.runtime(&name).await;
        let contenders = (0..50).map(|n| {
            let (ledger, mut request) = (world.ledger.clone(), idle_claim(&name, &record, 0, 2_060));
            request.owner = format!("pass-{n}");
            async move { (n, ledger.claim(&request, at(2_000)).await.unwrap()) }
        });
        let answers = race(contenders.collect()).await;
        let winners: Vec<_> = answers.iter().filter(|(_, answer)| matches!(answer, Claimed::Won(_))).collect();
        assert_eq!(winners.len(), 1, "round {round}");
        let owner = format!("pass-{}", winners[0].0);
        let expected = lifecycle::Record {
            state: State::Suspending,
            claim: Some(claim(&owner, 2_060)),
            token: record.token + 1,
            due_at: Some(at(2_070)),
            ..record
        };
        assert_eq!(winners[0].1, Claimed::Won(Box::new(expected.clone())));
        assert_eq!(world.record(&name).await, expected);
        for (_, answer) in answers.iter().filter(|(_, answer)| matches!(answer, Claimed::Lost(_))) {
            assert_eq!(*answer, Claimed::Lost(Lost::Claimed { until: at(2_070) }));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_contenders_on_two_connections_to_one_file_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::new(embedded::open(folder.path()).unwrap().client(), options());
    let ledgers = [open(), open()];
    let made = futures::future::try_join_all(ledgers.iter().map(Ledger::create_tables)).await;
    made.unwrap();
    for round in 0..5 {
        let name = format!("r{round}");
        let record = ledgers[0].observe(&seen(&name), due(3_600), at(0)).await.unwrap();
        let contenders = (0..20).map(|n| {
            let (ledger, request) = (ledgers[n % 2].clone(), idle_claim(&name, &record, 0, 2_060));
            async move { ledger.claim(&request, at(2_000)).await.unwrap() }
        });
        assert_eq!(wins(&race(contenders.collect()).await), 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_heartbeat_and_a_claim_one_loses_visibly_and_never_both() {
    let world = world().await;
    let mut outcomes = BTreeSet::new();
    for round in 0..100 {
        let name = format!("r{round}");
        let record = world.runtime(&name).await;
        let (ledger, request) = (world.ledger.clone(), idle_claim(&name, &record, 0, 2_060));
        let claiming = async move { ledger.claim(&request, at(2_000)).await.unwrap() };
        let (ledger, runtime) = (world.ledger.clone(), id(&name));
        let beating = async move { ledger.heartbeat(&runtime, None, None, at(2_000)).await.unwrap() };
        // Two rounds in a given order, so that both have been seen; the others race.
        let (claimed, beat) = match round {
            0 => (claiming.await, beating.await),
            1 => {
                let beat = beating.await;
                (claiming.await, beat)
            }
            _ => {
                let (claimed, beat) = (tokio::spawn(claiming), tokio::spawn(beating));
                (claimed.await.unwrap(), beat.await.unwrap())
            }
        };
        let after = world.record(&name).await;
        match (&claimed, &beat) {
            (Claimed::Won(_), Heartbeat::NotRunning { state: State::Suspending, wanted }) => {
                assert_eq!((after.state, after.wanted_at), (State::Suspending, Some(*wanted)));
                outcomes.insert("claim");
            }
            (Claimed::Lost(Lost::Active { idle_from }), Heartbeat::Recorded) => {
                assert_eq!((after.state, after.idle_from, *idle_from), (State::Running, at(2_000), at(2_000)));
                outcomes.insert("heartbeat");
            }
            other => panic!("round {round}: {other:?}, then {after:?}"),
        }
    }
    assert_eq!(outcomes, BTreeSet::from(["claim", "heartbeat"]), "both are possible");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_wakes_and_of_fifty_take_overs_one_wins() {
    let world = world().await;
    for round in 0..5 {
        let name = format!("r{round}");
        world.suspended(&name).await;
        let wakes = (0..50).map(|_| {
            let (ledger, runtime) = (world.ledger.clone(), id(&name));
            async move { ledger.wake(&runtime, "wake", at(3_060), at(3_000)).await.unwrap() }
        });
        assert_eq!(wins(&race(wakes.collect()).await), 1, "round {round}");
        let token = world.record(&name).await.token;
        let takes = (0..50).map(|_| {
            let (ledger, runtime) = (world.ledger.clone(), id(&name));
            async move { ledger.take_over(&runtime, token, "pass", at(3_200), at(3_070)).await.unwrap() }
        });
        assert_eq!(wins(&race(takes.collect()).await), 1, "round {round}");
    }
}

fn wins(answers: &[Claimed]) -> usize {
    answers.iter().filter(|answer| matches!(answer, Claimed::Won(_))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_budget_is_never_overspent_and_a_unit_has_one_lease() {
    let world = world().await;
    for window in 0..5 {
        let spenders = (0..50).map(|_| {
            let ledger = world.ledger.clone();
            async move { ledger.take_budget(&backend(), BudgetKind::Delete, window, 7, at(600)).await.unwrap() }
        });
        let answers = race(spenders.collect()).await;
        let numbers: BTreeSet<_> = answers
            .iter()
            .filter_map(|answer| match answer {
                Taken::Taken { used } => Some(*used),
                Taken::Spent { .. } => None,
            })
            .collect();
        assert_eq!(numbers, (1..=7).collect(), "each of the seven once");
        let used = world.ledger.used_budget(&backend(), BudgetKind::Delete, window).await.unwrap();
        assert_eq!(used, 7);
    }
    let leases = (0..50).map(|n| {
        let ledger = world.ledger.clone();
        async move { ledger.lease_unit(&backend(), &format!("pass-{n}"), at(60), at(0)).await.unwrap() }
    });
    let won = race(leases.collect()).await.into_iter().filter(|answer| matches!(answer, Leased::Won { .. }));
    assert_eq!(won.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn observations_heartbeats_and_holds_at_once_lose_nothing() {
    let world = world().await;
    world.runtime("a").await;
    let observing = (1..=20).map(|n| work(&world, n, Work::Observe));
    let beating = (1..=20).map(|n| work(&world, n, Work::Beat));
    let holding = (1..=5).map(|n| work(&world, n, Work::Hold));
    race(observing.chain(beating).chain(holding).collect()).await;
    let record = world.record("a").await;
    assert_eq!((record.idle_from, record.last_active), (at(20), Some(at(20))), "the newest sign of all");
    assert_eq!(record.busy_until, Some(at(120)), "the longest veto of all");
    assert_eq!(record.hold_until, Some(lifecycle::record::Hold::Forever));
}

enum Work {
    Observe,
    Beat,
    Hold,
}

fn work(world: &World, n: i64, work: Work) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    let ledger = world.ledger.clone();
    Box::pin(async move {
        match work {
            Work::Observe => {
                let busy = lifecycle::Busy::Until(at(100 + n));
                let seen = lifecycle::Observation { busy, ..seen("a") };
                // Against that many writers a try can run out of rounds; it says so, and is tried again.
                while let Err(error) = ledger.observe(&seen, due(3_600), at(n)).await {
                    assert!(error.passes(), "{error}");
                }
            }
            Work::Beat => {
                let beat = ledger.heartbeat(&id("a"), None, Some(Duration::from_secs(1)), at(n)).await.unwrap();
                assert!(matches!(beat, Heartbeat::Recorded | Heartbeat::Coalesced), "{beat:?}");
            }
            Work::Hold => {
                let hold = ledger::HoldRequest { hold: lifecycle::record::Hold::Forever, why: "mine", by: "me" };
                let answer = ledger.hold(&id("a"), &hold, None, at(n)).await.unwrap();
                assert!(matches!(answer, ledger::HoldSet::Held(_)), "{answer:?}");
            }
        }
    })
}
