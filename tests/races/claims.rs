//! Of many who want to act on one runtime, one may.

use ledger::{Claimed, Lost};
use lifecycle::State;

use super::ground::{Ground, delete_claim, race};
use crate::ledger::fixture::{at, claim, id, idle_claim};

fn wins(answers: &[Claimed]) -> usize {
    answers.iter().filter(|answer| matches!(answer, Claimed::Won(_))).count()
}

pub(super) async fn of_fifty_claims_one_wins(ground: &Ground) {
    for (round, name) in ground.rounds() {
        let record = ground.runtime(&name).await;
        let contenders = (0..50).map(|n| {
            let (ledger, mut request) = (ground.ledger.clone(), idle_claim(&name, &record, 0, 2_060));
            request.owner = format!("pass-{n}");
            async move { (request.owner.clone(), ledger.claim(&request, at(2_000)).await.unwrap()) }
        });
        let answers = race(round, contenders.collect()).await;
        let (winners, losers): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(_, answer)| matches!(answer, Claimed::Won(_)));
        let [(owner, won)] = winners.as_slice() else { panic!("round {round}: {winners:?}") };
        let expected = lifecycle::Record {
            state: State::Suspending,
            claim: Some(claim(owner, 2_060)),
            token: record.token + 1,
            due_at: Some(at(2_070)),
            ..record
        };
        assert_eq!(*won, Claimed::Won(Box::new(expected.clone())), "round {round}");
        assert_eq!(ground.record(&name).await, expected, "round {round}");
        for (_, answer) in losers {
            assert_eq!(answer, Claimed::Lost(Lost::Claimed { until: at(2_070) }), "round {round}");
        }
    }
}

pub(super) async fn of_fifty_wakes_and_of_fifty_take_overs_one_wins(ground: &Ground) {
    for (round, name) in ground.rounds() {
        ground.suspended(&name).await;
        let wakes = (0..50).map(|_| {
            let (ledger, runtime) = (ground.ledger.clone(), id(&name));
            async move { ledger.wake(&runtime, "wake", at(3_060), at(3_000)).await.unwrap() }
        });
        assert_eq!(wins(&race(round, wakes.collect()).await), 1, "round {round}");
        let token = ground.record(&name).await.token;
        let takes = (0..50).map(|_| {
            let (ledger, runtime) = (ground.ledger.clone(), id(&name));
            async move { ledger.take_over(&runtime, token, "pass", at(3_200), at(3_070)).await.unwrap() }
        });
        assert_eq!(wins(&race(round, takes.collect()).await), 1, "round {round}");
        assert_eq!(ground.record(&name).await.token, token + 1, "round {round}");
    }
}

/// What rests is called back, or deleted: never both.
pub(super) async fn of_wakes_and_claims_of_what_rests_one_wins(ground: &Ground) {
    for (round, name) in ground.rounds() {
        let record = ground.suspended(&name).await;
        let contenders = (0..4).map(|n| {
            let (ledger, runtime) = (ground.ledger.clone(), id(&name));
            let delete = delete_claim(&name, &record, 2_010, 9_060);
            async move {
                match n % 2 {
                    0 => ledger.wake(&runtime, "wake", at(9_060), at(9_000)).await.unwrap(),
                    _ => ledger.claim(&delete, at(9_000)).await.unwrap(),
                }
            }
        });
        let answers = race(round, contenders.collect()).await;
        assert_eq!(wins(&answers), 1, "round {round}: {answers:?}");
        for answer in &answers {
            match answer {
                Claimed::Won(won) => assert_eq!(ground.record(&name).await, **won, "round {round}"),
                Claimed::Lost(lost) => assert_eq!(*lost, Lost::Claimed { until: at(9_070) }, "round {round}"),
            }
        }
    }
}
