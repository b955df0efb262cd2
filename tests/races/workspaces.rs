//! The one writer of a workspace.

use std::{collections::BTreeSet, time::Duration};

use ledger::Workspaces;
use workspace::{
    commit::{Acquired, After, Commit, Committed, Head, Lease, Renewed},
    key::{Key, Name, Sort},
    time::Clock,
};

use super::ground::{Ground, race};
use crate::ledger::fixture::at;

const TTL: Duration = Duration::from_mins(1);

/// The keeper as it is `seconds` after the beginning.
fn keeper(ground: &Ground, seconds: i64) -> Workspaces {
    let now = at(seconds).millis();
    Workspaces::new(ground.ledger.clone(), Clock::new(move || now))
}

fn head(lease: &Lease, generation: u64, nonce: u64) -> Head {
    let workspace = lease.workspace.clone();
    let manifest = Key { workspace, sort: Sort::Manifest, generation, token: lease.token, nonce };
    Head { manifest, blake3: "ab".repeat(32), generation, as_of_ms: 1, bytes: nonce }
}

/// Fifty want it; when it is over, fifty others; who had it first has nothing then.
pub(super) async fn a_lease_has_one_holder(ground: &Ground) {
    for (round, name) in ground.rounds() {
        let name = Name::new(&name).unwrap();
        let first = holder(ground, round, &name, 0).await;
        let second = holder(ground, round, &name, 71).await;
        assert!(second.token > first.token, "round {round}");
        let keeper = keeper(ground, 72);
        assert_eq!(keeper.renew(&first, TTL).await.unwrap(), Renewed::Lost, "round {round}");
        let late = keeper.commit(&first, 0, &head(&first, 1, 0), After::Release).await.unwrap();
        assert_eq!(late, Committed::Fenced, "round {round}");
        assert_eq!(keeper.lease(&name).await.unwrap(), Some(second), "round {round}");
    }
}

/// Whose it is when fifty want a lease of 60 s.
async fn holder(ground: &Ground, round: u32, name: &Name, now: i64) -> Lease {
    let wishes = (0..50).map(|n| {
        let (keeper, name) = (keeper(ground, now), name.clone());
        async move { keeper.acquire(&name, &format!("host-{n}"), TTL).await.unwrap() }
    });
    let answers = race(round, wishes.collect()).await;
    let until = at(now + 60).millis();
    let mut owners = BTreeSet::new();
    let mut granted = Vec::new();
    for answer in answers {
        match answer {
            Acquired::Granted { lease, head: None } => granted.push(lease),
            Acquired::Held { owner, until_ms } if until_ms == until => drop(owners.insert(owner)),
            other => panic!("round {round}: {other:?}"),
        }
    }
    let [lease] = &granted[..] else { panic!("round {round}: {granted:?}") };
    assert_eq!(owners, BTreeSet::from([lease.owner.clone()]), "round {round}: all the others are told whose it is");
    lease.clone()
}

/// Forty-five tries under the lease and five under the one before it, all onto one generation, several times.
pub(super) async fn commits_make_one_history(ground: &Ground) {
    for (round, name) in ground.rounds() {
        let name = Name::new(&name).unwrap();
        let stale = holder(ground, round, &name, 0).await;
        let current = holder(ground, round, &name, 71).await;
        for generation in 1..=4 {
            let tries = (0..50_u64).map(|n| {
                let lease = if n % 10 == 0 { stale.clone() } else { current.clone() };
                let keeper = keeper(ground, 72);
                async move {
                    let head = head(&lease, generation, n);
                    let done = keeper.commit(&lease, generation - 1, &head, After::Keep).await.unwrap();
                    (head, done)
                }
            });
            let answers = race(round, tries.collect()).await;
            let now = keeper(ground, 73).head(&name).await.unwrap().expect("one was first");
            for (head, done) in answers {
                let expected = match () {
                    () if head == now => Committed::Done,
                    () if head.manifest.token == stale.token => Committed::Fenced,
                    () => Committed::Moved(Some(now.clone())),
                };
                assert_eq!(done, expected, "round {round}, generation {generation}, {head:?}");
            }
            assert_eq!((now.generation, now.manifest.token), (generation, current.token), "round {round}");
        }
    }
}
