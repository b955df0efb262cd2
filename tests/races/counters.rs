//! What is counted and leased for a whole backend.

use std::collections::BTreeSet;

use ledger::{Leased, Taken};
use lifecycle::policy::BudgetKind;

use super::ground::{Ground, race};
use crate::ledger::fixture::{at, backend};

pub(super) async fn a_budget_is_never_overspent(ground: &Ground) {
    for (round, _) in ground.rounds() {
        let window = i64::from(round);
        let spenders = (0..50).map(|_| {
            let ledger = ground.ledger.clone();
            async move { ledger.take_budget(&backend(), BudgetKind::Delete, window, 7, at(600)).await.unwrap() }
        });
        let answers = race(round, spenders.collect()).await;
        let numbers: Vec<_> = answers
            .iter()
            .filter_map(|answer| match answer {
                Taken::Taken { used } => Some(*used),
                Taken::Spent { used } => {
                    assert_eq!(*used, 7, "round {round}");
                    None
                }
            })
            .collect();
        assert_eq!(numbers.len(), 7, "round {round}: {numbers:?}");
        assert_eq!(BTreeSet::from_iter(numbers), (1..=7).collect(), "round {round}: each of the seven once");
        let used = ground.ledger.used_budget(&backend(), BudgetKind::Delete, window).await.unwrap();
        assert_eq!(used, 7, "round {round}");
    }
}

/// Fifty want the lease; when it has run out, fifty others; the first holder's fence is worth nothing then.
pub(super) async fn a_backend_has_one_holder(ground: &Ground) {
    for (round, _) in ground.rounds() {
        let begin = i64::from(round) * 1_000;
        let first = holder(ground, round, begin).await;
        let second = holder(ground, round, begin + 70).await;
        assert!(second > first, "round {round}");
        let now = at(begin + 71);
        assert!(!ground.ledger.renew_unit(&backend(), first, at(begin + 200), now).await.unwrap(), "round {round}");
        assert!(!ground.ledger.release_unit(&backend(), first, now).await.unwrap(), "round {round}");
        assert!(ground.ledger.release_unit(&backend(), second, now).await.unwrap(), "round {round}");
    }
}

/// Whose fence it is when fifty want a lease of 60 s.
async fn holder(ground: &Ground, round: u32, now: i64) -> u64 {
    let leases = (0..50).map(|n| {
        let ledger = ground.ledger.clone();
        async move { ledger.lease_unit(&backend(), &format!("pass-{n}"), at(now + 60), at(now)).await.unwrap() }
    });
    let (won, busy): (Vec<_>, Vec<_>) =
        race(round, leases.collect()).await.into_iter().partition(|answer| matches!(answer, Leased::Won { .. }));
    assert!(busy.iter().all(|answer| matches!(answer, Leased::Busy { until, .. } if *until == at(now + 70))));
    match won.as_slice() {
        [Leased::Won { token }] => *token,
        other => panic!("round {round}: {other:?}"),
    }
}
