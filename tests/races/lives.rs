//! A new life of an id begins while a holder of the life before still writes.

use ledger::{Completed, Ended, Failure, Heartbeat, Registered};
use lifecycle::State;

use super::ground::{Ground, ended, race};
use crate::ledger::fixture::{at, due, id};

/// When the claim has run out by every clock, in seconds.
const LATE: i64 = 2_070;

/// What one contender was told.
#[derive(Debug, PartialEq)]
enum Told {
    Registered(Registered),
    Late(Completed),
    Beat(Heartbeat),
}

/// The holder's claim ran out; it completes, hands over or gives back, late, while the id is registered again and
/// a heartbeat of the old life comes. A registration that comes after a late end is told when to come again, and is then
/// taken.
pub(super) async fn what_the_life_before_writes_late_changes_nothing(ground: &Ground) {
    let late = at(LATE);
    for (round, name) in ground.rounds() {
        let before = ground.suspending(&name).await;
        let contenders = (0..3).map(|n| {
            let (ledger, runtime, token) = (ground.ledger.clone(), id(&name), before.token);
            async move {
                match n {
                    0 => {
                        let new = ledger.register(&runtime, &<_>::default(), due(7_200), late).await.unwrap();
                        Told::Registered(new)
                    }
                    1 => Told::Late(write_late(&ledger, &runtime, token, round).await),
                    _ => Told::Beat(ledger.heartbeat(&runtime, Some(0), None, late).await.unwrap()),
                }
            }
        });
        let answers = race(round, contenders.collect()).await;
        let (mut registered, mut again, mut late_end) = (None, None, None);
        for answer in answers {
            match answer {
                Told::Registered(Registered::Done(record)) => registered = Some(*record),
                Told::Registered(refused) => again = Some(refused),
                Told::Late(ended) => late_end = Some(ended),
                Told::Beat(beat) => assert!(
                    matches!(
                        beat,
                        Heartbeat::NotRunning { .. } | Heartbeat::Superseded { epoch: 1 } | Heartbeat::Coalesced
                    ),
                    "round {round}: {beat:?}"
                ),
            }
        }
        if let Some(refused) = again {
            let until = at(LATE + 10);
            let expected = match round % 3 {
                0 => Registered::Overtaken { until },
                _ => Registered::Claimed { until },
            };
            let ended = matches!(late_end, Some(Completed::Done { .. }));
            assert_eq!((refused, ended, round % 3 < 2), (expected, true, true), "round {round}");
            match ground.ledger.register(&id(&name), &<_>::default(), due(7_200), until).await.unwrap() {
                Registered::Done(record) => registered = Some(*record),
                other => panic!("round {round}: {other:?}"),
            }
        }
        let record = ground.record(&name).await;
        assert_eq!(Some(&record), registered.as_ref(), "round {round}: as it was registered");
        assert_eq!((record.state, record.epoch, record.claim), (State::Running, 1, None), "round {round}");
        assert!(record.token > before.token && record.wanted_at.is_none(), "round {round}");
        let again = write_late(&ground.ledger, &id(&name), before.token, round).await;
        assert_eq!((again, ground.record(&name).await), (Completed::Fenced, registered.unwrap()), "round {round}");
    }
}

async fn write_late(ledger: &ledger::Ledger, id: &lifecycle::RuntimeId, token: u64, round: u32) -> Completed {
    let late = at(LATE);
    match round % 3 {
        0 => ledger.complete(id, token, &ended(Ended::Suspended), late).await.unwrap(),
        1 => ledger.hand_over(id, token, at(2_100), late).await.unwrap(),
        _ => ledger.abandon(id, token, State::Running, Failure::No { due_at: at(5_000) }, late).await.unwrap(),
    }
}
